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
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// forgetAfter is how old the note of a tenant without parked jobs must be to go: longer than
// any invocation and any lag of the index, so that what it announced would have shown.
const forgetAfter = time.Hour

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

func (s *Stage) parkedOf(ctx context.Context, t tenant.ID, now time.Time, came *wake.Few, walked *wake.Walked) error {
	pauses, err := s.Store.Pauses(ctx, t)
	if err != nil {
		return err
	}
	places, holding := parkingsToVisit(t, pauses, now)
	for _, place := range places {
		walked.Slices++
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
