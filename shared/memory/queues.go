package memory

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
	"punctual/shared/text"
)

// Limits of SQS.
const (
	maxBody       = 1 << 20 // of a message and of a batch, in bytes
	maxBatch      = 10
	maxWait       = 20 * time.Second
	maxVisibility = 12 * time.Hour
	maxGroup      = 128
)

// Queues holds every queue of a World.
type Queues struct {
	world  *World
	queues map[string]*queue
	ids    atomic.Int64
}

func newQueues(w *World, specs []contract.Queue) *Queues {
	qs := &Queues{world: w, queues: map[string]*queue{}}
	for _, s := range specs {
		qs.queues[s.Name] = &queue{Queue: s, byID: map[string]*stored{}, leaving: map[string]*stored{}}
	}
	for _, s := range specs {
		if s.DeadLetter == "" {
			continue
		}
		if qs.queues[s.DeadLetter] == nil {
			panic(fmt.Sprintf("queue %s names %s as its dead-letter queue, which is not among the queues", s.Name,
				s.DeadLetter))
		}
		qs.queues[s.DeadLetter].source = true
	}
	return qs
}

// stop stops the alarms; the World's closing ends the waits.
func (qs *Queues) stop() {
	for _, q := range qs.queues {
		q.mu.Lock()
		if q.alarm != nil {
			q.alarm.Stop()
			q.alarm = nil
		}
		q.mu.Unlock()
	}
}

func (qs *Queues) of(name string) (*queue, error) {
	if q := qs.queues[name]; q != nil {
		return q, nil
	}
	return nil, fault.New(fault.NotFound, nil, "queue %q", name)
}

// idForm looks like SQS's ids.
const idForm = "00000000-0000-4000-8000-%012x"

// nextID returns an id that is the same in every run.
func (qs *Queues) nextID() string { return fmt.Sprintf(idForm, qs.ids.Add(1)) }

// Send enqueues any number of messages. Those that failed are in a *message.Unsent, by index; the
// others are sent.
func (qs *Queues) Send(ctx context.Context, name string, out ...message.Outgoing) error {
	q, err := qs.of(name)
	if err != nil {
		return err
	}
	failed := map[int]error{}
	for from := 0; from < len(out); {
		to, bytes := from, 0
		for to < len(out) && to-from < maxBatch && (to == from || bytes+len(out[to].Body) <= maxBody) {
			bytes += len(out[to].Body)
			to++
		}
		maps.Copy(failed, qs.sendBatch(ctx, q, out[from:to], from, bytes))
		from = to
	}
	if len(failed) > 0 {
		return &message.Unsent{Failed: failed}
	}
	return nil
}

// sendBatch makes one request; base is the index of its first message in the call.
func (qs *Queues) sendBatch(ctx context.Context, q *queue, out []message.Outgoing, base, bytes int) map[int]error {
	failed := map[int]error{}
	all := func(err error) map[int]error {
		for i := range out {
			failed[base+i] = err
		}
		return failed
	}
	c := Call{Op: QueueSend, Name: q.Name, Size: len(out)}
	f, err := qs.world.enter(ctx, c)
	if err != nil {
		return all(err)
	}
	qs.world.queueCall(bytes)
	now := qs.world.now()
	sent := time.UnixMilli(now.UnixMilli()).UTC()
	arrivals := make([]arrival, 0, maxBatch)
	for i, o := range out {
		if kind := f.Entries[base+i]; kind != "" {
			failed[base+i] = fault.New(kind, nil, "sending to %s", q.Name)
			continue
		}
		if err := checkOutgoing(q.Name, o); err != nil {
			failed[base+i] = err
			continue
		}
		for range copies(f.Twice) {
			arrivals = append(arrivals, arrival{&stored{body: o.Body, group: o.Group, sentAt: sent},
				o.Delay.Truncate(time.Second)})
		}
	}
	if err := qs.arrive(q, now, arrivals); err != nil {
		return all(err)
	}
	if err := f.after(c); err != nil {
		return all(err)
	}
	return failed
}

// arrival is a message that a queue gets, and its delay. Without an id it gets one.
type arrival struct {
	*stored
	delay time.Duration
}

// arrive enqueues messages, all or none.
func (qs *Queues) arrive(q *queue, now time.Time, arrivals []arrival) error {
	return qs.move(q, now, arrivals, nil, nil)
}

