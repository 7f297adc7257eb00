package batch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/fault"
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
	Queues Hider
}

// Hider makes a received message visible again after d.
type Hider interface {
	SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error
}

// each runs do for 0 … n-1, several at once, and returns one error for each. Once the context is done, the remaining
// records fail without being run.
func (r Runner) each(ctx context.Context, n int, do func(i int) error) []error {
	limit := r.Limit
	if limit <= 0 {
		limit = 16
	}
	errs := make([]error, n)
	var taken atomic.Int64
	var g sync.WaitGroup
	for range min(limit, n) { // a goroutine for each record would grow its stack for each record
		g.Go(func() {
			for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = fault.Guard(func() error { return do(i) })
				}
			}
		})
	}
	g.Wait()
	return errs
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
		r.Meter.Count(telemetry.SetAside, 1)
		r.Log.ErrorContext(ctx, "record set aside", args...)
		return
	}
	r.Log.WarnContext(ctx, "record failed and will come again", args...)
}

func kindName(k fault.Kind) string {
	if k == "" {
		return "unknown"
	}
	return string(k)
}
