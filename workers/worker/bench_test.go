package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/workers/executor"
)

const shop = "shop" // the tenant of all these jobs

// bench is a world with as many workers as a test starts. Time is virtual.
type bench struct {
	*stagetest.Bench
	logs    *lockedBuffer
	ids     int
	workers []*runningWorker

	mu   sync.Mutex
	runs []executor.Work // in the order of their starts
	at   []time.Time
	does func(ctx context.Context, w executor.Work) (json.RawMessage, error)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// within runs test in a bubble of virtual time.
func within(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{Bench: stagetest.New(t, memory.Options{}), logs: &lockedBuffer{}}
		defer func() {
			for _, w := range b.workers {
				w.stop()
				w.wait()
			}
		}()
		test(b)
	})
}

// Run makes the bench the executor of its workers.
func (b *bench) Run(ctx context.Context, w executor.Work) (json.RawMessage, error) {
	b.mu.Lock()
	b.runs, b.at = append(b.runs, w), append(b.at, time.Now())
	does := b.does
	b.mu.Unlock()
	if does == nil {
		return w.Payload, nil
	}
	return does(ctx, w)
}

func (b *bench) started() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.runs)
}

// sleeps makes every attempt take d, unless its context ends before.
func (b *bench) sleeps(d time.Duration) {
	b.does = func(ctx context.Context, _ executor.Work) (json.RawMessage, error) {
		select {
		case <-time.After(d):
			return json.RawMessage(`"slept"`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// sleep lets virtual time pass, and what happens in it come to rest.
func (b *bench) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// then changes what later attempts do.
func (b *bench) then(does func(ctx context.Context, w executor.Work) (json.RawMessage, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.does = does
}

// put accepts a job that is due after d, changed as each says, and sends no firing.
func (b *bench) put(due time.Duration, changes ...func(*job.Row)) job.Row {
	b.Helper()
	b.ids++
	now := time.Now().Truncate(time.Millisecond)
	r := job.Row{
		Key: job.Key{Tenant: shop,
			ID: job.DeterministicID(now, strconv.Itoa(b.ids))}, Status: job.Scheduled, Version: 1, Attempt: 1,
		DueAt: now.Add(due), CreatedAt: now, Settings: job.Settings{Task: "echo", Executor: job.ExecutorEcho,
			Pool:     "short",
			Priority: job.Normal,
			Timeout:  time.Minute, Retry: job.DefaultRetry},
	}
	for _, change := range changes {
		change(&r)
	}
	job.Route(&r, now)
	if err := b.Store.Put(b.Context(), job.Accept(r)); err != nil {
		b.Fatal(err)
	}
	return r
}

// fire sends a row's firing, delay later.
func (b *bench) fire(r job.Row, delay time.Duration) {
	b.Helper()
	b.send(r, message.Encode(message.Firing{
		V: message.V, Tenant: string(r.Tenant), JobID: string(r.ID), Version: r.Version, Attempt: r.Attempt,
		DueAt: r.DueAt,
	}), delay)
}

func (b *bench) send(r job.Row, body string, delay time.Duration) {
	b.Helper()
	queue := contract.FiringQueue(r.Pool, string(r.Priority))
	b.Must(b.World.Queues().Send(b.Context(), queue, message.Outgoing{Body: body, Delay: delay}))
}

// readsBlob chooses the reads of payloads and results that are in no row.
func readsBlob(c memory.Call) bool {
	return c.Op == memory.TableGet && strings.HasPrefix(c.Ref.PK, "blob#")
}

// runningWorker is a worker that a test has started.
type runningWorker struct {
	*Worker
	stop context.CancelFunc // SIGTERM
	done chan struct{}
}

// wait waits until the worker has stopped.
func (r *runningWorker) wait() { <-r.done }

// start starts a worker of that name; the test need not stop it.
func (b *bench) start(name string, change ...func(*Deps, *Options)) *runningWorker {
	d := Deps{
		Queues: b.World.Queues(), Store: b.Store, Executors: map[string]executor.Executor{job.ExecutorEcho: b},
		Base: process.Base{Log: slog.New(slog.NewTextHandler(b.logs, nil)), Meter: b.Meter},
	}
	o := Options{Name: name}
	for _, c := range change {
		c(&d, &o)
	}
	ctx, stop := context.WithCancel(b.Context())
	r := &runningWorker{Worker: New(d, o), stop: stop, done: make(chan struct{})}
	b.workers = append(b.workers, r)
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			b.Error(err)
		}
	}()
	return r
}

func options(change func(*Options)) func(*Deps, *Options) {
	return func(_ *Deps, o *Options) { change(o) }
}

// reports takes what is in the report queue.
func (b *bench) reports() []message.Report {
	b.Helper()
	var all []message.Report
	for _, d := range b.Received(contract.ReportQueue) {
		r, err := message.Decode[message.Report](d.Body)
		b.Must(err)
		all = append(all, r)
	}
	return all
}

// outcomes are those that the claims of the reported ends hold.
func (b *bench) outcomes() []job.Outcome {
	b.Helper()
	var all []job.Outcome
	for _, r := range b.reports() {
		if r.Kind != message.Ended {
			continue
		}
		c, err := b.Store.Claim(b.Context(), job.Key{Tenant: tenant.ID(r.Tenant), ID: job.ID(r.JobID)})
		if err != nil || c.Attempt != r.Attempt || c.Token != r.Token || c.Outcome == nil {
			b.Fatalf("a report of attempt %d, token %d meets the claim %+v, %v", r.Attempt, r.Token, c, err)
		}
		all = append(all, *c.Outcome)
	}
	return all
}

// depth is what the queue of normal jobs holds.
func (b *bench) depth() message.Depth {
	b.Helper()
	d, err := b.World.Queues().Depth(b.Context(), contract.FiringQueue("short", "normal"))
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// kills makes every call of one worker fail from now on, as if its process were gone: nothing
// that it does has an effect any more.
type kills struct {
	store.Table
	Queues
	dead chan struct{}
}

func (k *kills) gone() error {
	select {
	case <-k.dead:
		return fault.New(fault.Unavailable, nil, "this process is dead")
	default:
		return nil
	}
}

func (k *kills) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if err := k.gone(); err != nil {
		return nil, err
	}
	return k.Table.Write(ctx, w)
}

func (k *kills) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	if err := k.gone(); err != nil {
		return nil, err
	}
	return k.Table.Get(ctx, ref)
}

func (k *kills) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	if err := k.gone(); err != nil {
		return err
	}
	return k.Queues.Send(ctx, queue, out...)
}

func (k *kills) Receive(
	ctx context.Context, queue string, n int, wait, visibility time.Duration,
) ([]message.Delivery, error) {
	if err := k.gone(); err != nil {
		return nil, err
	}
	return k.Queues.Receive(ctx, queue, n, wait, visibility)
}

func (k *kills) SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error {
	if err := k.gone(); err != nil {
		return err
	}
	return k.Queues.SetVisibility(ctx, queue, receipt, d)
}

// killable starts a worker that kill ends without a trace.
func (b *bench) killable(name string, change ...func(*Deps, *Options)) (w *runningWorker, kill func()) {
	k := &kills{Table: b.World.Table(), Queues: b.World.Queues(), dead: make(chan struct{})}
	change = append(change, func(d *Deps, _ *Options) {
		d.Store, d.Queues = store.New(k, b.World.Blobs()), k
	})
	return b.start(name, change...), func() { close(k.dead) }
}
