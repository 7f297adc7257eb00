package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"punctual/functions/engine/effect"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// WrongState says that an operation is not possible in the current state of the run, or of the node: 409 wrong_state.
type WrongState struct {
	Of      string   // "run" or "node"
	Is      string   // its status
	Allowed []string // statuses in which the operation is possible
	Detail  string   // why, if it is not the status; "" if it is
}

func (e *WrongState) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("the %s is %s", e.Of, e.Is)
}

// operate changes a run by one write, records the operation as an event, and has the run reconciled. decide returns the
// run as it becomes, and the zero Write if nothing changes.
func (r *Controller) operate(
	ctx context.Context, k run.Key, by By, action string, decide func(run.Run) (run.Run, item.Write, error),
) (effect.List, error) {
	_, err := r.Store.UpdateRun(ctx, k, func(old run.Run) ([]item.Write, error) {
		after, write, err := decide(old)
		if err != nil || write.Name == "" {
			return nil, err
		}
		return []item.Write{write, r.event(old, after, by, action, "")}, nil
	})
	if err != nil {
		return effect.List{}, err
	}
	return reconciled(k), nil
}

// reconciled has a run reconciled after an operation.
func reconciled(k run.Key) effect.List { return effect.List{Reconcile: []run.Key{k}} }

// event records an operation with the statuses that it leads from and to. A cancel leads to CANCELLED, although the run
// goes on until what runs has stopped.
func (r *Controller) event(old, after run.Run, by By, action, node string) item.Write {
	to := after.Shown()
	if after.Stop == run.StopCancel {
		to = run.Cancelled
	}
	return after.PutEvent(run.Event{
		At: r.Clock.Now(), By: by.Who, Action: action, Node: node, Reason: by.Reason, From: string(old.Shown()),
		To: string(to),
	})
}

// goingOn are the statuses of a run that has not ended.
var goingOn = []string{string(run.Building), string(run.Running), string(run.Paused), string(run.Held)}

func wrongRun(is run.Run, allowed []string) error {
	wrong := &WrongState{Of: "run", Is: string(is.Shown()), Allowed: allowed}
	if is.Stop != run.NoStop && !is.Status.Final() { // its status alone would not forbid the operation
		wrong.Detail = "the run is being stopped"
	}
	return wrong
}

// Cancel ends a run: nodes that have not started become CANCELLED, and running ones are asked to stop. Nodes that run
// always are left alone, and stopped by a cancel of a run that is stopped already; a further one changes nothing.
func (r *Controller) Cancel(ctx context.Context, k run.Key, by By) (effect.List, error) {
	return r.cancel(ctx, k, by, true)
}

// cancel is Cancel. With second false it leaves a run that is stopped already as it is.
func (r *Controller) cancel(ctx context.Context, k run.Key, by By, second bool) (effect.List, error) {
	return r.operate(ctx, k, by, "cancel", func(is run.Run) (run.Run, item.Write, error) {
		switch {
		case is.Status.Final():
			return is, item.Write{}, wrongRun(is, goingOn)
		case is.Stop == run.NoStop:
			// Where the run is found stopped at the next try, another call has stopped it at the same time, or this
			// one, whose answer was lost: that is no second cancel.
			second = false
			after, write := is.Halt(run.StopCancel, job.Reason{Code: run.ReasonCancelled, Message: by.Reason},
				r.Clock.Now())
			return after, write, nil
		case is.StopAll || !second:
			return is, item.Write{}, nil
		}
		if g, err := r.Graph(ctx, is); err != nil || !g.HasAlways() {
			return is, item.Write{}, err
		}
		after, write := is.HaltAlways(r.Clock.Now())
		return after, write, nil
	})
}

// Pause keeps the nodes of a run from starting; nodes that run already end normally. Pausing twice changes nothing.
func (r *Controller) Pause(ctx context.Context, k run.Key, by By) (effect.List, error) {
	return r.operate(ctx, k, by, "pause", func(is run.Run) (run.Run, item.Write, error) {
		switch {
		case is.Status.Final() || is.Stop != run.NoStop:
			return is, item.Write{}, wrongRun(is, goingOn)
		case is.Paused:
			return is, item.Write{}, nil
		}
		after, write := is.Pause()
		return after, write, nil
	})
}

