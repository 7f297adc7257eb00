package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

const (
	// reportsWaiting bounds what waits to be sent; beyond it, attempts keep their slots.
	reportsWaiting = 500
	// flushLast is the time for the last reports and deletes when the worker stops.
	flushLast = 5 * time.Second
)

// note is one report, and the message that may be deleted once it was sent; nil for none.
type note struct {
	out    message.Outgoing
	delete *firing
}

// reports sends reports in batches: at once when none was sent lately, otherwise at whichever
// comes first of contract.ReportFlushEvery, or contract.ReportFlushNodes where the end of a node waits,
// and contract.ReportFlushJobs.
type reports struct {
	w  *Worker
	in chan note
	// hurry: the worker stops, what waits goes now.
	hurry chan struct{}
	// givenBack are the messages on their way back whose reports cannot be sent.
	givenBack sync.WaitGroup
}

func newReports(w *Worker) *reports {
	return &reports{w: w, in: make(chan note, reportsWaiting), hurry: make(chan struct{})}
}

// add queues a report; it waits while too many do. When the worker has ended meanwhile the report
// is not sent, the message not deleted, and its redelivery repeats the report.
func (r *reports) add(report message.Report, then *firing) {
	select {
	case r.in <- note{r.outgoing(report), then}:
	case <-r.w.ctx.Done():
	}
}

// try queues a report that can wait for another time; false: too many wait already.
func (r *reports) try(report message.Report) bool { return r.tryThen(report, nil) }

// tryThen is try for a report after which a message may be deleted.
func (r *reports) tryThen(report message.Report, then *firing) bool {
	select {
	case r.in <- note{r.outgoing(report), then}:
		return true
	default:
		return false
	}
}

func (r *reports) outgoing(report message.Report) message.Outgoing {
	report.V, report.Worker = message.V, r.w.opts.Name
	return message.Outgoing{Body: message.Encode(report), Group: report.Tenant}
}

// close ends run after what was added is sent, or cannot be.
func (r *reports) close() { close(r.hurry) }

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

// deletes deletes messages in batches: ten of one queue, or what there is after a moment.
// A delete that fails is not retried: the message is received again, and the recorded outcome is
// found.
type deletes struct {
	w         *Worker
	mu        sync.Mutex
	waiting   map[string][]string // receipts by queue
	timed     bool
	calls     sync.WaitGroup
	callSlots chan struct{} // bounds the calls under way
}

// deletesAtOnce is how many delete calls are under way at most.
const deletesAtOnce = 8

func newDeletes(w *Worker) *deletes {
	return &deletes{w: w, waiting: map[string][]string{}, callSlots: make(chan struct{}, deletesAtOnce)}
}

func (d *deletes) add(f *firing) {
	d.mu.Lock()
	queue := f.source.queue
	d.waiting[queue] = append(d.waiting[queue], f.receipt)
	var full []string
	if len(d.waiting[queue]) >= receiveMost {
		full = d.waiting[queue]
		delete(d.waiting, queue)
	} else if !d.timed {
		d.timed = true
		time.AfterFunc(contract.ReportFlushEvery, d.all)
	}
	d.mu.Unlock()
	if full != nil {
		d.delete(queue, full)
	}
}

// flush deletes what waits, and returns when that is done.
func (d *deletes) flush() {
	d.all()
	d.calls.Wait()
}

func (d *deletes) all() {
	d.mu.Lock()
	waiting := d.waiting
	d.waiting, d.timed = map[string][]string{}, false
	d.mu.Unlock()
	for queue, receipts := range waiting {
		d.delete(queue, receipts)
	}
}

func (d *deletes) delete(queue string, receipts []string) {
	d.callSlots <- struct{}{}
	d.calls.Go(func() {
		defer func() { <-d.callSlots }()
		ctx, cancel := context.WithTimeout(d.w.ctx, flushLast)
		defer cancel()
		if err := d.w.queues.Delete(ctx, queue, receipts...); err != nil {
			d.w.fault("deleting messages of "+queue, err)
		}
	})
}
