package conformance

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/store"
)

// Table exercises a table. It uses the tables of contract.Schemas, with unique keys.
func Table(t *testing.T, open func(*testing.T) store.Table, k Knobs) {
	t.Helper()
	run(t, k, open, table())
}

func table() []exercise[store.Table] {
	return append(append(itemExercises(), commitExercises()...), queryExercises()...)
}

// task returns the key of an item in the tasks table, which has a sort key and no index.
func task(pk, sk string) item.Ref { return item.Ref{Table: contract.Tasks, PK: pk, SK: sk} }

// claim returns the key of an item in the claims table, which has no sort key.
func claim(pk string) item.Ref { return item.Ref{Table: contract.Claims, PK: pk} }

// row returns the key of an item in the jobs table, which has indexes.
func row(pk, id string) item.Ref { return item.Ref{Table: contract.Jobs, PK: pk, SK: id} }

// with returns the item of a key with some attributes.
func with(ref item.Ref, attributes item.Item) item.Item {
	s, _ := contract.SchemaOf(ref.Table)
	i := attributes.Clone()
	if i == nil {
		i = item.Item{}
	}
	i[s.PK] = ref.PK
	if s.SK != "" {
		i[s.SK] = ref.SK
	}
	return i
}

func put(ref item.Ref, attributes item.Item) item.Write {
	return item.Write{Ref: ref, Name: "exercise.put", Put: with(ref, attributes)}
}

func write(t T, tb store.Table, w item.Write) item.Item {
	t.Helper()
	i, err := tb.Write(t.Context(), w)
	must(t, err)
	return i
}

func wantItem(t T, tb store.Table, ref item.Ref, want item.Item) {
	t.Helper()
	got, err := tb.Get(t.Context(), ref)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s holds %v, want %v", ref, got, want)
	}
}

