package store_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/store"
)

// letRun does what the operator's command does.
func letRun(t *testing.T, w *memory.World, s *store.Store, table string) {
	t.Helper()
	is, err := w.Table().Identity(context.Background(), table)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, item.Write{
		Ref:  item.Ref{Table: contract.Tasks, PK: "system#setting", SK: "tables"},
		Name: "test.lift", Set: map[string]any{table: is.ID},
	})
}

func wantTables(t *testing.T, ask func(context.Context) ([]string, error), want ...string) {
	t.Helper()
	got, err := ask(context.Background())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestStore_HoldsRestoredTablesUntilTheyAreLetRun(t *testing.T) {
	t.Parallel()
	t.Run("a table seen for the first time runs, however late that is", func(t *testing.T) {
		t.Parallel()
		_, s := world(t, memory.Options{})
		wantTables(t, s.Restored)
		wantTables(t, s.Recognize)
		wantTables(t, s.Recognize)
		wantTables(t, s.Held)
	})
	t.Run("a restored table is held by everybody until its id is noted", func(t *testing.T) {
		t.Parallel()
		w, s := world(t, memory.Options{})
		wantTables(t, s.Recognize)
		w.Table().Restored(contract.Jobs)
		wantTables(t, s.Restored, "jobs")
		wantTables(t, s.Held) // no pass has seen it yet
		wantTables(t, s.Recognize, "jobs")
		wantTables(t, s.Recognize, "jobs")
		wantTables(t, s.Held, "jobs")
		letRun(t, w, s, contract.Jobs)
		wantTables(t, s.Restored)
		wantTables(t, s.Recognize)
		wantTables(t, s.Held)
	})
	t.Run("a restored table is held although the note is gone", func(t *testing.T) {
		t.Parallel()
		w, s := world(t, memory.Options{})
		w.Table().Restored(contract.Claims)
		wantTables(t, s.Recognize, "claims")
		wantTables(t, s.Recognize, "claims")
	})
	t.Run("each of several is let run by itself, and a second restore holds again", func(t *testing.T) {
		t.Parallel()
		w, s := world(t, memory.Options{})
		wantTables(t, s.Recognize)
		w.Table().Restored(contract.Jobs)
		w.Table().Restored(contract.Runs)
		wantTables(t, s.Recognize, "jobs", "runs")
		letRun(t, w, s, contract.Jobs)
		wantTables(t, s.Recognize, "runs")
		w.Table().Restored(contract.Jobs)
		wantTables(t, s.Recognize, "jobs", "runs")
	})
}

func TestGate_KeepsToItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := world(t, memory.Options{})
		defer w.Close()
		var away atomic.Bool
		away.Store(true)
		w.SetFaults(func(c memory.Call) memory.Fault {
			if away.Load() && c.Op == memory.TableIdentity {
				return memory.Fault{Fail: fault.Unavailable}
			}
			return memory.Fault{}
		})
		gate := store.Gate{Store: s}
		shut := func() ([]string, error) { return gate.Shut(t.Context(), time.Now()) }
		if _, err := shut(); err == nil {
			t.Error("it knew what nobody had told it")
		}
		away.Store(false)
		if held, err := shut(); err != nil || len(held) > 0 {
			t.Errorf("held %v, %v", held, err)
		}
		wantTables(t, s.Recognize)
		w.Table().Restored(contract.Jobs)
		away.Store(true)
		time.Sleep(store.RestoredKnownFor)
		if held, err := shut(); err != nil || len(held) > 0 {
			t.Errorf("while nobody answered it held %v, %v", held, err)
		}
		away.Store(false)
		time.Sleep(store.RestoredKnownFor)
		if held, err := shut(); err != nil || !slices.Equal(held, []string{"jobs"}) {
			t.Errorf("held %v, %v", held, err)
		}
	})
}
