package edit

import (
	"context"
	"time"

	"punctual/shared/dag"
	"punctual/shared/job"
)

// RunNow makes a job due at that time, which is now unless several jobs are dealt out. A job that waits for a retry
// starts its next attempt. version 0 is any.
func (e *Editor) RunNow(ctx context.Context, k job.Key, version int64, due time.Time) (job.Row, error) {
	return e.Edit(ctx, k, version, func(row job.Row, now time.Time) (Change, error) {
		switch {
		case row.IsPaused():
			return Change{}, state(WrongState, "the job is paused; resume it first")
		case row.Status == job.Blocked:
			return Change{}, state(WrongState, "the job waits for the jobs in after")
		case due.Before(now):
			return Change{Edit: job.Edit{DueAt: &now}}, nil
		}
		return Change{Edit: job.Edit{DueAt: &due}}, nil
	})
}

// Reschedule gives a job a new time: notBefore, or a delay from now if that is zero. Of a BLOCKED job the delay counts
// from the end of the jobs that it waits for. version 0 is any.
func (e *Editor) Reschedule(
	ctx context.Context, k job.Key, version int64, notBefore time.Time, delay time.Duration,
) (job.Row, error) {
	return e.Edit(ctx, k, version, func(row job.Row, now time.Time) (Change, error) {
		if row.Status == job.Blocked {
			of, _, err := dag.AfterOf(row)
			of.NotBefore, of.Delay = notBefore, 0
			if notBefore.IsZero() {
				of.Delay = delay
			}
			return Change{Parents: of.Encode()}, err
		}
		due := notBefore
		if due.IsZero() {
			due = now.Add(delay)
		}
		return Change{Edit: job.Edit{DueAt: &due}}, nil
	})
}

// Reprioritize gives a job a new priority.
func (e *Editor) Reprioritize(ctx context.Context, k job.Key, p job.Priority) (job.Row, error) {
	return e.Edit(ctx, k, 0, func(row job.Row, _ time.Time) (c Change, err error) {
		if row.Status == job.Blocked {
			of, _, err := dag.AfterOf(row)
			if err != nil {
				return c, err
			}
			c.Parents = of.Encode()
		}
		c.Priority = &p
		return c, nil
	})
}

// Purge forgets a DEAD job.
func (e *Editor) Purge(ctx context.Context, k job.Key) error {
	return e.Forget(ctx, k, func(row job.Row) error {
		if row.Status != job.Dead {
			return state(WrongState, "only a DEAD job is purged; this one is %s", row.Status)
		}
		return nil
	})
}
