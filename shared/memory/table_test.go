package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
)

// bubble runs f over a World in virtual time. Whatever still runs at the end is an error.
func bubble(t *testing.T, o memory.Options, f func(t *testing.T, w *memory.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := memory.New(o)
		defer w.Close()
		f(t, w)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func row(id string) item.Ref { return item.Ref{Table: contract.Jobs, PK: "acme#1", SK: id} }

func put(ref item.Ref, attributes item.Item) item.Write {
	i := attributes.Clone()
	if i == nil {
		i = item.Item{}
	}
	i["pk"] = ref.PK
	if ref.SK != "" {
		s, _ := contract.SchemaOf(ref.Table)
		i[s.SK] = ref.SK
	}
	return item.Write{Ref: ref, Name: "test.put", Put: i}
}

func write(t *testing.T, w *memory.World, writes ...item.Write) {
	t.Helper()
	for _, one := range writes {
		_, err := w.Table().Write(t.Context(), one)
		must(t, err)
	}
}

// due returns the ids that the due index shows in a slice.
func due(t *testing.T, w *memory.World, slice string) []string {
	t.Helper()
	page, err := w.Table().Query(t.Context(), item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: slice})
	must(t, err)
	var ids []string
	for _, i := range page.Items {
		ids = append(ids, i.Str("job_id"))
	}
	return ids
}

func wakes(slice string, at int64) item.Item {
	return item.Item{contract.AttrWakeSlice: slice, contract.AttrWakeAt: at}
}

func TestTable_ShowsIndexesAfterTheirLag(t *testing.T) {
	t.Parallel()

	t.Run("an index that lags misses a new item and shows an old key until the lag is over", func(t *testing.T) {
		t.Parallel()
		o := memory.Options{IndexLag: func(string, item.Ref, int64) time.Duration { return 2 * time.Second }}
		bubble(t, o, func(t *testing.T, w *memory.World) {
			write(t, w, put(row("a"), wakes("s", 1)))
			if got := due(t, w, "s"); got != nil {
				t.Fatalf("at once it shows %v", got)
			}
			time.Sleep(2 * time.Second)
			write(t, w, put(row("a"), wakes("elsewhere", 1)))
			if got := due(t, w, "s"); !reflect.DeepEqual(got, []string{"a"}) {
				t.Fatalf("after two seconds it shows %v", got)
			}
			time.Sleep(2*time.Second - time.Millisecond)
			if got := due(t, w, "elsewhere"); got != nil || due(t, w, "s") == nil {
				t.Fatalf("the move shows early")
			}
			time.Sleep(time.Millisecond)
			if got := due(t, w, "elsewhere"); got == nil || due(t, w, "s") != nil {
				t.Fatalf("the move does not show")
			}
		})
	})

	t.Run("changes of one item stay in order, however unevenly the index lags", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(20) {
			bubble(t, memory.Options{IndexLag: memory.LagUpTo(3 * time.Second)}, func(t *testing.T, w *memory.World) {
				dice := rand.New(rand.NewPCG(seed, 1))
				want := map[string]map[string]bool{"s0": {}, "s1": {}, "s2": {}}
				for range 300 {
					id := fmt.Sprint(dice.IntN(5))
					for _, ids := range want {
						delete(ids, id)
					}
					if dice.IntN(5) == 0 {
						write(t, w, item.Write{Ref: row(id), Name: "test.delete", Delete: true})
					} else {
						slice := fmt.Sprintf("s%d", dice.IntN(3))
						write(t, w, put(row(id), wakes(slice, dice.Int64N(3))))
						want[slice][id] = true
					}
					time.Sleep(time.Duration(dice.IntN(500)) * time.Millisecond)
					due(t, w, "s0")
				}
				time.Sleep(3 * time.Second)
				for slice, ids := range want {
					got := due(t, w, slice)
					if len(got) != len(ids) {
						t.Fatalf("seed %d: in the end %s shows %v, want %v", seed, slice, got, ids)
					}
					for _, id := range got {
						if !ids[id] {
							t.Fatalf("seed %d: in the end %s shows %v, want %v", seed, slice, got, ids)
						}
					}
				}
			})
		}
	})
}

