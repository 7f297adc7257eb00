package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// The operations that Options.Faults sees.
const (
	TableGet        = "table.get"
	TableGetMany    = "table.get-many"
	TableWrite      = "table.write"
	TableCommit     = "table.commit"
	TableQuery      = "table.query"
	TableScan       = "table.scan"
	TableIdentity   = "table.identity"
	TableStream     = "table.stream"
	QueueSend       = "queue.send" // each batch of ten
	QueueReceive    = "queue.receive"
	QueueDelete     = "queue.delete"
	QueueVisibility = "queue.visibility"
	QueueDepth      = "queue.depth"
	TimerArm        = "timer.arm"
	TimerFire       = "timer.fire" // the scheduler's own send to the dispatch queue
	BlobPut         = "blob.put"
	BlobGet         = "blob.get"
	BlobDelete      = "blob.delete"
	SecretResolve   = "secret.resolve"
	SecretHosts     = "secret.hosts"
	FunctionInvoke  = "function.invoke"
	FunctionAllowed = "function.allowed"

	TenantQueueAllowed = "tenant-queue.allowed"
	TenantQueueSend    = "tenant-queue.send"
)

// Call is one call of an in-memory implementation, as Options.Faults sees it.
type Call struct {
	Op   string
	N    int64      // counts calls of this Op since the hook was set, from 1
	Ref  item.Ref   // of a table call; the first of several
	Refs []item.Ref // of a commit: all of them
	Name string     // the write's name, the queue, the timer, the blob's key, the secret's ARN, or the function
	Size int        // of several: how many items, messages or receipts
}

// Fault is what goes wrong with a call; the zero Fault is nothing.
type Fault struct {
	Wait    time.Duration      // first of all; when the context ends meanwhile the call ends without effect
	Fail    fault.Kind         // the call fails with that kind, without effect
	Hang    bool               // no answer and no effect until the context ends
	Lost    bool               // the call takes effect, then fails: of kind Fail, or Unavailable
	Twice   bool               // a single write, send, receive, stream read or firing happens twice; the second answers
	Entries map[int]fault.Kind // of a send: entries of its batch of ten that fail, by index in the call
}

type faults struct {
	ask atomic.Pointer[func(Call) Fault]
	mu  sync.Mutex
	n   map[string]int64
}

// SetFaults replaces Options.Faults and restarts Call.N at 1; nil makes every call succeed.
func (w *World) SetFaults(ask func(Call) Fault) {
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	w.faults.n = map[string]int64{}
	if ask == nil {
		w.faults.ask.Store(nil)
		return
	}
	w.faults.ask.Store(&ask)
}

// enter asks for the fault of a call and plays what comes before its effect. With an error the call
// must have no effect; otherwise Fault.after returns the call's error.
func (w *World) enter(ctx context.Context, c Call) (Fault, error) {
	if err := ctx.Err(); err != nil {
		return Fault{}, fault.New(fault.Unavailable, err, "%s %s", c.Op, c.Name)
	}
	ask := w.faults.ask.Load()
	if ask == nil {
		return Fault{}, nil
	}
	w.faults.mu.Lock()
	w.faults.n[c.Op]++
	c.N = w.faults.n[c.Op]
	w.faults.mu.Unlock()

	f := (*ask)(c)
	if f.Hang {
		select {
		case <-ctx.Done():
			return f, fault.New(fault.Unavailable, ctx.Err(), "%s %s", c.Op, c.Name)
		case <-w.closed:
			return f, fault.New(fault.Unavailable, context.Canceled, "%s %s", c.Op, c.Name)
		}
	}
	if err := w.sleep(ctx, f.Wait); err != nil {
		return f, fault.New(fault.Unavailable, err, "%s %s", c.Op, c.Name)
	}
	if f.Fail != "" && !f.Lost {
		return f, fault.New(f.Fail, nil, "%s %s", c.Op, c.Name)
	}
	return f, nil
}

// after returns the error of a call that took effect: nil unless its answer is lost.
func (f Fault) after(c Call) error {
	if !f.Lost {
		return nil
	}
	kind := f.Fail
	if kind == "" {
		kind = fault.Unavailable
	}
	return fault.New(kind, context.DeadlineExceeded, "%s %s", c.Op, c.Name)
}
