package arm

import (
	"cmp"
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

// Sender is the one verb of a queue that most stages need.
type Sender interface {
	// Send sends any number of messages; those not taken are named by a *message.Unsent.
	Send(ctx context.Context, queue string, out ...message.Outgoing) error
}

// Timers arms and disarms timers. Arming the same again is success; disarming none, too.
type Timers interface {
	Arm(ctx context.Context, t message.Timer) error
	Disarm(ctx context.Context, name string) error
}

// Armer gets firings on their way. It is safe for concurrent use.
type Armer struct {
	Queue  Sender
	Timers Timers // nil where no timer is armed
	Log    *slog.Logger
	Meter  *telemetry.Meter // nil drops metrics
	// TimersAtOnce bounds concurrent calls to Scheduler, whose rate limit all stages share; 0: 16.
	TimersAtOnce int
}

// Do carries out the plans and returns one error for each. What is due first goes first; lane is for
// the metric.
func (a Armer) Do(ctx context.Context, lane string, plans []job.Plan) []error {
	errs := make([]error, len(plans))
	byQueue := map[string][]int{}
	var timers []int
	for i, p := range plans {
		switch {
		case p.Send != nil:
			byQueue[p.Queue] = append(byQueue[p.Queue], i)
		case p.Arm != nil:
			timers = append(timers, i)
		}
	}
	slices.SortStableFunc(timers, func(x, y int) int { return plans[x].Arm.At.Compare(plans[y].Arm.At) })

	var sends, arms errgroup.Group
	for queue, at := range byQueue {
		sends.Go(func() error { a.send(ctx, lane, queue, plans, at, errs); return nil })
	}
	arms.SetLimit(cmp.Or(a.TimersAtOnce, 16))
	for _, i := range timers {
		arms.Go(func() error {
			if errs[i] = a.Timers.Arm(ctx, *plans[i].Arm); errs[i] == nil {
				a.Meter.Count(telemetry.TimersArmed, 1)
			}
			return nil
		})
	}
	_, _ = sends.Wait(), arms.Wait() // the errors are in errs
	return errs
}

// send sends the plans at those indexes to one queue, the least delayed first.
func (a Armer) send(ctx context.Context, lane, queue string, plans []job.Plan, at []int, errs []error) {
	slices.SortStableFunc(at, func(x, y int) int { return cmp.Compare(plans[x].Send.Delay, plans[y].Send.Delay) })
	out := make([]message.Outgoing, len(at))
	for n, i := range at {
		out[n] = *plans[i].Send
	}
	err := a.Queue.Send(ctx, queue, out...)
	sent := int64(len(at))
	if unsent := new(message.Unsent); errors.As(err, &unsent) {
		for n, why := range unsent.Failed {
			errs[at[n]] = why
		}
		sent -= int64(len(unsent.Failed))
	} else if err != nil {
		for _, i := range at {
			errs[i] = err
		}
		return
	}
	a.Meter.Count(telemetry.FiringsSent, sent, telemetry.Dim{Key: "lane", Value: lane})
}

// FireAll sends firings with the delay that is left at now, and returns one error for each.
func (a Armer) FireAll(ctx context.Context, lane string, firings []job.Firing, now time.Time) []error {
	plans := make([]job.Plan, len(firings))
	for i, f := range firings {
		out := f.Outgoing(now)
		plans[i] = job.Plan{Queue: f.Queue(), Send: &out}
	}
	return a.Do(ctx, lane, plans)
}

// Fire sends one firing.
func (a Armer) Fire(ctx context.Context, lane string, f job.Firing, now time.Time) error {
	if err := a.FireAll(ctx, lane, []job.Firing{f}, now)[0]; err != nil {
		return fmt.Errorf("sending the firing of job %s to %s: %w", f.ID, f.Queue(), err)
	}
	return nil
}

// disarmsAtOnce bounds concurrent calls to Scheduler.
const disarmsAtOnce = 8

// Disarm deletes the timers of stale firings as well as it can. A stale firing is refused at its
// claim, so a failure is logged and is no error.
func (a Armer) Disarm(ctx context.Context, stale []job.Firing) {
	var g errgroup.Group
	g.SetLimit(disarmsAtOnce)
	for _, f := range stale {
		g.Go(func() error {
			if err := a.Timers.Disarm(ctx, f.TimerName()); err != nil {
				a.Log.WarnContext(ctx, "stale timer was left standing", telemetry.Tenant, f.Tenant,
					telemetry.JobID, f.ID, telemetry.Attempt, f.Attempt, telemetry.Err, err.Error())
			}
			return nil
		})
	}
	_ = g.Wait() // it has no errors
}
