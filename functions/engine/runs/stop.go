package runs

import (
	"context"
	"fmt"
	"slices"

	"punctual/shared/job"
	"punctual/shared/run"
)

func (r *Controller) expire(ctx context.Context, f *facts) error {
	why := job.Reason{Code: run.ReasonExpired, Message: "expire_after has passed"}
	if now := r.Clock.Now(); !now.Before(f.run.Kept()) {
		why.Message = "no wake-up of the run came for so long that nodes which have ended may be forgotten"
	}
	after, write := f.run.Halt(run.StopExpire, why, r.Clock.Now())
	return r.Store.WriteRun(ctx, after, write)
}

// stopFailed stops the run because a node has failed.
func (r *Controller) stopFailed(ctx context.Context, f *facts, node string) error {
	why := job.Reason{Code: run.ReasonFailed, Message: fmt.Sprintf("node %q failed", node)}
	after, write := f.run.Halt(run.StopFail, why, r.Clock.Now())
	return r.Store.WriteRun(ctx, after, write)
}

// stopAll ends the nodes of a stopped run that have not started, and asks the running ones to stop. Those that run
// always it evaluates.
func (r *Controller) stopAll(ctx context.Context, f *facts) (ended []job.Row, err error) {
	why := job.Reason{Code: f.run.Stop.Reason()}
	if ended, err = r.stopOlder(ctx, f); err != nil {
		return ended, err
	}
	rows, err := r.rows(ctx, f, slices.Concat(f.graph.Levels()...)...)
	if err != nil {
		return ended, err
	}
	now := r.Clock.Now()
	names := slices.DeleteFunc(slices.Clone(f.graph.Names()), func(name string) bool { return !f.stopsNode(name, now) })
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
	more, err := r.evaluateAlways(ctx, f)
	if ended = append(ended, more...); err != nil {
		return ended, err
	}
	return ended, r.clearPassed(ctx, f)
}

// evaluateAlways evaluates the nodes of a stopped run that run always, parents before children.
func (r *Controller) evaluateAlways(ctx context.Context, f *facts) (ended []job.Row, err error) {
	now := r.Clock.Now()
	for _, level := range f.graph.Levels() {
		names := slices.DeleteFunc(slices.Clone(level), func(name string) bool { return f.stopsNode(name, now) })
		more, err := r.bringOnNodes(ctx, f, names)
		ended = append(ended, more...)
		if err != nil {
			return ended, err
		}
	}
	more, err := r.recheckWaiters(ctx, f)
	return append(ended, more...), err
}

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