func TestWorld_CountsWhatAWSBills(t *testing.T) {
	t.Parallel()
	small, large := item.Item{"a": "1"}, item.Item{"a": strings.Repeat("x", 1500)}
	indexed := item.Item{contract.AttrWakeSlice: "s", contract.AttrWakeAt: int64(1), "attempt": int64(1)}
	set := func(attributes map[string]any) item.Write {
		return item.Write{Ref: row("a"), Name: "test.set", Set: attributes}
	}
	onlyIf := func(w item.Write, op item.Op) item.Write {
		w.When = []item.All{{{Attr: "pk", Op: op}}}
		return w
	}
	for _, c := range []struct {
		name         string
		before       []item.Write
		writes       []item.Write
		write, index float64 // of the table, of its indexes
	}{
		{"a small row with an entry in the due index costs two units", nil, []item.Write{put(row("a"), indexed)}, 1, 1},
		{"a small row without wake-up costs one", nil, []item.Write{put(row("a"), small)}, 1, 0},
		{"a row over 1 KB costs two", nil, []item.Write{put(row("a"), large)}, 2, 0},
		{"the larger of before and after counts", []item.Write{put(row("a"), large)},
			[]item.Write{put(row("a"), small)}, 2, 0},
		{"what an index does not show costs nothing there", []item.Write{put(row("a"), indexed)},
			[]item.Write{set(map[string]any{"b": "1"})}, 1, 0},
		{"what an index shows costs one there", []item.Write{put(row("a"), indexed)},
			[]item.Write{set(map[string]any{"attempt": int64(2)})}, 1, 1},
		{"a moved wake-up costs two there, a delete and a put", []item.Write{put(row("a"), indexed)},
			[]item.Write{set(map[string]any{contract.AttrWakeAt: int64(2)})}, 1, 2},
		{"a wake-up that goes costs one there", []item.Write{put(row("a"), indexed)},
			[]item.Write{set(map[string]any{contract.AttrWakeSlice: nil})}, 1, 1},
		{"a delete costs its size", []item.Write{put(row("a"), large)},
			[]item.Write{{Ref: row("a"), Name: "test.delete", Delete: true}}, 2, 0},
		{"a refused write costs one unit where nothing is", nil,
			[]item.Write{onlyIf(put(row("a"), large), item.Exists)}, 1, 0},
		{"a refused write costs the size of the existing item", []item.Write{put(row("a"), large)},
			[]item.Write{onlyIf(put(row("a"), small), item.Missing)}, 2, 0},
		{"a commit costs the items twice and the indexes once", nil,
			[]item.Write{put(row("a"), indexed), put(row("b"), small)}, 4, 1},
		{"a refused commit costs as much of the items", nil,
			[]item.Write{put(row("a"), indexed), onlyIf(put(row("b"), small), item.Exists)}, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, memory.Options{})
			write(t, w, c.before...)
			before := w.Counts().Tables[contract.Jobs]
			var err error
			if len(c.writes) == 1 {
				_, err = w.Table().Write(t.Context(), c.writes[0])
			} else {
				err = w.Table().Commit(t.Context(), c.writes...)
			}
			var refused *item.Refused
			if err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			after := w.Counts().Tables[contract.Jobs]
			if got, gotIndex := after.Write-before.Write, after.IndexWrite-before.IndexWrite; got != c.write ||
				gotIndex != c.index {
				t.Errorf("it cost %v and %v in indexes, want %v and %v", got, gotIndex, c.write, c.index)
			}
		})
	}

	t.Run("a read costs a unit for each 4 KB begun, and half of that when eventually consistent", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		kilobyte := item.Item{contract.AttrWakeSlice: "s", contract.AttrWakeAt: int64(1), "a": strings.Repeat("x", 950)}
		for n := range 10 {
			write(t, w, put(row(fmt.Sprint(n)), kilobyte))
		}
		write(t, w, put(item.Ref{Table: contract.Claims, PK: "big"}, item.Item{"a": strings.Repeat("x", 5000)}))
		cost := func(want float64, read func() error) {
			t.Helper()
			before := w.Counts().Total().Read
			must(t, read())
			if got := w.Counts().Total().Read - before; got != want {
				t.Errorf("it cost %v, want %v", got, want)
			}
		}
		get := func(ref item.Ref) func() error {
			return func() error { _, err := w.Table().Get(t.Context(), ref); return err }
		}
		query := func(q item.Query) func() error {
			q.Table = contract.Jobs
			return func() error { _, err := w.Table().Query(t.Context(), q); return err }
		}
		cost(1, get(row("0")))
		cost(1, get(row("absent")))
		cost(2, get(item.Ref{Table: contract.Claims, PK: "big"}))
		cost(3, func() error {
			_, err := w.Table().GetMany(t.Context(), []item.Ref{row("1"), row("2"), row("absent")})
			return err
		})
		cost(3, query(item.Query{PK: "acme#1", Consistent: true}))
		cost(1.5, query(item.Query{PK: "acme#1"}))
		cost(0.5, query(item.Query{PK: "acme#1", Limit: 2}))
		cost(0.5, query(item.Query{PK: "s", Index: contract.DueIndex}))
		cost(0.5, query(item.Query{PK: "nothing", Index: contract.DueIndex}))
	})
}

func TestTable_ExpiresOnDemand(t *testing.T) {
	t.Parallel()
	t.Run("an expired item stays visible until it is removed, from the indexes and through the stream, too",
		func(t *testing.T) {
			t.Parallel()
			bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
				old := wakes("s", 1)
				old[contract.AttrExpiresAt] = time.Now().Add(time.Minute).Unix()
				write(t, w, put(row("old"), old), put(row("kept"), wakes("s", 2)))
				if n := w.Table().Expire(); n != 0 {
					t.Fatalf("%d expired early", n)
				}
				time.Sleep(2 * time.Minute)
				if got := due(t, w, "s"); len(got) != 2 {
					t.Fatalf("the index shows %v", got)
				}
				if n := w.Table().Expire(); n != 1 {
					t.Fatalf("%d expired, want 1", n)
				}
				if got := due(t, w, "s"); !reflect.DeepEqual(got, []string{"kept"}) {
					t.Fatalf("the index shows %v", got)
				}
				changes, err := w.Table().Stream(t.Context(), "", 10, 0)
				must(t, err)
				if last := changes[len(changes)-1]; len(changes) != 3 || last.New != nil ||
					last.Old.Str("job_id") != "old" {
					t.Fatalf("the stream says %v", changes)
				}
			})
		})
}

func TestTable_RefusesImpossibleQueries(t *testing.T) {
	t.Parallel()
	t.Run("a range on a table without sort key is invalid", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		_, err := w.Table().Query(t.Context(), item.Query{Table: contract.Claims, PK: "x", From: "a"})
		if fault.KindOf(err) != fault.Invalid {
			t.Fatalf("got %v", err)
		}
	})
}