func itemExercises() []exercise[store.Table] {
	return []exercise[store.Table]{
		{name: "an absent item reads as nil", run: func(t T, tb store.Table) {
			wantItem(t, tb, task(unique(), "x"), nil)
			wantItem(t, tb, claim(unique()), nil)
		}},
		{name: "an item is read back as it was put, and a later put replaces all of it",
			run: func(t T, tb store.Table) {
				for _, ref := range []item.Ref{task(unique(), "x"), claim(unique()), row(unique(), "j")} {
					first := with(ref, item.Item{"s": "ü“\n", "empty": "", "max": int64(math.MaxInt64),
						"min": int64(math.MinInt64), "zero": int64(0)})
					got := write(t, tb, item.Write{Ref: ref, Name: "exercise.put", Put: first})
					if !reflect.DeepEqual(got, first) {
						t.Errorf("the put returned %v, want %v", got, first)
					}
					wantItem(t, tb, ref, first)
					write(t, tb, put(ref, item.Item{"other": "y"}))
					wantItem(t, tb, ref, with(ref, item.Item{"other": "y"}))
				}
			}},
		{name: "many items are returned in the order asked, across tables, nil for absent ones",
			run: func(t T, tb store.Table) {
				pk := unique()
				var refs []item.Ref
				var want []item.Item
				for n := range 98 {
					ref := task(pk, fmt.Sprintf("%02d", (n*37)%98))
					refs = append(refs, ref)
					if n%3 == 0 {
						want = append(want, nil)
						continue
					}
					want = append(want, write(t, tb, put(ref, item.Item{"n": int64(n)})))
				}
				other := claim(pk)
				want = append(want, write(t, tb, put(other, nil)), nil)
				refs = append(refs, other, claim(unique()))
				got, err := tb.GetMany(t.Context(), refs)
				must(t, err)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}},
		{name: "asking for no items is no error", run: func(t T, tb store.Table) {
			got, err := tb.GetMany(t.Context(), nil)
			must(t, err)
			if len(got) != 0 {
				t.Errorf("got %v", got)
			}
		}},
		{name: "a table keeps its identity, which no other has", run: func(t T, tb store.Table) {
			seen := map[string]bool{}
			for _, s := range contract.AllSchemas() {
				for range 2 {
					is, err := tb.Identity(t.Context(), s.Name)
					must(t, err)
					if is.ID == "" || is.Restored {
						t.Errorf("%s is %+v", s.Name, is)
					}
					seen[is.ID] = true
				}
			}
			if len(seen) != len(contract.AllSchemas()) {
				t.Errorf("%d tables had the identities %v", len(contract.AllSchemas()), seen)
			}
			_, err := tb.Identity(t.Context(), "nowhere")
			wantKind(t, err, fault.NotFound)
		}},
		{name: "each comparison of a condition gives the answer of package item", run: conditions},
		{name: "one alternative is enough, and needs all of its conditions", run: func(t T, tb store.Table) {
			yes, no := item.Cond{Attr: "a", Op: item.Eq, Value: "1"}, item.Cond{Attr: "a", Op: item.Eq, Value: "2"}
			for _, c := range []struct {
				when  []item.All
				holds bool
			}{
				{nil, true},
				{[]item.All{{yes, yes}}, true},
				{[]item.All{{yes, no}}, false},
				{[]item.All{{no}, {yes}}, true},
				{[]item.All{{no, yes}, {yes, no}}, false},
				{[]item.All{{no, yes}, {yes, no}, {yes}}, true},
			} {
				ref := task(unique(), "x")
				write(t, tb, put(ref, item.Item{"a": "1"}))
				_, err := tb.Write(t.Context(), item.Write{Ref: ref, Name: "exercise.any", When: c.when,
					Set: map[string]any{"b": "2"}})
				if c.holds {
					must(t, err)
				} else {
					_ = refusal(t, err)
				}
			}
		}},
		{name: "a refused write returns the item and changes nothing", run: func(t T, tb store.Table) {
			ref := task(unique(), "x")
			old := write(t, tb, put(ref, item.Item{"a": "1", "n": int64(7)}))
			when := []item.All{{{Attr: "a", Op: item.Missing}}}
			for _, w := range []item.Write{
				{Put: with(ref, nil)}, {Delete: true}, {Set: map[string]any{"a": "2"}}, {Add: map[string]int64{"n": 1}},
				{Set: map[string]any{"a": nil}},
			} {
				w.Ref, w.Name, w.When = ref, "exercise.refused", when
				i, err := tb.Write(t.Context(), w)
				r := refusal(t, err)
				if i != nil || r.Name != "exercise.refused" || !reflect.DeepEqual(r.Olds, map[int]item.Item{0: old}) {
					t.Errorf("got %v and refusal %+v, want nil and the item %v", i, r, old)
				}
			}
			wantItem(t, tb, ref, old)
		}},
		{name: "a write that is refused for an absent item returns nil", run: func(t T, tb store.Table) {
			for _, ref := range []item.Ref{task(unique(), "x"), claim(unique())} {
				for _, w := range []item.Write{{Put: with(ref, nil)}, {Delete: true}, {Set: map[string]any{"a": "2"}}} {
					w.Ref, w.Name, w.When = ref, "exercise.refused", []item.All{{{Attr: "a", Op: item.Exists}}}
					_, err := tb.Write(t.Context(), w)
					if r := refusal(t, err); !reflect.DeepEqual(r.Olds, map[int]item.Item{0: nil}) {
						t.Errorf("refusal shows %v, want write 0 and nil", r.Olds)
					}
				}
				wantItem(t, tb, ref, nil)
			}
		}},
		{name: "an update creates an absent item, sets, removes and counts, and returns the new item",
			run: func(t T, tb store.Table) {
				for _, ref := range []item.Ref{task(unique(), "x"), claim(unique())} {
					update := func(set map[string]any, add map[string]int64, want item.Item) {
						t.Helper()
						got := write(t, tb, item.Write{Ref: ref, Name: "exercise.update", Set: set, Add: add})
						if want = with(ref, want); !reflect.DeepEqual(got, want) {
							t.Errorf("the update returned %v, want %v", got, want)
						}
						wantItem(t, tb, ref, want)
					}
					update(map[string]any{"a": "1", "gone": nil}, map[string]int64{"n": 3},
						item.Item{"a": "1", "n": int64(3)})
					update(map[string]any{"b": int64(2), "a": nil}, map[string]int64{"n": -4, "m": 1},
						item.Item{"b": int64(2), "n": int64(-1), "m": int64(1)})
					update(map[string]any{"a": nil}, nil, item.Item{"b": int64(2), "n": int64(-1), "m": int64(1)})
					update(map[string]any{"b": "text", "n": nil, "m": nil}, nil, item.Item{"b": "text"})
				}
				ref := claim(unique())
				got := write(t, tb, item.Write{Ref: ref, Name: "exercise.update", Set: map[string]any{"gone": nil}})
				if want := with(ref, nil); !reflect.DeepEqual(got, want) {
					t.Errorf("an update that only removes made %v of an absent item, want %v", got, want)
				}
			}},
		{name: "names that DynamoDB reserves are attributes like others", run: func(t T, tb store.Table) {
			ref := task(unique(), "x")
			write(t, tb, item.Write{
				Ref: ref, Name: "exercise.words", Set: map[string]any{"status": "s", "owner": "o", "a-b.c": "d"},
				Add:  map[string]int64{"size": 1},
				When: []item.All{{{Attr: "name", Op: item.Missing}, {Attr: "token", Op: item.Missing}}},
			})
			wantItem(t, tb, ref, with(ref, item.Item{"status": "s", "owner": "o", "a-b.c": "d", "size": int64(1)}))
		}},
		{name: "a delete returns nil, and of an absent item is no error", run: func(t T, tb store.Table) {
			for _, ref := range []item.Ref{task(unique(), "x"), claim(unique())} {
				write(t, tb, put(ref, nil))
				for range 2 {
					if got := write(t, tb, item.Write{Ref: ref, Name: "exercise.delete", Delete: true}); got != nil {
						t.Errorf("the delete returned %v", got)
					}
					wantItem(t, tb, ref, nil)
				}
			}
		}},
		{name: "of many writes that race for one item exactly one succeeds, and the others return its item",
			run: func(t T, tb store.Table) {
				ref := claim(unique())
				var wg sync.WaitGroup
				var mu sync.Mutex
				won := 0
				for n := range 8 {
					wg.Go(func() {
						w := put(ref, item.Item{"n": int64(n)})
						w.When = []item.All{{{Attr: "pk", Op: item.Missing}}}
						_, err := tb.Write(t.Context(), w)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							won++
							return
						}
						if store.Refused(err) == nil || store.Refused(err).Olds[0] == nil {
							t.Errorf("got %v, want a refusal that shows the winner's item", err)
						}
					})
				}
				wg.Wait()
				if won != 1 {
					t.Errorf("%d won", won)
				}
			}},
		{name: "concurrent counts are all added", run: func(t T, tb store.Table) {
			ref := claim(unique())
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 5 {
						if _, err := tb.Write(t.Context(), item.Write{Ref: ref, Name: "exercise.count",
							Add: map[string]int64{"n": 1}}); err != nil {
							t.Errorf("%v", err)
						}
					}
				})
			}
			wg.Wait()
			wantItem(t, tb, ref, with(ref, item.Item{"n": int64(40)}))
		}},
		{name: "an item that was read stays as it was read", run: func(t T, tb store.Table) {
			ref := task(unique(), "x")
			put := write(t, tb, item.Write{Ref: ref, Name: "exercise.first", Put: with(ref, item.Item{"a": "1"})})
			read, err := tb.Get(t.Context(), ref)
			must(t, err)
			page, err := tb.Query(t.Context(), item.Query{Table: ref.Table, PK: ref.PK})
			must(t, err)
			write(t, tb, item.Write{Ref: ref, Name: "exercise.second", Set: map[string]any{"a": "2", "b": "3"}})
			for _, was := range append(page.Items, put, read) {
				if want := with(ref, item.Item{"a": "1"}); !maps.Equal(was, want) {
					t.Errorf("it has become %v", was)
				}
			}
		}},
		{name: "an item over DynamoDB's 400 KB is refused for its size", run: func(t T, tb store.Table) {
			ref := task(unique(), "x")
			_, err := tb.Write(t.Context(), put(ref, item.Item{"a": strings.Repeat("x", 400<<10)}))
			wantKind(t, err, fault.TooLarge, fault.Invalid)
			wantItem(t, tb, ref, nil)
			write(t, tb, put(ref, item.Item{"a": strings.Repeat("x", 399<<10)}))
		}},
		{name: "a write that DynamoDB refuses is invalid", run: func(t T, tb store.Table) {
			ref := row(unique(), "j")
			for what, w := range map[string]item.Write{
				"a value of a type that items do not have": {Ref: ref, Set: map[string]any{"a": 1.5}},
				"a condition on such a value": {Ref: ref, Set: map[string]any{"a": "1"},
					When: []item.All{{{Attr: "a", Op: item.Eq, Value: true}}}},
				"an alternative without conditions": {Ref: ref, Set: map[string]any{"a": "1"},
					When: []item.All{{}}},
				"a change of the key": {Ref: ref,
					Set: map[string]any{contract.AttrJobID: "other"}},
				"a key without its sort key": {Ref: item.Ref{Table: contract.Jobs, PK: ref.PK},
					Delete: true},
				"an empty key": {Ref: item.Ref{Table: contract.Claims}, Delete: true},
			} {
				w.Name = "exercise.invalid"
				if _, err := tb.Write(t.Context(), w); fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s: got %v, want kind invalid", what, err)
				}
			}
			wantItem(t, tb, ref, nil)
		}},
		{name: "an index key of another type is invalid", run: func(t T, tb store.Table) {
			ref := row(unique(), "j")
			_, err := tb.Write(t.Context(), put(ref, item.Item{contract.AttrWakeSlice: "s",
				contract.AttrWakeAt: "not a number"}))
			wantKind(t, err, fault.Invalid)
			wantItem(t, tb, ref, nil)
		}},
		{name: "a missing table is not found", run: func(t T, tb store.Table) {
			_, err := tb.Get(t.Context(), item.Ref{Table: "nowhere", PK: "x"})
			wantKind(t, err, fault.NotFound)
		}},
		{name: "a call on a table with an ended context returns a retryable error", run: func(t T, tb store.Table) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			ref := task(unique(), "x")
			_, err := tb.Write(ctx, put(ref, nil))
			wantKind(t, err, fault.Unavailable)
			wantItem(t, tb, ref, nil)
		}},
	}
}

