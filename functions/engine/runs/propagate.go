package runs

import (
	"context"
	"errors"
	"fmt"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/runs/permit"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// Ended evaluates what waits for a job that has become final: the jobs after it, or the nodes below it. It is called
// after the write that made the job final. A job that is no node and that no other comes after has nothing that waits.
// If what waits could not be evaluated, that is done in an invocation of its own; only where that cannot be asked for
// either, or where repeating cannot help, is it an error.
func (r *Controller) Ended(ctx context.Context, row job.Row) (todo effect.List, err error) {
	if !row.HasChildren() {
		return todo, nil
	}
	if err = timeLeft(ctx); err == nil {
		err = r.propagateOne(ctx, row, &todo)
	}
	if err != nil {
		err = r.propagateLater(ctx, row, err)
	}
	return todo, err
}

// propagateOne evaluates what waits for x.
func (r *Controller) propagateOne(ctx context.Context, x job.Row, todo *effect.List) error {
	if err := r.notifyFollowers(ctx, x, todo); err != nil {
		return fmt.Errorf("evaluating the jobs after job %s: %w", x.ID, err)
	}
	if !x.InRun() {
		return r.clearPending(ctx, x)
	}
	if err := r.propagate(ctx, x, todo); err != nil {
		return fmt.Errorf("evaluating the children of node %q of run %s: %w", x.Node, x.RunID, err)
	}
	return nil
}

// propagateLater asks for an invocation that evaluates the children of x, after an error that may go away. It returns
// the error if that is of no use or cannot be asked for.
func (r *Controller) propagateLater(ctx context.Context, x job.Row, why error) error {
	if !fault.Retryable(why) {
		return why
	}
	if err := r.Jobs.EndedLater(ctx, x); err != nil {
		return errors.Join(why, err)
	}
	r.Log.WarnContext(ctx, "the children of a job will be evaluated in another invocation", telemetry.Tenant, x.Tenant,
		telemetry.RunID, x.RunID, telemetry.JobID, x.ID, telemetry.Err, why.Error())
	return nil
}

// propagate evaluates the nodes that wait for x, and clears x's pending effects.
func (r *Controller) propagate(ctx context.Context, x job.Row, todo *effect.List) error {
	held := permit.HeldBy(x)
	for try := range tries {
		f, err := r.read(ctx, run.Of(x), todo)
		if fault.KindOf(err) == fault.NotFound { // forgotten
			return r.clearPending(ctx, x)
		}
		if err != nil {
			return err
		}
		f.cause, f.permits = x, permit.New(r.Store, f.run, held)
		ended, then, err := r.propagateOnce(ctx, f)
		f.end(ended)
		if err == nil && then != readOnce {
			ended, err = r.propagated(ctx, f, then)
			if f.end(ended); err == nil {
				return nil
			}
		}
		if err != nil && !refused(err) && !r.passes(ctx, err, x.ID, try) {
			return err
		}
	}
	return changed(run.Of(x))
}

// propagated frees the permits of the cause that were not passed on, has the nodes that have joined the waiters
// meanwhile take them, and clears the cause's pending effects.
func (r *Controller) propagated(ctx context.Context, f *facts, then verdict) (ended []job.Row, err error) {
	freed, err := f.permits.FreeHeld(ctx)
	if err != nil {
		return nil, err
	}
	if freed {
		f.permits.Forget("")
		if ended, err = r.moveUp(ctx, f, true); err != nil {
			return ended, err
		}
		more, err := r.recheckWaiters(ctx, f)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
		f.permits.WaitersRead()
	}
	if then == keepPending {
		return ended, nil
	}
	return ended, r.clearPending(ctx, f.cause)
}

// verdict is what follows once the nodes that wait for an end were evaluated.
type verdict int

const (
	readOnce     verdict = iota // the run is to be read and evaluated once more
	keepPending                 // the end still has to be propagated
	clearEffects                // the end was propagated
)

// propagateOnce is propagate for the run as it was read.
func (r *Controller) propagateOnce(ctx context.Context, f *facts) (ended []job.Row, then verdict, err error) {
	if ended, err = r.replaceItems(ctx, f); err != nil {
		return ended, readOnce, err
	}
	x, counts := f.cause, f.causeCounts()
	node := !x.IsItem() && counts
	failed := node && f.graph.OnFailure == dag.CancelRun && dag.EndOf(x.Status) == dag.Failed
	if x.IsItem() && !counts {
		if ended, err = r.closeOlder(ctx, f); err != nil {
			return ended, readOnce, err
		}
	}
	switch {
	case f.run.Status.Final():
		return ended, clearEffects, nil
	case f.run.Expired(r.Clock.Now()):
		if err := r.expire(ctx, f); err != nil {
			return ended, readOnce, err
		}
		return ended, readOnce, r.bringOn(ctx, f.run.Key, f.todo)
	case failed && f.run.Operation != nil:
		return ended, keepPending, nil // the operation decides whether the failure still counts
	case failed && f.run.Stop == run.NoStop:
		if err := r.stopFailed(ctx, f, x.Node); err != nil {
			return ended, readOnce, err
		}
		// In the stopped run, the end is propagated to the nodes that run always.
		return ended, readOnce, r.bringOn(ctx, f.run.Key, f.todo)
	}
	more, err := r.evaluateTargets(ctx, f)
	if ended = append(ended, more...); err != nil {
		return ended, readOnce, err
	}
	if err := r.noteHolds(ctx, f); err != nil {
		return ended, readOnce, err
	}
	if node {
		if err := r.endAfter(ctx, f); err != nil {
			return ended, readOnce, err
		}
	}
	// Nodes were not evaluated because of the operation or the pause, which may have ended meanwhile.
	if f.run.Operation != nil || f.run.Paused {
		is, err := r.Store.Run(ctx, f.run.Key)
		if err != nil || is.Epoch != f.run.Epoch {
			return ended, readOnce, err
		}
	}
	return ended, clearEffects, nil
}

// evaluateTargets has a node of the waiters take over the permit of the cause, evaluates the nodes that wait for the
// cause, and writes down those that wait for a permit now.
func (r *Controller) evaluateTargets(ctx context.Context, f *facts) (ended []job.Row, err error) {
	if f.cause.Permit > 0 || f.cause.Slot > 0 {
		if ended, err = r.moveUp(ctx, f, f.cause.Slot > 0); err != nil {
			return ended, err
		}
	}
	for _, name := range f.targets() {
		if f.stopsNode(name, r.Clock.Now()) && !(f.cause.IsItem() && name == f.cause.Node) {
			continue
		}
		more, err := r.evaluateTarget(ctx, f, name)
		if ended = append(ended, more...); err != nil {
			return ended, err
		}
	}
	more, err := r.recheckWaiters(ctx, f)
	return append(ended, more...), err
}

// evaluateTarget evaluates a node that waits for the cause, once the cause is the last of those that it waits for.
func (r *Controller) evaluateTarget(ctx context.Context, f *facts, name string) ([]job.Row, error) {
	switch {
	case f.cause.IsItem() && f.causeCounts():
		return r.itemEnded(ctx, f, name)
	case f.causeIsParent(name):
		if need := f.graph.JoinNeeds(f.run, name); need > 0 {
			n, err := r.Store.Count(ctx, f.run.Key, f.run.JoinRef(name, f.run.Generation(name)), 1, r.Clock.Now())
			if err != nil || n < int64(need) {
				return nil, err
			}
		}
	}
	return r.bringOnNode(ctx, f, name)
}