// move enqueues messages, for which others leave the queue from.
func (qs *Queues) move(q *queue, now time.Time, arrivals []arrival, from *queue, left []*stored) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range arrivals {
		if a.id == "" {
			a.id = qs.nextID() // in the order of the queue
		}
	}
	err := qs.world.keep(func() []kept {
		var facts []kept
		for _, l := range left {
			facts = append(facts, goneFact(from.Name, l))
		}
		for _, a := range arrivals {
			visible := time.Time{}
			if a.delay > 0 {
				visible = now.Add(a.delay)
			}
			facts = append(facts, messageFact(q.Name, a.stored, visible))
		}
		return facts
	})
	if err != nil {
		return fault.New(fault.Unavailable, err, "sending to %s", q.Name)
	}
	defer qs.world.done()
	for _, a := range arrivals {
		q.put(a.stored, now, a.delay)
	}
	if qs.world.log != nil {
		for _, l := range left {
			delete(from.leaving, l.id)
		}
	}
	return nil
}

func copies(twice bool) int {
	if twice {
		return 2
	}
	return 1
}

func checkOutgoing(name string, o message.Outgoing) error {
	switch {
	case len(o.Body) > maxBody:
		return fault.New(fault.TooLarge, nil, "sending to %s: the body has %d bytes, %d are allowed", name, len(o.Body),
			maxBody)
	case !text.Allowed(o.Body):
		return fault.New(fault.Invalid, nil, "sending to %s: the body is empty or holds characters that SQS refuses",
			name)
	case o.Delay < 0 || o.Delay > contract.MaxDelay:
		return fault.New(fault.Invalid, nil, "sending to %s: delay %s is outside 0 to %s", name, o.Delay,
			contract.MaxDelay)
	case len(o.Group) > maxGroup || strings.ContainsFunc(o.Group, notInGroup):
		return fault.New(fault.Invalid, nil,
			"sending to %s: a group has at most %d storedHeap, digits and punctuation marks of ASCII", name, maxGroup)
	}
	return nil
}

// notInGroup reports whether SQS refuses a character in a group: it takes storedHeap, digits and
// punctuation of ASCII.
func notInGroup(r rune) bool { return r <= ' ' || r > '~' }

// Receive returns up to max messages and waits up to wait for the first; none is no error. They
// stay invisible for the visibility timeout, 0 being the queue's default.
func (qs *Queues) Receive(ctx context.Context, name string, max int, wait,
	visibility time.Duration) ([]message.Delivery, error) {
	q, err := qs.of(name)
	if err != nil {
		return nil, err
	}
	if max < 1 || max > maxBatch || wait < 0 || wait > maxWait || visibility < 0 || visibility > maxVisibility {
		return nil, fault.New(fault.Invalid, nil, "receiving %d from %s, waiting %s, for %s: outside SQS's limits", max,
			name, wait, visibility)
	}
	c := Call{Op: QueueReceive, Name: name, Size: max}
	f, err := qs.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	if visibility == 0 {
		visibility = q.Visibility
	}
	deadline := qs.world.now().Add(wait)
	for {
		out, dead, err := q.receive(ctx, qs.world, max, wait, visibility, f.Twice)
		if len(dead) > 0 {
			err = errors.Join(err, qs.bury(q, dead))
		}
		if err == nil && len(out) == 0 && len(dead) > 0 {
			wait = deadline.Sub(qs.world.now())
			continue // the redrive policy removed all of them: nothing was received yet
		}
		bytes := 0
		for _, d := range out {
			bytes += len(d.Body)
		}
		qs.world.queueCall(bytes)
		if err != nil {
			return nil, fault.New(fault.Unavailable, err, "receiving from %s", name)
		}
		if err := f.after(c); err != nil {
			return nil, err
		}
		return out, nil
	}
}

// bury moves messages that were received too often to the dead-letter queue. They keep id and age.
func (qs *Queues) bury(from *queue, dead []*stored) error {
	var arrivals []arrival
	for _, l := range dead {
		arrivals = append(arrivals, arrival{stored: &stored{id: l.id, body: l.body, group: l.group, sentAt: l.sentAt,
			receives: l.receives, source: from.Name}})
	}
	return qs.move(qs.queues[from.DeadLetter], qs.world.now(), arrivals, from, dead)
}

