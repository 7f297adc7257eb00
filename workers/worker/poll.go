package worker

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/tenant"
)

// heldPause is how long a queue is left alone for which nothing may start.
const heldPause = 5 * time.Second

// poll receives the messages of one queue while the intake has space for them, and no table was restored
// that an operator has yet to let run.
func (w *Worker) poll(s *source) {
	failures := 0
	for {
		n := w.intake.ask(s)
		if n == 0 {
			return
		}
		if held, err := w.gate.Shut(w.ctx, time.Now()); err != nil || len(held) > 0 {
			w.shut(s, held, err)
			if !w.pause(heldPause) {
				return
			}
			continue
		}
		w.held.Store(false)
		wait := w.opts.Poll
		if s.busy { // it holds slots back from lower queues: not for as long as nothing comes
			wait = 0
		}
		w.polls.begin(s, time.Now())
		deliveries, err := w.queues.Receive(w.ctx, s.queue, n, wait, contract.Lease)
		received := time.Now()
		for _, d := range deliveries {
			w.take(s, d, received)
		}
		w.intake.answered(s, len(deliveries))
		if w.polls.note(s, err) {
			w.Gauge()
		}
		if err == nil {
			failures = 0
			continue
		}
		w.fault("receiving from "+s.queue, err)
		if !w.pause(doubled(shutFirst, failures, shutLast)) {
			return
		}
		failures++
	}
}

// shut gives up a receive, because of restored tables or because they cannot be asked about.
func (w *Worker) shut(s *source, held []string, err error) {
	w.intake.answered(s, 0)
	w.polls.note(s, err)
	if err != nil {
		w.fault("asking whether a table was restored", err)
		return
	}
	if !w.held.Swap(true) {
		w.log.Warn("stopped starting attempts: a table was restored", "tables", held)
	}
}

// take takes in one message, or gives it back.
func (w *Worker) take(s *source, d message.Delivery, received time.Time) {
	f := &firing{source: s, receipt: d.Receipt, receives: d.Receives, received: received}
	body, err := message.Decode[message.Firing](d.Body)
	if err == nil {
		f.key = job.Key{Tenant: tenant.ID(body.Tenant), ID: job.ID(body.JobID)}
		_, err = job.ParseID(body.JobID)
	}
	if err != nil {
		w.quarantine(f, "read a message that this worker cannot decode", err)
		return
	}
	f.version, f.attempt, f.due = body.Version, body.Attempt, body.DueAt
	w.hold(f)
}

// admit starts what got a slot of one pool and gives back what waited for one too long.
func (w *Worker) admit(in *intake) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		start, late, nextAt := in.next()
		for _, f := range start {
			w.attempts.Go(func() { w.attend(f) })
		}
		if len(start) > 0 {
			w.Gauge()
		}
		if len(late) > 0 {
			w.attempts.Go(func() { w.giveAllBack(late) })
		}
		wait := time.Hour
		if !nextAt.IsZero() {
			wait = nextAt.Sub(w.clock.Now())
		}
		timer.Reset(max(wait, 0))
		select {
		case <-in.kick:
		case <-timer.C:
		case <-w.draining:
			return
		}
	}
}
