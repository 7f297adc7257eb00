package decide

import (
	"context"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
)

// Postponed is the step of a wake-up that sends no firing because the last one is probably not lost: a worker has
// given it back, or its queue is too deep for another one.
const Postponed job.Step = "postpone"

// Each operation writes the row's next wake-up before it sends anything: when two processes act at the same time, one
// of the writes is refused and only the other process sends. PutRow recognizes its own write when the answer was lost;
// otherwise no process would send.

// settleEffects has the pending effects of a final row done.
func (d *Decider) settleEffects(ctx context.Context, row job.Row, now time.Time, todo *effect.List) error {
	children := row.PendingEffects.Children() && row.HasChildren()
	if !row.PendingEffects.DeadLetter() && !children {
		return fault.New(fault.Undecodable, nil, "reading the pending effects of job %s: nothing does %q", row.ID,
			row.PendingEffects)
	}
	// The wake-up is written first, and those of children that go on failing are ever further away: whatever
	// propagation them takes, it keeps no later pass from other rows.
	wait := contract.Grace
	if children {
		wait = job.Postpone(row.Postponed)
	}
	row, write := job.RewakePending(row, now.Add(wait))
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return err
	}
	todo.Ended = append(todo.Ended, effect.End{Row: row, Counted: true, Notified: !children})
	return nil
}

// repeatReport reports an outcome that is on the claim and was not settled.
func (d *Decider) repeatReport(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	after, write := job.Rewake(row, now.Add(contract.Grace), now, 0)
	if err := d.Jobs.PutRow(ctx, after, write); err != nil {
		return err
	}
	// The message has ids only, so it is never too large; the outcome is read from the claim anyway.
	return d.Queue.Send(ctx, contract.ReportQueue,
		message.Outgoing{Group: string(row.Tenant), Body: message.Encode(message.Report{
			V: message.V, Kind: message.Ended, Tenant: string(row.Tenant), JobID: string(row.ID), Version: row.Version,
			Attempt: c.Attempt, Token: c.Token,
		})})
}

// recordLost records that an attempt failed because its worker ended, and has that settled as any other outcome. It
// needs no worker: none has to take the attempt over, whatever holds the job.
func (d *Decider) recordLost(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	after, write := job.RecordLost(row, c, now)
	if err := d.Jobs.Put(ctx, write); err != nil {
		return err
	}
	return d.repeatReport(ctx, row, after, now)
}

// waitForLease defers the wake-up until the lease ends. If the job is to stop, its owner is asked first: the process
// that wrote the stop may have crashed before asking.
func (d *Decider) waitForLease(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	if row.Stop != job.NoStop && !c.Cancel {
		err := d.Jobs.Put(ctx, job.FlagCancel(row.Key, c.Attempt, c.Token))
		if err != nil && store.Refused(err) == nil {
			return err
		}
	}
	after, write := job.Rewake(row, c.LeaseUntil, now, 0)
	return d.Jobs.PutRow(ctx, after, write)
}

func (d *Decider) unpark(ctx context.Context, row job.Row, now time.Time) error {
	row, write := job.Unpark(row, now)
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return err
	}
	return d.fire(ctx, row, "parked")
}

// refire sends the firing once more, unless gently is set and the first one probably waits in a deep queue.
func (d *Decider) refire(ctx context.Context, row job.Row, gently bool, now time.Time) (job.Step, error) {
	if row.Parked {
		return job.StepFire, d.unpark(ctx, row, now)
	}
	next := now.Add(contract.Grace)
	if gently && !row.StartsRun() {
		// Each wake-up is twice as far away as the one before, sent or not. A firing that was repeated and still
		// not taken waits for a slot, and the number of its copies must not grow with that wait.
		next = now.Add(job.Postpone(row.Postponed))
		visible, err := d.visible(ctx, row.Firing().Queue())
		if err != nil {
			return job.StepFire, err
		}
		if visible > deepFor(row.Postponed) {
			return Postponed, d.postpone(ctx, row, next, now)
		}
	}
	if err := d.postpone(ctx, row, next, now); err != nil {
		return job.StepFire, err
	}
	return job.StepFire, d.fire(ctx, row, "swept")
}

// postpone sets the row's next wake-up and counts how often in a row it did.
func (d *Decider) postpone(ctx context.Context, row job.Row, next, now time.Time) error {
	after, write := job.Rewake(row, next, now, row.Postponed+1)
	return d.Jobs.PutRow(ctx, after, write)
}

// fire sends the firing of a row's current attempt.
func (d *Decider) fire(ctx context.Context, row job.Row, lane string) error {
	return d.armer.Fire(ctx, lane, row.Firing(), d.Clock.Now())
}
