package store

import (
	"context"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	runs "punctual/shared/run"
	"punctual/shared/tenant"
)

// RunReader reads runs and what they refer to.
type RunReader interface {
	// Run reads a run. An absent one is a fault.NotFound.
	Run(ctx context.Context, k runs.Key) (runs.Run, error)
	// RunsNamed reads runs for a list, in the order asked. One that is absent or cannot be read is the zero Run.
	RunsNamed(ctx context.Context, keys []runs.Key) ([]runs.Run, error)
	// Params reads the run's parameters, wherever they are; "" is none.
	Params(ctx context.Context, r runs.Run) (string, error)
	// RunContent reads what run.Run.PutContent wrote. An absent one is a fault.NotFound.
	RunContent(ctx context.Context, k runs.Key, name string) (string, error)
	// Definition reads what PutDefinition wrote. An absent one is a fault.NotFound.
	Definition(ctx context.Context, t tenant.ID, hash string) (string, error)
	// RunItems names the items of a run that expire before that time, besides those of its jobs: its entry in the
	// list, contents, counters, waiters and permits. The run itself and its events are not among them.
	RunItems(ctx context.Context, r runs.Run, until time.Time) ([]item.Ref, error)
}

// RunWriter writes runs and what they refer to.
type RunWriter interface {
	// UpdateRun is JobWriter.Update for a run. Of what decide returns one write is the run's.
	UpdateRun(ctx context.Context, k runs.Key, decide func(runs.Run) ([]item.Write, error)) (runs.Run, error)
	// WriteRun does the write that turns the run into after. As in JobWriter.PutRow, it is not refused if the run
	// already is after.
	WriteRun(ctx context.Context, after runs.Run, w item.Write) error
	// PutDefinition writes a definition for all runs of the tenant that have it. It comes before the run.
	PutDefinition(ctx context.Context, t tenant.ID, hash, body string) error
	// KeepEvents keeps all events of a run until then, give or take a day.
	KeepEvents(ctx context.Context, k runs.Key, until time.Time) error
	// ForgetRun deletes the item of a run that has ended, and then all its other items. Its jobs are forgotten
	// before, each by itself. If it is refused, another process has retried the run, and nothing was deleted. What a
	// crash leaves of the items expires.
	ForgetRun(ctx context.Context, r runs.Run) error
}

// RunCounters are what a run counts.
type RunCounters interface {
	// Count adds n to a counter of a run and returns the sum. It is not safe to repeat.
	Count(ctx context.Context, k runs.Key, counter item.Ref, n int64, now time.Time) (int64, error)
	// Counted reads a counter of a run; 0 if it does not exist.
	Counted(ctx context.Context, counter item.Ref) (int64, error)
	// Weights reads what the nodes of a run have drawn on the rate limit of its tenant.
	Weights(ctx context.Context, k runs.Key) (runs.Weights, error)
}

// RunPermits are what the nodes of a run hold, and wait for, of the limits of the run and its nodes.
type RunPermits interface {
	// PermitHolders reads which jobs hold the permits of buckets, in the order asked.
	PermitHolders(ctx context.Context, buckets []runs.Bucket) ([][]job.ID, error)
	// Slots reads which jobs took the first n slots of a run that was made before there were buckets, or of a mapped
	// node of it.
	Slots(ctx context.Context, k runs.Key, node string, n int) (jobs []job.ID, err error)
	// Waiters reads which of the first n nodes of a run wait for a permit.
	Waiters(ctx context.Context, k runs.Key, n int) (runs.Waiters, error)
}

// RunLists reads runs, and the events of one, in pages. next is "" at the end.
type RunLists interface {
	// Runs reads some entries of the list of a tenant's runs and returns those that match. A run that is forgotten or
	// cannot be read is left out.
	Runs(ctx context.Context, t tenant.ID, q RunQuery) (found []ListedRun, next string, err error)
	// Events reads a page of what happened to a run, oldest first.
	Events(ctx context.Context, k runs.Key, cursor string, limit int) (events []runs.Event, next string, err error)
}

// Dags are the definitions of dags, by name and version.
type Dags interface {
	DagReader
	// DagVersions reads a page of a dag's versions, newest first, below a version; 0 begins with the newest.
	DagVersions(
		ctx context.Context, t tenant.ID, name string, below int64, limit int,
	) (versions []Dag, more bool, err error)
	// Dags reads a page of a tenant's dags in the order of names, without deleted ones, beginning after a name.
	Dags(ctx context.Context, t tenant.ID, after string, limit int) (dags []Dag, more bool, err error)
	// PutDag makes a definition, which PutDefinition has written, the newest version of a dag. If the newest version
	// has the same one, it writes nothing. created says that there was no dag of that name. Unless it is nil, before
	// is called with what there is before something is written; an error of it keeps that.
	PutDag(
		ctx context.Context, t tenant.ID, name, definition string, now time.Time,
		before func(old Dag, created bool) error,
	) (d Dag, created bool, err error)
	// DeleteDag deletes a dag; an absent one is a fault.NotFound. Its runs go on: they keep their definition. It
	// calls free after it has read the dag; an error of free, which says that something else needs the dag, keeps it.
	DeleteDag(ctx context.Context, t tenant.ID, name string, now time.Time, free func() error) error
}

// DagReader reads single definitions.
type DagReader interface {
	// Dag reads the newest version of a dag. An absent or deleted dag is a fault.NotFound.
	Dag(ctx context.Context, t tenant.ID, name string) (Dag, error)
	// DagVersion reads one version of a dag. An absent one is a fault.NotFound, as is every one of a deleted dag.
	DagVersion(ctx context.Context, t tenant.ID, name string, version int64) (Dag, error)
}
