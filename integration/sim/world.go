package sim

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/engine"
	kind "punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	proc "punctual/shared/process"
	graphs "punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/executor"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// Options describe a world; the zero Options are one without faults and with one worker.
type Options struct {
	Seed       uint64        // of job ids, lags and clocks
	Plan       Plan          // the faults of calls; nil: none
	Shards     int           // of the due index; 0: 1
	Workers    int           // 0: 1
	Pumps      int           // of the report queue; 0: 1
	Skew       time.Duration // how far clocks are fast or slow, at most
	SameIDs    bool          // jobs that two tenants make in the same millisecond have the same id
	EmptyPages bool          // every other page of a query is empty
	IndexLag   time.Duration
	StreamLag  time.Duration
	TimersBad  bool          // Scheduler's own sends may fail, or happen twice
	Restart    time.Duration // how long after a crash another process starts; 0: 1 s
	Late       time.Duration // how much later than decided a write may take effect
	Cores      int           // processes of each stage; 0: 1
	Webhooks   bool          // events are announced to webhooks
	Indexed    bool          // there is the index of jobs
	Hazards    Hazards       // what chaos does besides
	Disturbed  bool          // a fault comes on top of the story's own: it verifies no exact times
}

// World is the product and everything around it. Make and use it within one synctest bubble.
type World struct {
	t       testing.TB
	o       Options
	memory  *memory.World
	ledger  *ledger
	history history
	late    time.Duration // how late a write may take effect, with skew

	plan       Plan // replaced by Calm
	mu         sync.Mutex
	points     map[Point]int        // N is 0 in the keys
	instant    time.Time            // of the last call of evaluate
	chosen     map[uint64]judgement // of that instant, by who called
	receipts   map[string]string    // bodies of received messages
	passed     []Point              // all points, in order, without boring ones
	struck     []string             // faults that happened
	trace      []string
	bad        []string
	born       map[string]int // number of processes, by stage
	at         string         // the stream's checkpoint
	downUntil  time.Time      // no endpoint of a webhook works before
	replay     bool           // the checkpoint was set back
	pauses     []hold
	away       map[string]bool // stages that reach nothing
	poison     bool            // some job crashes its workers
	troubles   map[int]Trouble // troubles in force
	stuck      map[stuckAt]chan struct{}
	hurts      int // how many there were
	refuse     func(queue, body string) bool
	workers    []*process            // all that were started
	knows      bool                  // workers that start now know the unknown task
	asked      map[job.Key]time.Time // when a cancel was first accepted
	rerun      bool                  // some attempt is repeated on purpose
	stopCore   context.CancelFunc
	drains     []context.CancelFunc // of the workers, in order of start
	api        *process
	rest       http.Handler   // the API's
	controller *engine.Runs   // the API's
	graphs     []graph        // all runs that were asked for
	operated   []graphs.Key   // those on which an operator has acted
	wholly     []graphs.Key   // those with a retry from a node, which repeats even succeeded nodes
	done       map[string]int // what became of random graphs, for a count
	requests   int            // how many were made

	released chan struct{} // closed at the end: blocked calls of dead processes return
	over     context.Context
	end      context.CancelFunc
	running  sync.WaitGroup
}

// New makes a world and starts the product in it.
func New(t testing.TB, o Options) *World {
	fault.AllowAbandoned(math.MaxInt64) // the worlds and their processes share one count
	if o.Plan == nil {
		o.Plan = Kind
	}
	o.Shards, o.Workers, o.Pumps, o.Cores = max(o.Shards, 1), max(o.Workers, 1), max(o.Pumps, 1), max(o.Cores, 1)
	if o.Restart == 0 {
		o.Restart = time.Second
	}
	w := &World{
		t:        t,
		o:        o,
		plan:     o.Plan,
		points:   map[Point]int{},
		chosen:   map[uint64]judgement{},
		receipts: map[string]string{},
		born:     map[string]int{},
		troubles: map[int]Trouble{},
		stuck:    map[stuckAt]chan struct{}{},
		asked:    map[job.Key]time.Time{},
		done:     map[string]int{},
		released: make(chan struct{}),
	}
	w.late = o.Late + 2*o.Skew + 50*separateMost
	m := memory.Options{TimerDelay: func(timer message.Timer) time.Duration {
		return time.Duration(hashed(o.Seed, "timer",
			timer.Name) % uint64(time.Minute)) // so that two timers never fire at once
	}}
	m.BeforeReceive = func(ctx context.Context, queue string) {
		if p, ok := ctx.Value(processKey{}).(*process); ok {
			p.separate("woken", queue)
		}
	}
	m.EmptyPages = o.EmptyPages
	if o.IndexLag > 0 {
		m.IndexLag = func(index string, ref item.Ref, n int64) time.Duration {
			return time.Duration(hashed(o.Seed, index, ref.SK,
				fmt.Sprint(n))%uint64(o.IndexLag.Milliseconds()+1)) * time.Millisecond
		}
	}
	if o.StreamLag > 0 {
		m.StreamLag = func(ref item.Ref, n int64) time.Duration {
			return time.Duration(hashed(o.Seed, "stream", ref.SK,
				fmt.Sprint(n))%uint64(o.StreamLag.Milliseconds()+1)) * time.Millisecond
		}
	}
	w.memory = memory.New(m)
	if o.TimersBad {
		w.memory.SetFaults(w.timerFaults)
	}
	w.ledger = newLedger(w, w.memory.Table())
	w.over, w.end = context.WithCancel(context.Background())
	w.startAPI()
	w.startCore()
	for range o.Workers {
		w.startWorker()
	}
	return w
}

