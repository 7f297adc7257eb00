package worker

import (
	"errors"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// A message whose due time is further off than holdFor goes back to the queue until shortly
// before it: there it survives this worker, and here it would outlive its visibility.
const (
	holdFor  = 10 * time.Second
	backLead = 2 * time.Second
)

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

// backAtOnce is how many messages are given back at the same time.
const backAtOnce = 64

// giveAllBack makes messages visible at once.
func (w *Worker) giveAllBack(all []*firing) {
	var calls sync.WaitGroup
	next := make(chan *firing)
	for range min(len(all), backAtOnce) {
		calls.Go(func() {
			for f := range next {
				w.giveBack(f, 0)
			}
		})
	}
	for _, f := range all {
		next <- f
	}
	close(next)
	calls.Wait()
}
