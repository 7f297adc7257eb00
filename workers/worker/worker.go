package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/clock"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message" // run is a word of this package
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

// Deps is what a worker works with.
type Deps struct {
	process.Base
	Queues    Queues
	Store     Store
	Executors map[string]executor.Executor // by kind; that of kind go is Registry
	Registry  *Registry                    // handlers of kind go; nil for none
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
	d.Base, o = d.WithDefaults(), o.withDefaults()
	w := &Worker{
		queues: d.Queues, store: d.Store, registry: d.Registry, clock: d.Clock, log: d.Log.With("worker", o.Name),
		meter: d.Meter, opts: o, draining: make(chan struct{}), over: make(chan struct{}),
	}
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

const (
	// reportsWaiting bounds what waits to be sent; beyond it, attempts keep their slots.
	reportsWaiting = 500
	// flushLast is the time for the last reports and deletes when the worker stops.
	flushLast = 5 * time.Second
)

// note is one report, and the message that may be deleted once it was sent; nil for none.
type note struct {
	out    message.Outgoing
	delete *firing
}

// reports sends reports in batches: at once when none was sent lately, otherwise at whichever
// comes first of contract.ReportFlushEvery, or contract.ReportFlushNodes where the end of a node waits,
// and contract.ReportFlushJobs.
type reports struct {
	w  *Worker
	in chan note
	// hurry: the worker stops, what waits goes now.
	hurry chan struct{}
	// givenBack are the messages on their way back whose reports cannot be sent.
	givenBack sync.WaitGroup
}

func newReports(w *Worker) *reports {
	return &reports{w: w, in: make(chan note, reportsWaiting), hurry: make(chan struct{})}
}

// deletes deletes messages in batches: ten of one queue, or what there is after a moment.
// A delete that fails is not retried: the message is received again, and the recorded outcome is
// found.
type deletes struct {
	w         *Worker
	mu        sync.Mutex
	waiting   map[string][]string // receipts by queue
	timed     bool
	calls     sync.WaitGroup
	callSlots chan struct{} // bounds the calls under way
}

// deletesAtOnce is how many delete calls are under way at most.
const deletesAtOnce = 8

func newDeletes(w *Worker) *deletes {
	return &deletes{w: w, waiting: map[string][]string{}, callSlots: make(chan struct{}, deletesAtOnce)}
}

// Gauge measures how many slots of each pool are taken: the worker's sign of life. The process that flushes the
// meter calls it before, so that an idle worker gives one, too. A pool that cannot receive gives none.
func (w *Worker) Gauge() {
	now := time.Now()
	for _, in := range w.intake {
		if !w.polls.receives(in.sources, now) {
			continue
		}
		w.meter.Gauge(telemetry.SlotsBusy, float64(in.taken()), telemetry.Dim{Key: "pool", Value: in.pool()})
	}
}

// fault logs and counts a failed call. It is called once, where the work goes on without the answer.
func (w *Worker) fault(doing string, err error) {
	kind := fault.KindOf(err)
	if kind == "" {
		kind = "unknown"
	}
	w.meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: string(kind)})
	w.log.Warn("failed "+doing, telemetry.Err, err)
}

// pause waits for d; false: the worker drains meanwhile.
func (w *Worker) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.draining:
		return false
	}
}
