package conformance

import (
	"fmt"
	"reflect"
	"sync"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/store"
)

func commitExercises() []exercise[store.Table] {
	isThere := []item.All{{{Attr: "a", Op: item.Exists}}}
	return []exercise[store.Table]{
		{name: "a commit puts, updates, deletes and checks across tables", run: func(t T, tb store.Table) {
			pk := unique()
			write(t, tb, put(task(pk, "update"), item.Item{"a": "1", "b": "1"}))
			write(t, tb, put(task(pk, "delete"), item.Item{"a": "1"}))
			write(t, tb, put(task(pk, "check"), item.Item{"a": "1"}))
			w := put(claim(pk), item.Item{"new": "1"})
			w.When = []item.All{{{Attr: "pk", Op: item.Missing}}}
			must(t, tb.Commit(t.Context(), w,
				item.Write{Ref: task(pk, "update"), Name: "exercise.update", When: isThere,
					Set: map[string]any{"b": nil, "c": "3"}, Add: map[string]int64{"n": 2}},
				item.Write{Ref: task(pk, "delete"), Name: "exercise.delete", When: isThere, Delete: true},
				item.Write{Ref: task(pk, "check"), Name: "exercise.check", When: isThere, Check: true},
				item.Write{Ref: task(pk, "absent"), Name: "exercise.check",
					When: []item.All{{{Attr: "a", Op: item.Missing}}}, Check: true},
				item.Write{Ref: row(pk, "made"), Name: "exercise.update", Set: map[string]any{"a": "1"}},
			))
			wantItem(t, tb, claim(pk), with(claim(pk), item.Item{"new": "1"}))
			wantItem(t, tb, task(pk, "update"), with(task(pk, "update"), item.Item{"a": "1", "c": "3", "n": int64(2)}))
			wantItem(t, tb, task(pk, "delete"), nil)
			wantItem(t, tb, task(pk, "check"), with(task(pk, "check"), item.Item{"a": "1"}))
			wantItem(t, tb, task(pk, "absent"), nil)
			wantItem(t, tb, row(pk, "made"), with(row(pk, "made"), item.Item{"a": "1"}))
		}},
		{name: "a commit with refused writes changes nothing and returns their items, by index",
			run: func(t T, tb store.Table) {
				pk := unique()
				there := write(t, tb, put(task(pk, "there"), item.Item{"a": "1", "n": int64(1)}))
				checked := write(t, tb, put(row(pk, "j"), item.Item{"b": "1"}))
				onlyNew := put(task(pk, "there"), nil)
				onlyNew.Name, onlyNew.When = "exercise.new", []item.All{{{Attr: contract.AttrPK, Op: item.Missing}}}
				err := tb.Commit(t.Context(),
					put(task(pk, "fine"), nil),
					onlyNew,
					item.Write{Ref: claim(pk), Name: "exercise.absent", When: isThere, Set: map[string]any{"b": "1"}},
					item.Write{Ref: row(pk, "j"), Name: "exercise.check", When: isThere, Check: true},
					item.Write{Ref: task(pk, "fine too"), Name: "exercise.update", Set: map[string]any{"b": "1"}},
				)
				r := refusal(t, err)
				want := map[int]item.Item{1: there, 2: nil, 3: checked}
				if !reflect.DeepEqual(r.Olds, want) {
					t.Errorf("the refusal shows %v, want %v", r.Olds, want)
				}
				if r.Name == "" {
					t.Errorf("the refusal names no write")
				}
				wantItem(t, tb, task(pk, "fine"), nil)
				wantItem(t, tb, task(pk, "there"), there)
				wantItem(t, tb, claim(pk), nil)
				wantItem(t, tb, row(pk, "j"), checked)
				wantItem(t, tb, task(pk, "fine too"), nil)
			}},
		{name: "a commit takes up to a hundred writes, and none is no error", run: func(t T, tb store.Table) {
			pk := unique()
			var writes []item.Write
			for n := range 101 {
				writes = append(writes, put(task(pk, fmt.Sprintf("%03d", n)), item.Item{"n": int64(n)}))
			}
			wantKind(t, tb.Commit(t.Context(), writes...), fault.Invalid)
			wantItem(t, tb, writes[0].Ref, nil)
			must(t, tb.Commit(t.Context(), writes[:100]...))
			wantItem(t, tb, writes[99].Ref, writes[99].Put)
			must(t, tb.Commit(t.Context()))
		}},
		{name: "a commit that writes one item twice is invalid", run: func(t T, tb store.Table) {
			ref := task(unique(), "x")
			wantKind(t, tb.Commit(t.Context(), put(ref, nil),
				item.Write{Ref: ref, Name: "exercise.check", When: isThere, Check: true}), fault.Invalid)
			wantItem(t, tb, ref, nil)
		}},
		{name: "of commits that race for the same items exactly one succeeds, with all of its writes",
			run: func(t T, tb store.Table) {
				pk := unique()
				var wg sync.WaitGroup
				var mu sync.Mutex
				won := 0
				for n := range 4 {
					wg.Go(func() {
						var writes []item.Write
						for _, ref := range []item.Ref{task(pk, "x"), task(pk, "y"), claim(pk)} {
							w := put(ref, item.Item{"n": int64(n)})
							w.When = []item.All{{{Attr: "n", Op: item.Missing}}}
							writes = append(writes, w)
						}
						if n%2 == 1 {
							writes[0], writes[2] = writes[2], writes[0]
						}
						err := tb.Commit(t.Context(), writes...)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							won++
						} else if store.Refused(err) == nil && fault.KindOf(err) != fault.Conflict {
							t.Errorf("got %v, want a refusal or a conflict", err)
						}
					})
				}
				wg.Wait()
				got, err := tb.GetMany(t.Context(), []item.Ref{task(pk, "x"), task(pk, "y"), claim(pk)})
				must(t, err)
				if won > 1 || won == 1 && (got[0]["n"] != got[1]["n"] || got[1]["n"] != got[2]["n"] || got[0] == nil) {
					t.Errorf("%d won, and the items are %v", won, got)
				}
				if won == 0 {
					t.Errorf("none won")
				}
			}},
	}
}
