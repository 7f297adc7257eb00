package accept

import (
	"context"
	"fmt"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

// Redrive brings a DEAD job back as a new one and returns the new job's id. already is true if the job was
// redriven before; by is then the job made at that time, whose firing is sent once more if it may be missing. A row
// that is gone is a fault.NotFound, one that is not DEAD a fault.Refused. ofNode says that the job is that of a run's
// node, which the caller has to retry; nothing is done then.
//
// The new job's contents are written first, then both rows in one transaction. Then the firing is sent; if that
// fails it is no error, because the new row has its wake-up.
func (a *Acceptor) Redrive(ctx context.Context, k job.Key) (by job.ID, already, ofNode bool, err error) {
	var next job.Row
	send := false
	_, err = a.Jobs.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		if row.Status != job.Dead {
			return nil, fault.New(fault.Refused, nil, "it is %s", row.Status)
		}
		if by, already = row.RedrivenBy, row.RedrivenBy != ""; already {
			return nil, nil
		}
		if ofNode = row.InRun(); ofNode {
			return nil, nil
		}
		now := a.Clock.Now()
		next = job.RedriveOf(row, now)
		send = job.Route(&next, now)
		by = next.ID
		_, link := job.Redriven(row, by, now)
		return nil, a.Put(ctx,
			Job{Row: next, With: []item.Write{link}, Keep: func(ctx context.Context, next job.Row) error {
				return a.Jobs.CopyContents(ctx, row, next)
			}})
	})
	if err != nil {
		return "", false, false, fmt.Errorf("redriving job %s: %w", k.ID, err)
	}
	if ofNode {
		return "", false, true, nil
	}
	if !already && send {
		a.Fire(ctx, "now", next.Firing())
	}
	return by, already, false, a.Redriven(ctx, job.Key{Tenant: k.Tenant, ID: by}, already)
}

// Redriven counts a redrive that has made job k. If it was made before already, its firing is sent once more if that
// may be missing.
func (a *Acceptor) Redriven(ctx context.Context, k job.Key, already bool) error {
	if already {
		return a.refire(ctx, k)
	}
	a.Meter.Count(telemetry.Redriven, 1)
	return nil
}

// refire sends the firing of a job that may not have been sent.
func (a *Acceptor) refire(ctx context.Context, k job.Key) error {
	f, err := a.Unfired(ctx, k)
	if err != nil {
		return fmt.Errorf("looking at job %s, which was redriven before: %w", k.ID, err)
	}
	if f != nil {
		a.Fire(ctx, "now", *f)
	}
	return nil
}
