package memory

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/message"
)

// queue holds messages that are visible, delayed or in flight. Each is in exactly one of ready
// (visible) and later (delayed or in flight).
type queue struct {
	contract.Queue
	source bool // some queue's redrive policy names this one

	mu       sync.Mutex
	byID     map[string]*stored
	leaving  map[string]*stored // on the way to another queue, where a log is; guarded by its lock
	ready    []*stored          // oldest first, from head on; may hold deleted ones
	head     int
	visible  int        // in ready and not deleted
	later    storedHeap // delayed and in flight, by when they become visible
	inFlight int
	n        int64 // numbers messages, to keep their order
	waiters  []chan struct{}
	alarm    *time.Timer // rings when the first of later becomes visible; only while someone waits
	alarmAt  time.Time
	alarmN   int64 // number of the current alarm
}

// stored is a message in a queue.
type stored struct {
	id, body, group, source string
	sentAt, visibleAt       time.Time
	receives                int
	n                       int64
	at                      int // index in later; −1 elsewhere
	flying, gone            bool
}

// maxInFlight is how many messages in flight make SQS return none.
const maxInFlight = 120_000

// put enqueues a message. The queue is locked.
func (q *queue) put(l *stored, now time.Time, delay time.Duration) {
	q.n++
	l.n, l.at = q.n, -1
	q.byID[l.id] = l
	if delay > 0 {
		l.visibleAt = now.Add(delay)
		heap.Push(&q.later, l)
		q.watch(now)
		return
	}
	q.show(l)
}

// show makes a message visible and wakes one waiter.
func (q *queue) show(l *stored) {
	l.flying = false
	q.ready = append(q.ready, l)
	q.visible++
	q.wake()
}

// ripen makes every message visible whose delay or visibility timeout has ended.
func (q *queue) ripen(now time.Time) {
	for len(q.later) > 0 && !q.later[0].visibleAt.After(now) {
		l := heap.Pop(&q.later).(*stored)
		if l.flying {
			q.inFlight--
		}
		q.show(l)
	}
}

// take receives up to most messages. dead holds those that the redrive policy removes. With stays,
// received messages stay visible, to be received once more. note gets what becomes of each.
func (q *queue) take(now time.Time, most int, visibility time.Duration, stays bool,
	note func(kept)) (out []message.Delivery, dead []*stored) {
	q.ripen(now)
	var seen []*stored
	for len(out) < most && q.inFlight < maxInFlight {
		l := q.pop()
		if l == nil {
			break
		}
		if now.Sub(l.sentAt) > q.Retention && q.Retention > 0 {
			q.forget(l)
			note(goneFact(q.Name, l))
			continue
		}
		if q.DeadLetter != "" && q.MaxReceives > 0 && l.receives >= q.MaxReceives {
			q.forget(l)
			dead = append(dead, l)
			continue
		}
		l.receives++
		out = append(out, message.Delivery{
			ID: l.id, Receipt: receipt(l), Body: l.body, Group: l.group, Receives: l.receives, SentAt: l.sentAt,
			Source: l.source,
		})
		if stays {
			seen = append(seen, l)
			note(movedFact(q.Name, l, l.visibleAt))
			continue
		}
		l.flying, l.visibleAt = true, now.Add(visibility)
		note(movedFact(q.Name, l, l.visibleAt))
		q.inFlight++
		heap.Push(&q.later, l)
	}
	for _, l := range seen {
		q.show(l)
	}
	return out, dead
}

