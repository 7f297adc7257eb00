package spec

import (
	"context"
	"encoding/json"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/amend"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/limit"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/show"
	"punctual/functions/engine/submit"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Queue sends firings and dispatches.
type Queue interface {
	// Send sends any number of messages. Those that were not sent come back as *message.Unsent.
	Send(ctx context.Context, queue string, out ...message.Outgoing) error
	// Depth returns about how many messages a queue holds.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Store is what the stage and the engine read and write; engine.Store has what both do. What is absent is a
// fault.NotFound, and what cannot be decoded is a fault.Undecodable, unless a method says otherwise.
type Store interface {
	engine.Store
	show.Store
	amend.Store
	edit.Store
	limit.Store
	submit.Store
	jobs
	tasks
	pauses
	exclusions
	dags
	runItems
	// UsedByRequests returns how many requests of its burst a tenant has not yet rested from.
	UsedByRequests(ctx context.Context, t tenant.ID, a store.RateLimit, now time.Time) (int64, error)
	// Held lists the restored tables that hold all passes.
	Held(ctx context.Context) ([]string, error)
}

// jobs are single jobs, and lots of at most store.ReadAtOnce jobs in the order of their keys.
type jobs interface {
	// Attempts reads a page of the attempts that have ended, oldest first, beginning after a position.
	Attempts(ctx context.Context, r job.Row, after int64, limit int) (attempts []job.Attempt, more bool, err error)
}

// tasks are a tenant's tasks.
type tasks interface {
	// Tasks reads a page of the tenant's own tasks in the order of names, beginning after a name.
	Tasks(ctx context.Context, t tenant.ID, after string, limit int) (tasks []job.Task, more bool, err error)
	// UpdateTask is Update for a tenant's own task; decide gets nil for an absent one. A built-in task is a
	// fault.Refused.
	UpdateTask(
		ctx context.Context, t tenant.ID, name string, decide func(*job.Task) (job.Task, error),
	) (job.Task, error)
	DeleteTask(ctx context.Context, t tenant.ID, name string) error
}

// Pauses are the pauses of all jobs of a tenant, or of one task.
type pauses interface {
	Pause(ctx context.Context, t tenant.ID, scope string) (job.Pause, error)
	// PutPause replaces the pause of the same scope.
	PutPause(ctx context.Context, t tenant.ID, p job.Pause) error
	DeletePause(ctx context.Context, t tenant.ID, scope string, now time.Time) error
}

// exclusions are a tenant's exclusions.
type exclusions interface {
	Exclusion(ctx context.Context, t tenant.ID, name string) (store.Exclusion, error)
	// ExclusionsNamed reads up to store.ReadAtOnce exclusions, each named once; absent ones are left out.
	ExclusionsNamed(ctx context.Context, t tenant.ID, names []string) ([]store.Exclusion, error)
}

// dags are a tenant's dags, each with its versions.
type dags interface {
	// PutDag writes a definition as the next version. It writes nothing if the newest version has the same definition.
	PutDag(
		ctx context.Context, t tenant.ID, name, definition string, now time.Time,
	) (d store.Dag, created bool, err error)
	// DagVersions reads a page, newest first, of the versions below that one; 0 begins with the newest.
	DagVersions(
		ctx context.Context, t tenant.ID, name string, below int64, limit int,
	) (versions []store.Dag, more bool, err error)
	// Dags reads a page in the order of names, beginning after a name, without deleted ones.
	Dags(ctx context.Context, t tenant.ID, after string, limit int) (dags []store.Dag, more bool, err error)
	// DeleteDag does not delete the runs. It calls free after it has read the dag; an error of free keeps the dag.
	DeleteDag(ctx context.Context, t tenant.ID, name string, now time.Time, free func() error) error
}

// runItems are a tenant's runs, newest first, with their events.
type runItems interface {
	// Events reads a page of what was done to a run, oldest first; next is "" at the end.
	Events(ctx context.Context, k run.Key, cursor string, limit int) (events []run.Event, next string, err error)
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
