package sim

import (
	"context"
	"sync/atomic"
	"time"

	"punctual/integration/system"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
)

// Source is what feeds the stages: AWS's event sources. Its calls may fail, but it does not crash.
const Source = "source"

// process is one process of the product: its ports, and whether it still lives. Once it is
// dead its calls have no effect and are not answered, until the world ends.
type process struct {
	w     *World
	stage string
	name  string
	clock clock.Clock
	skew  time.Duration
	dead  atomic.Bool
	died  chan struct{} // closed when it dies
	thaws atomic.Int64  // until when it stands still, in Unix ns
}

func (w *World) process(stage, name string, skew time.Duration) *process {
	return &process{w: w, stage: stage, name: name, skew: skew, clock: clock.Skewed{Offset: skew}, died: make(chan struct{})}
}

// die stops the process dead.
func (p *process) die() {
	if p.dead.CompareAndSwap(false, true) {
		close(p.died)
		p.w.mourn(p)
	}
}

// silence is all the answer that a dead process gets. The API's client knows by then, and its
// handler may hold a lock, for which virtual time does not wait: it may end at once.
func (p *process) silence(doing string) error {
	if p.stage != "api" {
		<-p.w.released
	}
	return fault.New(fault.Unavailable, context.Canceled, "%s in a dead process", doing)
}

// stall waits, as a call does that is not answered, and returns the error that its end is.
func (p *process) stall(ctx context.Context, doing string, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return fault.New(fault.Unavailable, context.DeadlineExceeded, "%s without an answer", doing)
	case <-ctx.Done():
		return fault.New(fault.Unavailable, ctx.Err(), "%s", doing)
	case <-p.w.released:
		return fault.New(fault.Unavailable, context.Canceled, "%s", doing)
	}
}

// thaw waits for as long as the process stands still.
func (p *process) thaw() {
	if d := time.Until(time.Unix(0, p.thaws.Load())); p.thaws.Load() > 0 && d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.w.released:
		}
	}
}

// call does one call as the plan has it.
func call[T any](ctx context.Context, p *process, op, what string, do func(context.Context) (T, error)) (T, error) {
	var none T
	doing := op + " " + what
	if p.dead.Load() {
		return none, p.silence(doing)
	}
	p.thaw()
	if err := ctx.Err(); err != nil {
		return none, fault.New(fault.Unavailable, err, "%s", doing)
	}
	f, after := p.w.judge(p, op, what)
	switch f {
	case Freeze:
		p.thaws.Store(time.Now().Add(after).UnixNano())
		p.thaw()
		if err := ctx.Err(); err != nil {
			return none, fault.New(fault.Unavailable, err, "%s", doing)
		}
	case Fail:
		return none, fault.New(fault.Throttled, nil, "%s", doing)
	case Hang:
		return none, p.stall(ctx, doing, after)
	case Slow:
		if err := p.stall(ctx, doing, after); ctx.Err() != nil {
			return none, err
		}
	case Late:
		p.w.later(func() { _, _ = do(context.Background()) }, after)
		return none, fault.New(fault.Unavailable, context.DeadlineExceeded, "%s", doing)
	case CrashBefore:
		p.die()
		return none, p.silence(doing)
	case Twice:
		_, _ = do(ctx)
	}
	if p.dead.Load() {
		return none, p.silence(doing)
	}
	v, err := do(ctx)
	switch {
	case f == CrashAfter:
		p.die()
		return none, p.silence(doing)
	case p.dead.Load():
		return none, p.silence(doing)
	case f == Lost:
		return none, fault.New(fault.Unavailable, context.DeadlineExceeded, "%s", doing)
	}
	return v, err
}

func act(ctx context.Context, p *process, op, what string, do func(context.Context) error) error {
	_, err := call(ctx, p, op, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// ports are the process's doors to the world.
func (p *process) ports() system.Ports {
	return system.Ports{
		Table: table{p}, Blobs: blobs{p}, Stream: stream{p}, Queues: queues{p}, Timers: timers{p},
		Clock: p.clock, Log: p.w.log,
	}
}

type table struct{ p *process }

// about names what a read is about: which sort of item.
func about(ref item.Ref) string {
	if ref.Table == contract.Jobs && len(ref.PK) > 5 && ref.PK[:5] == "blob#" {
		return "content"
	}
	if ref.Table == contract.Tasks && len(ref.PK) > 7 && ref.PK[:7] == "system#" {
		return "system"
	}
	return ref.Table
}

func (t table) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	return call(ctx, t.p, "table.get", about(ref), func(ctx context.Context) (item.Item, error) { return t.p.w.ledger.Get(ctx, ref) })
}

func (t table) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	return call(ctx, t.p, "table.get-many", "", func(ctx context.Context) ([]item.Item, error) { return t.p.w.ledger.GetMany(ctx, refs) })
}

