package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/stop"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// bench is a table, a controller over it, and a worker.
type bench struct {
	*stagetest.Bench
	atOnce         int // of the controller; 0: its default
	now            time.Time
	rel            driver
	key            run.Key
	mu             sync.Mutex // of the maps
	started        map[job.ID]int
	fired          map[job.ID]int
	deadLetters    map[string]int // dead deadLetters, by node
	heard          chan job.Key   // firings, if not nil
	open           sync.WaitGroup // firings in heard that no worker has finished
	live           bool           // the time is that of the bubble, not now
	propagating    atomic.Bool    // a report's end is being propagated, if one is propagated at a time
	redelivered    int            // how often a report is handled once more after an error
	endedLater     []job.Key      // ends to be propagated in another invocation
	reconcileLater int            // how often the run is to be reconciled in another invocation
	longest        time.Duration  // after which such an invocation is to come
	refuseAfter    bool           // the next such request fails
	rate           store.RateLimit
	// fails says whether the attempt of a node fails for good.
	fails func(row job.Row) bool
	// gives is the result of a node that succeeds; "" for none.
	gives func(row job.Row) string
	// partial is why that result is not the value; job.Whole for one that is.
	partial func(row job.Row) job.Partial
}

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func setup(t testing.TB) *bench {
	b := &bench{now: noon, started: map[job.ID]int{}, fired: map[job.ID]int{}, deadLetters: map[string]int{}}
	b.Bench = stagetest.New(t, memory.Options{Clock: b})
	b.rel = b.another()
	b.key = run.Key{Tenant: "acme", ID: job.DeterministicID(noon, "run")}
	b.fails = func(job.Row) bool { return false }
	b.gives = func(job.Row) string { return "" }
	b.partial = func(job.Row) job.Partial { return job.Whole }
	return b
}

// another is a second process, which shares only the table with the first.
func (b *bench) another() driver {
	c := runs.New(runs.Deps{Store: b.Store, Jobs: b, Base: process.Base{Clock: b, Shards: stagetest.Shards},
		AtOnce: b.atOnce, RateLimit: b.rate})
	return driver{engine.Runs{Controller: c, Performer: b}}
}

// Now is the test's time.
func (b *bench) Now() time.Time {
	if b.live {
		return time.Now()
	}
	return b.now
}

// Put accepts a job as the engine does.
func (b *bench) Put(ctx context.Context, j accept.Job) error {
	if j.Keep != nil {
		if err := j.Keep(ctx, j.Row); err != nil {
			return err
		}
	}
	return b.Store.Accept(ctx, j.Row, j.With...)
}

// Fire records firings.
func (b *bench) Fire(_ context.Context, _ string, firings ...job.Firing) {
	for _, f := range firings {
		b.mu.Lock()
		b.fired[f.ID]++
		b.mu.Unlock()
		if b.heard != nil {
			b.open.Add(1)
			b.heard <- f.Key
		}
	}
}

// Stop does what the engine does: it writes a stop on the row, and fences the attempt if no worker owns it.
func (b *bench) Stop(
	ctx context.Context, row job.Row, why job.Reason, now time.Time,
) (after job.Row, ended bool, err error) {
	return stop.Stopper{Jobs: b.Store, Log: telemetry.Silent()}.Stop(ctx, row, why, now)
}

// unpark fires a parked job, as the engine does if nothing else holds it.
func (b *bench) unpark(ctx context.Context, k job.Key) error {
	row, err := b.Store.Row(ctx, k)
	if err != nil || !row.Parked {
		return err
	}
	after, write := job.Unpark(row, b.Now())
	if err := b.Store.PutRow(ctx, after, write); err != nil {
		return err
	}
	b.Fire(ctx, "parked", after.Firing())
	return nil
}

// EndedLater notes that an end is to be propagated in another invocation, which later makes.
func (b *bench) EndedLater(_ context.Context, row job.Row) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endedLater = append(b.endedLater, row.Key)
	return nil
}

// ReconcileLater notes that the run is to be reconciled in another invocation.
func (b *bench) ReconcileLater(context.Context, run.Key) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reconcileLater++
	return nil
}

// ReconcileAfter is ReconcileLater, of which longest keeps the wait.
func (b *bench) ReconcileAfter(ctx context.Context, k run.Key, wait time.Duration) error {
	b.mu.Lock()
	b.longest = max(b.longest, wait)
	refuse := b.refuseAfter
	b.refuseAfter = false
	b.mu.Unlock()
	if refuse {
		return fault.New(fault.Unavailable, nil, "asking for another invocation")
	}
	return b.ReconcileLater(ctx, k)
}

