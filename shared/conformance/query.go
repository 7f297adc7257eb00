package conformance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/store"
)

// all reads every page of a query and returns the named attribute of each item.
func all(t T, tb store.Table, q item.Query, attr string) []any {
	t.Helper()
	var got []any
	for pages := 0; ; pages++ {
		p, err := tb.Query(t.Context(), q)
		must(t, err)
		if q.Limit > 0 && len(p.Items) > q.Limit {
			t.Fatalf("a page holds %d items, the limit is %d", len(p.Items), q.Limit)
		}
		for _, i := range p.Items {
			got = append(got, i[attr])
		}
		if p.Cursor == "" {
			return got
		}
		if pages > 1000 {
			t.Fatalf("a thousand pages and no end")
		}
		q.Cursor = p.Cursor
	}
}

// page returns the first page with items, or the last page.
func page(t T, tb store.Table, q item.Query) item.Page {
	t.Helper()
	for {
		p, err := tb.Query(t.Context(), q)
		must(t, err)
		if len(p.Items) > 0 || p.Cursor == "" {
			return p
		}
		q.Cursor = p.Cursor
	}
}

// wantAll fails unless the query returns these values in this order, both in one page and page by
// page.
func wantAll(t T, tb store.Table, q item.Query, attr string, want ...any) {
	t.Helper()
	for _, limit := range []int{0, 1, 2, len(want), 100} {
		q.Limit = limit
		if got := all(t, tb, q, attr); !slices.Equal(got, want) {
			t.Errorf("%+v gives %v, want %v", q, got, want)
		}
	}
}

// eventuallyAll waits until an index, which lags, returns these values in this order.
func eventuallyAll(t T, tb store.Table, q item.Query, attr string, want ...any) {
	t.Helper()
	eventually(t, func() string {
		if got := all(t, tb, q, attr); !slices.Equal(got, want) {
			return fmt.Sprintf("%+v gives %v, want %v", q, got, want)
		}
		return ""
	})
}

