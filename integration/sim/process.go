package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/workers/system"
)

// Source is the stage name of AWS's event sources. Their calls may fail, but they never crash.
const Source = "source"

// process is one process of the product with its ports. The calls of a dead process have no effect
// and get no answer until the world ends.
type process struct {
	w     *World
	stage string
	name  string
	clock *turning
	skew  time.Duration
	dead  atomic.Bool
	died  chan struct{}                 // closed when it dies
	thaws atomic.Int64                  // until when it is frozen, in Unix ns
	kept  map[string][]message.Delivery // received, and held for the next receive; under w.mu
}

func (w *World) process(stage, name string, skew time.Duration) *process {
	p := &process{w: w, stage: stage, name: name, skew: skew, clock: new(turning), died: make(chan struct{})}
	p.clock.offset.Store(int64(skew))
	return p
}

// die crashes the process.
func (p *process) die() {
	if p.dead.CompareAndSwap(false, true) {
		close(p.died)
		p.w.mourn(p)
	}
}

// silence is what a call of a dead process returns. It blocks, except in the API: its client has
// given up by then, and its handler may hold a lock, for which virtual time does not wait.
func (p *process) silence(doing string) error {
	if p.stage != "api" {
		<-p.w.released
	}
	return fault.New(fault.Unavailable, context.Canceled, "%s in a dead process", doing)
}

// stall waits as a call without an answer does, and returns its error.
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

// thaw waits while the process is frozen.
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

// separateMost bounds how long separate waits.
const separateMost = time.Millisecond

// separate waits for less than a millisecond, as derived from facts and the process, so that calls
// of one instant happen one after the other and the same seed gives the same run however goroutines
// are scheduled. The caller must hold no lock: virtual time does not wait for one.
func (p *process) separate(facts ...string) {
	time.Sleep(time.Duration(p.who(facts...) % uint64(separateMost)))
}

// who returns a number derived from facts and the process.
func (p *process) who(facts ...string) uint64 { return hashed(p.w.o.Seed, append(facts, p.name)...) }

// locked reports whether the stage holds a lock while it reads what: the API does so for the tasks
// of a batch.
func (p *process) locked(what string) bool { return p.stage == "api" && what == contract.Tasks }

// call makes one call as planned. facts, op and what distinguish it from other calls of the
// instant.
func call[T any](ctx context.Context, p *process, op, what string, facts []string,
	do func(context.Context) (T, error)) (T, error) {
	var none T
	doing := op + " " + what
	if p.dead.Load() {
		return none, p.silence(doing)
	}
	p.thaw()
	request, _ := ctx.Value(requestKey{}).(string)
	facts = append(facts, op, what, request)
	if !p.locked(what) {
		p.separate(facts...)
	}
	if p.dead.Load() {
		return none, p.silence(doing)
	}
	if err := ctx.Err(); err != nil {
		return none, fault.New(fault.Unavailable, err, "%s", doing)
	}
	if p.w.isAway(p.stage) {
		return none, fault.New(fault.Unavailable, nil, "%s while away", doing)
	}
	f, after := p.w.chooseFault(p, op, what, p.who(facts...))
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
	switch f {
	case CrashAfter:
		p.die()
		return none, p.silence(doing)
	case FreezeAfter:
		p.thaws.Store(time.Now().Add(after).UnixNano())
		p.thaw()
		p.separate(facts...) // other processes thaw at this instant
	}
	switch {
	case p.dead.Load():
		return none, p.silence(doing)
	case f == Lost:
		return none, fault.New(fault.Unavailable, context.DeadlineExceeded, "%s", doing)
	}
	return v, err
}

