package conformance

import (
	"fmt"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/store"
)

// ScanBench is a table that can be read as a whole.
type ScanBench interface {
	store.Table
	store.Scanner
}

// Scan exercises the reading of whole tables.
func Scan(t *testing.T, open func(*testing.T) ScanBench, k Knobs) {
	t.Helper()
	run(t, k, open, []exercise[ScanBench]{
		{name: "a whole table is read page by page, each item once", run: func(t T, tb ScanBench) {
			for _, ref := range []func(n int) item.Ref{
				func(n int) item.Ref { return task(fmt.Sprint("scan-", n%5), unique()) },
				func(int) item.Ref { return claim(unique()) },
			} {
				want := map[item.Ref]bool{}
				for n := range 40 {
					of := ref(n)
					want[of] = true
					write(t, tb, put(of, item.Item{"n": int64(n)}))
				}
				scanned := scanAll(t, tb, ref(0).Table, 7)
				for of := range want {
					if scanned[of] != 1 {
						t.Errorf("%s was read %d times", of, scanned[of])
					}
				}
			}
		}},
		{name: "a page of an unknown table, without a limit, or after another's cursor is refused",
			run: func(t T, tb ScanBench) {
				_, err := tb.Scan(t.Context(), "nowhere", "", 10)
				wantKind(t, err, fault.NotFound)
				_, err = tb.Scan(t.Context(), contract.Tasks, "", 0)
				wantKind(t, err, fault.Invalid)
				_, err = tb.Scan(t.Context(), contract.Tasks, "no cursor", 10)
				wantKind(t, err, fault.Invalid)
			}},
	})
}

// scanAll reads a whole table, and counts how often it read each item.
func scanAll(t T, tb store.Scanner, table string, limit int) map[item.Ref]int {
	t.Helper()
	s, _ := contract.SchemaOf(table)
	read := map[item.Ref]int{}
	for cursor := ""; ; {
		page, err := tb.Scan(t.Context(), table, cursor, limit)
		must(t, err)
		if len(page.Items) > limit {
			t.Errorf("a page has %d items; the limit is %d", len(page.Items), limit)
		}
		for _, i := range page.Items {
			ref := item.Ref{Table: table, PK: i.Str(s.PK)}
			if s.SK != "" {
				ref.SK = i.Str(s.SK)
			}
			read[ref]++
		}
		if cursor = page.Cursor; cursor == "" {
			return read
		}
	}
}
