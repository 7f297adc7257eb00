package edit

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// Cancel asks a job to end as cancelled, and returns it: it is CANCELLED, or the worker that runs it was asked to stop.
func (e *Editor) Cancel(ctx context.Context, k job.Key) (job.Row, error) {
	row, err := e.Decisions.Cancel(ctx, k,
		func(row job.Row, now time.Time) error { return e.Changeable(ctx, row, now) })
	switch {
	case err != nil:
		return row, err
	case row.Status == job.Cancelled:
		return row, e.cancelItems(ctx, row)
	case row.Status.Final():
		return row, state(AlreadyFinished, "the job is %s", row.Status)
	}
	return row, nil
}

// cancelItems cancels the jobs of the items of a node with for_each. The node's own row is CANCELLED by then, so no
// more are made. Items that have ended keep their status.
func (e *Editor) cancelItems(ctx context.Context, row job.Row) error {
	k := run.Of(row)
	for i := range row.Items {
		_, err := e.Decisions.Cancel(ctx, k.Job(row.Node, row.Generation, i+1),
			func(job.Row, time.Time) error { return nil })
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

// runHasEnded returns an error for the job of a node whose run goes on: the run still reads the job's row and result.
// The writes go in one transaction with the one that forgets the job: the run may be retried meanwhile.
func (e *Editor) runHasEnded(ctx context.Context, row job.Row) ([]item.Write, error) {
	if !row.InRun() {
		return nil, nil
	}
	of, err := e.Store.Run(ctx, run.Of(row))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !of.Status.Final() || of.Operation != nil:
		return nil, state(NotFinished, "the job belongs to run %s, which has not ended; cancel the run first, "+
			"or wait for its end", of.ID)
	}
	return []item.Write{of.CheckOver()}, nil
}

// Forget replaces a finished job by a tombstone and deletes its contents. may refuses a row by an error.
func (e *Editor) Forget(ctx context.Context, k job.Key, may func(job.Row) error) error {
	found, dead := false, false
	row, err := e.Store.Update(ctx, k, func(row job.Row) ([]item.Write, error) {
		found, dead = !row.StartsRun(), row.Status == job.Dead
		switch {
		case row.StartsRun():
			return nil, absent(k)
		case !row.Status.Final():
			return nil, state(NotFinished, "the job has not ended; cancel it first")
		case row.PendingEffects.Children():
			return nil, state(WrongState, "the job has yet to notify its dependents; try again in a moment")
		}
		if err := may(row); err != nil {
			return nil, err
		}
		checks, err := e.runHasEnded(ctx, row)
		if err != nil {
			return nil, err
		}
		return append([]item.Write{job.Forget(row, e.Read.Now())}, checks...), nil
	})
	switch {
	case found && fault.KindOf(err) == fault.NotFound: // another request has just forgotten it
		return nil
	case err != nil:
		return err
	}
	if dead && !e.Gathers {
		e.Collect(ctx)
	}
	if err := e.Store.ForgetContents(ctx, row); err != nil { // the job is gone, and what is left has a time to live
		e.Log.WarnContext(ctx, "a forgotten job left something behind", telemetry.Tenant, k.Tenant, telemetry.JobID,
			k.ID, telemetry.Err, err)
	}
	return nil
}

// Collect asks for the removal of dead letters whose jobs are no longer dead. The collection begins after a delay, so
// it covers the jobs of this request. If the message cannot be sent, the letters stay until the next collection, or
// until the queue drops them after contract.DeadLetterKept.
func (e *Editor) Collect(ctx context.Context) {
	if e.collected.lately(e.Read.Now()) {
		return
	}
	err := e.Queue.Send(ctx, contract.RedriveQueue, message.Outgoing{
		Body:  message.Encode(message.Collect{V: message.V, Collect: true}),
		Delay: contract.LettersCollectedAfter,
	})
	if err != nil {
		e.Log.WarnContext(ctx, "dead letters were left in their queue", telemetry.Err, err.Error())
	}
}
