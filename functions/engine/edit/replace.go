package edit

import (
	"context"
	"errors"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Replace gives a job that has not been claimed every field of a draft but its task, its unique key and the jobs that
// it comes after. It is an edit, by the conditions of one, so it changes nothing of a pause. The other writes go in its
// transaction. A job whose state does not allow that is an *accept.NotUnique, and one that has ended an *item.Refused.
func (e *Editor) Replace(
	ctx context.Context, k job.Key, d *accept.Draft, by string, with ...item.Write,
) (job.Row, error) {
	after, err := e.replace(ctx, k, d, by, with)
	of, is := errors.AsType[*State](err)
	if !is {
		return after, err
	}
	row, err := e.Store.Row(ctx, k)
	switch {
	case err != nil:
		return row, err
	case row.Status.Final():
		return row, &item.Refused{}
	}
	return row, &accept.NotUnique{Holder: k.ID, Key: d.Row.Unique.Key, Detail: of.Detail}
}

func (e *Editor) replace(
	ctx context.Context, k job.Key, d *accept.Draft, by string, with []item.Write,
) (job.Row, error) {
	return e.edit(ctx, k, 0, func(row job.Row, claim job.Claim, now time.Time) (Change, error) {
		if job.HasStarted(row, claim) {
			return Change{}, state(AlreadyStarted, "attempt %d has started", row.Attempt)
		}
		due := d.When.Due(d.Row.CreatedAt)
		c := Change{Text: d.Payload, Literals: d.Literals, By: by, With: with,
			Edit: job.Edit{DueAt: &due, Settings: &d.Row.Settings, Labels: &d.Labels}}
		if row.Status == job.Blocked {
			of, _, err := dag.AfterOf(row)
			if err != nil {
				return c, err
			}
			of.NotBefore, of.Delay = d.When.NotBefore, d.When.Delay
			c.DueAt, c.Parents = nil, of.Encode()
		}
		next := row
		next.Version++
		next.Settings = d.Row.Settings
		stored := job.Payload{}
		if c.Text != nil {
			stored = job.PayloadStorage(&next, c.Text)
		}
		c.Payload = &stored
		return c, nil
	})
}