func (w *World) timerFaults(c memory.Call) memory.Fault {
	if c.Op != memory.TimerFire {
		return memory.Fault{}
	}
	switch hashed(w.o.Seed, "fire", c.Name, fmt.Sprint(c.N)) % 10 {
	case 0:
		return memory.Fault{Fail: "unavailable"}
	case 1:
		return memory.Fault{Twice: true}
	case 2:
		return memory.Fault{Lost: true}
	}
	return memory.Fault{}
}

// Calm lets every call succeed from now on.
func (w *World) Calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = Kind
	w.memory.SetFaults(nil)
}

// chooseFault names the call's point and returns its fault.
//
// Calls of one instant that nothing distinguishes are one point and share its fault: otherwise
// chance would choose the one that fails.
func (w *World) chooseFault(p *process, op, what string, who uint64) (f Fault, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); !now.Equal(w.instant) {
		w.instant = now
		clear(w.chosen)
	}
	if j, ok := w.chosen[who]; ok {
		return j.Fault, j.after
	}
	defer func() { w.chosen[who] = judgement{f, after} }()
	at := Point{Stage: p.stage, Op: op, What: what}
	w.points[at]++
	at.N = w.points[at]
	f, after = w.plan(at)
	switch {
	case f == Late && (op == memory.QueueSend || op == memory.QueueReceive):
		f = Lost // "a send cannot outlive its invocation"
	case f == Late && (what == store.WritePausePut || what == store.WritePauseDelete):
		f = Lost // a late pause may come at any time, and then nothing can be verified of pauses
	case p.locked(what) && (f == Hang || f == Slow):
		f = Fail // virtual time does not wait for a lock
	}
	if at.Boring() {
		if f != None {
			w.noteLocked(p, fmt.Sprintf("%s → %s", at, f))
		}
		return f, after
	}
	w.passed = append(w.passed, at)
	w.noteLocked(p, strings.TrimSuffix(fmt.Sprintf("%s → %s", at, f), " → "))
	if f != None {
		w.struck = append(w.struck, fmt.Sprintf("%s at %s", f, at))
	}
	return f, after
}

// Away cuts stages off from everything until Back.
func (w *World) Away(stages ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = map[string]bool{}
	for _, s := range stages {
		w.away[s] = true
	}
	w.noteLocked(nil, fmt.Sprintf("away: %v", stages))
}

// Back ends Away.
func (w *World) Back() { w.Away() }

func (w *World) isAway(stage string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away[stage]
}

// judgement is the fault of a call.
type judgement struct {
	Fault
	after time.Duration
}

// faults returns how many faults have happened.
func (w *World) faults() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.struck)
}

// later does something after a while, although its caller no longer waits for it.
func (w *World) later(do func(), after time.Duration) {
	w.running.Go(func() {
		t := time.NewTimer(after)
		defer t.Stop()
		select {
		case <-t.C:
			do()
		case <-w.released:
		}
	})
}

// skew returns how far a process's clock is off.
func (w *World) skew(name string) time.Duration {
	if w.o.Skew == 0 {
		return 0
	}
	return time.Duration(hashed(w.o.Seed, "clock",
		name)%uint64(2*w.o.Skew.Milliseconds()+1))*time.Millisecond - w.o.Skew
}

func (w *World) newProcess(stage string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.born[stage]++
	name := fmt.Sprintf("%s-%d", stage, w.born[stage])
	return w.process(stage, name, w.skew(name))
}

// startCore starts all stages but the API, each in its own process.
func (w *World) startCore() {
	ctx, stop := context.WithCancel(w.over)
	ports := system.Ports{Log: w.log, Of: func(stage string) system.Ports { return w.newProcess(stage).ports() }}
	if w.o.Indexed {
		ports.Search = store.NewSearchTable(nil, w.ledger) // each stage has its own
	}
	var cores []*system.System
	for range w.o.Cores {
		o := system.Options{Shards: w.o.Shards, Pumps: w.o.Pumps, NoWorker: true, NoAPI: true, Webhooks: w.o.Webhooks}
		cores = append(cores, system.Compose(ports, o))
	}
	w.mu.Lock()
	old := w.stopCore
	w.stopCore = stop
	w.mu.Unlock()
	if old != nil {
		old()
	}
	for _, sys := range cores {
		w.running.Go(func() { _ = sys.Run(ctx) }) // without a worker it returns no error
	}
}

