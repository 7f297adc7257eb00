package api

import (
	"context"
	"encoding/json"
	"errors"

	"punctual/functions/api/wire"
	"punctual/functions/engine/release"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/tenant"
)

// Runs makes runs of dags, shows them and acts on them. An absent run or node is a fault.NotFound; an act that
// the state forbids is a *release.WrongState.
type Runs interface {
	Create(ctx context.Context, n release.Request) (is run.Run, created bool, err error)
	// Nodes reads a run with the rows of its nodes that count; a BLOCKED node has none.
	Nodes(ctx context.Context, k run.Key) (run.Run, *dag.Graph, map[string]job.Row, error)
	Cancel(ctx context.Context, k run.Key, by release.By) (run.Run, error)
	Pause(ctx context.Context, k run.Key, by release.By) (run.Run, error)
	Resume(ctx context.Context, k run.Key, by release.By) (run.Run, error)
	// Retry runs again what failed, or from and all below it; an unknown from is a fault.Invalid.
	Retry(ctx context.Context, k run.Key, from string, by release.By) (run.Run, error)
	RetryNode(ctx context.Context, k run.Key, node string, by release.By) (run.Run, error)
	// Skip lets the node's children run, or with below has them skipped as well.
	Skip(ctx context.Context, k run.Key, node string, below bool, by release.By) (run.Run, error)
	Complete(ctx context.Context, k run.Key, node string, result json.RawMessage, by release.By) (run.Run, error)
}

func errNoRun() error {
	return wire.NewProblem(wire.CodeNotFound, "there is no such run, or no such node in it")
}

// runKey is the run of that id. What is not spelled as an id names nothing.
func runKey(who tenant.Identity, id string) (run.Key, error) {
	parsed, err := job.ParseID(id)
	if err != nil {
		return run.Key{}, errNoRun()
	}
	return run.Key{Tenant: who.Tenant, ID: parsed}, nil
}

// asRunProblem says what a client is told of an error about a run.
func asRunProblem(err error) error {
	var wrong *release.WrongState
	switch {
	case errors.As(err, &wrong):
		p := wire.NewProblem(codeWrongState, "%s", wrong.Error())
		p.Allowed = wrong.Allowed
		return p
	case fault.KindOf(err) == fault.NotFound:
		return errNoRun()
	}
	return err
}