// later makes the invocations that were asked for. It returns false if there were none.
func (b *bench) later() bool {
	ctx := context.Background()
	b.mu.Lock()
	ended, reconcile := b.endedLater, b.reconcileLater > 0
	b.endedLater, b.reconcileLater = nil, 0
	b.mu.Unlock()
	for _, k := range ended {
		if rows, err := b.Store.Nodes(ctx, []job.Key{k}); err == nil && rows[0].PendingEffects.Children() {
			_ = b.rel.Ended(ctx, rows[0])
		}
	}
	if reconcile {
		_ = b.rel.Reconcile(ctx, b.key)
	}
	return reconcile || len(ended) > 0
}

// admit asks the run about a job that is about to be fired.
func (b *bench) admit(row job.Row) (is job.Step, done bool, err error) {
	return b.admitFor(row, job.StepFire)
}

// admitFor is admit for another step. done says that the run does not let the job take it; what it wants is done.
func (b *bench) admitFor(row job.Row, step job.Step) (is job.Step, done bool, err error) {
	ctx := context.Background()
	for {
		v, err := b.rel.Admit(ctx, row, step, b.now)
		if err != nil {
			return step, true, err
		}
		switch v.Step {
		case runs.Reconciled:
			if err := b.rel.Reconcile(ctx, b.key); err != nil {
				return step, true, err
			}
			continue
		case job.StepFinishStop:
			after, ended, err := b.Stop(ctx, row, v.Why, b.now)
			if ended {
				err = b.rel.Ended(ctx, after)
			}
			return v.Step, true, err
		case job.StepPark:
			after, write := job.Park(row, b.now)
			return v.Step, true, b.Store.PutRow(ctx, after, write)
		}
		return v.Step, false, nil
	}
}

// def makes a definition of "child: parent parent" lines.
func def(nodes ...string) dag.Definition { return stagetest.Graph(nodes...) }

func (b *bench) create(d dag.Definition, change ...func(*runs.Request)) {
	b.Helper()
	if _, err := dag.Compile(d); err != nil {
		b.Fatal(err)
	}
	n := runs.Request{Key: b.key, Definition: d, By: runs.By{Who: "test"}}
	for _, c := range change {
		c(&n)
	}
	_, _, err := b.rel.Create(context.Background(), n)
	b.Must(err)
}

func (b *bench) run() run.Run {
	b.Helper()
	is, err := b.Store.Run(context.Background(), b.key)
	b.Must(err)
	return is
}

// rows are all rows of the run: of every generation, and of items.
func (b *bench) rows() []job.Row {
	b.Helper()
	is := b.run()
	g, err := b.rel.Graph(context.Background(), is)
	b.Must(err)
	var keys []job.Key
	for _, name := range g.Names() {
		for gen := range is.Generation(name) {
			keys = append(keys, b.key.Job(name, gen+1, 0))
		}
	}
	read, err := b.Store.Nodes(context.Background(), keys)
	b.Must(err)
	var rows []job.Row
	for _, row := range read {
		if row.Status == "" {
			continue
		}
		rows = append(rows, row)
		if row.Pool == "" || row.Priority == "" { // REST shows both, even if no worker runs the job
			b.Errorf("node %q is %s with pool %q and priority %q", row.Node, row.Status, row.Pool, row.Priority)
		}
		var items []job.Key
		for i := range row.Items {
			items = append(items, b.key.Job(row.Node, row.Generation, i+1))
		}
		of, err := b.Store.Nodes(context.Background(), items)
		b.Must(err)
		for _, it := range of {
			if it.Status != "" {
				rows = append(rows, it)
			}
		}
	}
	return rows
}

// current is the row of a node in its current generation; the zero Row says that it is BLOCKED.
func (b *bench) current(node string) job.Row {
	b.Helper()
	rows, err := b.Store.Nodes(context.Background(), []job.Key{b.run().Job(node)})
	b.Must(err)
	return rows[0]
}

// start claims a due job as a worker does and asks the run. It returns false if the job may not start.
func (b *bench) start(row job.Row) bool {
	ctx := context.Background()
	if !row.Status.Open() || row.IsMapped() || row.DueAt.After(b.Now()) || row.Stop != job.NoStop {
		return false
	}
	c, err := b.Store.Claim(ctx, row.Key)
	if err != nil || c.Live(row.Attempt, b.Now()) {
		return false
	}
	owner := job.Owner{Worker: "w", Nonce: string(row.ID), LeaseUntil: b.Now().Add(contract.Lease), DueAt: row.DueAt}
	claim := job.ClaimNew(row.Key, row.Attempt, owner)
	if c.Attempt == row.Attempt { // a worker has let it go
		claim = job.TakeOver(row.Key, c, owner, b.Now())
	}
	if _, err = b.Store.WriteClaim(ctx, claim); err != nil {
		return false
	}
	is, err := b.Store.Run(ctx, b.key)
	rows, err2 := b.Store.Nodes(ctx, []job.Key{row.Key})
	if err != nil || err2 != nil || !rows[0].Status.Open() || rows[0].Stop != job.NoStop ||
		is.MayStart(rows[0], b.Now()) != "" {
		c, err := b.Store.Claim(ctx, row.Key)
		if err == nil {
			_ = b.Store.Put(ctx, job.LetGo(row.Key, c.Attempt, c.Token))
		}
		return false
	}
	b.mu.Lock()
	b.started[row.ID]++
	b.mu.Unlock()
	return true
}

