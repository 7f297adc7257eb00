package runs

import (
	"context"
	"errors"
	"slices"

	"punctual/shared/dag"
	"punctual/shared/job"
)

// evaluate releases or ends a node if its parents decide so. by is the job whose end is the cause, the zero Row when
// the whole run is derived. It returns the rows that it has ended.
func (r *Controller) evaluate(ctx context.Context, f *facts, name string, by job.Row) ([]job.Row, error) {
	if by.IsItem() && by.Node == name && by.Generation == f.run.Generation(name) {
		return r.itemEnded(ctx, f, name)
	}
	ofParent := by.Status != "" && !by.IsItem() && slices.Contains(f.graph.Parents(name), by.Node) &&
		by.Generation == f.run.Generation(by.Node)
	if ofParent {
		if need := f.graph.JoinNeeds(f.run, name); need > 0 {
			n, err := r.Store.Count(ctx, f.run.Key, f.run.JoinRef(name, f.run.Generation(name)), 1, r.Clock.Now())
			if err != nil || n < int64(need) {
				return nil, err
			}
		}
	}
	if f.run.Operation != nil {
		return nil, nil
	}
	rows, err := r.rows(ctx, f, append([]string{name}, f.graph.Parents(name)...)...)
	if err != nil {
		return nil, err
	}
	own, there := rows[name]
	switch {
	case there && own.IsMapped() && own.Status == job.Blocked:
		return r.mapped(ctx, f, own)
	case there:
		f.unpark(own)
		return nil, nil
	}
	if override := f.run.Nodes[name]; override.Override != job.NotForced {
		return r.force(ctx, f, name)
	}
	older, err := r.openOlder(ctx, f, []string{name})
	if err != nil || slices.ContainsFunc(older[name], job.Row.Unfinished) {
		return nil, err // the end of the older job evaluates the node
	}
	switch v, why := f.graph.EvaluateNode(name, states(rows)); v {
	case dag.Held:
		f.mu.Lock()
		f.holds = true
		f.mu.Unlock()
	case dag.Cancel:
		return r.end(ctx, f, name, job.Cancelled, job.Reason{Code: why})
	case dag.Skip:
		return r.end(ctx, f, name, job.Skipped, job.Reason{Code: why})
	case dag.Run:
		if f.run.Paused {
			return nil, nil
		}
		if waits, err := r.awaitsRead(ctx, f, name); err != nil || waits {
			return nil, err
		}
		return r.release(ctx, f, name)
	}
	return nil, nil
}

// awaitsRead says that an ancestor which the node's expressions name has not ended. Its end evaluates the node.
func (r *Controller) awaitsRead(ctx context.Context, f *facts, name string) (bool, error) {
	rows, err := r.rows(ctx, f, f.graph.Reads(name)...)
	if err != nil {
		return false, err
	}
	return f.graph.AwaitsRead(name, states(rows)) != "", nil
}

// release makes the job of a node whose rule is met, or skips the node if its when is false.
func (r *Controller) release(ctx context.Context, f *facts, name string) ([]job.Row, error) {
	now := r.Clock.Now()
	see, err := r.sight(ctx, f, name)
	if err != nil {
		return nil, err
	}
	switch yes, err := f.graph.When(ctx, name, see); {
	case err != nil:
		return r.failed(ctx, f, name, err)
	case !yes:
		return r.end(ctx, f, name, job.Skipped, job.Reason{Code: dag.ReasonWhenFalse})
	}
	if f.graph.Nodes[name].ForEach != "" {
		return r.open(ctx, f, name, see)
	}
	payload, err := f.graph.Payload(ctx, name, see)
	if err != nil {
		return r.failed(ctx, f, name, err)
	}
	if admitted, ended, err := r.weigh(ctx, f, name, 1, len(payload)); err != nil || !admitted {
		return ended, err
	}
	for {
		at, found, err := r.runPermit(ctx, f, name)
		if err != nil {
			return nil, err
		}
		if !found {
			f.addWaiter(name)
			return nil, nil
		}
		ended, _, err := r.accept(ctx, f, r.blank(f, name, 0, now), payload, 0, now, at)
		if !errors.Is(err, errPermitLost) {
			return ended, err
		}
	}
}