func queryExercises() []exercise[store.Table] {
	return []exercise[store.Table]{
		{name: "a partition is read in the order of its sort keys, both ways, in pages, by half-open ranges",
			run: func(t T, tb store.Table) {
				pk := unique()
				order := []string{"!", "-", "0", "00", "1", "10", "2", "A", "a", "a#", "aa", "b", "z", "ä", "€",
					"😀"} // as their bytes compare
				for n := range order {
					write(t, tb, put(task(pk, order[(n*7)%len(order)]), nil))
				}
				write(t, tb, put(task(pk+"x", "b"), nil)) // in the next partition
				q := item.Query{Table: contract.Tasks, PK: pk, Consistent: true}
				var want []any
				for _, sk := range order {
					want = append(want, sk)
				}
				wantAll(t, tb, q, "sk", want...)
				q.From, q.To = "1", "aa"
				wantAll(t, tb, q, "sk", "1", "10", "2", "A", "a", "a#")
				q.Descending = true
				wantAll(t, tb, q, "sk", "a#", "a", "A", "2", "10", "1")
				q.To = nil
				wantAll(t, tb, q, "sk", "😀", "€", "ä", "z", "b", "aa", "a#", "a", "A", "2", "10", "1")
				q.From, q.To = nil, "1"
				wantAll(t, tb, q, "sk", "00", "0", "-", "!")
				q.From, q.To = "b", "b"
				wantAll(t, tb, q, "sk")
				q.From, q.To = "z", "b"
				wantAll(t, tb, q, "sk")
				q = item.Query{Table: contract.Tasks, PK: unique()}
				wantAll(t, tb, q, "sk")
			}},
		{name: "a partition of a table without sort key holds one item", run: func(t T, tb store.Table) {
			pk := unique()
			q := item.Query{Table: contract.Claims, PK: pk, Consistent: true}
			wantAll(t, tb, q, "a")
			write(t, tb, put(claim(pk), item.Item{"a": "1"}))
			wantAll(t, tb, q, "a", "1")
		}},
		{name: "a consistent query returns all of the last write at once", run: func(t T, tb store.Table) {
			pk := unique()
			for n := range int64(5) {
				want := write(t, tb, put(task(pk, "x"), item.Item{"n": n}))
				got := page(t, tb, item.Query{Table: contract.Tasks, PK: pk, Consistent: true})
				if len(got.Items) != 1 || !reflect.DeepEqual(got.Items[0], want) {
					t.Errorf("got %v, want %v", got.Items, want)
				}
			}
		}},
		{name: "paging continues while items are added and deleted", run: func(t T, tb store.Table) {
			pk := unique()
			for _, sk := range []string{"b", "d", "f", "h"} {
				write(t, tb, put(task(pk, sk), nil))
			}
			q := item.Query{Table: contract.Tasks, PK: pk, Consistent: true, Limit: 2}
			first := page(t, tb, q)
			write(t, tb, item.Write{Ref: task(pk, "d"), Name: "exercise.delete",
				Delete: true}) // the item at the cursor
			write(t, tb, put(task(pk, "a"), nil))
			write(t, tb, put(task(pk, "e"), nil))
			q.Cursor = first.Cursor
			if got := all(t, tb, q, "sk"); !slices.Equal(got, []any{"e", "f", "h"}) {
				t.Errorf("after b and d come %v, want e f h", got)
			}
		}},
		{name: "a result over a megabyte comes in several pages", run: func(t T, tb store.Table) {
			pk := unique()
			var want []any
			for n := range 8 {
				sk := fmt.Sprintf("%d", n)
				want = append(want, sk)
				write(t, tb, put(task(pk, sk), item.Item{"body": strings.Repeat("x", 200_000)}))
			}
			q := item.Query{Table: contract.Tasks, PK: pk, Consistent: true}
			if first := page(t, tb, q); len(first.Items) > 6 || first.Cursor == "" {
				t.Errorf("one page holds %d items of 200 KB, its cursor is %q", len(first.Items), first.Cursor)
			}
			if got := all(t, tb, q, "sk"); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}},
		{name: "an index holds the items that have both of its keys", run: func(t T, tb store.Table) {
			pk, slice := unique(), unique()
			q := item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: slice}
			write(t, tb, put(row(pk, "bare"), item.Item{"a": "1"}))
			write(t, tb, put(row(pk, "half"), item.Item{contract.AttrWakeSlice: slice}))
			write(t, tb, put(row(pk, "other half"), item.Item{contract.AttrWakeAt: int64(1)}))
			write(t, tb, put(row(pk, "whole"), item.Item{contract.AttrWakeSlice: slice, contract.AttrWakeAt: int64(1)}))
			eventuallyAll(t, tb, q, contract.AttrJobID, "whole")
			write(t, tb, item.Write{Ref: row(pk, "half"), Name: "exercise.set",
				Set: map[string]any{contract.AttrWakeAt: int64(2)}})
			eventuallyAll(t, tb, q, contract.AttrJobID, "whole", "half")
			write(t, tb, item.Write{Ref: row(pk, "whole"), Name: "exercise.move",
				Set: map[string]any{contract.AttrWakeAt: int64(3)}})
			eventuallyAll(t, tb, q, contract.AttrJobID, "half", "whole")
			write(t, tb, item.Write{Ref: row(pk, "half"), Name: "exercise.remove",
				Set: map[string]any{contract.AttrWakeSlice: nil}})
			eventuallyAll(t, tb, q, contract.AttrJobID, "whole")
			write(t, tb, item.Write{Ref: row(pk, "whole"), Name: "exercise.elsewhere",
				Set: map[string]any{contract.AttrWakeSlice: slice + "x"}})
			eventuallyAll(t, tb, q, contract.AttrJobID)
			q.PK = slice + "x"
			eventuallyAll(t, tb, q, contract.AttrJobID, "whole")
			must(t, tb.Commit(t.Context(), item.Write{Ref: row(pk, "whole"), Name: "exercise.delete", Delete: true}))
			eventuallyAll(t, tb, q, contract.AttrJobID)
		}},
		{name: "runs are indexed by their wake-ups, and what lies beside them is not", run: func(t T, tb store.Table) {
			pk, slice := unique(), unique()
			of := func(sk string) item.Ref { return item.Ref{Table: contract.Runs, PK: pk, SK: sk} }
			q := item.Query{Table: contract.Runs, Index: contract.DueIndex, PK: slice}
			due := item.Item{contract.AttrWakeSlice: slice, contract.AttrWakeAt: int64(1), "status": "RUNNING"}
			write(t, tb, put(of("run"), due))
			write(t, tb, item.Write{Ref: of("join#a#1"), Name: "exercise.count", Add: map[string]int64{"n": 1}})
			eventuallyAll(t, tb, q, contract.AttrSK, "run")
			waking := item.Item{contract.AttrWakeSlice: slice, contract.AttrWakeAt: int64(1)}
			wantShown(t, tb, q, with(of("run"), waking))
			write(t, tb, item.Write{Ref: of("run"), Name: "exercise.over",
				Set: map[string]any{contract.AttrWakeSlice: nil, contract.AttrWakeAt: nil}})
			eventuallyAll(t, tb, q, contract.AttrSK)
		}},
		{name: "an index returns its keys and what it projects, nothing else", run: func(t T, tb store.Table) {
			ref, group := row(unique(), "j"), unique()
			attributes := item.Item{
				contract.AttrWakeSlice: group + "#1", contract.AttrWakeAt: int64(5), contract.AttrGroup: group,
				contract.AttrGroupSort: "s", "version": int64(1), "attempt": int64(2), "pool": "short",
				"priority": "low", "due_at": int64(3), "secret": "no", "payload": "no",
			}
			write(t, tb, put(ref, attributes))
			due := item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: group + "#1"}
			eventuallyAll(t, tb, due, "due_at", int64(3))
			wantShown(t, tb, due, with(ref, item.Item{
				contract.AttrWakeSlice: group + "#1", contract.AttrWakeAt: int64(5),
				"version": int64(1), "attempt": int64(2), "pool": "short", "priority": "low", "due_at": int64(3),
			}))
			byGroup := item.Query{Table: contract.Jobs, Index: contract.GroupIndex, PK: group}
			eventuallyAll(t, tb, byGroup, contract.AttrGroupSort, "s")
			wantShown(t, tb, byGroup, with(ref, item.Item{contract.AttrGroup: group, contract.AttrGroupSort: "s"}))
			write(t, tb, item.Write{Ref: ref, Name: "exercise.set",
				Set: map[string]any{"attempt": int64(7), "pool": nil}})
			eventuallyAll(t, tb, due, "attempt", int64(7))
			eventuallyAll(t, tb, due, "pool", nil)
		}},
		{name: "an index by number is read in the order of numbers, both ways, in pages, by half-open ranges",
			run: func(t T, tb store.Table) {
				slice := unique()
				order := []int64{-20, -3, 0, 1, 2, 10, 11, 100, 1_900_000_000_000}
				var want []any
				for n, at := range order {
					want = append(want, at)
					at := order[(n*4)%len(order)]
					write(t, tb, put(row(unique(), "j"), item.Item{contract.AttrWakeSlice: slice,
						contract.AttrWakeAt: at}))
				}
				q := item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: slice}
				eventuallyAll(t, tb, q, contract.AttrWakeAt, want...)
				wantAll(t, tb, q, contract.AttrWakeAt, want...)
				q.From, q.To = int64(-3), int64(10)
				wantAll(t, tb, q, contract.AttrWakeAt, int64(-3), int64(0), int64(1), int64(2))
				q.Descending = true
				wantAll(t, tb, q, contract.AttrWakeAt, int64(2), int64(1), int64(0), int64(-3))
				q.From, q.To = int64(11), nil
				wantAll(t, tb, q, contract.AttrWakeAt, int64(1_900_000_000_000), int64(100), int64(11))
				q.From, q.To = nil, int64(0)
				wantAll(t, tb, q, contract.AttrWakeAt, int64(-3), int64(-20))
			}},
		{name: "an index by text is read by half-open ranges, with all of equal keys, in pages of any size",
			run: func(t T, tb store.Table) {
				group := unique()
				for n := range 7 {
					write(t, tb, put(row(unique(), "j"), item.Item{contract.AttrGroup: group,
						contract.AttrGroupSort: "same", contract.AttrDeadShard: group,
						contract.AttrDeadAt: int64(n / 4)}))
				}
				write(t, tb, put(row(unique(), "j"), item.Item{contract.AttrGroup: group,
					contract.AttrGroupSort: "after"}))
				write(t, tb, put(row(unique(), "j"), item.Item{contract.AttrGroup: group,
					contract.AttrGroupSort: "zzz"}))
				q := item.Query{Table: contract.Jobs, Index: contract.GroupIndex, PK: group}
				same := slices.Repeat([]any{"same"}, 7)
				eventuallyAll(t, tb, q, contract.AttrGroupSort, append(append([]any{"after"}, same...), "zzz")...)
				q.From, q.To = "b", "zzz"
				wantAll(t, tb, q, contract.AttrGroupSort, same...)
				q.From, q.To, q.Descending = nil, "zzz", true
				wantAll(t, tb, q, contract.AttrGroupSort, append(slices.Clone(same), "after")...)
				dead := item.Query{Table: contract.Jobs, Index: contract.DeadIndex, PK: group}
				eventuallyAll(t, tb, dead, contract.AttrDeadAt, int64(0), int64(0), int64(0), int64(0), int64(1),
					int64(1),
					int64(1))
			}},
		{name: "a query that DynamoDB refuses is invalid", run: func(t T, tb store.Table) {
			for what, q := range map[string]item.Query{
				"an index that there is not": {Table: contract.Jobs, Index: "nowhere", PK: "x"},
				"a consistent read of an index": {Table: contract.Jobs, Index: contract.DueIndex, PK: "x",
					Consistent: true},
				"a bound of another type": {Table: contract.Jobs, Index: contract.DueIndex, PK: "x",
					From: "text"},
				"a cursor that nobody has given": {Table: contract.Tasks, PK: "x", Cursor: "nonsense"},
			} {
				if _, err := tb.Query(t.Context(), q); fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s: got %v, want kind invalid", what, err)
				}
			}
		}},
	}
}

func wantShown(t T, tb store.Table, q item.Query, want item.Item) {
	t.Helper()
	if got := page(t, tb, q); len(got.Items) != 1 || !reflect.DeepEqual(got.Items[0], want) {
		t.Errorf("the index shows %v, want %v", got.Items, want)
	}
}
