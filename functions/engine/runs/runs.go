package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/scan"
	"punctual/shared/cache"
	"punctual/shared/dag"
	"punctual/shared/event"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Store is what a Controller reads and writes: runs, their definitions, and the rows of their nodes.
type Store interface {
	store.RunReader
	store.RunWriter
	store.RunCounters
	store.RunPermits
	store.RequestWeights
	store.DagReader
	store.TaskReader
	store.Followers
	store.DueIndex
	store.Jobs
	store.ClaimReader
	store.Contents
	store.Writes
}

// Webhooks knows what tenants' webhooks ask for.
type Webhooks interface {
	// Asked reports whether a webhook of the tenant may ask for events of a type. Where that cannot be read, one may.
	Asked(ctx context.Context, t tenant.ID, what event.Type) bool
}

// Jobs is what a Controller does with the jobs of nodes.
type Jobs interface {
	// Put accepts a job. If the row exists already, or something of With is refused, that is an *item.Refused
	// in which the row is write 0.
	Put(ctx context.Context, j accept.Job) error
	// Fire sends firings that are due now. If one cannot be sent, the sweeper sends it.
	Fire(ctx context.Context, lane string, firings ...job.Firing)
	// Stop ends an open job as cancelled for that reason, or asks its worker to stop it. ended says that it is final
	// now, as after.
	Stop(ctx context.Context, row job.Row, why job.Reason, now time.Time) (after job.Row, ended bool, err error)
	// EndedLater has the children of an ended job evaluated in an invocation of its own. Until they are, each wake-up
	// of the job repeats it.
	EndedLater(ctx context.Context, row job.Row) error
	// ReconcileLater has a run reconciled in an invocation of its own.
	ReconcileLater(ctx context.Context, k run.Key) error
	// ReconcileAfter has a run reconciled in an invocation of its own after a wait, or earlier if it is a long one.
	ReconcileAfter(ctx context.Context, k run.Key, wait time.Duration) error
}

// Schemas validates values by the schemas of their owners.
type Schemas interface {
	// Validate returns a fault.Violations with pointers into the value if it does not fit. A schema that cannot be
	// compiled is a fault.Undecodable.
	Validate(ctx context.Context, value []byte, u schema.Use) error
}

// Deps is what a Controller needs.
type Deps struct {
	process.Base
	Store Store
	Jobs  Jobs
	// Webhooks says which events are to be announced. Nil: none.
	Webhooks Webhooks
	// RateLimit is what each tenant may do; releases draw on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
	AtOnce    int // rows that one call puts or evaluates at the same time; 0: 32
	// Schemas validates the payloads of nodes and the params of schedules. Nil: a schema.Cache of its own.
	Schemas Schemas
	// RetryOf reads the retry policy of a node over that of its task. Nil: dag.RetryOf.
	RetryOf func(of job.RetryPolicy, raw json.RawMessage) (job.RetryPolicy, error)
}

// Controller moves runs forward. What follows the ends that it brings about it leaves to its caller, as an effect.List.
// It is safe for concurrent use.
type Controller struct {
	Deps
	graphs *cache.Cache[item.Ref, *dag.Graph]
	// lists are the results of mapped nodes that have ended, which never change: each item of the next node is made
	// from them.
	lists *cache.Cache[job.Key, results]
}

// results are those of a mapped node's items, or why they cannot be read.
type results struct {
	list  any // from dag.ResultList
	size  int
	wrong *dag.ResultError
}

// listsKept bounds the results of mapped nodes that a process remembers, in bytes of memory.
const listsKept = 16 << 20

// graphsKept bounds the graphs that a process remembers, in bytes. They never change.
const graphsKept = 32 << 20

// New returns a Controller.
func New(d Deps) *Controller {
	d.Base = d.WithDefaults()
	if d.Schemas == nil {
		d.Schemas = schema.NewCache()
	}
	if d.RetryOf == nil {
		d.RetryOf = dag.RetryOf
	}
	return &Controller{
		Deps:   d,
		graphs: cache.New[item.Ref](cache.Options[*dag.Graph]{Most: graphsKept, Weigh: (*dag.Graph).Size}),
		lists: cache.New[job.Key](cache.Options[results]{Most: listsKept,
			Weigh: func(r results) int { return dag.Weigh(r.list) }}),
	}
}

