package worker

import (
	"errors"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// A message whose due time is further off than holdFor goes back to the queue until shortly
// before it: there it survives this worker, and here it would outlive its visibility.
const (
	holdFor  = 10 * time.Second
	backLead = 2 * time.Second
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

// pause waits for d; false: the worker drains meanwhile.
func (w *Worker) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.draining:
		return false
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

// hold keeps a message until nearly due.
func (w *Worker) hold(f *firing) {
	now := w.clock.Now()
	if early := f.due.Sub(now); early > holdFor {
		w.giveBack(f, min(early-backLead, maxVisibility))
		return
	}
	at := f.due.Add(-contract.HoldUntil)
	if at.Before(now) {
		at = now
	}
	if !w.intake.add(f, at) {
		w.giveBack(f, 0)
	}
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

// Gauge measures how many slots of each pool are taken: the worker's sign of life. The process that flushes the
// meter calls it before, so that an idle worker gives one, too. A pool that cannot receive gives none.
func (w *Worker) Gauge() {
	now := time.Now()
	for _, in := range w.intake {
		if !w.polls.receives(in.sources, now) {
			continue
		}
		w.meter.Gauge(telemetry.SlotsBusy, float64(in.taken()), telemetry.Dim{Key: "pool", Value: in.sources[0].pool})
	}
}

// fault logs and counts a failed call. It is called once, where the work goes on without the answer.
func (w *Worker) fault(doing string, err error) {
	kind := fault.KindOf(err)
	if kind == "" {
		kind = "unknown"
	}
	w.meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: string(kind)})
	w.log.Warn("failed "+doing, telemetry.Err, err)
}

// quarantine reports a message that cannot be worked on. It stays in the queue, whose redrive
// policy moves it, body intact, to where people look.
func (w *Worker) quarantine(f *firing, what string, err error) {
	if f.receives <= 1 {
		w.meter.Count(telemetry.Quarantined, 1)
	}
	w.log.Error(what, "queue", f.source.queue, telemetry.Tenant, f.key.Tenant, telemetry.JobID, f.key.ID, "receives",
		f.receives, telemetry.Err, err)
	w.hide(f, backoff(f.receives, time.Second, time.Minute))
}

// Visibility can be extended for 12 hours in all.
const maxVisibility = 11 * time.Hour

// backoff is how long a message stays away that was received that often, in whole seconds:
// doubling, so that the queue's limit of receives is hours away.
func backoff(receives int, first, last time.Duration) time.Duration {
	return doubled(first, max(receives-1, 0), last)
}

// renewFrom is how often a message may be received before a new one replaces it. Giving back
// raises the count, and beyond contract.FiringMaxReceives the queue would take it for a dead one.
const renewFrom = contract.FiringMaxReceives - 10

// giveBack makes a message visible to all workers again, after d. If that fails its visibility
// ends by itself. One that was given back very often is deleted, and a report has the
// job re-evaluated: a job that still waits gets a new firing.
func (w *Worker) giveBack(f *firing, d time.Duration) {
	if f.receives >= renewFrom && f.key.ID != "" && !f.due.After(w.clock.Now()) {
		if w.reports.tryThen(message.Report{
			Kind: message.Reevaluate, Tenant: string(f.key.Tenant), JobID: string(f.key.ID), Version: f.version,
			Attempt: f.attempt,
		}, f) {
			return
		}
	}
	w.hide(f, d)
}

// hide keeps a message out of sight for d.
func (w *Worker) hide(f *firing, d time.Duration) {
	d = min(d.Truncate(time.Second), maxVisibility)
	if err := w.queues.SetVisibility(w.ctx, f.source.queue, f.receipt, d); err != nil && !errors.Is(err, w.ctx.Err()) {
		w.fault("giving a message back to "+f.source.queue, err)
	}
}
