package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
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
	switch is := f.run; {
	case is.Operation != nil:
		_, err := r.finish(ctx, f)
		return nil, false, err
	case is.MustNotify():
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
	return ended, true, r.rest(ctx, f, r.nextWakeUp(f.run, now))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *Controller) expire(ctx context.Context, f *facts) error {
	why := job.Reason{Code: run.ReasonExpired, Message: "expire_after has passed"}
	if now := r.Clock.Now(); !now.Before(f.run.Kept()) {
		why.Message = "no wake-up of the run came for so long that nodes which have ended may be forgotten"
	}
	after, write := f.run.Halt(run.StopExpire, why, r.Clock.Now())
	return r.Store.WriteRun(ctx, after, write)
}

// eventsTime is the time that one call spends on keeping the events of a run. How many there are is up to those who
// operate on it.
const eventsTime = time.Second

// keepEvents has the events of a run that goes on for days live as long as the run. Those of a shorter one do anyway.
// What it does not come to is left to the next reconcile.
func (r *Controller) keepEvents(ctx context.Context, is run.Run) {
	now := r.Clock.Now()
	if now.Sub(is.CreatedAt) < 24*time.Hour && !is.DueAt.After(now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eventsTime)
	defer cancel()
	if err := r.Store.KeepEvents(ctx, is.Key, is.EventsKept(now)); err != nil {
		r.warn(ctx, is.Key, "the events of a run may be forgotten before it", err)
	}
}

// nextWakeUp is the next wake-up of a run that goes on. It finds what a crash has left undone; nothing else waits for
// it, unless the run expires.
func (r *Controller) nextWakeUp(is run.Run, now time.Time) time.Time {
	at := now
	if is.DueAt.After(now) {
		at = is.DueAt
	}
	at = at.Add(contract.RetryEvery)
	if is.Stop != run.NoStop {
		at = now.Add(contract.Grace)
	}
	if keep := is.WakesToKeep(); keep.Before(at) {
		at = latest(keep, now.Add(contract.RetryEvery))
	}
	if is.Stop == run.NoStop && !is.ExpiryAt.IsZero() && is.ExpiryAt.Before(at) {
		at = is.ExpiryAt
	}
	return at
}

// rest sets the run's next wake-up, unless another process has acted since it was read. A run that has ended gets none.
func (r *Controller) rest(ctx context.Context, f *facts, at time.Time) error {
	if f.run.Status.Final() {
		if f.run.WakeAt.IsZero() || f.run.MustNotify() {
			return nil
		}
		at = time.Time{}
	}
	after, write := f.run.Rest(at)
	return r.Store.WriteRun(ctx, after, write)
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
			p, found, err := r.acquire(ctx, f, "", f.graph.MaxConcurrency)
			if err != nil || !found {
				break // the process that needs one meets the same
			}
			f.permits[name] = p
		}
	}
	err = r.each(ctx, len(names), func(i int) error {
		more, err := r.evaluate(ctx, f, names[i], job.Row{})
		f.mu.Lock()
		defer f.mu.Unlock()
		ended = append(ended, more...)
		f.noteEnded(more)
		return err
	})
	for _, p := range f.permits {
		f.giveBack(p)
	}
	clear(f.permits)
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