// slots are always enough: when pollers wait for one at the same instant, chance would choose the
// first.
const slots = 400

func (w *World) startWorker() {
	p := w.newProcess("worker")
	ports := p.ports()
	ctx, drain := context.WithCancel(w.over)
	w.mu.Lock()
	w.drains = append(w.drains, drain)
	w.workers = append(w.workers, p)
	w.mu.Unlock()
	started := worker.New(worker.Deps{
		Queues:    ports.Queues,
		Store:     store.New(ports.Table, ports.Blobs),
		Registry:  w.registry(p),
		Executors: map[string]executor.Executor{kind.Webhook: deliveries{w, p}},
		Base:      proc.Base{Clock: p.clock, Log: w.log("worker")},
	}, worker.Options{Name: p.name, Slots: slots, Poll: 4 * time.Second})
	w.running.Go(func() {
		if err := started.Run(ctx); err != nil {
			w.violation("worker %s ended with %v", p.name, err)
		}
	})
}

// Deploy starts another worker and drains the oldest one.
func (w *World) Deploy() {
	w.startWorker()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(nil, "the oldest worker drains")
	w.drains[0]()
	w.drains = w.drains[1:]
}

// Strike drains all workers.
func (w *World) Strike() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, drain := range w.drains {
		drain()
	}
	w.drains = nil
}

func (w *World) startAPI() {
	p := w.newProcess("api")
	rest, controller := w.newAPI(p), w.newController(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.api, w.rest, w.controller = p, rest, controller
}

// mourn starts a new process after one has died.
func (w *World) mourn(p *process) {
	w.note(p, "DIED")
	w.running.Go(func() {
		t := time.NewTimer(w.o.Restart)
		defer t.Stop()
		select {
		case <-t.C:
		case <-w.over.Done():
			return
		}
		switch p.stage {
		case "api":
			w.startAPI()
		case "worker":
			w.startWorker()
		default:
			w.startCore()
		}
	})
}

// checkpoint returns where the stream's next reader continues.
func (w *World) checkpoint(after string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.replay {
		w.replay = false
		return w.at
	}
	if after != "" {
		w.at = after
	}
	return w.at
}

// rewind makes the stream repeat the records after that checkpoint.
func (w *World) rewind(after string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.replay = after, true
}

// hold is a pause, as the client knows it.
type hold struct {
	tenant        tenant.ID
	since, lifted time.Time // since: it holds from then on; lifted: when lifting it began, zero while it is in force
}

// pausedBy names the pause that forbids a start now, "" if none does.
func (w *World) pausedBy(t tenant.ID, now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.pauses {
		if h.tenant == t && now.After(h.since) && (h.lifted.IsZero() || now.Before(h.lifted)) {
			return fmt.Sprintf("a pause has been effective for %s", now.Sub(h.since))
		}
	}
	return ""
}

// everPaused reports whether there was a pause of a task, or of everything.
func (w *World) everPaused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pauses) > 0
}

// violation notes that a promise is broken.
func (w *World) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%s  %s", clockTime(time.Now()), fmt.Sprintf(format, args...))
	w.bad = append(w.bad, text)
	w.noteLocked(nil, "VIOLATION "+text)
}

func (w *World) note(p *process, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(p, what)
}

// traceMost bounds the lines of a trace.
const traceMost = 100_000

func (w *World) noteLocked(p *process, what string) {
	if len(w.trace) >= traceMost {
		return
	}
	name := ""
	if p != nil {
		name = p.name
	}
	w.trace = append(w.trace, fmt.Sprintf("%s %-12s %s", time.Now().Format("15:04:05.000"), name, what))
}

// log is silent without SIM_LOG; with it, warnings and errors are part of the trace.
func (w *World) log(stage string) *slog.Logger {
	if os.Getenv("SIM_LOG") == "" {
		return telemetry.Silent()
	}
	return telemetry.Logger(logged{w}, stage)
}

type logged struct{ w *World }

func (l logged) Write(p []byte) (int, error) {
	if !bytes.Contains(p, []byte(`"level":"INFO"`)) {
		l.w.note(nil, string(bytes.TrimSpace(p)))
	}
	return len(p), nil
}

// Close ends the world: blocked calls return, and workers drain.
func (w *World) Close() {
	close(w.released)
	w.end()
	w.running.Wait()
	w.memory.Close()
}

// Report fails the test with the violations and the trace.
func (w *World) Report(name string) (bad bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bad) == 0 {
		return false
	}
	trace := w.trace
	if n := 400; len(trace) > n && os.Getenv("SIM_TRACE") == "" {
		trace = trace[len(trace)-n:]
	}
	if os.Getenv("SIM_TRACE") == "no" {
		trace = nil
	}
	w.t.Errorf("%s (seed %d):\nfaults: %s\n%s\ntrace:\n%s", name, w.o.Seed, strings.Join(w.struck, "; "),
		strings.Join(w.bad, "\n"), strings.Join(trace, "\n"))
	return true
}