// finish settles an attempt that has started, and announces its end if announce is set.
func (b *bench) finish(row job.Row, announce bool) {
	ctx := context.Background()
	rows, err := b.Store.Nodes(ctx, []job.Key{row.Key})
	if err != nil || !rows[0].Status.Open() {
		return
	}
	o := job.Outcome{Kind: job.OutcomeSucceeded, StartedAt: b.Now(), FinishedAt: b.Now(), Worker: "w"}
	if result := b.gives(row); result != "" {
		o.Result, o.Partial = json.RawMessage(result), b.partial(row)
	}
	if len(o.Result) > contract.MaxClaimResult {
		o.ResultRef = job.ResultRef(rows[0].Attempt, 1)
		if b.Store.PutResult(ctx, row.Key, o.ResultRef, o.Result) != nil {
			return
		}
		o.Result = nil
	}
	if b.fails(row) {
		o = job.Outcome{Kind: job.OutcomeFailed, Permanent: true, StartedAt: b.Now(), FinishedAt: b.Now(),
			Error: &job.Reason{Code: "x"}}
	}
	d, err := job.Settle(&rows[0], rows[0].Attempt, o, b.Now())
	if err != nil {
		return
	}
	for _, w := range d.Contents {
		if b.Store.Put(ctx, w) != nil {
			return
		}
	}
	if b.Store.PutRow(ctx, d.After, d.Write) != nil {
		return
	}
	next := row
	next.Attempt++
	_ = b.Store.Put(ctx, job.Fence(next, job.Claim{}, row.DueAt, b.Now())) // the claim has ended
	if announce {
		b.propagating.Store(true)
		for range 1 + b.redelivered {
			if b.rel.Ended(ctx, d.After) == nil {
				break
			}
		}
		b.propagating.Store(false)
	}
}

// sweep does what the sweeper does after crashes. It returns false if there was nothing to do.
func (b *bench) sweep() (any bool) {
	ctx := context.Background()
	is := b.run()
	for _, row := range b.rows() {
		switch {
		case row.Status.Final() && row.PendingEffects.Children():
			any = true
			_ = b.rel.Ended(ctx, row)
		case row.Status.Open() && (row.Stop != job.NoStop || is.Superseded(row)):
			any = true
			b.now = b.now.Add(contract.Lease + time.Second)
			if after, ended, err := b.Stop(ctx, row, job.Reason{Code: "superseded"}, b.now); err == nil && ended {
				_ = b.rel.Ended(ctx, after)
			}
		}
	}
	if is = b.run(); !is.WakeAt.IsZero() && !is.WakeAt.After(b.now) {
		any = true
		_ = b.rel.Reconcile(ctx, b.key)
	}
	return any
}

// work starts and finishes every job that may start. It returns false if there was none.
func (b *bench) work() (any bool) {
	for _, row := range b.rows() {
		if b.start(row) {
			any = true
			b.finish(row, true)
		}
	}
	return any
}

// settle works and sweeps, with the run's wake-ups, until nothing happens any more.
func (b *bench) settle() {
	b.Helper()
	for range 10_000 {
		if b.work() || b.later() || b.sweep() {
			continue
		}
		is := b.run()
		if is.WakeAt.IsZero() {
			return
		}
		before := fmt.Sprint(is.Item(), len(b.rows()))
		b.now = is.WakeAt
		b.sweep()
		after := b.run()
		after.WakeAt = is.WakeAt
		if fmt.Sprint(after.Item(), len(b.rows())) == before && !b.work() {
			return
		}
	}
	b.Fatal("the run never comes to rest")
}

// calm only works, and makes the invocations asked for, until nothing happens any more: there is no sweep and no
// wake-up.
func (b *bench) calm() {
	for b.work() || b.later() {
	}
}

func (b *bench) is(node string, s job.Status, code string) {
	b.Helper()
	row := b.current(node)
	if row.Status != s || row.Reason.Code != code {
		b.Errorf("node %q is %s (%s), want %s (%s)", node, row.Status, row.Reason.Code, s, code)
	}
}

func (b *bench) runIs(s run.Status) {
	b.Helper()
	if is := b.run(); is.Status != s {
		b.Errorf("the run is %s, want %s", is.Status, s)
	}
}
