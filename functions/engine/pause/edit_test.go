package pause_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/engine/pause"
	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/tenant"
)

// wakes records the time for which parked jobs were last asked to be evaluated.
type wakes struct{ at atomic.Value }

func (w *wakes) Parked(_ context.Context, _ tenant.ID, at time.Time) { w.at.Store(at) }

func (w *wakes) last() time.Time {
	at, _ := w.at.Load().(time.Time)
	return at
}

type bench struct {
	*stagetest.Bench
	edit  *pause.Editor
	wakes *wakes
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		w := new(wakes)
		do(&bench{s, pause.NewEditor(s.Store, w, clock.System{}), w})
	})
}

func (b *bench) put(until time.Time) (job.Pause, bool) {
	b.Helper()
	p, created, err := b.edit.Put(b.Context(), jobtest.Tenant, job.Pause{Scope: job.PauseAll, Until: until},
		stagetest.Now())
	if err != nil {
		b.Fatal(err)
	}
	return p, created
}

func TestEditor_PutsAPause(t *testing.T) {
	t.Parallel()
	bubble(t, "a new one takes effect a moment later", func(b *bench) {
		p, created := b.put(time.Time{})
		if want := stagetest.Now().Add(contract.EffectiveAfter); !created || !p.EffectiveAt.Equal(want) {
			b.Errorf("created %v, effective at %s, want %s", created, p.EffectiveAt, want)
		}
	})
	bubble(t, "one in place of another holds since that one did", func(b *bench) {
		first, _ := b.put(time.Time{})
		time.Sleep(time.Hour)
		if p, created := b.put(time.Time{}); created || p.Since != first.Since || p.EffectiveAt != first.EffectiveAt {
			b.Errorf("created %v: %+v, then %+v", created, first, p)
		}
	})
	bubble(t, "one after another that has ended is new", func(b *bench) {
		b.put(stagetest.Now().Add(time.Minute))
		time.Sleep(time.Minute)
		if p, created := b.put(time.Time{}); !created || !p.Since.Equal(stagetest.Now()) {
			b.Errorf("created %v: %+v", created, p)
		}
	})
	bubble(t, "one that was written late takes effect later", func(b *bench) {
		p, _, err := b.edit.Put(b.Context(), jobtest.Tenant, job.Pause{Scope: job.PauseAll},
			stagetest.Now().Add(-time.Hour))
		if want := stagetest.Now().Add(pause.FactAge); err != nil || !p.EffectiveAt.Equal(want) {
			b.Errorf("effective at %s, want %s; %v", p.EffectiveAt, want, err)
		}
	})
	bubble(t, "its end wakes what it holds", func(b *bench) {
		until := stagetest.Now().Add(time.Hour)
		if b.put(until); !b.wakes.last().Equal(until) {
			b.Errorf("woken at %s, want %s", b.wakes.last(), until)
		}
	})
}

func TestEditor_LiftsAPause(t *testing.T) {
	t.Parallel()
	bubble(t, "what it held is woken now", func(b *bench) {
		b.put(time.Time{})
		time.Sleep(time.Hour)
		err := b.edit.Lift(b.Context(), jobtest.Tenant, job.PauseAll)
		if err != nil || !b.wakes.last().Equal(stagetest.Now()) {
			b.Errorf("woken at %s; %v", b.wakes.last(), err)
		}
	})
	bubble(t, "an absent one is not found, and wakes all the same", func(b *bench) {
		err := b.edit.Lift(b.Context(), jobtest.Tenant, job.PauseAll)
		if fault.KindOf(err) != fault.NotFound || b.wakes.last().IsZero() {
			b.Errorf("woken at %s; %v", b.wakes.last(), err)
		}
	})
}

func TestEditor_SaysWhatSeemsHeld(t *testing.T) {
	t.Parallel()
	bubble(t, "a job that is due, from the pause to its end", func(b *bench) {
		r := jobtest.Row(1, time.Now(), time.Now())
		holds := func() bool { return b.edit.Holds(b.Context(), r, stagetest.Now()) }
		before := holds()
		b.put(time.Time{})
		under := holds()
		if err := b.edit.Lift(b.Context(), jobtest.Tenant, job.PauseAll); err != nil {
			b.Fatal(err)
		}
		if before || !under || holds() {
			b.Errorf("before %v, under it %v, after %v", before, under, holds())
		}
	})
	bubble(t, "none that is due later", func(b *bench) {
		b.put(time.Time{})
		if b.edit.Holds(b.Context(), jobtest.Row(1, time.Now().Add(time.Hour), time.Now()), stagetest.Now()) {
			b.Error("it is held")
		}
	})
}
