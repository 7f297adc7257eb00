package runs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// eventsKept returns how long the events of the run are kept, the shortest and the longest time.
func (b *bench) eventsKept() (least, most time.Time, n int) {
	b.Helper()
	page, err := b.World.Table().Query(context.Background(), item.Query{Table: contract.Runs, PK: b.key.Ref().PK,
		From: run.EventsFrom, To: run.EventsTo, Limit: 100})
	b.Must(err)
	for _, i := range page.Items {
		at := time.Unix(i.Int(contract.AttrExpiresAt), 0)
		if least.IsZero() || at.Before(least) {
			least = at
		}
		if at.After(most) {
			most = at
		}
	}
	return least, most, len(page.Items)
}

func TestEvents_LiveAsLongAsTheirRun(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	ctx := context.Background()
	ends := func(b *bench, events int) {
		b.Helper()
		least, most, n := b.eventsKept()
		if until := b.run().ExpiresAt; n != events || until.Sub(least) > day || most.Sub(until) > day {
			b.Errorf("%d events are kept until %s to %s, the run until %s", n, least, most, until)
		}
	}
	t.Run("of a run that ends at once", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.create(def("a"))
		b.calm()
		b.runIs(run.Succeeded)
		ends(b, 1)
	})
	t.Run("of a run that is held for half a year, and retried after its end", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		d := def("a", "b: a")
		d.OnFailure = dag.Hold
		b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
		b.create(d)
		b.calm()
		b.runIs(run.Held)
		for range 6 { // its wake-ups; each is up to a day after the one before in life
			b.now = b.now.Add(30 * day)
			b.Must(b.rel.Due(ctx, b.key))
			if least, _, _ := b.eventsKept(); least.Sub(b.now) < contract.DeadKept-day {
				t.Fatalf("while it is held, an event is kept until %s, and it is %s", least, b.now)
			}
		}
		_, err := b.rel.Cancel(ctx, b.key, by)
		b.Must(err)
		b.calm()
		b.runIs(run.Cancelled)
		ends(b, 2)
		b.now = b.now.Add(80 * day)
		_, err = b.rel.Retry(ctx, b.key, "", by)
		b.Must(err)
		b.calm()
		b.runIs(run.Succeeded)
		ends(b, 3)
	})
	t.Run("of a run that waits for next year and is cancelled before", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.create(def("a"), func(n *runs.Request) { n.DueAt = b.now.Add(365 * day) })
		if least, _, _ := b.eventsKept(); least.Before(b.now.Add(365*day + contract.DeadKept)) {
			t.Errorf("while it waits, an event is kept until %s", least)
		}
		_, err := b.rel.Cancel(ctx, b.key, by)
		b.Must(err)
		b.calm()
		ends(b, 2)
	})
}

// TestEvents_HoldUpNoOperation operates on a run that has been operated on very often.
func TestEvents_HoldUpNoOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.live = true
		b.create(def("a"))
		for n := range 10_000 {
			at := b.Now().Add(time.Duration(n) * time.Millisecond)
			w := b.run().PutEvent(run.Event{At: at, By: "u", Action: "pause"})
			b.Must(b.Store.Put(t.Context(), w))
		}
		time.Sleep(48 * time.Hour)
		b.Slow(5 * time.Millisecond)
		began := time.Now()
		_, err := b.rel.Pause(t.Context(), b.key, by)
		b.Must(err)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the first operation took %s", took)
		}
		for range 5 { // each call continues
			b.Must(b.rel.Reconcile(t.Context(), b.key))
		}
		b.World.SetFaults(nil)
		if least, _, _ := b.eventsKept(); least.Sub(b.Now()) < contract.DeadKept-time.Hour {
			t.Errorf("an event is kept until %s only", least)
		}
	})
}
