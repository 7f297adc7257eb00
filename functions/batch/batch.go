package batch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/fault"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// Runner runs records. The zero value of Meter drops metrics.
type Runner struct {
	Stage string // whose records these are: a Stage of package telemetry
	Log   *slog.Logger
	Meter *telemetry.Meter
	Limit int // records at once; 0: 16
	// Queue is the queue of the messages. With it, a message that failed is redelivered after seconds, then
	// after longer and longer waits; without it, when its visibility ends, which takes minutes.
	Queue  string
	Queues message.Visibility
}

const (
	// batchTime is the time that the records of an event may take.
	batchTime = 25 * time.Second
	// answering is the time at the end of an invocation that is kept for the answer.
	answering = 2 * time.Second
	// heeding is how long records may take to end after their time has ended.
	heeding = time.Second
)

// bounded ends a context early enough for the answer to the event.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	most := batchTime
	if end, ok := ctx.Deadline(); ok {
		most = min(most, max(time.Until(end)-answering-heeding, 0))
	}
	return context.WithTimeout(ctx, most)
}

// results collects one error for each record. What comes after they were taken is dropped.
type results struct {
	mu   sync.Mutex
	errs []error
	left int // records without a result
}

func (r *results) set(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs != nil {
		r.errs[i] = err
		r.left--
	}
}

// take returns the errors, and says how many records have none yet: those keep the error that they had at first.
func (r *results) take() (errs []error, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs, r.errs = r.errs, nil
	return errs, r.left
}

// each runs do for 0 … n-1, several at once, and returns one error for each. Once the time of an event has ended, the
// remaining records fail without being run. A record whose work does not heed the end of its context is abandoned and
// fails: it keeps the others neither from being handled nor from being answered for.
func (r Runner) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	limit := r.Limit
	if limit <= 0 {
		limit = 16
	}
	began := time.Now()
	ctx, cancel := bounded(ctx)
	defer cancel()
	all := &results{errs: make([]error, n), left: n}
	for i := range all.errs {
		all.errs[i] = fault.New(fault.Unavailable, &fault.Overrun{After: batchTime}, "handling a record")
	}
	var taken atomic.Int64
	var g sync.WaitGroup
	for range min(limit, n) { // a goroutine for each record would grow its stack for each record
		g.Go(func() {
			for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
				err := ctx.Err()
				if err == nil && !fault.MayBegin() {
					err = fault.New(fault.Unavailable, nil, "too much work of this process has not ended")
				}
				if err == nil {
					err = fault.Guard(func() error { return do(ctx, i) })
				}
				all.set(i, err)
			}
		})
	}
	r.wait(ctx, &g)
	errs, left := all.take()
	if left > 0 {
		r.Meter.Count(telemetry.Overrun, int64(left))
		r.Meter.Count(telemetry.Quarantined, int64(left))
		r.Log.ErrorContext(ctx, "records did not end in time", "records", left, "after", time.Since(began).String())
	}
	return errs
}

// wait waits until all records have ended, or a moment longer than their time.
func (r Runner) wait(ctx context.Context, g *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { g.Wait(); close(ended) }()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(heeding)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		fault.Abandon(ended)
	}
}

// note logs and counts a record that was not handled.
func (r Runner) note(ctx context.Context, err error, aside bool, args ...any) {
	args = append(args, telemetry.Err, err.Error())
	if p := new(fault.Panicked); errors.As(err, &p) {
		args = append(args, "stack", string(p.Stack))
	}
	r.Meter.Count(telemetry.RecordsFailed, 1, telemetry.Dim{Key: "stage", Value: r.Stage})
	kind := fault.KindOf(err)
	r.Meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: kindName(kind)})
	if aside {
		r.Meter.Count(telemetry.Quarantined, 1)
		r.Log.ErrorContext(ctx, "record quarantined", args...)
		return
	}
	r.Log.WarnContext(ctx, "record failed and will be retried", args...)
}

func kindName(k fault.Kind) string {
	if k == "" {
		return "unknown"
	}
	return string(k)
}
