package stop

import (
	"context"
	"log/slog"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Jobs are the rows and claims that a Stopper ends.
type Jobs interface {
	store.JobWriter
	store.ClaimReader
	store.Writes
}

// Stopper ends open jobs. It is safe for concurrent use.
type Stopper struct {
	Jobs Jobs
	Log  *slog.Logger
}

// Stop asks a job to end as cancelled, for the reason that its schedule or run gives. If the row has a stop already,
// that one is kept. ended says that the job is final now, as after; if not, the worker that owns the attempt was asked.
func (s Stopper) Stop(
	ctx context.Context, row job.Row, why job.Reason, now time.Time,
) (after job.Row, ended bool, err error) {
	if row.Stop == job.NoStop {
		after, write := job.RequestStop(row, job.StopCancel, why, now)
		if err := s.Jobs.Put(ctx, write); err != nil {
			return row, false, err
		}
		row = after
	}
	c, asked, err := s.AskOwner(ctx, row, now)
	switch {
	case store.Refused(err) != nil: // the attempt ended just now; settling its report finds the stop
		return row, false, nil
	case asked || err != nil:
		return row, false, err
	}
	after, err = s.Finish(ctx, row, c, now)
	return after, err == nil, err
}

// AskOwner asks the worker that owns the attempt to stop it, and returns the claim. asked is false if no worker owns
// the attempt.
func (s Stopper) AskOwner(ctx context.Context, row job.Row, now time.Time) (c job.Claim, asked bool, err error) {
	c, err = s.Jobs.Claim(ctx, row.Key)
	if err != nil || !c.Live(row.Attempt, now) {
		return c, false, err
	}
	if c.Cancel || c.Outcome != nil {
		return c, true, nil
	}
	return c, true, s.Jobs.Put(ctx, job.FlagCancel(row.Key, c.Attempt, c.Token))
}

// Finish fences the attempt, so that no worker can start it any more, notes the starts that it had, and ends the job as
// its stop says. c is the claim as it was read.
func (s Stopper) Finish(ctx context.Context, row job.Row, c job.Claim, now time.Time) (job.Row, error) {
	if err := s.Jobs.Put(ctx, job.Fence(row, c, row.DueAt, now)); err != nil {
		return row, err
	}
	starts := c.Starts(row.Attempt, row.DueAt)
	after, write := job.FinishStopAfter(row, starts, now)
	for _, start := range after.PutStarts(starts) {
		if err := s.Jobs.Put(ctx, start); err != nil {
			return row, err
		}
	}
	return after, s.Jobs.PutRow(ctx, after, write)
}

// Skip fences the attempt and ends the job as skipped if holds is not refused: the condition under which its schedule
// decided so. It is one transaction, because nothing on the row would warn a worker that claims in between. A job that
// has started is not skipped: that is a refusal, so that the caller decides anew. unstarted says that it has not, even
// if its claim had an owner: a worker counts a job among the runs of its schedule, and takes its unique key, before it
// starts it, and the caller has seen that it did not.
func (s Stopper) Skip(
	ctx context.Context, row job.Row, why job.Reason, unstarted bool, now time.Time, holds ...item.Write,
) (job.Row, error) {
	c, err := s.Jobs.Claim(ctx, row.Key)
	if err != nil {
		return row, err
	}
	if !unstarted && job.HasStarted(row, c) {
		return row, &item.Refused{}
	}
	after, write := job.Skip(row, why, now)
	writes := append([]item.Write{write, job.Fence(row, c, row.DueAt, now)}, holds...)
	if err := s.Jobs.Commit(ctx, writes...); err != nil {
		return row, err
	}
	s.Log.InfoContext(ctx, "a job was skipped",
		telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, "schedule", row.ScheduleID, "reason", why.Code)
	return after, nil
}
