package decide

import (
	"context"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Postponed is what a wake-up came to when the job's firing is not lost as far as can be seen: a
// worker has given it back, or its queue is too deep for another one.
const Postponed job.Step = "postpone"

// tries bounds how often one call decides again because somebody changed the job meanwhile.
const tries = 8

// lookAhead is how long before its due time a worker may have asked to have a job looked at:
// it claims this early, and clocks differ.
const lookAhead = contract.HoldUntil + contract.SkewMargin

// view is how a caller sees a row: the row to decide about, or false when the call is not
// about this row any more. Writes are conditioned on the row as it was read.
type view func(r job.Row, now time.Time) (job.Row, bool)

// Entry brings on the job of an index entry whose time is behind. An entry that the row has
// moved on from is stale: the newer one will have its turn. A deep queue postpones.
func (w *Waker) Entry(ctx context.Context, e store.Entry) (job.Step, error) {
	return w.bring(ctx, e.Key, true, func(r job.Row, _ time.Time) (job.Row, bool) {
		return r, r.Parked || !r.WakeAt.After(e.WakeAt)
	})
}

// Parked brings on a job that lies in a parking place, if it still does.
func (w *Waker) Parked(ctx context.Context, k job.Key) (job.Step, error) {
	return w.bring(ctx, k, false, func(r job.Row, _ time.Time) (job.Row, bool) { return r, r.Parked })
}

// Reread makes the next decision about a tenant's jobs read its pauses anew; the caller knows
// that one has just changed.
func (w *Waker) Reread(t tenant.ID) { w.pauses.drop(t) }

// Look decides about a job whose firing a worker would not start and gave up, at once: its
// wake-up may lie later, as safety for a firing that is no more.
func (w *Waker) Look(ctx context.Context, k job.Key, version, attempt int64) (job.Step, error) {
	return w.bring(ctx, k, false, func(r job.Row, now time.Time) (job.Row, bool) {
		if r.Version != version || r.Attempt != attempt || r.DueAt.After(now.Add(lookAhead)) {
			return r, false
		}
		if r.WakeAt.After(now) {
			r.WakeAt = now
		}
		return r, true
	})
}

// bring reads the facts about a job, decides and acts, and does so again for as long as a
// write finds that the facts have changed.
func (w *Waker) bring(ctx context.Context, k job.Key, gently bool, look view) (job.Step, error) {
	for range tries {
		row, err := w.Store.Row(ctx, k)
		if fault.KindOf(err) == fault.NotFound {
			return job.StepNothing, nil
		}
		if err != nil {
			return "", fmt.Errorf("waking job %s: %w", k.ID, err)
		}
		seen, ok := look(row, w.Clock.Now())
		if !ok {
			return job.StepNothing, nil
		}
		step, err := w.step(ctx, row, seen, gently)
		if store.Refused(err) != nil {
			w.schedules.drop(keyOf(row))
			continue
		}
		if err != nil {
			return step, fmt.Errorf("waking job %s (%s): %w", k.ID, step, err)
		}
		return step, nil
	}
	return "", fault.New(fault.Conflict, nil, "waking job %s: it changed %d times meanwhile", k.ID, tries)
}

// step decides about the row as seen and acts on the row as read.
func (w *Waker) step(ctx context.Context, row, seen job.Row, gently bool) (job.Step, error) {
	claim, err := w.Store.Claim(ctx, row.Key)
	if err != nil {
		return "", err
	}
	now := w.Clock.Now()
	step, window := job.Wake(seen, claim, false, now)
	if step == job.StepFire || step == job.StepExpire { // only now it matters whether a pause holds it
		pauses, err := w.pauses.of(ctx, w.Store, row.Tenant, now)
		if err != nil {
			return step, err
		}
		if _, held := pauses.Hold(row.Task, now); held {
			step = job.StepPark
		}
		if row.ScheduleID != "" && step != job.StepPark { // a pause of all or of its task comes first
			var done bool
			if step, done, err = w.scheduled(ctx, row, step, now); done || err != nil {
				return step, err
			}
		}
	}
	switch step {
	case job.StepPayOwed:
		return step, w.payOwed(ctx, row, now)
	case job.StepRepeatReport:
		return step, w.repeatReport(ctx, row, claim, now)
	case job.StepWaitForLease:
		return step, w.waitForLease(ctx, row, claim, now)
	case job.StepFinishStop:
		return step, w.finishStop(ctx, row, now)
	case job.StepPark:
		return w.park(ctx, row, now)
	case job.StepExpire:
		return step, w.expire(ctx, row, window, now)
	case job.StepFire:
		if again := claim.Waits.Until.Add(contract.Grace); gently && claim.WaitsFor(row.Attempt) != "" && again.After(now) {
			return Postponed, w.postpone(ctx, row, again, now)
		}
		return w.fireAgain(ctx, row, gently, now)
	}
	return job.StepNothing, nil
}