func (t table) Write(ctx context.Context, w item.Write) (item.Item, error) {
	return call(ctx, t.p, "table.write", w.Name, func(ctx context.Context) (item.Item, error) { return t.p.w.ledger.Write(ctx, w) })
}

// Commit is the one write that may be sent twice unharmed: the SDK's token makes it one.
func (t table) Commit(ctx context.Context, writes ...item.Write) error {
	done, first := false, error(nil)
	return act(ctx, t.p, "table.commit", writes[0].Name, func(ctx context.Context) error {
		if !done {
			done, first = true, t.p.w.ledger.Commit(ctx, writes...)
		}
		return first
	})
}

func (t table) Query(ctx context.Context, q item.Query) (item.Page, error) {
	return call(ctx, t.p, "table.query", q.Table+q.Index, func(ctx context.Context) (item.Page, error) { return t.p.w.ledger.Query(ctx, q) })
}

type blobs struct{ p *process }

func (b blobs) Put(ctx context.Context, key string, body []byte) error {
	return act(ctx, b.p, "blob.put", "", func(ctx context.Context) error { return b.p.w.memory.Blobs().Put(ctx, key, body) })
}

func (b blobs) Get(ctx context.Context, key string) ([]byte, error) {
	return call(ctx, b.p, "blob.get", "", func(ctx context.Context) ([]byte, error) { return b.p.w.memory.Blobs().Get(ctx, key) })
}

func (b blobs) Delete(ctx context.Context, key string) error {
	return act(ctx, b.p, "blob.delete", "", func(ctx context.Context) error { return b.p.w.memory.Blobs().Delete(ctx, key) })
}

type queues struct{ p *process }

func (q queues) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	return act(ctx, q.p, "queue.send", queue, func(ctx context.Context) error { return q.p.w.memory.Queues().Send(ctx, queue, out...) })
}

// Receive that happens twice: what was received stays visible, and comes to somebody else too.
// One that brings nothing is no point.
func (q queues) Receive(ctx context.Context, queue string, max int, wait, visibility time.Duration) ([]message.Delivery, error) {
	p, real := q.p, q.p.w.memory.Queues()
	if p.dead.Load() {
		return nil, p.silence("receiving")
	}
	got, err := real.Receive(ctx, queue, max, wait, visibility)
	if p.dead.Load() {
		return nil, p.silence("receiving")
	}
	if err != nil || len(got) == 0 {
		return got, err
	}
	again := false
	return call(ctx, p, "queue.receive", queue, func(ctx context.Context) ([]message.Delivery, error) {
		if again {
			for _, d := range got {
				_ = real.SetVisibility(ctx, queue, d.Receipt, 0)
			}
		}
		again = true
		return got, nil
	})
}

func (q queues) Delete(ctx context.Context, queue string, receipts ...string) error {
	return act(ctx, q.p, "queue.delete", queue, func(ctx context.Context) error { return q.p.w.memory.Queues().Delete(ctx, queue, receipts...) })
}

func (q queues) SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error {
	return act(ctx, q.p, "queue.visibility", queue, func(ctx context.Context) error {
		return q.p.w.memory.Queues().SetVisibility(ctx, queue, receipt, d)
	})
}

func (q queues) Depth(ctx context.Context, queue string) (message.Depth, error) {
	return call(ctx, q.p, "queue.depth", queue, func(ctx context.Context) (message.Depth, error) { return q.p.w.memory.Queues().Depth(ctx, queue) })
}

type timers struct{ p *process }

func (t timers) Arm(ctx context.Context, timer message.Timer) error {
	return act(ctx, t.p, "timer.arm", "", func(ctx context.Context) error { return t.p.w.memory.Timers().Arm(ctx, timer) })
}

func (t timers) Disarm(ctx context.Context, name string) error {
	return act(ctx, t.p, "timer.disarm", "", func(ctx context.Context) error { return t.p.w.memory.Timers().Disarm(ctx, name) })
}

// stream is the jobs table's stream as its event source reads it: it goes on where the one
// before it had come to, and what is read twice is given once more later.
type stream struct{ p *process }

func (s stream) Stream(ctx context.Context, after string, max int, wait time.Duration) ([]item.Change, error) {
	w, p := s.p.w, s.p
	after = w.checkpoint(after)
	changes, err := w.memory.Table().Stream(ctx, after, max, wait)
	if err != nil || len(changes) == 0 {
		return changes, err
	}
	again := false
	return call(ctx, p, "table.stream", "", func(context.Context) ([]item.Change, error) {
		if again {
			w.rewind(after)
		}
		again = true
		return changes, nil
	})
}
