package decide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Each act writes the row's next wake-up before it sends anything: of two who act at once only
// one passes the condition and sends. PutRow knows its own write again when the answer was lost,
// or nobody would send.

// settleEffects does what a final row still has to cause.
func (d *Decider) settleEffects(ctx context.Context, row job.Row, now time.Time) error {
	children := row.PendingEffects.Children() && row.HasChildren()
	if !row.PendingEffects.DeadLetter() && !children {
		return fault.New(fault.Undecodable, nil, "reading what job %s owes: %q, which nothing pays", row.ID,
			row.PendingEffects)
	}
	row, write := job.RewakePending(row, now.Add(contract.Grace))
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return err
	}
	var errs []error
	if row.PendingEffects.DeadLetter() {
		errs = append(errs, d.SendDeadLetter(ctx, row))
	}
	if children {
		errs = append(errs, d.ended(ctx, row))
	}
	return errors.Join(errs...)
}

// repeatReport sends the report of an outcome that nobody has settled.
func (d *Decider) repeatReport(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	after, write := job.Rewake(row, now.Add(contract.Grace), now, 0)
	if err := d.Jobs.PutRow(ctx, after, write); err != nil {
		return err
	}
	// Ids alone: these can be sent whatever the outcome holds, and it is read from the claim anyway.
	return d.Queue.Send(ctx, contract.ReportQueue,
		message.Outgoing{Group: string(row.Tenant), Body: message.Encode(message.Report{
			V: message.V, Kind: message.Ended, Tenant: string(row.Tenant), JobID: string(row.ID), Version: row.Version,
			Attempt: c.Attempt, Token: c.Token,
		})})
}

// waitForLease decides anew when the lease ends. The owner of a job that is to stop is asked to
// once more: whoever wrote the stop may have got no further.
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

// Park puts a job where the end of what holds it finds it. That may have ended meanwhile, and
// whoever ended it may have looked there before; so held is asked once more, and if nothing holds
// the job, it is fired.
func (d *Decider) Park(ctx context.Context, row job.Row, now time.Time, held func() (bool, error)) (job.Step, error) {
	if row.Parked && !row.QueuedBehind {
		return job.StepPark, nil
	}
	if err := d.Jobs.NoteParked(ctx, row.Tenant, now); err != nil {
		return job.StepPark, err
	}
	row, write := job.Park(row, now)
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return job.StepPark, err
	}
	if is, err := held(); is || err != nil {
		return job.StepPark, err
	}
	return job.StepFire, d.unpark(ctx, row, now)
}

func (d *Decider) unpark(ctx context.Context, row job.Row, now time.Time) error {
	row, write := job.Unpark(row, now)
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return err
	}
	return d.fire(ctx, row, "parked")
}

// fireAgain sends the firing once more, unless it is likely to wait in a deep queue.
func (d *Decider) fireAgain(ctx context.Context, row job.Row, gently bool, now time.Time) (job.Step, error) {
	if row.Parked {
		return job.StepFire, d.unpark(ctx, row, now)
	}
	next := now.Add(contract.Grace)
	if gently && !row.StartsRun() {
		// However it ends, the next wake-up is twice as far away: a firing that nobody took, though it
		// was sent again, waits for a slot, and copies of it must not grow with the time it waits.
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

// postpone puts the row's next wake-up off; times in a row are counted.
func (d *Decider) postpone(ctx context.Context, row job.Row, next, now time.Time) error {
	after, write := job.Rewake(row, next, now, row.Postponed+1)
	return d.Jobs.PutRow(ctx, after, write)
}

// fire sends the firing of a row's current attempt.
func (d *Decider) fire(ctx context.Context, row job.Row, lane string) error {
	return d.armer.Fire(ctx, lane, row.Firing(), d.Clock.Now())
}

// deadLetterSend bounds one send of a dead letter. It is stamped when it is sent; arriving late, it
// would be taken for one that somebody redrove.
const deadLetterSend = contract.DeadLetterCameBackAfter - contract.SkewMargin

// SendDeadLetter sends the dead letter of a DEAD row to the redrive queue.
func (d *Decider) SendDeadLetter(ctx context.Context, row job.Row) error {
	ctx, cancel := context.WithTimeout(ctx, deadLetterSend)
	defer cancel()
	labels, err := d.Jobs.LabelsOf(ctx, row)
	if err != nil {
		return fmt.Errorf("reading the labels for the dead letter of job %s: %w", row.ID, err)
	}
	letter := message.Outgoing{
		Body: message.Encode(job.DeadLetterOf(row, labels[0], d.Clock.Now())), Group: string(row.Tenant),
	}
	if err := d.Queue.Send(ctx, contract.RedriveQueue, letter); err != nil {
		return fmt.Errorf("sending the dead letter of job %s: %w", row.ID, err)
	}
	d.Meter.Count(telemetry.DeadLetters, 1)
	return nil
}
