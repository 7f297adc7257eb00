package worker

import (
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/store"
)

func TestWorker_StartsNothingByARestoredTable(t *testing.T) {
	within(t, func(b *bench) {
		w := b.start("a")
		b.sleep(time.Minute)
		if _, err := b.Store.Recognize(b.Context()); err != nil { // as a pass does
			b.Fatal(err)
		}
		b.World.Table().Restored(contract.Jobs)
		b.sleep(store.RestoredKnownFor + 5*time.Second)
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(10 * time.Minute)
		if n := b.started(); n > 0 {
			t.Fatalf("it started %d", n)
		}
		if err := w.Ready(b.Context()); err != nil {
			t.Errorf("its pod would be replaced: %v", err)
		}
		if n := strings.Count(b.logs.String(), "a table was restored"); n != 1 {
			t.Errorf("it said so %d times", n)
		}
		is, err := b.World.Table().Identity(b.Context(), contract.Jobs)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Store.Put(b.Context(), item.Write{
			Ref:  item.Ref{Table: contract.Tasks, PK: "system#setting", SK: "tables"},
			Name: "test.lift", Set: map[string]any{contract.Jobs: is.ID},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.sleep(store.RestoredKnownFor + 10*time.Second)
		if n := b.started(); n != 1 {
			t.Errorf("it started %d once it may", n)
		}
	})
}