// Resume lets a paused run go on. A run that is not paused stays as it is; one that is HELD is refused.
func (r *Controller) Resume(ctx context.Context, k run.Key, by By) (effect.List, error) {
	allowed := []string{string(run.Building), string(run.Running), string(run.Paused)}
	return r.operate(ctx, k, by, "resume", func(is run.Run) (run.Run, item.Write, error) {
		switch {
		case is.Status.Final() || is.Stop != run.NoStop || is.Shown() == run.Held:
			return is, item.Write{}, wrongRun(is, allowed)
		case !is.Paused:
			return is, item.Write{}, nil
		}
		after, write := is.Resume(r.Clock.Now())
		return after, write, nil
	})
}

// Retry gives a new generation to the nodes that failed and to those that did not run because of them; with from, to
// that node and all below it. An unknown from is a fault.Invalid.
func (r *Controller) Retry(ctx context.Context, k run.Key, from string, by By) (effect.List, error) {
	a := run.Operation{Kind: run.OperationRetry, Node: from, Reason: by.Reason, By: by.Who}
	if from != "" {
		a.Kind = run.OperationRetryFrom
	}
	return r.inTwoWrites(ctx, k, a, nil, by)
}

// RetryNode is Retry for one failed node. A redrive of the node's dead job calls it, too. An unknown node is a
// fault.NotFound.
func (r *Controller) RetryNode(ctx context.Context, k run.Key, node string, by By) (effect.List, error) {
	o := run.Operation{Kind: run.OperationRetryNode, Node: node, Reason: by.Reason, By: by.Who}
	return r.inTwoWrites(ctx, k, o, nil, by)
}

// Skip ends a node as SKIPPED. Its children run as if it had succeeded, or with below are skipped as well.
func (r *Controller) Skip(ctx context.Context, k run.Key, node string, below bool, by By) (effect.List, error) {
	f := job.ForcedSkip
	if below {
		f = job.ForcedSkipBelow
	}
	return r.forceNode(ctx, k, node, f, nil, by)
}

// Complete ends a node as SUCCEEDED with that result; nil for none.
func (r *Controller) Complete(
	ctx context.Context, k run.Key, node string, result json.RawMessage, by By,
) (effect.List, error) {
	return r.forceNode(ctx, k, node, job.ForcedComplete, result, by)
}

var failedNode = []string{string(job.Dead), string(job.Expired), string(job.Cancelled)}