// tries bounds how often one call reads a run or a row because another process changed it meanwhile.
const tries = 8

// Graph is the graph of a run.
func (r *Controller) Graph(ctx context.Context, of run.Run) (*dag.Graph, error) {
	return r.Compiled(ctx, of.Tenant, of.Definition)
}

// Compiled returns the graph of a stored definition. It is compiled once in a process, as long as it is used.
func (r *Controller) Compiled(ctx context.Context, t tenant.ID, definition string) (*dag.Graph, error) {
	return r.graphs.Get(ctx, run.DefinitionRef(t, definition), func(ctx context.Context) (*dag.Graph, error) {
		body, err := r.Store.Definition(ctx, t, definition)
		if err != nil {
			return nil, err
		}
		d, err := dag.ParseDefinition(body)
		if err != nil {
			return nil, err
		}
		return dag.Load(ctx, d)
	})
}

// rewrite writes what change makes of a row. Where another process was faster it reads the row and tries anew. It
// writes nothing where open says false; then wrote is false.
func (r *Controller) rewrite(
	ctx context.Context, row job.Row, open func(job.Row) bool,
	change func(row job.Row, now time.Time) (job.Row, item.Write),
) (after job.Row, wrote bool, err error) {
	for range tries {
		if !open(row) {
			return row, false, nil
		}
		after, write := change(row, r.Clock.Now())
		if err := r.Store.PutRow(ctx, after, write); !refused(err) {
			return after, err == nil, err
		}
		rows, err := r.Store.Nodes(ctx, []job.Key{row.Key})
		if err != nil {
			return row, false, err
		}
		row = rows[0]
	}
	return row, false, changed(run.Of(row))
}

// refused says that a condition did not hold: another process has written since the facts were read.
func refused(err error) bool { return store.Refused(err) != nil }

// changed is the error of a call that gives up after too many refusals.
func changed(k run.Key) error {
	return fault.New(fault.Conflict, nil, "bringing on run %s: it changed %d times meanwhile", k.ID, tries)
}

// atOnce is how many rows one call puts at the same time.
const atOnce = 32

// each calls do for the numbers below n, several at a time, until one fails or no time is left.
func (r *Controller) each(ctx context.Context, n int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	var g errgroup.Group
	g.SetLimit(cmp.Or(r.AtOnce, atOnce))
	failed := make(chan struct{}, n)
	var cut error
	for i := range n {
		if cut = timeLeft(ctx); cut != nil || len(failed) > 0 {
			break
		}
		g.Go(func() error {
			err := do(i)
			if err != nil {
				failed <- struct{}{}
			}
			return err
		})
	}
	return cmp.Or(g.Wait(), cut)
}

// closing is the least time that a call leaves for what it has begun. With less left, the rest is done in another
// invocation.
const closing = 5 * time.Second

// errNoTime says that the rest is to be done in another invocation.
var errNoTime = fault.New(fault.Unavailable, nil, "bringing on a run: there is more to do than time")

// timeLeft returns errNoTime if the invocation ends soon.
func timeLeft(ctx context.Context) error {
	if scan.TimeLeft(ctx, closing) {
		return nil
	}
	return errNoTime
}

// passes waits out a conflict of two transactions: DynamoDB refuses one of two that write the same item at a time. The
// wait grows with each try and differs between jobs. It says whether it is worth another try.
func (r *Controller) passes(ctx context.Context, err error, id job.ID, try int) bool {
	if fault.KindOf(err) != fault.Conflict {
		return false
	}
	h := fnv.New32a()
	fmt.Fprint(h, id, try)
	wait := time.Duration(1+h.Sum32()%uint32(conflictWait.Milliseconds())) * time.Millisecond << min(try, 4)
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// conflictWait bounds the wait after the first conflict of two transactions.
const conflictWait = 16 * time.Millisecond

// warn logs an error after which the run's wake-up does the rest.
func (r *Controller) warn(ctx context.Context, k run.Key, what string, err error) {
	r.Log.WarnContext(ctx, what, telemetry.Tenant, k.Tenant, telemetry.RunID, k.ID, telemetry.Err, err.Error())
}

// merged returns a new map of tags: those of base, overridden by those of over.
func merged(base, over map[string]string) map[string]string {
	tags := make(map[string]string, len(base)+len(over))
	maps.Copy(tags, base)
	maps.Copy(tags, over)
	return tags
}
