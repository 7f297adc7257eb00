package decide

import (
	"context"
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
// one passes the condition and sends. [store.Store.PutRow] knows its own write again when the
// answer was lost, or nobody would send.

func (w *Waker) payOwed(ctx context.Context, row job.Row, now time.Time) error {
	if !row.Owes.Letter() {
		return fault.New(fault.Undecodable, nil, "reading what job %s owes: %q, which nothing pays", row.ID, row.Owes)
	}
	row, write := job.RewakeOwing(row, now.Add(contract.Grace))
	if err := w.Store.PutRow(ctx, row, write); err != nil {
		return err
	}
	return w.SendLetter(ctx, row)
}

func (w *Waker) repeatReport(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	after, write := job.Rewake(row, now.Add(contract.Grace), now, 0)
	if err := w.Store.PutRow(ctx, after, write); err != nil {
		return err
	}
	// Ids alone: these can be sent whatever the outcome holds, and it is read from the claim anyway.
	return w.Queue.Send(ctx, contract.ReportQueue, message.Outgoing{Group: string(row.Tenant), Body: message.Encode(message.Report{
		V: message.V, Kind: message.Ended, Tenant: string(row.Tenant), JobID: string(row.ID), Version: row.Version,
		Attempt: c.Attempt, Token: c.Token,
	})})
}

// waitForLease looks again when the lease ends. The owner of a job that is to stop is asked to
// once more: whoever wrote the stop may have got no further.
func (w *Waker) waitForLease(ctx context.Context, row job.Row, c job.Claim, now time.Time) error {
	if row.Stop != job.NoStop && !c.Cancel {
		err := w.Store.Put(ctx, job.FlagCancel(row.Key, c.Attempt, c.Token))
		if err != nil && store.Refused(err) == nil {
			return err
		}
	}
	after, write := job.Rewake(row, c.LeaseUntil, now, 0)
	return w.Store.PutRow(ctx, after, write)
}

// finishStop fences the attempt and only then makes the stop final: no worker can start it any more.
func (w *Waker) finishStop(ctx context.Context, row job.Row, now time.Time) error {
	if err := w.Store.Put(ctx, job.Fence(row.Key, row.Attempt, row.DueAt, now)); err != nil {
		return err
	}
	after, write := job.FinishStop(row, now)
	if err := w.Store.PutRow(ctx, after, write); err != nil {
		return err
	}
	return w.Announce(ctx, after)
}

// expire writes the intent before anything else, because a worker may be starting just now:
// if it is, its claim is live, and what comes of the attempt decides.
func (w *Waker) expire(ctx context.Context, row job.Row, window string, now time.Time) error {
	limit := row.ExpireAfter
	if window == job.CodeStartWithin {
		limit = row.StartWithin
	}
	reason := job.Reason{Code: window, Message: fmt.Sprintf("%s of %s has passed", window, limit)}
	row, write := job.RequestStop(row, job.StopExpire, reason, now)
	if err := w.Store.PutRow(ctx, row, write); err != nil {
		return err
	}
	return w.finishStop(ctx, row, now)
}

// park puts the job where lifting its pause finds it. The pause may have been lifted while we
// did, and whoever lifted it may have looked there before us; so we look at the pauses again.
func (w *Waker) park(ctx context.Context, row job.Row, now time.Time) (job.Step, error) {
	if row.Parked && !row.Behind {
		return job.StepPark, nil
	}
	if err := w.Store.NoteParked(ctx, row.Tenant, now); err != nil {
		return job.StepPark, err
	}
	row, write := job.Park(row, now)
	if err := w.Store.PutRow(ctx, row, write); err != nil {
		return job.StepPark, err
	}
	w.Reread(row.Tenant)
	pauses, err := w.pauses.of(ctx, w.Store, row.Tenant, now)
	if err != nil {
		return job.StepPark, err
	}
	if _, held := pauses.Hold(row.Task, now); held {
		return job.StepPark, nil
	}
	return job.StepFire, w.unpark(ctx, row, now)
}

func (w *Waker) unpark(ctx context.Context, row job.Row, now time.Time) error {
	row, write := job.Unpark(row, now)
	if err := w.Store.PutRow(ctx, row, write); err != nil {
		return err
	}
	return w.Fire(ctx, row, "parked")
}

// fireAgain sends the firing again, unless it may just be waiting its turn in a deep queue.
func (w *Waker) fireAgain(ctx context.Context, row job.Row, gently bool, now time.Time) (job.Step, error) {
	if row.Parked {
		return job.StepFire, w.unpark(ctx, row, now)
	}
	again := now.Add(contract.Grace)
	if gently {
		// However it ends, the next look is twice as far away: a firing that nobody took, though it
		// was sent again, waits for a slot, and copies of it must not grow with the time it waits.
		again = now.Add(job.Postpone(row.Postponed))
		visible, err := w.depths.visible(ctx, w.Queue, row.Firing().Queue(), now)
		if err != nil {
			return job.StepFire, err
		}
		if visible > deepFor(row.Postponed) {
			return Postponed, w.postpone(ctx, row, again, now)
		}
	}
	if err := w.postpone(ctx, row, again, now); err != nil {
		return job.StepFire, err
	}
	return job.StepFire, w.Fire(ctx, row, "swept")
}

// postpone puts the row's next wake-up off; times in a row are counted.
func (w *Waker) postpone(ctx context.Context, row job.Row, again, now time.Time) error {
	after, write := job.Rewake(row, again, now, row.Postponed+1)
	return w.Store.PutRow(ctx, after, write)
}

// Fire sends the firing of a row's current attempt; lane is for the metric.
func (w *Waker) Fire(ctx context.Context, row job.Row, lane string) error {
	return w.armer.Fire(ctx, lane, row.Firing(), w.Clock.Now())
}

// letterSend bounds one send of a letter. What is stamped with its send must not arrive so
// late that it would be taken for one that somebody redrove.
const letterSend = contract.LetterCameBackAfter - contract.SkewMargin

// SendLetter sends the dead letter of a DEAD row to the redrive queue.
func (w *Waker) SendLetter(ctx context.Context, row job.Row) error {
	ctx, cancel := context.WithTimeout(ctx, letterSend)
	defer cancel()
	labels, err := w.Store.LabelsOf(ctx, row)
	if err != nil {
		return fmt.Errorf("reading the labels for the dead letter of job %s: %w", row.ID, err)
	}
	letter := message.Outgoing{
		Body: message.Encode(job.LetterOf(row, labels[0], w.Clock.Now())), Group: string(row.Tenant),
	}
	if err := w.Queue.Send(ctx, contract.RedriveQueue, letter); err != nil {
		return fmt.Errorf("sending the dead letter of job %s: %w", row.ID, err)
	}
	w.Meter.Count(telemetry.DeadLetters, 1)
	return nil
}
