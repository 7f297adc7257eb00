package accept

import (
	"context"
	"fmt"
	"slices"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

// Correct changes the job that repeats a dead one before it is accepted. The draft has the id, the settings and the
// contents that the new job has without corrections. It is called for each row that is read, and also for that of a
// run's node.
type Correct func(dead job.Row, next *Draft, now time.Time) error

// Redrive brings a DEAD job back as a new one, corrected by correct unless that is nil, and returns the new job's id.
// already is true if the job was redriven before; by is then the job made at that time, whose firing is sent once more
// if it may be missing. A row that is gone is a fault.NotFound, one that is not DEAD a fault.Refused. ofNode says that
// the job is that of a run's node, which the caller has to retry; nothing is done then.
//
// The new job's payload is written first, then its labels and both rows in one transaction: of two redrives with
// different corrections one wins, and the other one must not have replaced its labels. Then the firing is sent; if that
// fails it is no error, because the new row has its wake-up.
func (a *Acceptor) Redrive(
	ctx context.Context, k job.Key, correct Correct,
) (by job.ID, already, ofNode bool, err error) {
	var next job.Row
	var held job.Contents
	send := false
	_, err = a.Jobs.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		if row.Status != job.Dead {
			return nil, fault.New(fault.Refused, nil, "it is %s", row.Status)
		}
		if by, already = row.RedrivenBy, row.RedrivenBy != ""; already {
			return nil, nil
		}
		now := a.Clock.Now().UTC().Truncate(time.Millisecond)
		if ofNode = row.InRun(); ofNode && correct == nil {
			return nil, nil
		}
		d, err := a.repeat(ctx, row, correct, now)
		if ofNode || err != nil {
			return nil, err
		}
		send = job.Route(&d.Row, now)
		next, held, by = d.Row, job.Contents{Labels: d.Labels, Literals: LiteralsBy(d.By, d.Literals)}, d.Row.ID
		_, link := job.Redriven(row, by, now)
		key, err := a.uniqueKey(ctx, next, now)
		if err != nil {
			return nil, err
		}
		return nil, a.Put(ctx, Job{Row: next, With: slices.Concat(next.PutContents(held), []item.Write{link}, key),
			Keep: func(ctx context.Context, next job.Row) error { return a.Jobs.PutPayload(ctx, next, d.Payload) }})
	})
	if err != nil {
		return "", false, false, fmt.Errorf("redriving job %s: %w", k.ID, err)
	}
	if ofNode {
		return "", false, true, nil
	}
	if !already {
		a.LogLiterals(ctx, next, held)
		if send {
			a.Fire(ctx, "now", next.Firing())
		}
	}
	return by, already, false, a.Redriven(ctx, job.Key{Tenant: k.Tenant, ID: by}, already)
}

// repeat drafts the job that brings a dead one back.
func (a *Acceptor) repeat(ctx context.Context, dead job.Row, correct Correct, now time.Time) (*Draft, error) {
	c, err := a.Jobs.ContentsOf(ctx, dead)
	if err != nil {
		return nil, err
	}
	d := &Draft{Row: job.RedriveOf(dead, now), Payload: c.Payload, Labels: c.Labels}
	if correct != nil {
		if err := correct(dead, d, now); err != nil {
			return nil, err
		}
	}
	d.Row.SetPayload(job.Payload{}) // Hold decides anew where it is kept: a correction may have changed it and the row
	d.Row.Hold(job.Contents{Payload: d.Payload, Labels: d.Labels})
	return d, nil
}

// uniqueKey returns the write by which a job takes its unique key, none if it has no key. A key that another job holds
// is a NotUnique.
func (a *Acceptor) uniqueKey(ctx context.Context, r job.Row, now time.Time) ([]item.Write, error) {
	if r.Unique.Key == "" {
		return nil, nil
	}
	take, holder, err := a.TakeKey(ctx, r, now)
	switch {
	case err != nil:
		return nil, err
	case holder != nil:
		return nil, &NotUnique{Holder: holder.ID, Key: r.Unique.Key}
	}
	return []item.Write{take}, nil
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
