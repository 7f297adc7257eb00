package promoter

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"punctual/functions/engine/arm"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/scan"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Store is what the stage reads and writes: schedules, and what passes need.
type Store interface {
	recur.Store
	store.Marks
	store.Recognizer
	store.Shards
}

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store Store
	Queue message.Sender
	// Heartbeats are the pools that run an empty job of each priority each minute; nil keeps none.
	Heartbeats []string
}

// Stage is the promoter. It is safe for concurrent use.
type Stage struct {
	Deps
	recur  *recur.Recurrer
	pass   scan.Pass
	slices arm.Slices
	beats  atomic.Int64 // when the schedules of heartbeats were last kept, in Unix seconds
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{
		Deps:   d,
		slices: arm.Slices{Queue: d.Queue},
		recur:  recur.New(recur.Deps{Base: d.Base, Store: d.Store, Queue: d.Queue}),
		pass:   scan.Pass{Marks: d.Store, Mark: store.Promoted, Log: d.Log, Meter: d.Meter},
	}
}

// Summary says what a pass did.
type Summary struct {
	scan.Walked
	Came map[string]int `json:"came,omitempty"` // entries by outcome
	Held []string       `json:"held,omitempty"` // tables that were restored: nothing was done
}

// Handle makes one pass; the event is ignored.
func (s *Stage) Handle(ctx context.Context, _ any) (Summary, error) {
	sum, err := s.walk(ctx)
	scan.Made(s.Meter, telemetry.PassPromoted, sum.Walked, err)
	return sum, err
}

// walk passes the slices that enter the horizon.
func (s *Stage) walk(ctx context.Context) (Summary, error) {
	if held, err := scan.Held(ctx, s.Store, s.Log, s.Meter); err != nil || len(held) > 0 {
		return Summary{Held: held}, err
	}
	now := s.Clock.Now()
	s.heartbeats(ctx, now)
	// Not while they are new: a metric is billed by the hours in which it is written.
	if age := calendar.Zones().Age(now); age > contract.MaxZoneRulesAge/2 {
		s.Meter.Gauge(telemetry.ZoneRulesAge, age.Hours()/24)
	}
	shards, err := s.Store.Shards(ctx, s.Shards)
	if err != nil {
		return Summary{}, err
	}
	var came scan.Counter
	from := func(mark time.Time) time.Time { return firstSlice(mark, now) }
	over := scan.Range{Shards: shards, From: from, To: now.Add(contract.Horizon), Since: now.Add(-contract.Grace)}
	walked, err := s.pass.Run(ctx, over, func(ctx context.Context, slice horizon.Slice) error {
		return scan.Both(
			func() error { return s.promote(ctx, slice, &came) },
			// the jobs that schedules make are near, so the stream consumer fires them
			func() error { return s.recur.Slice(ctx, slice.String(), time.Time{}, &came) },
		)
	})
	sum := Summary{Walked: walked, Came: came.Counts()}
	s.Log.InfoContext(ctx, "pass made", "summary", sum)
	return sum, err
}

// heartbeatsEvery is how often a process looks whether the schedules of heartbeats are there.
const heartbeatsEvery = time.Hour

// heartbeats keeps the schedules of the heartbeats, once in a while. If it fails, the pass goes on: the next one tries
// again, and an alarm watches the heartbeats themselves.
func (s *Stage) heartbeats(ctx context.Context, now time.Time) {
	if s.Heartbeats == nil || now.Unix() < s.beats.Load()+int64(heartbeatsEvery/time.Second) {
		return
	}
	if err := s.recur.Heartbeats(ctx, s.Heartbeats); err != nil {
		s.Log.ErrorContext(ctx, "heartbeat schedules could not be updated", telemetry.Err, err)
		return
	}
	s.beats.Store(now.Unix())
}

// firstSlice is where a pass begins in a shard: after the watermark, and a while before it for slices that are so far
// ahead that asking for them only makes their timer, which may be done twice. Slices that are overdue by more than the
// grace are left to the sweeper, which reads the rows first.
func firstSlice(mark, now time.Time) time.Time {
	oldest := now.Add(-contract.Grace)
	if mark.IsZero() {
		return oldest
	}
	next := mark.Add(time.Minute)
	reread := mark.Add(time.Minute - contract.RereadEachPass)
	if timersOnly := now.Add(contract.DirectLane + time.Minute); reread.Before(timersOnly) {
		reread = timersOnly
	}
	if reread.Before(next) {
		next = reread
	}
	if next.Before(oldest) {
		return oldest
	}
	return next
}

// pageSize is how many entries of a slice are read at once to find one that is to be fired.
const pageSize = 25

// promote asks for a slice that has at least one job to fire. A slice that was asked for is not visited any more: what
// enters it later is read at its time.
func (s *Stage) promote(ctx context.Context, slice horizon.Slice, came *scan.Counter) error {
	if s.slices.Asked(slice) {
		return nil
	}
	fires, err := s.fires(ctx, slice, came)
	if err != nil || !fires {
		return err
	}
	err = s.slices.Ask(ctx, []horizon.Slice{slice})[0]
	switch {
	case err == nil:
		came.Add("asked")
	case fault.Retryable(err):
		came.Add("failed")
		return fmt.Errorf("asking for slice %s: %w", slice, err)
	default: // the next pass would fail, too; the sweeper finds the jobs when they are overdue
		s.Log.ErrorContext(ctx, "slice could not be requested", "slice", slice.String(), telemetry.Err, err.Error())
		came.Add("passed_over")
	}
	return nil
}

// fires says whether a slice has a job to fire.
func (s *Stage) fires(ctx context.Context, slice horizon.Slice, came *scan.Counter) (bool, error) {
	for cursor := ""; ; {
		found, next, err := s.Store.DuePage(ctx, store.DueQuery{Slice: slice.String(), Cursor: cursor, Limit: pageSize})
		if err != nil {
			return false, err
		}
		for _, f := range found {
			switch {
			case f.Err != nil: // the sweeper sets its row aside
				s.Log.ErrorContext(ctx, "index entry skipped", "ref", f.Ref.String(), telemetry.Err, f.Err.Error())
				came.Add("passed_over")
			case job.FiredBySlice(f.DueAt, f.WakeAt):
				return true, nil
			default:
				came.Add("put_off")
			}
		}
		if next == "" {
			return false, nil
		}
		cursor = next
	}
}
