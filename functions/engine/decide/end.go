package decide

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Cancel asks a job to end as cancelled, and returns its row: CANCELLED, and no attempt can start any more; open,
// and the worker that runs it was asked to stop; or final already, and nothing was changed. may can refuse an open
// row first. An absent job is a fault.NotFound.
func (d *Decider) Cancel(
	ctx context.Context, k job.Key, may func(job.Row, time.Time) error,
) (after job.Row, todo effect.List, err error) {
	_, err = d.Jobs.Update(ctx, k, func(row job.Row) (_ []item.Write, err error) {
		after, err = d.cancelOnce(ctx, row, may, &todo)
		return nil, err // cancelOnce has written already
	})
	return after, todo, err
}

func (d *Decider) cancelOnce(
	ctx context.Context, row job.Row, may func(job.Row, time.Time) error, todo *effect.List,
) (job.Row, error) {
	now := d.Clock.Now()
	switch {
	case row.StartsRun(): // a run is cancelled as a run
		return row, fault.New(fault.NotFound, nil, "cancelling %s, which is no job", row.ID)
	case row.Status.Final():
		return row, nil
	case row.Status == job.Blocked:
		after, write := job.CancelBlocked(row, now)
		return ended(after, d.Jobs.PutRow(ctx, after, write), todo)
	}
	if err := may(row, now); err != nil {
		return row, err
	}
	if row.Stop != job.StopCancel {
		_, write := job.RequestStop(row, job.StopCancel, job.Reason{Code: job.CodeCancelled}, now)
		var err error
		if row, err = d.Jobs.WriteRow(ctx, write); err != nil {
			return row, err
		}
	}
	c, asked, err := d.stop.AskOwner(ctx, row, now)
	if asked || err != nil {
		return row, err // if the claim has an outcome, settling it decides
	}
	after, err := d.stop.Finish(ctx, row, c, now)
	return ended(after, err, todo)
}

// ended leaves to todo what follows the end of a job, if the write that ended it succeeded.
func ended(after job.Row, err error, todo *effect.List) (job.Row, error) {
	if err == nil {
		todo.End(after)
	}
	return after, err
}

// finishStop fences the attempt and then ends the job as its stop says.
func (d *Decider) finishStop(
	ctx context.Context, row job.Row, c job.Claim, now time.Time, todo *effect.List,
) error {
	after, err := d.stop.Finish(ctx, row, c, now)
	_, err = ended(after, err, todo)
	return err
}

// expire writes the stop on the row first, because a worker may be starting the job just now. If one is, its claim
// is live and the fence is refused; then the outcome of the attempt decides.
func (d *Decider) expire(
	ctx context.Context, row job.Row, c job.Claim, window string, now time.Time, todo *effect.List,
) error {
	limit := row.ExpireAfter
	if window == job.CodeStartWithin {
		limit = row.StartWithin
	}
	reason := job.Reason{Code: window, Message: fmt.Sprintf("%s of %s has passed", window, limit)}
	row, write := job.RequestStop(row, job.StopExpire, reason, now)
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return err
	}
	return d.finishStop(ctx, row, c, now, todo)
}
