package decide

import (
	"context"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
)

// Postponed is the step of a wake-up that sends no firing because the last one is probably not lost: a worker has
// given it back, or its queue is too deep for another one.
const Postponed job.Step = "postpone"

// reportedEarly is how long before its due time a worker may ask for a job to be re-evaluated: workers claim that
// early, and clocks differ.
const reportedEarly = contract.HoldUntil + contract.SkewMargin

// about says whether a call still concerns the row, and returns the row as the decision is to see it. Writes are
// conditioned on the row as it was read.
type about func(r job.Row, now time.Time) (job.Row, bool)

// Entry decides about the job of an index entry whose wake-up has come. An entry that is older than the row's wake-up
// is ignored. If the firing probably waits in a deep queue, the wake-up is postponed.
func (d *Decider) Entry(ctx context.Context, e store.Entry) (job.Step, error) {
	return d.decide(ctx, e.Key, true, func(r job.Row, _ time.Time) (job.Row, bool) {
		return r, r.Parked || !r.WakeAt.After(e.WakeAt)
	})
}

// Deadline decides about the job of an entry whose deadline has passed, whatever holds it: a pause, a limit, or the run
// before. A job that still has time is left alone, but for its wake-up where that is not the deadline yet.
func (d *Decider) Deadline(ctx context.Context, e store.Entry) (job.Step, error) {
	step, err := d.decide(ctx, e.Key, true, func(r job.Row, now time.Time) (job.Row, bool) {
		if r.WakeAt.After(now) || !r.DeadlinePassed(now) && !r.Unfired(now) {
			return r, false
		}
		return r, !r.WakeAt.IsZero()
	})
	if step != job.StepNothing || err != nil {
		return step, err
	}
	_, err = d.Jobs.Update(ctx, e.Key, func(r job.Row) ([]item.Write, error) {
		if w, needed := job.AwaitDeadline(r, d.Clock.Now()); needed {
			return []item.Write{w}, nil
		}
		return nil, nil
	})
	if fault.KindOf(err) == fault.NotFound {
		err = nil
	}
	return job.StepNothing, err
}

// Parked decides about a job in a parking place, if it is still there.
func (d *Decider) Parked(ctx context.Context, k job.Key) (job.Step, error) {
	return d.decide(ctx, k, false, func(r job.Row, _ time.Time) (job.Row, bool) { return r, r.Parked })
}

// Reevaluate decides at once about a job that a worker refused to start: its firing is gone, and its wake-up may be
// far away.
func (d *Decider) Reevaluate(ctx context.Context, k job.Key, version, attempt int64) (job.Step, error) {
	return d.decide(ctx, k, false, func(r job.Row, now time.Time) (job.Row, bool) {
		if r.Version != version || r.Attempt != attempt || r.DueAt.After(now.Add(reportedEarly)) {
			return r, false
		}
		if r.WakeAt.After(now) {
			r.WakeAt = now
		}
		return r, true
	})
}

// decide reads the facts about a job, decides and acts. If a write is refused because the facts have changed, it
// starts anew.
func (d *Decider) decide(ctx context.Context, k job.Key, gently bool, about about) (step job.Step, err error) {
	var failed error // of the step
	_, err = d.Jobs.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		step, failed = job.StepNothing, nil
		if seen, ok := about(row, d.Clock.Now()); ok {
			step, failed = d.step(ctx, row, seen, gently)
		}
		return nil, failed // the step has written already
	})
	switch gone := fault.KindOf(err) == fault.NotFound; {
	case gone && (failed == nil || store.Refused(failed) != nil):
		return job.StepNothing, nil
	case err != nil:
		return step, fmt.Errorf("waking job %s (%s): %w", k.ID, step, err)
	}
	return step, nil
}

// step decides about the row as seen and acts on the row as read.
func (d *Decider) step(ctx context.Context, row, seen job.Row, gently bool) (job.Step, error) {
	claim, err := d.Jobs.Claim(ctx, row.Key)
	if err != nil {
		return "", err
	}
	now := d.Clock.Now()
	step, window := job.Wake(seen, claim, false, now)
	if step == job.StepFire || step == job.StepExpire { // no other step depends on pauses or owners
		held := false
		if step == job.StepFire { // no pause holds up a deadline
			if held, err = d.held(ctx, row, now); err != nil {
				return step, err
			}
		}
		if held { // a pause of everything or of its task comes before its schedule
			step = job.StepPark
		} else {
			if row, err = d.deferFirst(ctx, row, gently, now); err != nil {
				return step, err
			}
			var done bool
			if step, done, err = d.Gate(ctx, d, row, claim, step, now); done || err != nil {
				return step, err
			}
		}
	}
	switch step {
	case job.StepEvaluate:
		step, _, err = d.Gate(ctx, d, row, claim, step, now)
		return step, err
	case job.StepEffects:
		return step, d.settleEffects(ctx, row, now)
	case job.StepRepeatReport:
		return step, d.repeatReport(ctx, row, claim, now)
	case job.StepRecordLost:
		return step, d.recordLost(ctx, row, claim, now)
	case job.StepWaitForLease:
		return step, d.waitForLease(ctx, row, claim, now)
	case job.StepFinishStop:
		return step, d.finishStop(ctx, row, claim, now)
	case job.StepPark:
		return d.Park(ctx, row, now, func() (bool, error) {
			d.Reread(row.Tenant)
			return d.held(ctx, row, now)
		})
	case job.StepExpire:
		return step, d.expire(ctx, row, claim, window, now)
	case job.StepFire:
		back := claim.Waits.Until.Add(contract.Grace)
		if gently && claim.WaitsFor(row.Attempt) != "" && back.After(now) {
			return Postponed, d.postpone(ctx, row, back, now)
		}
		return d.refire(ctx, row, gently, now)
	}
	return job.StepNothing, nil
}

// deferFirst writes the next wake-up of a node's job before its run is asked: that may bring on the whole run, and
// whatever becomes of it, it keeps no later pass from other rows. The row that it returns counts as postponed as often
// as before; the step that is taken counts itself.
func (d *Decider) deferFirst(ctx context.Context, row job.Row, gently bool, now time.Time) (job.Row, error) {
	if !gently || row.RunID == "" || row.Parked {
		return row, nil
	}
	after, write := job.Rewake(row, now.Add(job.Postpone(row.Postponed)), now, row.Postponed+1)
	if err := d.Jobs.PutRow(ctx, after, write); err != nil {
		return row, err
	}
	after.Postponed = row.Postponed
	return after, nil
}

// held says whether a pause of everything or of its task holds the job.
func (d *Decider) held(ctx context.Context, row job.Row, now time.Time) (bool, error) {
	pauses, err := d.pauses.Of(ctx, row.Tenant)
	if err != nil {
		return false, err
	}
	_, held := pauses.Hold(row.Task, now)
	return held, nil
}