// receipt returns a receipt that is valid until the message is received once more.
func receipt(l *stored) string { return l.id + "#" + strconv.Itoa(l.receives) }

// held returns the message of a receipt: nil if it is deleted or was received since.
func (q *queue) held(receipt string) (*stored, error) {
	id, n, ok := strings.Cut(receipt, "#")
	receives, err := strconv.Atoi(n)
	if !ok || err != nil || len(id) != 36 {
		return nil, errors.New("ReceiptHandleIsInvalid")
	}
	if l := q.byID[id]; l != nil && l.receives == receives {
		return l, nil
	}
	return nil, nil
}

// Delete deletes messages. One that is deleted already, or was received by someone else since, is
// skipped without an error.
func (qs *Queues) Delete(ctx context.Context, name string, receipts ...string) error {
	q, err := qs.of(name)
	if err != nil {
		return err
	}
	for from := 0; from < len(receipts); from += maxBatch {
		batch := receipts[from:min(from+maxBatch, len(receipts))]
		c := Call{Op: QueueDelete, Name: name, Size: len(batch)}
		f, err := qs.world.enter(ctx, c)
		if err != nil {
			return err
		}
		qs.world.queueCall(0)
		if err := qs.remove(q, batch); err != nil {
			return err
		}
		if err := f.after(c); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the messages of receipts. A receipt that is none is a fault.Invalid, after the others.
func (qs *Queues) remove(q *queue, receipts []string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []*stored
	var facts []kept
	var bad error
	for _, r := range receipts {
		l, err := q.held(r)
		if err != nil {
			bad = fault.New(fault.Invalid, err, "deleting from %s", q.Name)
		} else if l != nil && !slices.Contains(all, l) {
			all = append(all, l)
			facts = append(facts, goneFact(q.Name, l))
		}
	}
	if len(all) == 0 {
		return bad
	}
	if err := qs.world.keep(func() []kept { return facts }); err != nil {
		return fault.New(fault.Unavailable, err, "deleting from %s", q.Name)
	}
	defer qs.world.done()
	for _, l := range all {
		q.remove(l)
	}
	return bad
}

// SetVisibility makes a received message visible after d from now, at once for 0. A message that is
// not in flight with this receipt is a fault.Invalid.
func (qs *Queues) SetVisibility(ctx context.Context, name, receipt string, d time.Duration) error {
	q, err := qs.of(name)
	if err != nil {
		return err
	}
	c := Call{Op: QueueVisibility, Name: name}
	f, err := qs.world.enter(ctx, c)
	if err != nil {
		return err
	}
	if d < 0 || d > maxVisibility {
		return fault.New(fault.Invalid, nil, "setting visibility %s in %s: 0 to %s is allowed", d, name, maxVisibility)
	}
	qs.world.queueCall(0)
	if err := qs.setVisibility(q, receipt, d); err != nil {
		return err
	}
	return f.after(c)
}

func (qs *Queues) setVisibility(q *queue, receipt string, d time.Duration) error {
	now := qs.world.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ripen(now)
	l, err := q.held(receipt)
	if err == nil && (l == nil || !l.flying) {
		err = errors.New("MessageNotInflight")
	}
	if err != nil {
		return fault.New(fault.Invalid, err, "setting visibility in %s", q.Name)
	}
	if err := qs.world.keep(func() []kept { return []kept{movedFact(q.Name, l, now.Add(d))} }); err != nil {
		return fault.New(fault.Unavailable, err, "setting visibility in %s", q.Name)
	}
	defer qs.world.done()
	l.visibleAt = now.Add(d)
	heap.Fix(&q.later, l.at)
	q.watch(now)
	return nil
}

// Depth returns how many messages a queue holds now; unlike SQS, the count is exact.
func (qs *Queues) Depth(ctx context.Context, name string) (message.Depth, error) {
	q, err := qs.of(name)
	if err != nil {
		return message.Depth{}, err
	}
	c := Call{Op: QueueDepth, Name: name}
	f, err := qs.world.enter(ctx, c)
	if err != nil {
		return message.Depth{}, err
	}
	qs.world.queueCall(0)
	q.mu.Lock()
	q.ripen(qs.world.now())
	d := message.Depth{Visible: q.visible, InFlight: q.inFlight, Delayed: len(q.later) - q.inFlight,
		OldestAt: q.oldest()}
	q.mu.Unlock()
	return d, f.after(c)
}
