package decide

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/store"
)

// reportedEarly is how long before its due time a worker may ask for a job to be re-evaluated: workers claim that
// early, and clocks differ.
const reportedEarly = contract.HoldUntil + contract.SkewMargin

// about says whether a call still concerns the row, and returns the row as the decision is to see it. Writes are
// conditioned on the row as it was read.
type about func(r job.Row, now time.Time) (job.Row, bool)

// Entry decides about the job of an index entry whose wake-up has come. An entry that is older than the row's wake-up
// is ignored. If the firing probably waits in a deep queue, the wake-up is postponed.
func (d *Decider) Entry(ctx context.Context, e store.Entry) (job.Step, effect.List, error) {
	return d.decide(ctx, e.Key, true, func(r job.Row, _ time.Time) (job.Row, bool) {
		return r, r.Parked || !r.WakeAt.After(e.WakeAt)
	})
}

// Deadline decides about the job of an entry whose deadline has passed, whatever holds it: a pause, a limit, or the run
// before. A job that still has time is left alone, but for its wake-up where that is not the deadline yet. left says
// that nothing was done and nothing is to be, as long as the row has this wake-up and version, until its deadline; a
// zero deadline is never.
func (d *Decider) Deadline(
	ctx context.Context, e store.Entry,
) (step job.Step, left bool, deadline time.Time, todo effect.List, err error) {
	var row job.Row
	step, todo, err = d.decide(ctx, e.Key, true, func(r job.Row, now time.Time) (job.Row, bool) {
		row = r
		if left = r.WakeAt.After(now) || !r.DeadlinePassed(now) && !r.Unfired(now); left {
			return r, false
		}
		return r, !r.WakeAt.IsZero()
	})
	if step != job.StepNothing || err != nil {
		return step, false, deadline, todo, err
	}
	if row.Status.Open() {
		deadline, left = row.Deadline(), left && !row.WakeAt.Before(row.DueAt)
	}
	if _, needed := job.AwaitDeadline(row, d.Clock.Now()); !needed {
		return step, left, deadline, todo, nil
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
	return step, false, deadline, todo, err
}

// Parked decides about a job in a parking place, if it is still there.
func (d *Decider) Parked(ctx context.Context, k job.Key) (job.Step, effect.List, error) {
	return d.decide(ctx, k, false, func(r job.Row, _ time.Time) (job.Row, bool) { return r, r.Parked })
}

// Reevaluate decides at once about a job that a worker refused to start: its firing is gone, and its wake-up may be
// far away.
func (d *Decider) Reevaluate(
	ctx context.Context, k job.Key, version, attempt int64,
) (job.Step, effect.List, error) {
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
func (d *Decider) decide(
	ctx context.Context, k job.Key, gently bool, about about,
) (step job.Step, todo effect.List, err error) {
	var failed error // of the step
	_, err = d.Jobs.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		step, failed = job.StepNothing, nil
		if seen, ok := about(row, d.Clock.Now()); ok {
			step, failed = d.step(ctx, row, seen, gently, &todo)
		}
		return nil, failed // the step has written already
	})
	switch gone := fault.KindOf(err) == fault.NotFound; {
	case gone && (failed == nil || store.Refused(failed) != nil):
		return job.StepNothing, todo, nil
	case err != nil:
		return step, todo, fmt.Errorf("waking job %s (%s): %w", k.ID, step, err)
	}
	return step, todo, nil
}

// step decides about the row as seen and acts on the row as read. What follows goes to todo.
func (d *Decider) step(ctx context.Context, row, seen job.Row, gently bool, todo *effect.List) (job.Step, error) {
	claim, err := d.Jobs.Claim(ctx, row.Key)
	if err != nil {
		return "", err
	}
	now := d.Clock.Now()
	switch step, window := job.Wake(seen, claim, false, now); step {
	case job.StepFire, job.StepExpire: // no other step depends on pauses or owners
		s := starting{row: row, claim: claim, step: step, window: window, gently: gently, now: now}
		step, err := d.start(ctx, s, todo)
		if l, waited := row.FullLimit(); waited && step == job.StepPark {
			// Something else holds it now, so the permit that it was woken for is for the next one that waits.
			todo.Freed = append(todo.Freed, limit.Key{Tenant: row.Tenant, LimitKey: l})
		}
		return step, err
	case job.StepEvaluate:
		more, err := d.Runs.EvaluateBlocked(ctx, row, now)
		todo.Add(more)
		return step, err
	case job.StepEffects:
		return step, d.settleEffects(ctx, row, now, todo)
	case job.StepRepeatReport:
		return step, d.repeatReport(ctx, row, claim, now)
	case job.StepRecordLost:
		return step, d.recordLost(ctx, row, claim, now)
	case job.StepWaitForLease:
		return step, d.waitForLease(ctx, row, claim, now)
	case job.StepFinishStop:
		return step, d.finishStop(ctx, row, claim, now, todo)
	}
	return job.StepNothing, nil
}