// runPermit is a place of the run for a node: the one that was put by for it, or another.
func (r *Controller) runPermit(ctx context.Context, f *facts, name string) (permit, bool, error) {
	f.mu.Lock()
	p, is := f.permits[name]
	delete(f.permits, name)
	f.mu.Unlock()
	if is {
		return p, true, nil
	}
	return r.acquire(ctx, f, "", f.graph.MaxConcurrency)
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

// stopFailed stops the run because a node has failed.
func (r *Controller) stopFailed(ctx context.Context, f *facts, node string) error {
	why := job.Reason{Code: run.ReasonFailed, Message: fmt.Sprintf("node %q failed", node)}
	after, write := f.run.Halt(run.StopFail, why, r.Clock.Now())
	return r.Store.WriteRun(ctx, after, write)
}

// noteEnded remembers the rows of nodes that have just ended.
func (f *facts) noteEnded(rows []job.Row) {
	for _, row := range rows {
		if !row.IsItem() && row.Generation == f.run.Generation(row.Node) {
			f.ended[row.Node] = row
		}
	}
}

// newerCounts is the reason with which a job of an older generation ends.
var newerCounts = job.Reason{Code: job.CodeCancelled, Message: "a newer generation of the node counts"}

// stopOlder asks jobs of the generations before the current ones to stop, and puts those that were never made. What
// these have pending is that their own nodes are evaluated, which the caller does for all nodes; then it calls
// clearPassed. Only a mapped node may have more to do.
func (r *Controller) stopOlder(ctx context.Context, f *facts) (ended []job.Row, err error) {
	type older struct {
		name       string
		generation int64
		row        job.Row
	}
	names := f.graph.Names()
	all, err := r.openOlder(ctx, f, names)
	if err != nil {
		return nil, err
	}
	var open []older
	for _, name := range names {
		for n, row := range slices.Backward(all[name]) {
			if !row.Status.Final() {
				open = append(open, older{name, f.run.Floor(name) + int64(n), row})
			}
		}
	}
	err = r.each(ctx, len(open), func(i int) error {
		var stopped, passed []job.Row
		var err error
		switch o := open[i]; {
		case o.row.Status != "":
			stopped, err = r.stopRow(ctx, f, o.row, newerCounts)
		case f.graph.Nodes[o.name].ForEach != "":
			stopped, err = r.passOver(ctx, f, o.name, o.generation)
		default:
			passed, err = r.passOver(ctx, f, o.name, o.generation)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		ended, f.passed = append(ended, stopped...), append(f.passed, passed...)
		return err
	})
	return ended, err
}

// clearPassed clears the pending effects of the rows that stopOlder has put. Where it fails, their wake-ups do it.
func (r *Controller) clearPassed(ctx context.Context, f *facts) error {
	passed := f.passed
	f.passed = nil
	return r.each(ctx, len(passed), func(i int) error { return r.clearPending(ctx, passed[i]) })
}

// passOver puts the job of a generation that one operation has begun and another has passed over while the node was
// BLOCKED: after a redrive the dead job names it.
func (r *Controller) passOver(ctx context.Context, f *facts, name string, generation int64) ([]job.Row, error) {
	now := r.Clock.Now()
	return r.putEnded(ctx, f, r.blankIn(f, name, generation, 0, now), job.Cancelled, newerCounts, now)
}

// passOverAll does so for all generations that have no row, before the run ends.
func (r *Controller) passOverAll(ctx context.Context, f *facts) error {
	names := f.graph.Names()
	all, err := r.openOlder(ctx, f, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		for n, row := range slices.Backward(all[name]) {
			generation := f.run.Floor(name) + int64(n)
			if generation == 1 || row.Status != "" {
				continue
			}
			ended, err := r.passOver(ctx, f, name, generation)
			if err != nil {
				return err
			}
			f.end(ended)
		}
	}
	return nil
}

// stopAll ends the nodes of a stopped run that have not started, and asks the running ones to stop.
func (r *Controller) stopAll(ctx context.Context, f *facts) (ended []job.Row, err error) {
	why := job.Reason{Code: f.run.Stop.Reason()}
	if ended, err = r.stopOlder(ctx, f); err != nil {
		return ended, err
	}
	rows, err := r.rows(ctx, f, slices.Concat(f.graph.Levels()...)...)
	if err != nil {
		return ended, err
	}
	names := f.graph.Names()
	err = r.each(ctx, len(names), func(i int) error {
		row, there := rows[names[i]]
		more, err := r.stopNode(ctx, f, names[i], row, there, why)
		f.mu.Lock()
		defer f.mu.Unlock()
		ended = append(ended, more...)
		return err
	})
	f.noteEnded(ended)
	if err != nil {
		return ended, err
	}
	return ended, r.clearPassed(ctx, f)
}

// stopNode ends one node of a stopped run, or asks it to stop.
func (r *Controller) stopNode(
	ctx context.Context, f *facts, name string, row job.Row, there bool, why job.Reason,
) (ended []job.Row, err error) {
	switch {
	case there:
		return r.stopRow(ctx, f, row, why)
	case f.run.Nodes[name].Override != job.NotForced: // an operator has ended it, and was answered so
		return r.force(ctx, f, name)
	}
	ended, err = r.end(ctx, f, name, job.Cancelled, why)
	if err != nil || len(ended) > 0 {
		return ended, err
	}
	released, err := r.Store.Nodes(ctx, []job.Key{f.run.Job(name)}) // just now
	if err != nil {
		return nil, err
	}
	return r.stopRow(ctx, f, released[0], why)
}

// stopRow stops a job, or a mapped node with all its items.
func (r *Controller) stopRow(ctx context.Context, f *facts, row job.Row, why job.Reason) (ended []job.Row, err error) {
	switch {
	case row.Status == "", row.Status.Final():
		return nil, nil
	case !row.IsMapped():
		return nil, r.stopOpen(ctx, f, row, why)
	}
	items, err := r.items(ctx, f, row)
	if err != nil {
		return nil, err
	}
	err = r.each(ctx, len(items), func(i int) error {
		switch it := items[i]; {
		case it.Status == "":
			now := r.Clock.Now()
			missing := r.blankIn(f, row.Node, row.Generation, int64(i)+1, now)
			more, err := r.putEnded(ctx, f, missing, job.Cancelled, why, now)
			f.mu.Lock()
			defer f.mu.Unlock()
			ended = append(ended, more...)
			return err
		case !it.Status.Final():
			return r.stopOpen(ctx, f, it, why)
		}
		return nil
	})
	if err != nil {
		return ended, err
	}
	more, err := r.closeMapped(ctx, f, row)
	return append(ended, more...), err
}

// stopOpen ends an open job, or asks its worker to stop it. Where that is refused, the job has changed or ended
// meanwhile, and its end or the run's next wake-up continues from there.
func (r *Controller) stopOpen(ctx context.Context, f *facts, row job.Row, why job.Reason) error {
	after, ended, err := r.Jobs.Stop(ctx, row, why, r.Clock.Now())
	if refused(err) {
		return nil
	}
	if ended {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.todo.End(after)
	}
	return err
}

// finish does the second write of the operation that is on the run. retried says that nodes begin a new generation; if
// not, there was nothing to do, and the operation was withdrawn.
func (r *Controller) finish(ctx context.Context, f *facts) (retried bool, err error) {
	rows, err := r.rows(ctx, f, f.graph.Names()...)
	if err != nil {
		return false, err
	}
	nodes := f.graph.NodesToRetry(f.run, *f.run.Operation, rows)
	if len(nodes) == 0 {
		after, write := f.run.Withdraw()
		return false, r.Store.WriteRun(ctx, after, write)
	}
	generations, err := r.before(ctx, f, nodes, rows)
	if err != nil {
		return false, err
	}
	after, write := f.run.Finish(generations, r.Clock.Now())
	if err := r.Store.WriteRun(ctx, after, write); err != nil {
		return true, err
	}
	r.drawAfter(ctx, f.run.Tenant, store.Weight(len(nodes), 0))
	return true, nil
}

// before is what the run is to hold of the generations of nodes that begin a new one. rows are those of the current
// generations.
func (r *Controller) before(
	ctx context.Context, f *facts, nodes []string, rows map[string]job.Row,
) (map[string]run.Before, error) {
	older, err := r.openOlder(ctx, f, nodes)
	if err != nil {
		return nil, err
	}
	retried := make(map[string]run.Before, len(nodes))
	for _, name := range nodes {
		is := run.Before{Floor: f.run.Floor(name), Items: f.run.Nodes[name].Items}
		all := append(slices.Clone(older[name]), rows[name])
		for _, row := range all {
			if !row.Status.Final() {
				break // also one that has no row: it may still get one
			}
			is.Floor++
		}
		for _, row := range all {
			if row.IsMapped() {
				is.Items = row.Items
			}
		}
		retried[name] = is
	}
	return retried, nil
}

// openOlder reads the rows of nodes in the generations before the current ones that may be open, oldest first. The zero
// Row is of a generation that has none.
func (r *Controller) openOlder(ctx context.Context, f *facts, names []string) (map[string][]job.Row, error) {
	var keys []job.Key
	for _, name := range names {
		for g := f.run.Floor(name); g < f.run.Generation(name); g++ {
			keys = append(keys, f.run.Key.Job(name, g, 0))
		}
	}
	read, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return nil, err
	}
	older := map[string][]job.Row{}
	for _, name := range names {
		n := max(0, f.run.Generation(name)-f.run.Floor(name))
		older[name], read = read[:n], read[n:]
	}
	return older, nil
}
