package worker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/message" // run is a word of this package
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

// Queues is what a worker needs of the queues.
type Queues interface {
	message.Sender
	message.Receiver
}

// Store is what a worker reads and writes. It writes claims and results; rows are the stages' to write.
type Store interface {
	store.JobReader
	store.Claims
	store.ContentReader
	store.ResultWriter
	store.RunReader
	store.ScheduleReader
	store.PauseReader
	store.RestoredTables
	store.Writes
}

// Deps is what a worker works with.
type Deps struct {
	Queues    Queues
	Store     Store
	Executors map[string]executor.Executor // by kind; that of kind go is Registry
	Registry  *Registry                    // handlers of kind go; nil for none
	Clock     clock.Clock                  // nil: the system's
	Log       *slog.Logger                 // nil: silent
	Meter     *telemetry.Meter             // nil drops everything
}

// Options is how much a worker does at once. The zero Options serve the pool "short" with 25 slots.
type Options struct {
	// Name is the worker's name in claims and attempts; it must be its own. Default: a random one.
	Name string
	// Pools are the pools served, each with slots of its own: no job waits for those of another
	// pool. Default: short.
	Pools []string
	// Slots is how many attempts of each pool run at once. An attempt takes its slot when it is
	// claimed, at most 500 ms before it is due. Default 25.
	Slots int
	// Reserve is how many of a pool's slots only critical jobs may take. Default: a tenth, at least one
	// from four slots on. Negative: none.
	Reserve int
	// Hold is how many messages of each pool may be held for their due time, or for a slot, beyond
	// those in slots. Firings come two to three seconds early, so a worker needs about three seconds' worth.
	// Up to 10 for each queue may come too many. About 1 KB each. Default: 20 for each slot.
	Hold int
	// Drain is how long running attempts may go on once Run's context has ended. What then still
	// runs is cancelled and given back, which takes up to 5 s more. Default 25 s.
	Drain time.Duration
	// Poll is how long a receive waits for a message, up to 20 s. The last receives before
	// shutting down are waited for, because a broken-off one may take messages out of sight;
	// so this must stay under 5 s for messages to be back that soon. Default 4 s.
	Poll time.Duration
	// CancelCheck is how often a running attempt looks for a cancel between its heartbeats, which bring one too.
	// Default contract.CancelCheckEvery. Each costs half a read unit; in one process it is free, and may be shorter.
	CancelCheck time.Duration
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "worker-" + newNonce()
	}
	if len(o.Pools) == 0 {
		o.Pools = []string{contract.DefaultPool}
	}
	if o.Slots <= 0 {
		o.Slots = 25
	}
	switch {
	case o.Reserve < 0:
		o.Reserve = 0
	case o.Reserve == 0 && o.Slots >= 4:
		o.Reserve = max(1, o.Slots/10)
	}
	o.Reserve = min(o.Reserve, o.Slots-1)
	if o.Hold <= 0 {
		o.Hold = 20 * o.Slots
	}
	if o.Drain <= 0 {
		o.Drain = 25 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 4 * time.Second
	}
	if o.CancelCheck <= 0 {
		o.CancelCheck = contract.CancelCheckEvery
	}
	return o
}

// Worker runs jobs. Use New, then Run once.
type Worker struct {
	queues    Queues
	store     Store
	executors map[string]executor.Executor
	registry  *Registry
	clock     clock.Clock
	log       *slog.Logger
	meter     *telemetry.Meter
	opts      Options

	intake   intakes
	polls    *polls
	pauses   *pauses
	rules    *schedules
	probes   *probes
	troubles troubles
	reports  *reports
	deletes  *deletes
	attempts sync.WaitGroup // those in slots
	unknowns sync.Map       // tasks that were met without a handler, by name
	gate     store.Gate     // shut while a restored table waits for an operator
	held     atomic.Bool    // it was, when a queue was last polled

	ctx      context.Context // of all calls; ends well after the drain, not with Run's context
	draining chan struct{}   // closed: nothing new starts
	over     chan struct{}   // closed: what still runs is cancelled
}

// New returns a worker over what it is handed.
func New(d Deps, o Options) *Worker {
	o = o.withDefaults()
	w := &Worker{
		queues: d.Queues, store: d.Store, registry: d.Registry, clock: d.Clock, log: d.Log, meter: d.Meter, opts: o,
		draining: make(chan struct{}), over: make(chan struct{}),
	}
	if w.clock == nil {
		w.clock = clock.System{}
	}
	if w.log == nil {
		w.log = telemetry.Silent()
	}
	w.log = w.log.With("worker", o.Name)
	w.executors = map[string]executor.Executor{}
	for kind, e := range d.Executors {
		w.executors[kind] = e
	}
	if d.Registry != nil {
		w.executors[job.ExecutorGo] = d.Registry
	}
	w.gate.Store = d.Store
	w.intake = newIntakes(o, w.clock)
	w.polls = newPolls()
	w.pauses, w.rules = newPauses(d.Store), newSchedules(d.Store)
	w.probes = newProbes(d.Store)
	w.reports = newReports(w)
	w.deletes = newDeletes(w)
	return w
}

// newNonce names one receive of one message. Two never meet.
func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Run works until ctx ends, and then drains: it stops polling at once, gives back what it holds,
// lets running attempts finish within Options.Drain, cancels and gives back what does not, sends
// what is left to report, and returns nil. It returns an error at once if a pool is unknown.
func (w *Worker) Run(ctx context.Context) error {
	for _, pool := range w.opts.Pools {
		if !slices.Contains(contract.Pools, pool) {
			return fmt.Errorf("starting worker %s: pool %q is unknown; there are %v", w.opts.Name, pool, contract.Pools)
		}
	}
	var stop context.CancelFunc
	w.ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var polling, flushing sync.WaitGroup
	for _, in := range w.intake {
		for _, s := range in.sources {
			polling.Go(func() { w.poll(s) })
		}
		polling.Go(func() { w.admit(in) })
	}
	flushing.Go(w.reports.run)
	w.log.Info("started working", "pools", w.opts.Pools, "slots", w.opts.Slots)

	<-ctx.Done()
	w.drain(&polling)

	w.reports.close()
	flushing.Wait()
	w.deletes.flush()
	w.log.Info("stopped working")
	return nil
}
