package memory

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/message"
)

// Options say what a World is like. The zero value is a kind one: nothing fails, indexes
// follow at once, timers are anything up to a minute late.
type Options struct {
	// Clock tells when messages ripen and timers fire; default clock.System.
	Clock clock.Clock
	// Schemas are the tables that exist; default contract.Schemas().
	Schemas []contract.Schema
	// Queues are the queues that exist; default contract.Queues().
	Queues []contract.Queue

	// Faults is asked before every call; nil lets every call succeed. World.SetFaults replaces it.
	Faults func(Call) Fault
	// IndexLag says how long after its write number n an item shows in an index; nil is no
	// lag. Until then a query misses the write and returns what it replaced. See LagUpTo.
	IndexLag func(index string, ref item.Ref, n int64) time.Duration
	// StreamLag says how long after its write a record shows in the stream, and so do all
	// behind it; nil is no lag.
	StreamLag func(ref item.Ref, n int64) time.Duration
	// StreamReplay is how many records can be read again once somebody has read past them;
	// 0 means 10,000. Those that nobody has read are kept for 24 h: a World whose stream is
	// never read, and that writes much, wants Schemas without one.
	StreamReplay int
	// EmptyPages makes every other page of a query empty, with a cursor, as a filter or a
	// page of deleted items would.
	EmptyPages bool
	// Turn is called by a receive that waited and may now look again, before it does: where
	// several were woken at once it can bring them into an order. Nil: whoever comes first.
	Turn func(ctx context.Context, queue string)
	// TimerDelay says how long after the start of the minute of At a timer fires; default
	// anything from 0 to 59 s, derived from the timer's name.
	TimerDelay func(message.Timer) time.Duration
	// Secrets holds the first values, by ARN; Secrets.Put adds more.
	Secrets map[string]string
}

// World holds one set of twins that know each other. It is safe for concurrent use.
type World struct {
	clock   clock.Clock
	faults  faults
	counts  counts
	table   *Table
	queues  *Queues
	timers  *Timers
	blobs   *Blobs
	secrets *Secrets
	funcs   *Functions
	tenants *TenantQueues
	turn    func(ctx context.Context, queue string)

	closing sync.Once
	closed  chan struct{}
}

// New returns a World that nothing has happened in.
func New(o Options) *World {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Schemas == nil {
		o.Schemas = contract.Schemas()
	}
	if o.Queues == nil {
		o.Queues = contract.Queues()
	}
	if o.TimerDelay == nil {
		o.TimerDelay = func(t message.Timer) time.Duration { return hashed(59*time.Second, t.Name) }
	}
	w := &World{clock: o.Clock, turn: o.Turn, closed: make(chan struct{})}
	w.SetFaults(o.Faults)
	w.table = newTable(w, o)
	w.queues = newQueues(w, o.Queues)
	w.timers = newTimers(w, o.TimerDelay)
	w.blobs = &Blobs{world: w, bodies: map[string][]byte{}}
	w.secrets = &Secrets{world: w, values: map[string]string{}}
	w.funcs = &Functions{world: w, known: map[string]function{}}
	w.tenants = &TenantQueues{world: w, known: map[string]*tenantQueue{}}
	for arn, v := range o.Secrets {
		w.secrets.Put(arn, v)
	}
	return w
}

// Table is the twin of shared/aws/table.
func (w *World) Table() *Table { return w.table }

// Queues is the twin of shared/aws/queue.
func (w *World) Queues() *Queues { return w.queues }

// Timers is the twin of shared/aws/timer.
func (w *World) Timers() *Timers { return w.timers }

// Blobs is the twin of shared/aws/blob.
func (w *World) Blobs() *Blobs { return w.blobs }

// Secrets is the twin of shared/aws/secret.
func (w *World) Secrets() *Secrets { return w.secrets }

// Functions is the twin of shared/aws/function.
func (w *World) Functions() *Functions { return w.funcs }

// TenantQueues is the twin of queue.Tenants of shared/aws/queue.
func (w *World) TenantQueues() *TenantQueues { return w.tenants }

// Close stops every timer and ends every wait; calls that come later may still be answered.
func (w *World) Close() {
	w.closing.Do(func() {
		close(w.closed)
		w.timers.stop()
		w.queues.stop()
	})
}

func (w *World) now() time.Time { return w.clock.Now() }

// sleep waits for d; it returns early with the context's error, or when the World is closed.
func (w *World) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-w.closed:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// LagUpTo is an IndexLag between 0 and most, derived from what was written and when in the
// item's life, so that the same run lags alike every time.
func LagUpTo(most time.Duration) func(index string, ref item.Ref, n int64) time.Duration {
	return func(index string, ref item.Ref, n int64) time.Duration {
		return hashed(most, index, ref.Table, ref.PK, ref.SK, strconv.FormatInt(n, 10))
	}
}

// hashed spreads identities evenly from 0 to most, in milliseconds.
func hashed(most time.Duration, identity ...string) time.Duration {
	h := fnv.New64a()
	for _, s := range identity {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	sum := h.Sum64()
	sum ^= sum >> 33 // FNV's low bits alone would follow the last letters too closely
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return time.Duration(sum%uint64(most.Milliseconds()+1)) * time.Millisecond
}
