package worker

import (
	"context"
	"errors"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

func (r *reports) run() {
	var waiting []note
	var last time.Time                    // of the last send
	patience := contract.ReportFlushEvery // of what waits
	failures := 0
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var wait time.Duration
		switch {
		case len(waiting) == 0:
			wait = time.Hour
		case failures > 0:
			wait = time.Until(last.Add(doubled(contract.ReportFlushEvery, failures, 5*time.Second)))
		case len(waiting) < contract.ReportFlushJobs:
			wait = time.Until(last.Add(patience))
		}
		timer.Reset(max(wait, 0))
		in := r.in
		if len(waiting) >= reportsWaiting {
			in = nil
		}
		select {
		case n := <-in:
			waiting = append(waiting, n)
			if n.delete != nil && n.delete.node {
				patience = contract.ReportFlushNodes
			}
			if wait > 0 {
				continue
			}
		case <-timer.C:
			if len(waiting) == 0 {
				continue
			}
		case <-r.hurry:
			r.finish(waiting)
			r.givenBack.Wait()
			return
		}
		waiting = r.send(r.w.ctx, waiting)
		last = time.Now()
		if len(waiting) > 0 {
			failures++
		} else {
			failures, patience = 0, contract.ReportFlushEvery
		}
	}
}

// finish sends what is left, trying for a while.
func (r *reports) finish(waiting []note) {
	for more := true; more; {
		select {
		case n := <-r.in:
			waiting = append(waiting, n)
		default:
			more = false
		}
	}
	ctx, cancel := context.WithTimeout(r.w.ctx, flushLast)
	defer cancel()
	for failures := 0; len(waiting) > 0 && ctx.Err() == nil; failures++ {
		if waiting = r.send(ctx, waiting); len(waiting) > 0 {
			t := time.NewTimer(doubled(contract.ReportFlushEvery, failures, time.Second))
			select {
			case <-t.C:
			case <-ctx.Done():
			}
			t.Stop()
		}
	}
	if len(waiting) > 0 {
		r.w.log.Error("left reports unsent; their messages are redelivered and repeat them", "reports", len(waiting))
	}
}

// send sends what waits, hands what was sent on to be deleted, and returns what another try may
// help. What none can help is dropped: kept, it would fill up what may wait, and the worker would
// report nothing any more.
func (r *reports) send(ctx context.Context, waiting []note) (rest []note) {
	outs := make([]message.Outgoing, len(waiting))
	for i, n := range waiting {
		outs[i] = n.out
	}
	err := r.w.queues.Send(ctx, contract.ReportQueue, outs...)
	var unsent *message.Unsent
	if err != nil {
		r.w.fault("sending reports", err)
		errors.As(err, &unsent)
	}
	for i, n := range waiting {
		why := err
		if unsent != nil {
			why = unsent.Failed[i]
		}
		switch {
		case fault.Retryable(why):
			rest = append(rest, n)
		case why != nil:
			r.drop(n, why)
		case n.delete != nil:
			r.w.deletes.add(n.delete)
		}
	}
	return rest
}

// drop gives up a report that can never be sent. Its message goes back to the queue, for longer each
// time. The sweeper finds the job too, and the outcome on its claim.
func (r *reports) drop(n note, why error) {
	if n.delete == nil { // of a start: the end is reported anyway
		r.w.log.Error("gave up a report that cannot be sent", telemetry.Err, why)
		return
	}
	f := n.delete
	r.w.log.Error("gave up a report that cannot be sent; the sweeper settles the job", telemetry.Tenant, f.key.Tenant,
		telemetry.JobID, f.key.ID, telemetry.Attempt, f.attempt, telemetry.Err, why)
	r.w.meter.Count(telemetry.Quarantined, 1)
	r.givenBack.Go(func() { r.w.giveBack(f, backoff(f.receives, contract.Lease, 15*time.Minute)) })
}
