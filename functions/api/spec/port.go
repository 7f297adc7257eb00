package spec

import (
	"context"
	"encoding/json"

	"punctual/functions/engine"
	"punctual/functions/engine/amend"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/limit"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/show"
	"punctual/functions/engine/submit"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Store is what the stage and the engine read and write; engine.Store has what both do.
type Store interface {
	engine.Store
	show.Store
	amend.Store
	edit.Store
	limit.Store
	submit.Store
	store.Tasks
	store.Pauses
	store.Exclusions
	store.Dags
	store.RestoredTables
}

// Runs makes, shows and changes runs of dags. An absent run or node is a fault.NotFound. An act that the state does not
// allow is a *runs.WrongState.
type Runs interface {
	Create(ctx context.Context, n runs.Request) (is run.Run, created bool, err error)
	// Compiled returns the graph of a stored definition, which is compiled once.
	Compiled(ctx context.Context, t tenant.ID, definition string) (*dag.Graph, error)
	// Nodes reads a run with the current rows of its nodes; a BLOCKED node has none.
	Nodes(ctx context.Context, k run.Key) (run.Run, *dag.Graph, map[string]job.Row, error)
	// Reconcile brings a run on from its rows, as its wake-up does.
	Reconcile(ctx context.Context, k run.Key) error
	Cancel(ctx context.Context, k run.Key, by runs.By) (run.Run, error)
	Pause(ctx context.Context, k run.Key, by runs.By) (run.Run, error)
	Resume(ctx context.Context, k run.Key, by runs.By) (run.Run, error)
	// Retry runs the failed nodes again, or from and all nodes below it. An unknown from is a fault.Invalid.
	Retry(ctx context.Context, k run.Key, from string, by runs.By) (run.Run, error)
	RetryNode(ctx context.Context, k run.Key, node string, by runs.By) (run.Run, error)
	// Skip lets the node's children run, or, with below, skips them as well.
	Skip(ctx context.Context, k run.Key, node string, below bool, by runs.By) (run.Run, error)
	Complete(ctx context.Context, k run.Key, node string, result json.RawMessage, by runs.By) (run.Run, error)
}