// conditions tries every comparison on a string, a number, an absent attribute and an absent item.
func conditions(t T, tb store.Table) {
	pk := unique()
	here := item.Item{"s": "m", "n": int64(5)}
	ops := []item.Op{item.Exists, item.Missing, item.Eq, item.Ne, item.Lt, item.Le, item.Gt, item.Ge}
	values := []any{"a", "m", "mm", "z", int64(-5), int64(5), int64(10)}
	var conds []item.Cond
	for _, attr := range []string{"s", "n", "absent"} {
		for _, op := range ops {
			for _, v := range values {
				conds = append(conds, item.Cond{Attr: attr, Op: op, Value: v})
				if op == item.Exists || op == item.Missing {
					break // they take no value
				}
			}
		}
		for _, list := range [][]string{{"m"}, {"x", "m", "y"}, {"x"}} {
			conds = append(conds, item.Cond{Attr: attr, Op: item.In, Value: list})
		}
	}
	for n, c := range conds {
		for _, exists := range []bool{true, false} {
			ref := task(pk, fmt.Sprintf("%d-%v", n, exists))
			var old item.Item
			if exists {
				old = write(t, tb, put(ref, here))
			} else if n%4 != 0 {
				continue // on an absent item every attribute is absent, so a quarter of the cases is enough
			}
			_, err := tb.Write(t.Context(), item.Write{Ref: ref, Name: "exercise.condition", When: []item.All{{c}},
				Set: map[string]any{"done": "1"}})
			if refused := store.Refused(err); err != nil && refused == nil {
				t.Errorf("%s %s %v of %v: %v", c.Attr, c.Op, c.Value, old, err)
			} else if holds := refused == nil; holds != c.Holds(old) {
				t.Errorf("%s %s %v of %v: held %v, want %v", c.Attr, c.Op, c.Value, old, holds, c.Holds(old))
			}
		}
	}
}
