package worker

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/workers/executor"
)

func seen(o *Options) { o.Seen, o.Version, o.Slots, o.Drain = true, "v1", 4, time.Minute }

func TestWorker_NotesThatItWorks(t *testing.T) {
	within(t, func(b *bench) {
		b.does = func(context.Context, executor.Work) (json.RawMessage, error) {
			time.Sleep(50 * time.Second)
			return nil, nil
		}
		listed := func() store.Worker {
			b.Helper()
			all, err := b.Store.Workers(b.Context(), time.Now())
			b.Must(err)
			if len(all) != 1 {
				b.Fatalf("listed are %+v", all)
			}
			return all[0]
		}
		began := time.Now()
		w := b.start("a", options(seen))
		b.sleep(time.Second)
		first := listed()
		if first.Name != "a" || first.Pool != "short" || first.Version != "v1" || first.Slots != 4 || first.Busy != 0 ||
			first.Draining || !first.StartedAt.Equal(began) || !first.SeenAt.Equal(began) {
			b.Errorf("at first: %+v", first)
		}
		b.fire(b.put(0), 0)
		b.sleep(contract.WorkerSeenEvery)
		if w := listed(); w.Busy != 1 || !w.SeenAt.Equal(began.Add(contract.WorkerSeenEvery)) {
			b.Errorf("while it works: %+v", w)
		}
		go w.stop()
		b.sleep(time.Second)
		if w := listed(); !w.Draining || w.Busy != 1 {
			b.Errorf("while it drains: %+v", w)
		}
		b.sleep(time.Minute)
		if all, err := b.Store.Workers(b.Context(), time.Now()); err != nil || len(all) != 0 {
			b.Errorf("after its end: %+v, %v", all, err)
		}
	})
}

func TestWorker_WorksThoughItsNotesFail(t *testing.T) {
	within(t, func(b *bench) {
		b.Fault(stagetest.Named(store.WriteWorkerSee), memory.Fault{Fail: fault.Unavailable})
		b.start("a", options(seen))
		b.fire(b.put(0), 0)
		b.sleep(time.Minute)
		if n := len(b.outcomes()); n != 1 {
			b.Errorf("%d jobs ran", n)
		}
	})
}

func TestWorker_NotesNothingUnlessItIsToBeSeen(t *testing.T) {
	within(t, func(b *bench) {
		noted := b.Count(stagetest.Named(store.WriteWorkerSee))
		b.start("a")
		b.sleep(time.Minute)
		if noted() != 0 {
			b.Error("it noted that it works")
		}
	})
}
