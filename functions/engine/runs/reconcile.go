package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
)

// Reconcile evaluates every node of a run from its rows, and ends the run once all of them have ended. It is called at
// the run's wake-up and after each operation. A run that is forgotten is no error.
func (r *Controller) Reconcile(ctx context.Context, k run.Key) (todo effect.List, err error) {
	return todo, r.reconcile(ctx, k, &todo)
}

func (r *Controller) reconcile(ctx context.Context, k run.Key, todo *effect.List) error {
	for try := range tries {
		f, err := r.read(ctx, k, todo)
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		ended, done, err := r.reconcileOnce(ctx, f)
		f.end(ended)
		if err == nil && done {
			return nil
		}
		if errors.Is(err, errNoTime) {
			return r.Jobs.ReconcileLater(ctx, k)
		}
		if err != nil && !refused(err) && !r.passes(ctx, err, k.ID, try) {
			return fmt.Errorf("bringing on run %s: %w", k.ID, err)
		}
	}
	return changed(k)
}

// BringOn reconciles a run. If that fails with an error that may go away, the run is reconciled in an invocation of its
// own, for which it is no error.
func (r *Controller) BringOn(ctx context.Context, k run.Key) (todo effect.List, err error) {
	return todo, r.bringOn(ctx, k, &todo)
}

func (r *Controller) bringOn(ctx context.Context, k run.Key, todo *effect.List) error {
	err := r.reconcile(ctx, k, todo)
	if err == nil || !fault.Retryable(err) {
		return err
	}
	if later := r.Jobs.ReconcileLater(ctx, k); later != nil {
		return errors.Join(err, later)
	}
	r.warn(ctx, k, "a run is reconciled in another invocation", err)
	return nil
}

// reconcileOnce is Reconcile for the run as it was read. It returns the rows that it has ended; their children are
// still to be evaluated. done is false if the run is to be read and reconciled once more.
func (r *Controller) reconcileOnce(ctx context.Context, f *facts) (ended []job.Row, done bool, err error) {
	now := r.Clock.Now()
	if !f.run.Status.Final() {
		f.over(true)
	}
	switch is := f.run; {
	case is.Operation != nil:
		_, err := r.finish(ctx, f)
		return nil, false, err
	case is.Status.Final() && is.Unfinished():
		f.over(true)
		return nil, true, nil
	case is.Status.Final():
		return nil, true, r.rest(ctx, f, time.Time{})
	case is.Expired(now):
		return nil, false, r.expire(ctx, f)
	case is.Stop != run.NoStop:
		ended, err = r.stopAll(ctx, f)
	default:
		var stopped bool
		if ended, stopped, err = r.evaluateAll(ctx, f); stopped {
			return ended, false, err
		}
	}
	if err != nil {
		return ended, false, err
	}
	if err := r.endRun(ctx, f); err != nil {
		return ended, false, err
	}
	if !f.run.Status.Final() { // endRun has done it
		r.keepEvents(ctx, f.run)
	}
	return ended, true, r.rest(ctx, f, f.run.NextWakeUp(now))
}

// evaluateAll evaluates every node, parents before children. stopped says that it has stopped the run instead, for a
// failure that no process has propagated.
func (r *Controller) evaluateAll(ctx context.Context, f *facts) (ended []job.Row, stopped bool, err error) {
	if ended, err = r.stopOlder(ctx, f); err != nil {
		return ended, false, err
	}
	f.once = map[string]job.Row{}
	rows, err := r.rows(ctx, f, f.graph.Names()...) // all in one read
	if err != nil {
		return ended, false, err
	}
	if node, failed := untold(f, rows); failed {
		return ended, true, r.stopFailed(ctx, f, node)
	}
	for _, level := range f.graph.Levels() {
		for lot := range slices.Chunk(level, atOnce) {
			more, err := r.evaluateBatch(ctx, f, lot)
			if ended = append(ended, more...); err != nil {
				return ended, false, err
			}
		}
	}
	// A node that has joined the waiters meanwhile did so by ends that came after the read. Evaluated by older rows it
	// would not be released by any process.
	f.once = nil
	more, err := r.recheckWaiters(ctx, f)
	if ended = append(ended, more...); err != nil {
		return ended, false, err
	}
	if err := r.clearPassed(ctx, f); err != nil {
		return ended, false, err
	}
	if err := r.noteHolds(ctx, f); err != nil {
		return ended, false, err
	}
	if f.run.Status == run.Building && !f.run.Paused {
		after, write := f.run.Built()
		if err := r.Store.WriteRun(ctx, after, write); err != nil {
			return ended, false, err
		}
		f.run = after
	}
	return ended, false, nil
}

// evaluateBatch evaluates nodes of one level at the same time. Those that may be released get the places of the run in
// order.
func (r *Controller) evaluateBatch(ctx context.Context, f *facts, names []string) (ended []job.Row, err error) {
	if f.graph.MaxConcurrency > 0 {
		for _, name := range names {
			if !f.mayBeReleased(name) {
				continue
			}
			p, found, err := f.permits.Acquire(ctx, "", f.graph.MaxConcurrency)
			if err != nil || !found {
				break // the process that needs one meets the same
			}
			f.reserved[name] = p
		}
	}
	ended, err = r.bringOnNodes(ctx, f, names)
	for _, p := range f.reserved {
		f.permits.GiveBack(p)
	}
	clear(f.reserved)
	return ended, err
}

// mayBeReleased says whether a node has no row and its parents have ended, by the rows that were read.
func (f *facts) mayBeReleased(name string) bool {
	if _, ended := f.ended[name]; ended || f.once[name].Status != "" || f.graph.Nodes[name].ForEach != "" {
		return false
	}
	for _, p := range f.graph.Parents(name) {
		if _, ended := f.ended[p]; !ended {
			return false
		}
	}
	return true
}

// untold finds a node whose failure stops the run and still has to be propagated: it ended while an operation was under
// way, which has left it as it is.
func untold(f *facts, rows map[string]job.Row) (node string, failed bool) {
	if f.graph.OnFailure != dag.CancelRun {
		return "", false
	}
	for _, name := range f.graph.Names() {
		if row := rows[name]; dag.EndOf(row.Status) == dag.Failed && row.PendingEffects.Children() {
			return name, true
		}
	}
	return "", false
}
