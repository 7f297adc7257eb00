package memory_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
)

func TestTable_StreamsEveryChange(t *testing.T) {
	t.Parallel()
	count := item.Write{Ref: row("a"), Name: "test.count", Add: map[string]int64{"n": 1}}

	t.Run("every change of the jobs table is in the stream, in order, with old and new item", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		write(t, w, put(row("a"), item.Item{"n": int64(1)}), count,
			put(item.Ref{Table: contract.Claims, PK: "not streamed"}, nil))
		must(t, w.Table().Commit(t.Context(), count, put(row("b"), nil),
			item.Write{Ref: row("c"), Name: "test.check", Check: true}))
		write(t, w, item.Write{Ref: row("a"), Name: "test.delete", Delete: true},
			item.Write{Ref: row("a"), Name: "test.delete", Delete: true})
		changes, err := w.Table().Stream(t.Context(), "", 100, 0)
		must(t, err)
		a := func(n int64) item.Item { return put(row("a"), item.Item{"n": n}).Put }
		want := []item.Change{{New: a(1)}, {Old: a(1), New: a(2)}, {Old: a(2), New: a(3)},
			{New: put(row("b"), nil).Put}, {Old: a(3)}}
		last := ""
		for n := range changes {
			if changes[n].Seq <= last {
				t.Errorf("record %d is numbered %q after %q", n, changes[n].Seq, last)
			}
			last, changes[n].Seq = changes[n].Seq, ""
		}
		if !reflect.DeepEqual(changes, want) {
			t.Fatalf("it tells %v, want %v", changes, want)
		}
	})

	t.Run("a write that changes nothing is not in the stream", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		write(t, w, put(row("a"), item.Item{"n": int64(1)}), put(row("a"), item.Item{"n": int64(1)}))
		if changes, err := w.Table().Stream(t.Context(), "", 100, 0); err != nil || len(changes) != 1 {
			t.Fatalf("it tells %v, %v", changes, err)
		}
	})

	t.Run("a refused commit is not in the stream", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		refused := put(row("b"), nil)
		refused.When = []item.All{{{Attr: "pk", Op: item.Exists}}}
		if err := w.Table().Commit(t.Context(), put(row("a"), nil), refused); err == nil {
			t.Fatal("it was not refused")
		}
		if changes, err := w.Table().Stream(t.Context(), "", 100, 0); err != nil || len(changes) != 0 {
			t.Fatalf("it tells %v, %v", changes, err)
		}
	})

	t.Run("a read continues after a record, and can be repeated from any record", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		for range 7 {
			write(t, w, count)
		}
		read := func(after string, most int) []item.Change {
			t.Helper()
			changes, err := w.Table().Stream(t.Context(), after, most, 0)
			must(t, err)
			return changes
		}
		first := read("", 3)
		second := read(first[2].Seq, 3)
		if third := read(second[2].Seq, 3); len(first) != 3 || len(second) != 3 || len(third) != 1 ||
			third[0].New.Int("n") != 7 {
			t.Fatalf("it tells %v, %v, %v", first, second, third)
		}
		if repeated := read(first[2].Seq, 3); !reflect.DeepEqual(repeated, second) {
			t.Fatalf("the repeated read returns %v, want %v", repeated, second)
		}
	})

	t.Run("a reader waits for the next record, at most as long as it asks", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			began := time.Now()
			changes, err := w.Table().Stream(t.Context(), "", 10, 5*time.Second)
			if took := time.Since(began); err != nil || len(changes) != 0 || took != 5*time.Second {
				t.Fatalf("without records it tells %v, %v after %s", changes, err, took)
			}
			go func() {
				time.Sleep(2 * time.Second)
				write(t, w, count)
			}()
			began = time.Now()
			changes, err = w.Table().Stream(t.Context(), "", 10, 5*time.Second)
			if took := time.Since(began); err != nil || len(changes) != 1 || took != 2*time.Second {
				t.Fatalf("it tells %v, %v after %s", changes, err, took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := w.Table().Stream(ctx, changes[0].Seq, 10,
				time.Minute); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("when its context ends it says %v", err)
			}
		})
	})

	t.Run("a late record delays those after it, so that records stay in order", func(t *testing.T) {
		t.Parallel()
		lag := func(_ item.Ref, n int64) time.Duration {
			if n == 1 {
				return 10 * time.Second
			}
			return 0
		}
		bubble(t, memory.Options{StreamLag: lag}, func(t *testing.T, w *memory.World) {
			write(t, w, count, count, count)
			if changes, err := w.Table().Stream(t.Context(), "", 10, 0); err != nil || len(changes) != 0 {
				t.Fatalf("at once it tells %v, %v", changes, err)
			}
			began := time.Now()
			changes, err := w.Table().Stream(t.Context(), "", 10, time.Minute)
			if took := time.Since(began); err != nil || len(changes) != 3 || took != 10*time.Second {
				t.Fatalf("it tells %v, %v after %s", changes, err, took)
			}
		})
	})

	t.Run("a record is kept for a day", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			write(t, w, count)
			time.Sleep(23 * time.Hour)
			write(t, w, count)
			first, err := w.Table().Stream(t.Context(), "", 10, 0)
			if err != nil || len(first) != 2 {
				t.Fatalf("after 23 h it tells %v, %v", first, err)
			}
			time.Sleep(2 * time.Hour)
			write(t, w, count, count)
			left, err := w.Table().Stream(t.Context(), "", 10, 0)
			if err != nil || len(left) != 3 || left[0].Seq != first[1].Seq {
				t.Fatalf("after 25 h it tells %v, %v", left, err)
			}
		})
	})

	t.Run("the last records can be read once more, and an older record is not found", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{StreamReplay: 5})
		var cities []string
		for n := range 20 {
			write(t, w, count)
			after := ""
			if n > 0 {
				after = cities[n-1]
			}
			changes, err := w.Table().Stream(t.Context(), after, 1, 0)
			must(t, err)
			cities = append(cities, changes[0].Seq)
		}
		write(t, w, count)
		if changes, err := w.Table().Stream(t.Context(), cities[14], 100, 0); err != nil || len(changes) != 6 {
			t.Fatalf("five back it tells %v, %v", changes, err)
		}
		if _, err := w.Table().Stream(t.Context(), cities[3], 100, 0); fault.KindOf(err) != fault.NotFound {
			t.Fatalf("a record that was dropped gives %v", err)
		}
		if _, err := w.Table().Stream(t.Context(), "nonsense", 100, 0); fault.KindOf(err) != fault.Invalid {
			t.Fatalf("a record that never existed gives %v", err)
		}
	})

	t.Run("no change is lost or out of order while many write and one reads", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{StreamReplay: 1})
		const writers, each = 4, 500
		for n := range writers {
			go func() {
				for range each {
					write(t, w, item.Write{Ref: row(fmt.Sprint(n)), Name: "test.count", Add: map[string]int64{"n": 1}})
				}
			}()
		}
		seen := map[string]int64{}
		after := ""
		for total := 0; total < writers*each; {
			changes, err := w.Table().Stream(t.Context(), after, 50, 10*time.Second)
			must(t, err)
			if len(changes) == 0 {
				t.Fatalf("it ends after %d", total)
			}
			for _, c := range changes {
				id := c.New.Str("job_id")
				if c.New.Int("n") != seen[id]+1 || c.Old.Int("n") != seen[id] {
					t.Fatalf("%s goes from %d to %d after %d", id, c.Old.Int("n"), c.New.Int("n"), seen[id])
				}
				seen[id]++
				after = c.Seq
			}
			total += len(changes)
		}
	})
}