func inject(ctx context.Context, p *process, op, what string, facts []string, do func(context.Context) error) error {
	_, err := call(ctx, p, op, what, facts, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// ports returns the process's ports.
func (p *process) ports() system.Ports {
	ports := system.Ports{
		Table: table{p}, Blobs: blobs{p}, Stream: stream{p}, Queues: queues{p}, Timers: timers{p},
		Clock: p.clock, Log: p.w.log,
	}
	if p.w.o.Indexed {
		ports.Search = store.NewSearchTable(p.clock, table{p})
	}
	return ports
}

type table struct{ p *process }

// about names the kind of item that a read is about.
func about(ref item.Ref) string {
	if ref.Table == contract.Jobs && len(ref.PK) > 5 && ref.PK[:5] == "blob#" {
		return "content"
	}
	if ref.Table == contract.Tasks && len(ref.PK) > 7 && ref.PK[:7] == "system#" {
		return "system"
	}
	return ref.Table
}

// namesOf, bodiesOf and distinguish return facts that distinguish calls.
func namesOf(refs []item.Ref) (names []string) {
	for _, r := range refs {
		names = append(names, r.PK, r.SK)
	}
	return names
}

func bodiesOf(out []message.Outgoing) (bodies []string) {
	for _, o := range out {
		bodies = append(bodies, o.Body)
	}
	return bodies
}

func distinguish(w item.Write) []string {
	set := maps.Clone(w.Set)
	delete(set, "nonce") // differs between runs
	return []string{w.PK, w.SK, fmt.Sprint(w.When), fmt.Sprint(set)}
}

func (t table) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	facts := []string{ref.PK, ref.SK}
	return call(ctx, t.p, memory.TableGet, about(ref), facts, func(ctx context.Context) (item.Item, error) {
		t.p.w.stick(t.p, ref)
		if err := t.p.w.hurt(t.p, ref); err != nil {
			return nil, err
		}
		return t.p.w.ledger.Get(ctx, ref)
	})
}

func (t table) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	return call(ctx, t.p, memory.TableGetMany, "", namesOf(refs), func(ctx context.Context) ([]item.Item, error) {
		if err := t.p.w.hurt(t.p, refs...); err != nil {
			return nil, err
		}
		return t.p.w.ledger.GetMany(ctx, refs)
	})
}

func (t table) Write(ctx context.Context, w item.Write) (item.Item, error) {
	return call(ctx, t.p, memory.TableWrite, w.Name, distinguish(w), func(ctx context.Context) (item.Item, error) {
		if err := t.p.w.hurt(t.p, w.Ref); err != nil {
			return nil, err
		}
		return t.p.w.ledger.Write(ctx, w)
	})
}

// Commit can safely be sent twice: the SDK's token makes it one write.
func (t table) Commit(ctx context.Context, writes ...item.Write) error {
	done, first := false, error(nil)
	name, facts := writes[0].Name, distinguish(writes[0])
	return inject(ctx, t.p, memory.TableCommit, name, facts, func(ctx context.Context) error {
		if !done {
			for _, w := range writes {
				if err := t.p.w.hurt(t.p, w.Ref); err != nil {
					return err
				}
			}
			done, first = true, t.p.w.ledger.Commit(ctx, writes...)
		}
		return first
	})
}

func (t table) Query(ctx context.Context, q item.Query) (item.Page, error) {
	of := q.Table + q.Index
	facts := []string{q.PK, q.Cursor}
	return call(ctx, t.p, memory.TableQuery, of, facts, func(ctx context.Context) (item.Page, error) {
		if err := t.p.w.hurt(t.p, item.Ref{Table: q.Table, PK: q.PK}); err != nil {
			return item.Page{}, err
		}
		return t.p.w.ledger.Query(ctx, q)
	})
}

// Identity asks nothing: no world of the simulation restores a table.
func (t table) Identity(_ context.Context, name string) (item.Identity, error) {
	return item.Identity{ID: name}, nil
}

type blobs struct{ p *process }

func (b blobs) Put(ctx context.Context, key string, body []byte) error {
	return inject(ctx, b.p, memory.BlobPut, "", []string{key},
		func(ctx context.Context) error { return b.p.w.memory.Blobs().Put(ctx, key, body) })
}

func (b blobs) Get(ctx context.Context, key string) ([]byte, error) {
	return call(ctx, b.p, memory.BlobGet, "", []string{key}, func(ctx context.Context) ([]byte, error) {
		return b.p.w.memory.Blobs().Get(ctx, key)
	})
}

func (b blobs) Delete(ctx context.Context, key string) error {
	return inject(ctx, b.p, memory.BlobDelete, "", []string{key},
		func(ctx context.Context) error { return b.p.w.memory.Blobs().Delete(ctx, key) })
}

type queues struct{ p *process }

type processKey struct{}