// taken is take, written down. Messages whose receive cannot be written are received again later.
func (q *queue) taken(w *World, now time.Time, most int, visibility time.Duration,
	stays bool) (out []message.Delivery, dead []*stored, err error) {
	if w.log == nil {
		out, dead = q.take(now, most, visibility, stays, func(kept) {})
		return out, dead, nil
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	var facts []kept
	out, dead = q.take(now, most, visibility, stays, func(k kept) { facts = append(facts, k) })
	for _, l := range dead {
		q.leaving[l.id] = l
	}
	return out, dead, w.log.write(facts)
}

// oldest is when the oldest visible message became visible, zero if there is none.
func (q *queue) oldest() time.Time {
	for _, l := range q.ready[q.head:] {
		if l == nil || l.gone {
			continue
		}
		if l.visibleAt.After(l.sentAt) {
			return l.visibleAt
		}
		return l.sentAt
	}
	return time.Time{}
}

// pop removes the oldest visible message from ready, nil if there is none.
func (q *queue) pop() *stored {
	for q.head < len(q.ready) {
		l := q.ready[q.head]
		q.ready[q.head] = nil
		q.head++
		if q.head == len(q.ready) {
			q.ready, q.head = q.ready[:0], 0
		} else if q.head >= 1024 && q.head > len(q.ready)/2 {
			n := copy(q.ready, q.ready[q.head:])
			clear(q.ready[n:])
			q.ready, q.head = q.ready[:n], 0
		}
		if !l.gone {
			q.visible--
			return l
		}
	}
	return nil
}

// forget deletes a message that pop has returned.
func (q *queue) forget(l *stored) {
	l.gone = true
	delete(q.byID, l.id)
}

// remove deletes a message wherever it is.
func (q *queue) remove(l *stored) {
	if l.at >= 0 {
		heap.Remove(&q.later, l.at)
	} else {
		q.visible--
	}
	if l.flying {
		q.inFlight--
		if q.visible > 0 {
			q.wake() // a waiter may have waited for fewer messages in flight
		}
	}
	q.forget(l)
}

// wake makes one waiter look once more.
func (q *queue) wake() {
	if len(q.waiters) == 0 {
		return
	}
	close(q.waiters[0])
	q.waiters[0] = nil
	q.waiters = q.waiters[1:]
}

// watch sets the alarm for the next message that becomes visible, if anybody waits for it.
func (q *queue) watch(now time.Time) {
	if len(q.waiters) == 0 || len(q.later) == 0 {
		return
	}
	next := q.later[0].visibleAt
	if q.alarm != nil && !next.Before(q.alarmAt) {
		return
	}
	if q.alarm != nil {
		q.alarm.Stop()
	}
	q.alarmN++
	n := q.alarmN
	q.alarmAt = next
	q.alarm = time.AfterFunc(next.Sub(now), func() { q.ring(n) })
}

// ring handles the alarm: it wakes one waiter, which calls ripen.
func (q *queue) ring(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.alarm == nil || q.alarmN != n {
		return // the alarm was replaced meanwhile
	}
	q.alarm = nil
	q.wake()
}

// waitUp adds the caller to the waiters; the channel is closed when it should look.
func (q *queue) waitUp(now time.Time) chan struct{} {
	ch := make(chan struct{})
	q.waiters = append(q.waiters, ch)
	q.watch(now)
	return ch
}

// giveUp removes a waiter; if it was woken already, it wakes another.
func (q *queue) giveUp(ch chan struct{}, now time.Time) {
	for i, w := range q.waiters {
		if w == ch {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			return
		}
	}
	q.wake()
	q.watch(now)
}

// receive waits until there is a message, or the wait or the context has ended, or the World is
// closed.
func (q *queue) receive(ctx context.Context, w *World, most int, wait, visibility time.Duration,
	stays bool) (out []message.Delivery, dead []*stored, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var over *time.Timer
	for {
		now := w.now()
		if out, dead, err = q.taken(w, now, most, visibility, stays); err != nil {
			return nil, dead, err
		}
		if len(out) > 0 || len(dead) > 0 || wait <= 0 {
			if q.visible > 0 && q.inFlight < maxInFlight {
				q.wake() // there may be more messages than one receive takes
			}
			q.watch(now)
			return out, dead, nil
		}
		if over == nil {
			over = time.NewTimer(wait)
			defer over.Stop() //nolint:revive // once: over is nil only the first time round
		}
		ch := q.waitUp(now)
		q.mu.Unlock()
		woken := false
		select {
		case <-ch:
			woken = true
			if w.beforeReceive != nil {
				w.beforeReceive(ctx, q.Name)
			}
		case <-over.C:
		case <-w.closed:
			err = context.Canceled
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		if !woken {
			q.giveUp(ch, w.now())
			return nil, nil, err
		}
	}
}

// storedHeap is a heap by when a message becomes visible, then by when it was sent.
type storedHeap []*stored

func (h storedHeap) Len() int { return len(h) }
func (h storedHeap) Less(i, j int) bool {
	if !h[i].visibleAt.Equal(h[j].visibleAt) {
		return h[i].visibleAt.Before(h[j].visibleAt)
	}
	return h[i].n < h[j].n
}
func (h storedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *storedHeap) Push(v any) {
	l := v.(*stored)
	l.at = len(*h)
	*h = append(*h, l)
}
func (h *storedHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.at = -1
	return l
}
