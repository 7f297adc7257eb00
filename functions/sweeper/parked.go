package sweeper

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/scan"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// lineFront is how many queued jobs of a schedule one pass decides about. More than one, so that the queued jobs of a
// deleted schedule go away in time.
const lineFront = 50

// parked unparks jobs that no pause holds any more, because the message that was to unpark them was lost. A tenant
// whose pause holds everything is skipped. Each pass begins with another tenant, and each tenant has its share of the
// time.
func (s *Stage) parked(ctx context.Context, now time.Time, came *scan.Counter) (scan.Walked, error) {
	tenants, err := s.Store.ParkedTenants(ctx)
	if err != nil {
		return scan.Walked{}, err
	}
	var walked scan.Walked
	var errs []error
	for n, t := range scan.Rotate(tenants, now) {
		ctx := scan.Share(ctx, 1/float64(len(tenants)-n), scan.Closing)
		if !scan.TimeLeft(ctx, scan.Closing) {
			walked.Cut = true
			continue
		}
		if err := s.parkedOf(ctx, t, now, came, &walked); err != nil {
			walked.Failed++
			s.Log.ErrorContext(ctx, "parked jobs could not be processed",
				telemetry.Tenant, t.ID, telemetry.Err, err.Error())
			errs = append(errs, err)
		}
	}
	return walked, errors.Join(errs...)
}

// lines decides about jobs that are queued behind a run that may be over. Each pass begins with another schedule.
func (s *Stage) lines(ctx context.Context, now time.Time, came *scan.Counter) error {
	keys, err := s.Store.Queues(ctx)
	_, errLines := eachInTime(ctx, keys, now, func(k schedule.Key) error { return s.line(ctx, k, now, came) })
	return errors.Join(err, errLines)
}

// keysAtOnce is how many keys a pass handles at a time: there may be thousands of limits of work for which jobs wait.
const keysAtOnce = 16

