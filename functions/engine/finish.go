package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/event"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/message"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Ended does what follows the end of a job, for a process that may not have done it. It may be repeated.
func (e *Engine) Ended(ctx context.Context, row job.Row) error {
	return e.Perform(ctx, effect.List{Ended: []effect.End{{Row: row, Counted: true}}})
}

// finish does what follows the end of a job, in this order:
//
//  1. its permits are given back, for the jobs that wait for one; those of an attempt that a worker has ended were,
//     before the row was final;
//  2. its dead letter is sent, if it failed for good;
//  3. its end is counted;
//  4. the backfill that made it notes its end, and makes the next time;
//  5. its schedule counts failures in a row, and names the job that is queued behind it;
//  6. what waits for it is evaluated: the jobs after it, or the nodes below it and their run.
//
// Each step may be repeated, after a crash or a lost answer; a second time it changes nothing. An error of one step
// keeps no other from being done. The job is final all the same: its pending effects bring steps 2 and 6 back, and the
// sweeper finds the jobs that wait for a permit or are queued behind it, and brings backfills on. What the steps bring
// about in turn is returned.
func (e *Engine) finish(ctx context.Context, end effect.End) (todo effect.List, err error) {
	row := end.Row
	var errs []error
	if row.Limits != "" && !end.Freed && !end.Unopened {
		todo.Freed, err = e.limits.Free(ctx, row, row.Attempt, nil)
		errs = append(errs, err)
	}
	if row.PendingEffects.DeadLetter() {
		err := e.sendDeadLetter(ctx, row)
		if err != nil && end.Unopened {
			e.deps.Log.WarnContext(ctx, "the dead letter of a node waits for the node's wake-up",
				telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
			err = nil
		}
		errs = append(errs, err)
	}
	if !end.Counted && !end.Unopened {
		e.count(row)
	}
	if row.Backfill != "" && row.Status.Final() {
		todo.Made = append(todo.Made, row)
	}
	switch {
	case end.Notified:
		return todo, errors.Join(errs...)
	case end.Later:
		return todo, errors.Join(append(errs, e.ask.ReevaluateAfter(ctx, row, 0))...)
	}
	todo.Wake, err = e.Recur.Ended(ctx, row)
	errs = append(errs, err)
	more, err := e.runs.Ended(ctx, row)
	todo.Add(more)
	return todo, errors.Join(append(errs, err)...)
}

// Perform carries out what a call has left to be done, and what that brings about, until nothing more does: first what
// follows the ends of jobs, then those of runs, then the jobs to be decided about, then those that wait for a permit,
// then the backfills whose jobs have ended, then the runs to be reconciled.
func (e *Engine) Perform(ctx context.Context, todo effect.List) error {
	var errs []error
	for !todo.Empty() {
		var more effect.List
		var err error
		switch {
		case len(todo.Ended) > 0:
			more, err = e.finish(ctx, todo.Ended[0])
			todo.Ended = todo.Ended[1:]
		case len(todo.Over) > 0:
			err = e.runOver(ctx, todo.Over[0])
			todo.Over = todo.Over[1:]
		case len(todo.Wake) > 0:
			more, err = e.wake(ctx, todo.Wake[0])
			todo.Wake = todo.Wake[1:]
		case len(todo.Freed) > 0:
			more, err = e.wakeWaiting(ctx, todo.Freed[0])
			todo.Freed = todo.Freed[1:]
		case len(todo.Made) > 0:
			err = e.Backfills.Ended(ctx, todo.Made[0])
			todo.Made = todo.Made[1:]
		default:
			more, err = e.runs.BringOn(ctx, todo.Reconcile[0])
			todo.Reconcile = todo.Reconcile[1:]
		}
		todo.Add(more)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deadLetterSend bounds one send of a dead letter. The letter carries the time of the send: if it arrived later than
// this, it would be taken for one that was redriven.
const deadLetterSend = contract.DeadLetterCameBackAfter - contract.SkewMargin

// sendDeadLetter sends the dead letter of a DEAD row to the redrive queue. Until it is buried, each wake-up of the job
// repeats that.
func (e *Engine) sendDeadLetter(ctx context.Context, row job.Row) error {
	ctx, cancel := context.WithTimeout(ctx, deadLetterSend)
	defer cancel()
	labels, err := e.deps.Store.LabelsOf(ctx, row)
	if err != nil {
		return fmt.Errorf("reading the labels for the dead letter of job %s: %w", row.ID, err)
	}
	letter := message.Outgoing{
		Body: message.Encode(job.DeadLetterOf(row, labels[0], e.deps.Clock.Now())), Group: string(row.Tenant),
	}
	if err := e.deps.Queue.Send(ctx, contract.RedriveQueue, letter); err != nil {
		return fmt.Errorf("sending the dead letter of job %s: %w", row.ID, err)
	}
	e.deps.Meter.Count(telemetry.DeadLetters, 1)
	return nil
}

// count counts a job that has become final.
func (e *Engine) count(row job.Row) {
	outcome := telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(row.Status))}
	e.deps.Meter.Count(telemetry.JobsSettled, 1, outcome)
	if row.Heartbeat() && row.Status == job.Succeeded {
		e.deps.Meter.Count(telemetry.Heartbeats, 1, telemetry.Dim{Key: "pool", Value: row.Pool})
	}
}

// runOver ends the row of a run that has ended, does what follows that, and only then clears the run's wake-up: after a
// crash in between, the wake-up repeats it. The first time, an error is only logged.
func (e *Engine) runOver(ctx context.Context, over effect.Over) error {
	err := e.closeRun(ctx, over)
	if err == nil || over.Repeated {
		return err
	}
	e.deps.Log.WarnContext(ctx, "the end of a run will be announced, and its schedule notified, at the run's wake-up",
		telemetry.Tenant, over.Run.Tenant, telemetry.RunID, over.Run.ID, telemetry.Err, err.Error())
	return nil
}

func (e *Engine) closeRun(ctx context.Context, over effect.Over) error {
	if over.Run.MustNotify() {
		row, found, err := e.Recur.CloseRow(ctx, over.Run)
		if found && err == nil {
			err = e.Ended(ctx, row)
		}
		if err != nil {
			return fmt.Errorf("notifying the schedule of run %s: %w", over.Run.ID, err)
		}
	}
	if err := e.announceRun(ctx, over.Run); err != nil {
		return err
	}
	if err := e.runs.Notified(ctx, over.Run); err != nil && store.Refused(err) == nil {
		return err
	}
	return nil // refused: the run has changed, and keeps its wake-up
}

// announceRun announces the events of a run.
func (e *Engine) announceRun(ctx context.Context, of run.Run) error {
	if len(of.Events) == 0 {
		return nil
	}
	tags, err := e.runs.Tags(ctx, of)
	if err != nil {
		return fmt.Errorf("reading the tags for the events of run %s: %w", of.ID, err)
	}
	for _, a := range of.Events {
		if err := e.Notify.Announce(ctx, event.OfRun(of, a, tags)); err != nil {
			return fmt.Errorf("announcing the events of run %s: %w", of.ID, err)
		}
	}
	return nil
}

// wake decides about the first of some parked jobs that can be read.
func (e *Engine) wake(ctx context.Context, w effect.Wake) (todo effect.List, err error) {
	for _, k := range w.Jobs {
		if _, todo, err = e.decide.Parked(ctx, k); fault.KindOf(err) != fault.Undecodable {
			return todo, err
		}
	}
	if w.Else == nil {
		return todo, err
	}
	return todo, e.deps.Queue.Send(ctx, contract.DispatchQueue, *w.Else)
}

// wakeWaiting has those decided about that may start now of the jobs that wait for a permit of a key.
func (e *Engine) wakeWaiting(ctx context.Context, k limit.Key) (todo effect.List, err error) {
	waking, err := e.limits.Next(ctx, k)
	todo.Wake = waking.Wake
	if waking.Later != nil {
		err = errors.Join(err, e.deps.Queue.Send(ctx, contract.DispatchQueue, *waking.Later))
	}
	return todo, err
}
