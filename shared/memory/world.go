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

// Options describe a World. With the zero value nothing fails, indexes follow at once, and timers
// are up to a minute late.
type Options struct {
	// Clock decides when messages become visible and timers fire; default clock.System.
	Clock clock.Clock
	// Schemas are the tables that exist; default contract.AllSchemas().
	Schemas []contract.Schema
	// Queues are the queues that exist; default contract.Queues().
	Queues []contract.Queue

	// Faults is called before every call; nil lets every call succeed. World.SetFaults replaces it.
	Faults func(Call) Fault
	// IndexLag returns how long after its write number n an item changes in an index; nil is no
	// lag. Until then a query shows the item as it was. See LagUpTo.
	IndexLag func(index string, ref item.Ref, n int64) time.Duration
	// StreamLag returns how long after its write a record appears in the stream; later records wait
	// for it. Nil is no lag.
	StreamLag func(ref item.Ref, n int64) time.Duration
	// StreamReplay is how many records can be read once more after they were read; 0 means 10,000.
	// Unread records are kept for 24 h: a World that writes much and never reads its stream needs
	// Schemas without one.
	StreamReplay int
	// EmptyPages makes every other page of a query empty, with a cursor, as a filter or a
	// page of deleted items would.
	EmptyPages bool
	// BeforeReceive is called by a receive that has waited and was woken, before it looks for
	// messages: it can order receivers that are woken at once. Nil: they look in any order.
	BeforeReceive func(ctx context.Context, queue string)
	// TimerDelay returns how long after the start of the minute of At a timer fires; default 0 to
	// 59 s, derived from the timer's name.
	TimerDelay func(message.Timer) time.Duration
	// Secrets holds the first values, by ARN; Secrets.Put adds more.
	Secrets map[string]string

	// LogSize is how large, in bytes, a log of Open becomes before a snapshot ends it, unless the snapshot is
	// larger; 0 means 32 MiB.
	LogSize int64
	// Released makes the messages visible that were in flight when the files of Open were left: the process that had
	// received them has ended, too. Without it their visibility timeouts go on.
	Released bool
	// Unkept is called when a snapshot of Open could not be written: the logs grow until one can. Nil: nothing is.
	Unkept func(error)
	// Torn is called when Open cuts off the unfinished end of the last record: where it began, and its bytes.
	Torn func(path string, at, size int64)
	// Lost is called once when nothing can be written to the files of Open any more. It must not call the World.
	Lost func(error)
}

// World holds one set of connected in-memory implementations. It is safe for concurrent use.
type World struct {
	clock         clock.Clock
	faults        faults
	counts        counts
	table         *Table
	queues        *Queues
	timers        *Timers
	blobs         *Blobs
	secrets       *Secrets
	funcs         *Functions
	tenants       *TenantQueues
	search        *SearchIndex
	beforeReceive func(ctx context.Context, queue string)
	log           *log // nil: nothing is kept

	closing sync.Once
	closed  chan struct{}
}

// New returns an empty World.
func New(o Options) *World {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Schemas == nil {
		o.Schemas = contract.AllSchemas()
	}
	if o.Queues == nil {
		o.Queues = contract.Queues()
	}
	if o.TimerDelay == nil {
		o.TimerDelay = func(t message.Timer) time.Duration { return hashed(59*time.Second, t.Name) }
	}
	w := &World{clock: o.Clock, beforeReceive: o.BeforeReceive, closed: make(chan struct{})}
	w.SetFaults(o.Faults)
	w.table = newTable(w, o)
	w.queues = newQueues(w, o.Queues)
	w.timers = newTimers(w, o.TimerDelay)
	w.blobs = &Blobs{world: w, bodies: map[string][]byte{}}
	w.secrets = &Secrets{world: w, values: map[string]string{}}
	w.funcs = &Functions{world: w, known: map[string]function{}}
	w.tenants = &TenantQueues{world: w, known: map[string]*tenantQueue{}}
	w.search = newSearchIndex(w)
	for arn, v := range o.Secrets {
		w.secrets.Put(arn, v)
	}
	return w
}

// Table is the in-memory implementation of shared/aws/table.
func (w *World) Table() *Table { return w.table }

// Queues is the in-memory implementation of shared/aws/queue.
func (w *World) Queues() *Queues { return w.queues }

// Timers is the in-memory implementation of shared/aws/timer.
func (w *World) Timers() *Timers { return w.timers }

// Blobs is the in-memory implementation of shared/aws/blob.
func (w *World) Blobs() *Blobs { return w.blobs }

// Secrets is the in-memory implementation of shared/aws/secret.
func (w *World) Secrets() *Secrets { return w.secrets }

// Functions is the in-memory implementation of shared/aws/function.
func (w *World) Functions() *Functions { return w.funcs }

// TenantQueues is the in-memory implementation of queue.Tenants of shared/aws/queue.
func (w *World) TenantQueues() *TenantQueues { return w.tenants }

// Search is the index of jobs. Nothing of it is kept in files.
func (w *World) Search() *SearchIndex { return w.search }

// Close stops every timer and ends every wait; later calls may still be answered, but where a World is kept
// in files they change nothing.
func (w *World) Close() {
	w.closing.Do(func() {
		close(w.closed)
		w.timers.stop()
		w.queues.stop()
		w.log.close()
	})
}

func (w *World) now() time.Time { return w.clock.Now() }

// sleep waits for d; it returns early when the World is closed, or with the context's error.
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

// LagUpTo returns an IndexLag between 0 and most, derived from the item and the number of its
// write, so that it is the same in every run.
func LagUpTo(most time.Duration) func(index string, ref item.Ref, n int64) time.Duration {
	return func(index string, ref item.Ref, n int64) time.Duration {
		return hashed(most, index, ref.Table, ref.PK, ref.SK, strconv.FormatInt(n, 10))
	}
}

// hashed derives a duration from 0 to most from an identity, in milliseconds.
func hashed(most time.Duration, identity ...string) time.Duration {
	h := fnv.New64a()
	for _, s := range identity {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	sum := h.Sum64()
	sum ^= sum >> 33 // FNV's low bits depend too much on the last letters
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return time.Duration(sum%uint64(most.Milliseconds()+1)) * time.Millisecond
}
