package decide

import (
	"context"
	"fmt"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Cancel asks a job to end as cancelled, and returns its row: CANCELLED, and no attempt can start any more; open,
// and the worker that runs it was asked to stop; or final already, and nothing was changed. may can refuse an open
// row first. An absent job is a fault.NotFound.
func (d *Decider) Cancel(ctx context.Context, k job.Key, may func(job.Row, time.Time) error) (job.Row, error) {
	var after job.Row
	_, err := d.Jobs.Update(ctx, k, func(row job.Row) (_ []item.Write, err error) {
		after, err = d.cancelOnce(ctx, row, may)
		return nil, err // cancelOnce has written already
	})
	return after, err
}

func (d *Decider) cancelOnce(ctx context.Context, row job.Row, may func(job.Row, time.Time) error) (job.Row, error) {
	now := d.Clock.Now()
	switch {
	case row.StartsRun(): // a run is cancelled as a run
		return row, fault.New(fault.NotFound, nil, "cancelling %s, which is no job", row.ID)
	case row.Status.Final():
		return row, nil
	case row.Status == job.Blocked:
		after, write := job.CancelBlocked(row, now)
		return d.end(ctx, after, write)
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
	c, asked, err := d.askOwner(ctx, row, now)
	if asked || err != nil {
		return row, err // if the claim has an outcome, settling it decides
	}
	after, write, err := d.fenceStop(ctx, row, c, now)
	if err != nil {
		return row, err
	}
	return d.end(ctx, after, write)
}

// end does the write that makes a job final, and announces it. If announcing fails that is only logged: the sweeper
// finds the jobs that are queued behind this one.
func (d *Decider) end(ctx context.Context, after job.Row, write item.Write) (job.Row, error) {
	if err := d.Jobs.PutRow(ctx, after, write); err != nil {
		return after, err
	}
	if err := d.announce(ctx, after); err != nil {
		d.Log.WarnContext(ctx, "the end of a job was not announced to its schedule",
			telemetry.Tenant, after.Tenant, telemetry.JobID, after.ID, telemetry.Err, err)
	}
	return after, nil
}

// Stop asks a job to end as cancelled, for the reason that its schedule or run gives. If the row has a stop already,
// that one is kept.
func (d *Decider) Stop(ctx context.Context, row job.Row, why job.Reason, now time.Time) error {
	if row.Stop == job.NoStop {
		after, write := job.RequestStop(row, job.StopCancel, why, now)
		if err := d.Jobs.Put(ctx, write); err != nil {
			return err
		}
		row = after
	}
	c, asked, err := d.askOwner(ctx, row, now)
	switch {
	case store.Refused(err) != nil: // the attempt ended just now; settling its report finds the stop
		return nil
	case asked || err != nil:
		return err
	}
	return d.finishStop(ctx, row, c, now)
}

// askOwner asks the worker that owns the attempt to stop it, and returns the claim. asked is false if no worker owns
// the attempt.
func (d *Decider) askOwner(ctx context.Context, row job.Row, now time.Time) (c job.Claim, asked bool, err error) {
	c, err = d.Jobs.Claim(ctx, row.Key)
	if err != nil || !c.Live(row.Attempt, now) {
		return c, false, err
	}
	if c.Cancel || c.Outcome != nil {
		return c, true, nil
	}
	return c, true, d.Jobs.Put(ctx, job.FlagCancel(row.Key, c.Attempt, c.Token))
}

// fenceStop fences the attempt, so that no worker can start it any more, notes the starts that it had, and returns the
// write that then ends the job. c is the claim as it was read.
func (d *Decider) fenceStop(
	ctx context.Context, row job.Row, c job.Claim, now time.Time,
) (job.Row, item.Write, error) {
	if err := d.Jobs.Put(ctx, job.Fence(row, c, row.DueAt, now)); err != nil {
		return row, item.Write{}, err
	}
	starts := c.Starts(row.Attempt, row.DueAt)
	after, write := job.FinishStopAfter(row, starts, now)
	for _, start := range after.PutStarts(starts) {
		if err := d.Jobs.Put(ctx, start); err != nil {
			return row, item.Write{}, err
		}
	}
	return after, write, nil
}

// finishStop fences the attempt and then ends the job as its stop says.
func (d *Decider) finishStop(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	after, write, err := d.fenceStop(ctx, row, c, now)
	if err != nil {
		return err
	}
	if err := d.Jobs.PutRow(ctx, after, write); err != nil {
		return err
	}
	return d.announce(ctx, after)
}

// expire writes the stop on the row first, because a worker may be starting the job just now. If one is, its claim
// is live and the fence is refused; then the outcome of the attempt decides.
func (d *Decider) expire(ctx context.Context, row job.Row, c job.Claim, window string, now time.Time) error {
	limit := row.ExpireAfter
	if window == job.CodeStartWithin {
		limit = row.StartWithin
	}
	reason := job.Reason{Code: window, Message: fmt.Sprintf("%s of %s has passed", window, limit)}
	row, write := job.RequestStop(row, job.StopExpire, reason, now)
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return err
	}
	return d.finishStop(ctx, row, c, now)
}

// Skip fences the attempt and ends the job as skipped if holds is not refused: the condition under which its
// schedule decided so. It is one transaction, because nothing on the row would warn a worker that claims in between.
// A job that has started is not skipped: that is a refusal, so that the caller decides anew.
func (d *Decider) Skip(ctx context.Context, row job.Row, why job.Reason, holds item.Write, now time.Time) error {
	c, err := d.Jobs.Claim(ctx, row.Key)
	if err != nil {
		return err
	}
	if job.HasStarted(row, c) {
		return &item.Refused{}
	}
	return d.skip(ctx, row, c, why, holds, now)
}

// SkipUncounted is Skip for a job whose claim may have had an owner, but which was never counted among the runs of its
// schedule: a worker counts a job before it starts it, so it has not started.
func (d *Decider) SkipUncounted(
	ctx context.Context,
	row job.Row,
	why job.Reason,
	holds item.Write,
	now time.Time,
) error {
	c, err := d.Jobs.Claim(ctx, row.Key)
	if err != nil {
		return err
	}
	return d.skip(ctx, row, c, why, holds, now)
}

func (d *Decider) skip(
	ctx context.Context, row job.Row, c job.Claim, why job.Reason, holds item.Write, now time.Time,
) error {
	after, write := job.Skip(row, why, now)
	if err := d.Jobs.Commit(ctx, write, holds, job.Fence(row, c, row.DueAt, now)); err != nil {
		return err
	}
	d.Log.InfoContext(ctx, "a schedule's job was skipped",
		telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, "schedule", row.ScheduleID, "reason", why.Code)
	return d.announce(ctx, after)
}