// eachInTime handles keys for as long as the pass has time, and begins with another one each time. An error of one
// keeps no other from being handled. all says that the time was enough.
func eachInTime[K any](ctx context.Context, keys []K, now time.Time, handle func(K) error) (all bool, err error) {
	var mu sync.Mutex
	var errs []error
	var g errgroup.Group
	g.SetLimit(keysAtOnce)
	all = true
	for _, k := range scan.Rotate(keys, now) {
		if all = scan.TimeLeft(ctx, scan.Closing); !all {
			break
		}
		g.Go(func() error {
			if err := handle(k); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors of all are collected
	return all, errors.Join(errs...)
}

func (s *Stage) line(ctx context.Context, k schedule.Key, now time.Time, came *scan.Counter) error {
	line := horizon.Line(string(k.Tenant), k.Name)
	// While the oldest waits, so do the others.
	found, err := s.Store.DueFront(ctx, store.DueQuery{Slice: line, Limit: lineFront})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return s.Store.ForgetQueue(ctx, k, now)
	}
	for _, f := range found {
		if err := s.one(ctx, f, line, came, s.parkedEntry); err != nil {
			return err
		}
	}
	return nil
}

// limits decides about the jobs that wait for a permit of a limit of work, where no process has done so: one that gave
// a permit back may have crashed, or its worker was lost. Each pass begins with another key.
func (s *Stage) limits(ctx context.Context, now time.Time) error {
	keys, err := s.Store.WaitingKeys(ctx)
	_, errWaiting := eachInTime(ctx, keys, now, func(k limit.Key) error {
		if err := s.engine.Waiting(ctx, k); err != nil {
			return err
		}
		if waiters, err := s.Store.LimitWaiters(ctx, k, 1); err != nil || len(waiters) > 0 {
			return err
		}
		return s.Store.ForgetWaitingKey(ctx, k, now)
	})
	return errors.Join(err, errWaiting)
}

// Resume lets the operations go on at once on which processes worked that have ended. It is for a process that is
// alone, when it starts: elsewhere each of them goes on when its lease has ended.
func (s *Stage) Resume(ctx context.Context) error {
	noted, err := s.Store.NotedOperations(ctx)
	for _, n := range noted {
		err = errors.Join(err, s.engine.Release(ctx, n.Key, s.since))
	}
	return err
}

// operations brings on the operations that have not ended, where no process has done so: one that noted the end of a
// job, or that worked on rows, may have crashed. Each pass begins with another one. It measures the longest time in
// which one has not come forward.
func (s *Stage) operations(ctx context.Context, now time.Time) error {
	noted, err := s.Store.NotedOperations(ctx)
	var longest atomic.Int64
	_, errOperations := eachInTime(ctx, noted, now, func(n store.NotedOperation) error {
		over, still, err := s.engine.Operation(ctx, n.Key, func() bool { return scan.TimeLeft(ctx, scan.Closing) })
		for was := longest.Load(); still.Milliseconds() > was && !longest.CompareAndSwap(was, still.Milliseconds()); {
			was = longest.Load()
		}
		if over && now.Sub(n.NotedAt) > store.NoteKept {
			err = s.Store.ForgetOperation(ctx, n.Key, now)
		}
		if err != nil && !fault.Retryable(err) { // such as one that cannot be read: it must not fail each pass
			s.Log.ErrorContext(ctx, "an operation could not be brought on",
				telemetry.Tenant, n.Tenant, "operation", n.ID, telemetry.Err, err.Error())
			return nil
		}
		return err
	})
	if len(noted) > 0 {
		s.Meter.Gauge(telemetry.OperationsStill, float64(longest.Load()))
	}
	return errors.Join(err, errOperations)
}

func (s *Stage) parkedOf(
	ctx context.Context, t store.Parked, now time.Time, came *scan.Counter, walked *scan.Walked,
) error {
	pauses, err := s.Store.Pauses(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, p := range pauses {
		if p.Unreadable {
			s.Log.ErrorContext(ctx, "a pause cannot be read and holds until it is corrected or lifted",
				telemetry.Tenant, t.ID, "scope", p.Scope)
			s.Meter.Count(telemetry.Quarantined, 1)
		}
	}
	parkings, holding := parkingsToVisit(t.ID, pauses, now)
	if !holding && now.Sub(t.NotedAt) > store.NoteKept {
		empty, err := s.empty(ctx, parkings)
		if err != nil {
			return err
		}
		if empty {
			return s.Store.ForgetParked(ctx, t.ID, now)
		}
		// Only paused schedules hold what is still there, and that is not urgent.
		parkings = scan.Rotate(parkings, now)[:1]
	}
	for _, parking := range scan.Rotate(parkings, now) {
		if !scan.TimeLeft(ctx, scan.Closing) {
			walked.Cut = true
			return nil
		}
		walked.Slices++
		if err := s.engine.Recur.Slice(ctx, parking, time.Time{}, came); err != nil {
			return err
		}
		if err := s.each(ctx, store.DueQuery{Slice: parking}, came, s.parkedEntry); err != nil {
			return err
		}
	}
	return nil
}

// empty says that no job and no schedule is in those parking places.
func (s *Stage) empty(ctx context.Context, parkings []string) (bool, error) {
	for _, parking := range parkings {
		q := store.DueQuery{Slice: parking, Limit: 1}
		jobs, err := s.Store.DueFront(ctx, q)
		if err != nil || len(jobs) > 0 {
			return false, err
		}
		for {
			schedules, next, err := s.Store.DueSchedules(ctx, q)
			if err != nil || len(schedules) > 0 {
				return false, err
			}
			if q.Cursor = next; next == "" {
				break
			}
		}
	}
	return true, nil
}

// parkingsToVisit lists the tenant's parking places that this pass visits: none while everything is paused, all if
// nothing is. If some tasks are paused, their jobs fill the parking places and take time, so each pass visits one.
// holding says that there is a pause that has not ended.
func parkingsToVisit(t tenant.ID, pauses job.Pauses, now time.Time) (parkings []string, holding bool) {
	parkings = horizon.Parkings(string(t))
	for _, p := range pauses {
		if !p.Until.IsZero() && !now.Before(p.Until) {
			continue
		}
		if p.Scope == job.PauseAll {
			return nil, true
		}
		holding = true
	}
	if holding {
		parkings = scan.Rotate(parkings, now)[:1]
	}
	return parkings, holding
}