// apart holds back messages about a subject that another message of the same instant is about; they
// come with the next receive. Otherwise nothing would distinguish what the two do.
func (p *process) apart(queue string, got []message.Delivery) (now []message.Delivery) {
	seen := map[string]bool{}
	var later []message.Delivery
	for _, d := range got {
		about := subject(d.Body)
		if seen[about] {
			later = append(later, d)
			continue
		}
		seen[about] = true
		now = append(now, d)
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.kept == nil {
		p.kept = map[string][]message.Delivery{}
	}
	p.kept[queue] = append(p.kept[queue], later...)
	return now
}

// staggered makes firings due some nanoseconds apart: otherwise a worker with two firings of one
// job would handle both at the same instant.
func (p *process) staggered(queue string, got []message.Delivery) []message.Delivery {
	if p.stage != "worker" {
		return got
	}
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	out := slices.Clone(got)
	for i, d := range got {
		if f, err := message.Decode[message.Firing](d.Body); err == nil {
			f.DueAt = f.DueAt.Add(time.Duration(hashed(p.w.o.Seed, p.name, now, d.Body) % uint64(separateMost)))
			out[i].Body = message.Encode(f)
		}
	}
	return out
}

// takeBack returns the messages that were held back.
func (p *process) takeBack(queue string) []message.Delivery {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	got := p.kept[queue]
	delete(p.kept, queue)
	return got
}

// subject returns what a message of any kind is about.
func subject(body string) string {
	var b struct {
		Tenant string `json:"tenant"`
		JobID  string `json:"job_id"`
		Slice  string `json:"slice"`
	}
	_ = json.Unmarshal([]byte(body), &b) // an unreadable message has no subject
	return b.Tenant + "/" + b.JobID + "/" + b.Slice
}

// delivered notes the messages of receipts, which differ between runs.
func (w *World) delivered(got []message.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range got {
		w.receipts[d.Receipt] = d.Body
	}
}

// bodies returns the messages of receipts, sorted.
func (w *World) bodies(receipts ...string) (bodies []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range receipts {
		bodies = append(bodies, w.receipts[r])
	}
	slices.Sort(bodies)
	return bodies
}

func (q queues) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	return inject(ctx, q.p, memory.QueueSend, queue, bodiesOf(out), func(ctx context.Context) error {
		return q.p.w.send(ctx, queue, out)
	})
}

// Receive that happens twice leaves the messages visible, so that another process receives them,
// too. A receive without messages is no point.
func (q queues) Receive(ctx context.Context, queue string, max int, wait, visibility time.Duration) (
	[]message.Delivery, error,
) {
	p, real := q.p, q.p.w.memory.Queues()
	if p.dead.Load() {
		return nil, p.silence("receiving")
	}
	p.separate(memory.QueueReceive, queue) // the first to wait is served first
	got, err := p.takeBack(queue), error(nil)
	if len(got) == 0 {
		got, err = real.Receive(context.WithValue(ctx, processKey{}, p), queue, max, wait, visibility)
	}
	if p.dead.Load() {
		return nil, p.silence("receiving")
	}
	if err != nil || len(got) == 0 {
		return got, err
	}
	got = p.apart(queue, got)
	p.w.delivered(got)
	got = p.staggered(queue, got)
	repeated := false
	return call(ctx, p, memory.QueueReceive, queue, nil, func(ctx context.Context) ([]message.Delivery, error) {
		if repeated {
			for _, d := range got {
				_ = real.SetVisibility(ctx, queue, d.Receipt, 0)
			}
		}
		repeated = true
		return got, nil
	})
}

func (q queues) Delete(ctx context.Context, queue string, receipts ...string) error {
	return inject(ctx, q.p, memory.QueueDelete, queue, q.p.w.bodies(receipts...),
		func(ctx context.Context) error { return q.p.w.memory.Queues().Delete(ctx, queue, receipts...) })
}

func (q queues) SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error {
	return inject(ctx, q.p, memory.QueueVisibility, queue, q.p.w.bodies(receipt), func(ctx context.Context) error {
		return q.p.w.memory.Queues().SetVisibility(ctx, queue, receipt, d)
	})
}

func (q queues) Depth(ctx context.Context, queue string) (message.Depth, error) {
	return call(ctx, q.p, memory.QueueDepth, queue, nil, func(ctx context.Context) (message.Depth, error) {
		return q.p.w.memory.Queues().Depth(ctx, queue)
	})
}

type timers struct{ p *process }

func (t timers) Arm(ctx context.Context, timer message.Timer) error {
	return inject(ctx, t.p, memory.TimerArm, "", []string{timer.Name},
		func(ctx context.Context) error { return t.p.w.memory.Timers().Arm(ctx, timer) })
}

// stream is the jobs table's stream as its event source reads it: it continues where the previous
// reader stopped, and gives records once more after a repeated read.
type stream struct{ p *process }

func (s stream) Stream(ctx context.Context, after string, max int, wait time.Duration) ([]item.Change, error) {
	w, p := s.p.w, s.p
	after = w.checkpoint(after)
	changes, err := w.memory.Table().Stream(ctx, after, max, wait)
	if err != nil || len(changes) == 0 {
		return changes, err
	}
	p.separate(memory.TableStream) // all writes of one transaction are in the stream by then
	if changes, err = w.memory.Table().Stream(ctx, after, max, 0); err != nil {
		return changes, err
	}
	repeated := false
	return call(ctx, p, memory.TableStream, "", nil, func(context.Context) ([]item.Change, error) {
		if repeated {
			w.rewind(after)
		}
		repeated = true
		return changes, nil
	})
}
