package arm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// Armer sends firings. It is safe for concurrent use.
type Armer struct {
	Queue message.Sender
	Log   *slog.Logger
	Meter *telemetry.Meter // nil drops metrics
}

// FireAll sends firings, earliest due first, each delayed until its due time, and returns one error for each.
// lane is for the metric.
func (a Armer) FireAll(ctx context.Context, lane string, firings []job.Firing, now time.Time) []error {
	errs := make([]error, len(firings))
	byQueue := map[string][]int{}
	for i, f := range firings {
		byQueue[f.Queue()] = append(byQueue[f.Queue()], i)
	}
	var sends errgroup.Group
	for queue, at := range byQueue {
		slices.SortStableFunc(at, func(x, y int) int { return firings[x].DueAt.Compare(firings[y].DueAt) })
		out := make([]message.Outgoing, len(at))
		for n, i := range at {
			out[n] = firings[i].Outgoing(now)
		}
		sends.Go(func() error {
			sent := int64(len(at))
			for n, err := range Send(ctx, a.Queue, queue, out) {
				if err != nil {
					errs[at[n]] = err
					sent--
				}
			}
			if sent > 0 {
				a.Meter.Count(telemetry.FiringsSent, sent, telemetry.Dim{Key: "lane", Value: lane})
			}
			return nil
		})
	}
	_ = sends.Wait() // the errors are in errs
	return errs
}

// Send sends messages to one queue and returns one error for each. Without messages it does nothing.
func Send(ctx context.Context, q message.Sender, queue string, out []message.Outgoing) []error {
	if len(out) == 0 {
		return nil
	}
	errs := make([]error, len(out))
	err := q.Send(ctx, queue, out...)
	if unsent := new(message.Unsent); errors.As(err, &unsent) {
		for n, why := range unsent.Failed {
			errs[n] = why
		}
	} else if err != nil {
		for n := range errs {
			errs[n] = err
		}
	}
	return errs
}

// Fire sends one firing.
func (a Armer) Fire(ctx context.Context, lane string, f job.Firing, now time.Time) error {
	if err := a.FireAll(ctx, lane, []job.Firing{f}, now)[0]; err != nil {
		return fmt.Errorf("sending the firing of job %s to %s: %w", f.ID, f.Queue(), err)
	}
	return nil
}
