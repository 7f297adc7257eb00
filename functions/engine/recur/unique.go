package recur

import (
	"context"
	"time"

	"punctual/shared/job"
)

// keyHeld says what becomes of a job that has fallen due while another one holds its unique key; held is false if none
// does. A worker takes the key before it starts the job. So while the other holds it the job has not started, even if a
// worker was lost that had claimed it.
func (r *Recurrer) keyHeld(
	ctx context.Context, row job.Row, claim job.Claim, now time.Time,
) (v Verdict, held bool, err error) {
	if !row.TakesKeyWhenDue() || row.Attempt > 1 || row.DueAt.After(now) || !row.HoldsKey(claim) {
		return v, false, nil
	}
	h, err := r.Store.KeyHolder(ctx, row.Tenant, row.Unique.Key, now)
	if err != nil || !h.Holds || h.ID == row.ID {
		return v, false, err
	}
	why := job.Reason{Code: job.CodeNotUnique, Message: job.NotUnique(h.ID, row.Unique.Key)}
	v = Verdict{Step: Skipped, Why: why, Unstarted: true}
	if row.Unique.OnConflict != job.ConflictReplace {
		return v, true, nil
	}
	replaceable, err := r.replaceable(ctx, row, h.Row, now)
	if replaceable {
		v = Verdict{Step: Supersedes, Holder: &h.Row}
	}
	return v, true, err
}

// replaceable reports whether the holder of a unique key is a job of the same task that no worker has claimed.
func (r *Recurrer) replaceable(ctx context.Context, row, holder job.Row, now time.Time) (bool, error) {
	if holder.Task != row.Task || holder.Stop != job.NoStop {
		return false, nil
	}
	if holder.Status == job.Blocked {
		return holder.Parents != "", nil
	}
	c, err := r.Store.Claim(ctx, holder.Key)
	return err == nil && !c.Live(holder.Attempt, now) && !job.HasStarted(holder, c), err
}
