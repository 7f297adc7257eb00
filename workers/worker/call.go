package worker

import (
	"context"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
)

const (
	// noteIfLonger is how long a firing must stay away to be noted. The sweeper decides about no job
	// sooner than contract.Grace after it was due, and shorter stays have ended by then.
	noteIfLonger = 30 * time.Second
	// laterMost is how often a message is retried here before it goes back to the queue.
	laterMost = 5
	// unansweredRetries is how often a claim that got no answer is retried.
	unansweredRetries = 5
)

// aliveRetries are the waits before a claim is retried that another worker holds. It may end soon.
var aliveRetries = []time.Duration{200 * time.Millisecond, time.Second}

func (w *Worker) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, callTime)
}

// write does one write of a claim.
func (w *Worker) write(claim item.Write) (job.Claim, error) {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.WriteClaim(ctx, claim)
}

// put does one write of a claim whose result is not needed.
func (w *Worker) put(claim item.Write) error {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.Put(ctx, claim)
}

// unanswered gives a message back because a call got no answer. The back-off belongs to the message, and to the tenant
// if calls for several of its jobs fail; only if the store does not answer a call for another key either, the worker
// polls less often. A claim of ours may be there: then it is first retried a few times under the same nonce, which
// shows whether it is. A claim that is left to run out delays the job and counts as one more owner who died.
func (w *Worker) unanswered(f *firing, kind access, doing string, err error) {
	w.fault(doing, err)
	if !ofOneKey(fault.KindOf(err)) {
		ctx, cancel := w.call()
		defer cancel()
		if w.probes.answered(ctx, kind) {
			w.intake.reached()
			w.troubles.failed(f.key, time.Now())
		} else {
			w.intake.unreached()
		}
	}
	if !f.asked.IsZero() && f.asks < unansweredRetries && fault.Retryable(err) {
		d := doubled(aliveRetries[0], f.asks, time.Second)
		f.asks++
		if w.intake.add(f, w.clock.Now().Add(d)) {
			return
		}
	}
	w.giveBack(f, backoff(f.receives, time.Second, time.Minute))
}

// reached notes that the store took a write for a firing.
func (w *Worker) reached(f *firing) {
	w.intake.reached()
	w.troubles.answered(f.key)
}

// later tries the message again after d. One that was tried often enough goes back to the queue.
func (w *Worker) later(f *firing, d time.Duration) {
	if f.laters < laterMost {
		f.laters++
		if w.intake.add(f, w.clock.Now().Add(d)) {
			return
		}
	}
	select {
	case <-w.draining:
		w.giveBack(f, 0)
	default:
		d := backoff(f.receives, time.Second, 5*time.Minute)
		if d >= noteIfLonger {
			w.note(f, job.WaitsForPermit, d)
		}
		w.giveBack(f, d)
	}
}

// note shows the sweeper and readers that the firing is not lost while it stays away for d. A note
// that fails is not retried: without it the firing is sent once more after a while.
func (w *Worker) note(f *firing, what string, d time.Duration) {
	now := w.clock.Now()
	err := w.put(job.NoteWaits(f.key, job.Waits{Attempt: f.attempt, For: what, Until: now.Add(d)}, f.due, now))
	if err != nil && store.Refused(err) == nil {
		w.fault("noting what a firing waits for", err)
	}
}
