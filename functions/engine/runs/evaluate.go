package runs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"punctual/shared/dag"
	"punctual/shared/job"
)

// decision is what becomes of a node, by what was read of the run. Its caller does it.
type decision struct {
	do      action
	row     job.Row           // toUnpark, toPutItems: of the node
	status  job.Status        // toEnd
	why     job.Reason        // toEnd
	see     dag.Facts         // toOpen: what the expressions see
	list    []json.RawMessage // toOpen
	payload json.RawMessage   // toRelease
	limits  job.Limits        // toRelease: of work; "" also for those of the task
}

// action is what is done with a node.
type action int

const (
	toLeave    action = iota // nothing: it still waits, or it has its job
	toHold                   // it waits for an operator, and so does the run
	toUnpark                 // its job is released from a pause of the run that has ended
	toPutItems               // its missing items are put, or it is ended once all of them have ended
	toOverride               // it is ended as an operator has said
	toEnd                    // it is ended without having run
	toOpen                   // it gets its row and its items
	toRelease                // it gets its job
)

// evaluate says what becomes of a node: whether its parents release or end it, and what its job is made from. It writes
// nothing.
func (r *Controller) evaluate(ctx context.Context, f *facts, name string) (decision, error) {
	if f.run.Operation != nil {
		return decision{}, nil
	}
	rows, err := r.rows(ctx, f, append([]string{name}, f.graph.Parents(name)...)...)
	if err != nil {
		return decision{}, err
	}
	own, there := rows[name]
	switch {
	case there && own.IsMapped() && own.Status == job.Blocked:
		return decision{do: toPutItems, row: own}, nil
	case there:
		return decision{do: toUnpark, row: own}, nil
	case f.run.Nodes[name].Override != job.NotForced:
		return decision{do: toOverride}, nil
	case f.stopsNode(name, r.Clock.Now()):
		return decision{}, nil // the stop ends it
	}
	older, err := r.openOlder(ctx, f, []string{name})
	if err != nil || slices.ContainsFunc(older[name], job.Row.Unfinished) {
		return decision{}, err // the end of the older job evaluates the node
	}
	switch v, why := f.graph.EvaluateNode(name, states(rows)); v {
	case dag.Held:
		return decision{do: toHold}, nil
	case dag.Cancel:
		return ending(job.Cancelled, job.Reason{Code: why}), nil
	case dag.Skip:
		return ending(job.Skipped, job.Reason{Code: why}), nil
	case dag.Run:
		if f.run.Paused {
			return decision{}, nil
		}
		if waits, err := r.awaitsRead(ctx, f, name); err != nil || waits {
			return decision{}, err
		}
		return r.byExpressions(ctx, f, name)
	}
	return decision{}, nil
}

func ending(s job.Status, why job.Reason) decision { return decision{do: toEnd, status: s, why: why} }

// awaitsRead says that an ancestor which the node's expressions name has not ended. Its end evaluates the node.
func (r *Controller) awaitsRead(ctx context.Context, f *facts, name string) (bool, error) {
	rows, err := r.rows(ctx, f, f.graph.Reads(name)...)
	if err != nil {
		return false, err
	}
	return f.graph.AwaitsRead(name, states(rows)) != "", nil
}

// byExpressions evaluates the expressions of a node whose rule is met: its when, and its list or its payload. A node
// with one that fails becomes DEAD.
func (r *Controller) byExpressions(ctx context.Context, f *facts, name string) (d decision, err error) {
	d.see, err = r.sight(ctx, f, name)
	if err != nil {
		return decision{}, err
	}
	yes, err := f.graph.When(ctx, name, d.see)
	switch {
	case err != nil:
	case !yes:
		return ending(job.Skipped, job.Reason{Code: dag.ReasonWhenFalse}), nil
	case f.graph.Nodes[name].ForEach == "":
		d.do = toRelease
		if d.payload, err = f.graph.Payload(ctx, name, d.see); err == nil {
			d.limits, _, err = f.graph.Limits(ctx, name, d.see)
		}
	default:
		d.do = toOpen
		d.list, err = f.graph.Items(ctx, name, d.see)
		if err == nil && len(d.list) == 0 {
			return ending(job.Skipped, job.Reason{Code: dag.ReasonEmpty}), nil
		}
	}
	if wrong := new(dag.ExpressionError); errors.As(err, &wrong) {
		return ending(job.Dead, reasonOf(wrong)), nil
	}
	return d, err
}
