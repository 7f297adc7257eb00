package api

import (
	"context"
	"encoding/json"
	"errors"

	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/functions/engine/release"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/tenant"
)

// Runs makes, shows and changes runs of dags. An absent run or node is a fault.NotFound. An act that the state does not
// allow is a *release.WrongState.
type Runs interface {
	Create(ctx context.Context, n release.Request) (is run.Run, created bool, err error)
	// Compiled returns the graph of a stored definition, which is compiled once.
	Compiled(ctx context.Context, t tenant.ID, definition string) (*dag.Graph, error)
	// Nodes reads a run with the current rows of its nodes; a BLOCKED node has none.
	Nodes(ctx context.Context, k run.Key) (run.Run, *dag.Graph, map[string]job.Row, error)
	// Derive brings a run on from its rows, as its wake-up does.
	Derive(ctx context.Context, k run.Key) error
	Cancel(ctx context.Context, k run.Key, by release.By) (run.Run, error)
	Pause(ctx context.Context, k run.Key, by release.By) (run.Run, error)
	Resume(ctx context.Context, k run.Key, by release.By) (run.Run, error)
	// Retry runs the failed nodes again, or from and all nodes below it. An unknown from is a fault.Invalid.
	Retry(ctx context.Context, k run.Key, from string, by release.By) (run.Run, error)
	RetryNode(ctx context.Context, k run.Key, node string, by release.By) (run.Run, error)
	// Skip lets the node's children run, or, with below, skips them as well.
	Skip(ctx context.Context, k run.Key, node string, below bool, by release.By) (run.Run, error)
	Complete(ctx context.Context, k run.Key, node string, result json.RawMessage, by release.By) (run.Run, error)
}

func errNoRun() error {
	return wire.NewProblem(wire.CodeNotFound, "there is no such run, or no such node in it")
}

// runKey returns the key of the run with that id. A text that is no id is a run that does not exist.
func runKey(who tenant.Identity, id string) (run.Key, error) {
	parsed, err := job.ParseID(id)
	if err != nil {
		return run.Key{}, errNoRun()
	}
	return run.Key{Tenant: who.Tenant, ID: parsed}, nil
}

// asRunProblem turns an error of Runs into a problem.
func asRunProblem(err error) error {
	var wrong *release.WrongState
	switch {
	case errors.As(err, &wrong):
		p := wire.NewProblem(spec.CodeWrongState, "%s", wrong.Error())
		p.Allowed = wrong.Allowed
		return p
	case fault.KindOf(err) == fault.NotFound:
		return errNoRun()
	}
	return err
}
