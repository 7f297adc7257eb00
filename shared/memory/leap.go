package memory

import "time"

// Resting reports whether nothing is under way: no message is visible or in flight (in a dead-letter queue it may
// be), and the stream is handled to its end. next is when the next message becomes visible or the next
// timer fires by itself; the zero time if there is none.
func (w *World) Resting() (next time.Time, resting bool) {
	earlier := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, q := range w.queues.queues {
		q.mu.Lock()
		q.ripen(w.now())
		busy := !q.source && (q.visible > 0 || q.inFlight > 0)
		if !q.source && len(q.later) > 0 {
			earlier(q.later[0].visibleAt)
		}
		q.mu.Unlock()
		if busy {
			return time.Time{}, false
		}
	}
	w.timers.mu.Lock()
	for _, a := range w.timers.armed {
		earlier(a.due)
	}
	w.timers.mu.Unlock()
	return next, w.table.stream.handledAll()
}

// Leapt notifies the World that its clock has leapt forward: what waits for an instant looks at it again.
func (w *World) Leapt() {
	now := w.now()
	for _, q := range w.queues.queues {
		q.mu.Lock()
		if q.alarm != nil {
			q.alarm.Stop()
			q.alarm = nil
		}
		q.watch(now)
		q.mu.Unlock()
	}
	w.timers.mu.Lock()
	defer w.timers.mu.Unlock()
	for _, a := range w.timers.armed {
		if a.alarm.Stop() { // else it is firing
			w.timers.ring(a, a.due)
		}
	}
}
