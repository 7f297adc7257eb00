package promoter

import (
	"context"
	"log/slog"
	"time"

	"punctual/functions/engine/arm"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/scan"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Store is what the stage reads and writes: schedules, and the due index.
type Store interface {
	recur.Store
	scan.Marks
	scan.Recognizer
	// Shards says how many shards the due index has, by what was ever recorded.
	Shards(ctx context.Context, n int) (int, error)
	// DuePage reads one page of a slice, earliest wake-up first; next is "" at the end.
	DuePage(ctx context.Context, q store.DueQuery) (found []store.Found, next string, err error)
}

// Deps is what the stage needs. A nil Meter drops metrics.
type Deps struct {
	Store  Store
	Queue  arm.Sender
	Timer  arm.Timers
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  *telemetry.Meter
	Shards int // of the due index, as the deployment says; more may be recorded
}

// Stage is the promoter. It is safe for concurrent use.
type Stage struct {
	Deps
	armer arm.Armer
	recur *recur.Recurrer
	pass  scan.Pass
	armed recent
}

// New returns the stage.
func New(d Deps) *Stage {
	return &Stage{
		Deps:  d,
		armer: arm.Armer{Queue: d.Queue, Timers: d.Timer, Log: d.Log, Meter: d.Meter},
		recur: recur.New(recur.Deps{Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards}),
		pass:  scan.Pass{Marks: d.Store, Mark: store.Promoted, Log: d.Log, Meter: d.Meter},
	}
}

// Summary says what a pass did.
type Summary struct {
	scan.Walked
	Came map[string]int `json:"came,omitempty"` // entries by what came of them
	Held []string       `json:"held,omitempty"` // tables that were restored: nothing was done
}

// Handle makes one pass; what triggers it says nothing.
func (s *Stage) Handle(ctx context.Context, _ any) (Summary, error) {
	if held, err := scan.Held(ctx, s.Store, s.Log, s.Meter); err != nil || len(held) > 0 {
		return Summary{Held: held}, err
	}
	now := s.Clock.Now()
	shards, err := s.Store.Shards(ctx, s.Shards)
	if err != nil {
		return Summary{}, err
	}
	var came scan.Counter
	from := func(mark time.Time) time.Time { return firstSlice(mark, now) }
	over := scan.Range{Shards: shards, From: from, To: now.Add(contract.Horizon), Since: now.Add(-contract.Grace)}
	walked, err := s.pass.Run(ctx, over, func(ctx context.Context, slice horizon.Slice) error {
		return scan.Both(
			func() error { return s.promote(ctx, slice, now, &came) },
			func() error { return s.recur.Slice(ctx, slice.String(), time.Time{}, &came) }, // what they make is near, and goes by the stream
		)
	})
	sum := Summary{Walked: walked, Came: came.Counts()}
	s.Log.InfoContext(ctx, "pass made", "summary", sum)
	return sum, err
}

// firstSlice is where a pass begins in a shard: behind what was passed, and in the last minutes
// of that once more as long as only timers are armed there, which may be done twice. What is
// overdue by more than the grace is left to the sweeper, who asks the row first.
func firstSlice(mark, now time.Time) time.Time {
	oldest := now.Add(-contract.Grace)
	if mark.IsZero() {
		return oldest
	}
	next := mark.Add(time.Minute)
	again := mark.Add(time.Minute - contract.RereadEachPass)
	if onlyTimers := now.Add(contract.DirectLane + time.Minute); again.Before(onlyTimers) {
		again = onlyTimers
	}
	if again.Before(next) {
		next = again
	}
	if next.Before(oldest) {
		return oldest
	}
	return next
}

// promote arms what a slice holds.
func (s *Stage) promote(ctx context.Context, slice horizon.Slice, now time.Time, came *scan.Counter) error {
	var plans []job.Plan
	cursor := ""
	for {
		found, next, err := s.Store.DuePage(ctx, store.DueQuery{Slice: slice.String(), Cursor: cursor})
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Err != nil { // the sweeper sets its row aside
				s.Log.ErrorContext(ctx, "index entry passed over", "ref", f.Ref.String(), telemetry.Err, f.Err.Error())
				came.Add("passed_over")
				continue
			}
			if job.PutOff(f.DueAt, f.WakeAt) {
				came.Add("put_off")
				continue
			}
			plans = append(plans, job.Arm(f.Firing(), now))
		}
		if len(plans) > contract.CrowdedSlice {
			plans, next = []job.Plan{job.ArmSlice(slice, now)}, ""
			came.Add("crowded_slice")
		}
		if next == "" {
			break
		}
		cursor = next
	}
	return s.arm(ctx, plans, came)
}

// arm carries the plans out, but for timers that this process armed in a pass not long ago.
func (s *Stage) arm(ctx context.Context, plans []job.Plan, came *scan.Counter) error {
	todo := plans[:0]
	for _, p := range plans {
		if p.Arm != nil && s.armed.has(p.Arm.Name) {
			continue
		}
		todo = append(todo, p)
	}
	var again error
	for i, err := range s.armer.Do(ctx, "promoted", todo) {
		switch {
		case err == nil && todo[i].Arm != nil:
			s.armed.add(todo[i].Arm.Name)
			came.Add("armed")
		case err == nil:
			came.Add("sent")
		case fault.Retryable(err):
			again = err
			came.Add("failed")
		default: // the next pass would meet the same; the sweeper comes by when it is due
			s.Log.ErrorContext(ctx, "firing could not be armed", telemetry.Err, err.Error())
			came.Add("passed_over")
		}
	}
	return again
}
