package sweeper

import (
	"context"
	"errors"
	"time"

	"punctual/functions/batch"
	"punctual/functions/wake"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// forgetAfter is how old the note of a tenant without parked jobs must be to go: longer than
// any invocation and any lag of the index, so that what it announced would have shown.
const forgetAfter = time.Hour

// lineFront is how many at the front of a line one pass decides about: enough for a line whose
// schedule was deleted to go away.
const lineFront = 50

// parked looks after jobs that lie in parking places although no pause holds them: the message
// that was to wake them was lost. A tenant whose pause holds everything is passed by.
func (s *Stage) parked(ctx context.Context, now time.Time, came *wake.Few) (wake.Walked, error) {
	tenants, err := s.Store.ParkedTenants(ctx)
	if err != nil {
		return wake.Walked{}, err
	}
	var walked wake.Walked
	var errs []error
	for _, t := range tenants {
		if !batch.TimeLeft(ctx, 20*time.Second) {
			walked.Cut = true
			break
		}
		if err := s.parkedOf(ctx, t, now, came, &walked); err != nil {
			walked.Failed++
			s.Log.ErrorContext(ctx, "parked jobs could not be looked after", telemetry.Tenant, t, telemetry.Err, err.Error())
			errs = append(errs, err)
		}
	}
	return walked, errors.Join(errs...)
}

// lines looks after jobs that wait in their schedules' lines although nothing is before them
// any more.
func (s *Stage) lines(ctx context.Context, now time.Time, came *wake.Few) error {
	keys, err := s.Store.Lines(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, k := range keys {
		if !batch.TimeLeft(ctx, 20*time.Second) {
			break
		}
		errs = append(errs, s.line(ctx, k, now, came))
	}
	return errors.Join(errs...)
}

func (s *Stage) line(ctx context.Context, k schedule.Key, now time.Time, came *wake.Few) error {
	line := horizon.Line(string(k.Tenant), k.Name)
	// The oldest decides for all: while it waits, so do the others.
	found, err := s.Store.DueFront(ctx, store.DueQuery{Slice: line, Limit: lineFront})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return s.Store.ForgetLine(ctx, k, now.Add(-forgetAfter))
	}
	for _, f := range found {
		err := s.one(ctx, f, line, came, func(ctx context.Context, e store.Entry) (job.Step, error) { return s.waker.Parked(ctx, e.Key) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) parkedOf(ctx context.Context, t tenant.ID, now time.Time, came *wake.Few, walked *wake.Walked) error {
	pauses, err := s.Store.Pauses(ctx, t)
	if err != nil {
		return err
	}
	places, holding := parkingsToVisit(t, pauses, now)
	for _, place := range places {
		walked.Slices++
		if err := s.recur.Slice(ctx, place, time.Time{}, came); err != nil {
			return err
		}
		err := s.each(ctx, store.DueQuery{Slice: place}, came, func(ctx context.Context, e store.Entry) (job.Step, error) {
			return s.waker.Parked(ctx, e.Key)
		})
		if err != nil {
			return err
		}
	}
	if !holding {
		return s.Store.ForgetParked(ctx, t, now.Add(-forgetAfter))
	}
	return nil
}

// parkingsToVisit are the tenant's parking places worth looking into: none while everything is
// paused, all when nothing is; with some tasks paused their jobs are in the way, so that the
// places take turns. holding says that some pause holds something.
func parkingsToVisit(t tenant.ID, pauses job.Pauses, now time.Time) (places []string, holding bool) {
	places = horizon.Parkings(string(t))
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
		turn := int(now.Unix()/60) % contract.ParkShards
		places = places[turn : turn+1]
	}
	return places, holding
}