// forceNode ends a node for an operator: in one transaction if it is blocked or waits, in two writes if it has failed.
func (r *Controller) forceNode(
	ctx context.Context, k run.Key, node string, forced job.Forced, result json.RawMessage, by By,
) (effect.List, error) {
	allowed := append([]string{string(job.Blocked), string(job.Scheduled), string(job.Queued)}, failedNode...)
	failed := false
	_, err := r.Store.UpdateRun(ctx, k, func(is run.Run) ([]item.Write, error) {
		g, err := r.Graph(ctx, is)
		if err != nil {
			return nil, err
		}
		if err := known(g, k, node); err != nil {
			return nil, err
		}
		rows, err := r.Store.Nodes(ctx, []job.Key{is.Job(node)})
		if err != nil {
			return nil, err
		}
		row := rows[0]
		if failed = dag.EndOf(row.Status) == dag.Failed; failed {
			return nil, nil
		}
		shown, err := r.shown(ctx, row)
		if err != nil {
			return nil, err
		}
		wrong := &WrongState{Of: "node", Is: string(shown), Allowed: allowed}
		if row.IsMapped() && !row.Status.Final() {
			wrong.Detail = "items of the node are released: wait for them, or cancel their jobs first"
		}
		switch {
		case row.Status != "" && row.Status != job.Scheduled:
			return nil, wrong
		case is.Status.Final(), is.Stop != run.NoStop:
			return nil, wrongRun(is, goingOn)
		case is.Operation != nil:
			return nil, operationOpen(is)
		}
		now := r.Clock.Now()
		after, touch := is.Touch(now)
		action := "skip"
		if forced == job.ForcedComplete {
			action = "complete"
		}
		writes := []item.Write{touch, r.event(is, after, by, action, node)}
		why := forcedReason(forced, by.Reason)
		if row.Status == "" {
			f := r.newFacts(is, g, &effect.List{})
			if row, err = r.filled(ctx, f, r.blank(f, node, 0, now)); err != nil {
				return nil, err
			}
			row.Forced = forced
			if row, err = r.label(ctx, f, row); err != nil {
				return nil, err
			}
			// The result goes into the transaction: a refused operation must leave nothing behind.
			writes = append(writes, row.SetResult(result)...)
			row, links, err := r.replacing(ctx, f, row, now)
			if err != nil {
				return nil, err
			}
			_, put := job.AcceptEnded(row, forced.Status(), why, now)
			return append(append(writes, put), links...), nil
		}
		c, err := r.Store.Claim(ctx, row.Key)
		if err != nil {
			return nil, err
		}
		if c.Live(row.Attempt, now) {
			wrong.Is = string(job.Running)
			return nil, wrong
		}
		writes = append(writes, row.SetResult(result)...)
		ended, put := job.Force(row, forced, why, now)
		put.Set["result"], put.Set["result_in"] = orNil(row.Result), orNil(row.ResultIn)
		writes = append(writes, put, job.Fence(row, c, row.DueAt, now))
		return append(writes, ended.PutStarts(c.Starts(row.Attempt, row.DueAt))...), nil
	})
	if err != nil {
		return effect.List{}, err
	}
	if failed {
		a := run.Operation{Kind: run.OperationForce, Node: node, Forced: forced, Reason: by.Reason, By: by.Who}
		return r.inTwoWrites(ctx, k, a, result, by)
	}
	return r.afterForce(ctx, k, node)
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// afterForce has the children of a node evaluated that was ended by an operator, and the run reconciled.
func (r *Controller) afterForce(ctx context.Context, k run.Key, node string) (effect.List, error) {
	todo := reconciled(k)
	is, err := r.Store.Run(ctx, k)
	if err != nil {
		return todo, err
	}
	rows, err := r.Store.Nodes(ctx, []job.Key{is.Job(node)})
	if err != nil {
		r.warn(ctx, k, "the children of a node wait for its pending effects", err)
	} else if rows[0].Status.Final() {
		todo.Ended = []effect.End{{Row: rows[0], Counted: true}}
	}
	return todo, nil
}

// actionOf is the action of an operation in the run's events: the name of the request.
func actionOf(a run.Operation) string {
	switch {
	case a.Kind != run.OperationForce:
		return string(run.OperationRetry)
	case a.Forced == job.ForcedComplete:
		return "complete"
	}
	return "skip"
}

// known returns a fault.NotFound if the run does not have that node.
func known(g *dag.Graph, k run.Key, node string) error {
	if !slices.Contains(g.Names(), node) {
		return fault.New(fault.NotFound, nil, "looking for node %q of run %s", node, k.ID)
	}
	return nil
}

func operationOpen(is run.Run) error {
	return &WrongState{Of: "run", Is: string(is.Shown()), Allowed: goingOn,
		Detail: "somebody else is changing the run just now"}
}

// retryable are the statuses in which a run can be retried.
var retryable = []string{
	string(run.Building), string(run.Running), string(run.Paused), string(run.Held), string(run.Succeeded),
	string(run.Failed),
	string(run.Cancelled),
}

// inTwoWrites carries out an operation in two writes. Between them no node of the run starts. If the call fails after
// the first, the next one that reconciles the run does the second.
func (r *Controller) inTwoWrites(
	ctx context.Context, k run.Key, a run.Operation, result json.RawMessage, by By,
) (todo effect.List, err error) {
	follows := int64(0) // the generation of the node that the request saw
	_, err = r.Store.UpdateRun(ctx, k, func(is run.Run) ([]item.Write, error) {
		g, err := r.Graph(ctx, is)
		if err != nil {
			return nil, err
		}
		if err := r.mayBegin(ctx, g, is, a); err != nil {
			return nil, err
		}
		if a.Kind == run.OperationRetryFrom { // it may begin whatever the node is: of two at once only one does
			newest := is.Generation(a.Node)
			switch {
			case follows == 0 || newest == follows:
				follows = newest
			case is.Nodes[a.Node].Whole: // another one did just this, or this one, whose answer was lost
				return nil, nil
			default:
				return nil, operationOpen(is)
			}
		}
		a.ID = fmt.Sprintf("%s#%d", is.ID, is.Epoch+1)
		after, write := is.Begin(a, r.Clock.Now())
		begun := after
		begun.Status, begun.Stop = run.Running, run.NoStop // as after the second write
		begun.Paused = is.Paused && !is.Status.Final()
		writes := []item.Write{write, r.event(is, begun, by, actionOf(a), a.Node)}
		if a.Kind == run.OperationForce && a.Forced == job.ForcedComplete && result != nil {
			name := resultName(a.Node, is.Generation(a.Node)+1)
			writes = append(writes, is.PutContent(name, string(result), r.Clock.Now()))
		}
		return writes, nil
	})
	if err != nil {
		return todo, err
	}
	for range tries {
		f, err := r.read(ctx, k, &todo)
		if err != nil {
			return todo, err
		}
		if f.run.Operation == nil || f.run.Operation.ID != a.ID { // another call did the second write, or a stop came
			if f.run.Stop != run.NoStop {
				return todo, wrongRun(f.run, retryable)
			}
			break
		}
		retried, err := r.finish(ctx, f)
		if refused(err) {
			continue
		}
		if err != nil {
			return todo, err
		}
		if !retried {
			return todo, r.nothing(ctx, f.run, a, f.ended)
		}
		break
	}
	return reconciled(k), nil
}

// mayBegin says why an operation cannot begin; nil if it can.
func (r *Controller) mayBegin(ctx context.Context, g *dag.Graph, is run.Run, a run.Operation) error {
	if a.Node != "" {
		if err := known(g, is.Key, a.Node); err != nil {
			if a.Kind == run.OperationRetryFrom {
				return fault.New(fault.Invalid, nil, "retrying from node %q, which the run does not have", a.Node)
			}
			return err
		}
	}
	switch {
	case is.Operation != nil:
		return operationOpen(is)
	case is.Stop != run.NoStop && !is.Status.Final():
		return &WrongState{Of: "run", Is: string(is.Shown()), Allowed: retryable,
			Detail: "the run is being stopped: retry it once it has ended"}
	case a.Kind != run.OperationRetryFrom && (is.Lost || !r.Clock.Now().Before(is.Kept())):
		return &WrongState{Of: "run", Is: string(is.Shown()), Allowed: retryable,
			Detail: "nodes of the run that have ended are forgotten: retry it from a node that is named"}
	}
	f := r.newFacts(is, g, &effect.List{})
	rows, err := r.rows(ctx, f, g.Names()...)
	if err != nil {
		return err
	}
	if len(g.NodesToRetry(is, a, rows)) == 0 {
		return r.nothing(ctx, is, a, rows)
	}
	return nil
}

// nothing is the error of an operation that finds no node to run.
func (r *Controller) nothing(ctx context.Context, is run.Run, a run.Operation, rows map[string]job.Row) error {
	if a.Kind == run.OperationRetry {
		return &WrongState{Of: "run", Is: string(is.Shown()), Allowed: retryable,
			Detail: "no node of the run has failed"}
	}
	status, err := r.shown(ctx, rows[a.Node])
	if err != nil {
		return err
	}
	return &WrongState{Of: "node", Is: string(status), Allowed: failedNode}
}

// shown is the status of a node as REST shows it.
func (r *Controller) shown(ctx context.Context, row job.Row) (job.Status, error) {
	switch {
	case row.Status == "":
		return job.Blocked, nil
	case row.Status.Final():
		return row.Status, nil
	case row.IsMapped(): // its items have not ended
		return job.Running, nil
	}
	c, err := r.Store.Claim(ctx, row.Key)
	return job.ReadStatus(row, c, r.Clock.Now()), err
}
