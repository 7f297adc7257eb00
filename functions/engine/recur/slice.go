package recur

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// schedulesAtOnce bounds the schedules of one slice that are promoted together.
const schedulesAtOnce = 8

// Slice promotes every schedule whose wake-up lies in a slice or parking place, before that
// time if it is not zero. One that failed in a way that again may help fails the slice; the
// others are promoted all the same. One that cannot be read is set aside for a while, one that
// cannot be promoted is put off: no schedule drops from sight.
func (r *Recurrer) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	var g errgroup.Group
	g.SetLimit(schedulesAtOnce)
	q := store.DueQuery{Slice: slice, Before: before}
	for {
		due, next, err := r.Store.DueSchedules(ctx, q)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		for _, d := range due {
			if !scan.TimeLeft(ctx, scan.Closing) {
				cut := fault.New(fault.Unavailable, nil, "promoting what lies in %s: there is more than time", slice)
				return errors.Join(g.Wait(), cut)
			}
			g.Go(func() error { return r.one(ctx, d, slice, came) })
		}
		if next == "" {
			return g.Wait()
		}
		q.Cursor = next
	}
}

func (r *Recurrer) one(ctx context.Context, d store.DueSchedule, slice string, came *scan.Counter) error {
	err := d.Err
	if err == nil {
		err = fault.Guard(func() error {
			did, err := r.Promote(ctx, d.Key)
			if did != (Promoted{}) {
				came.Add("promoted")
			}
			return err
		})
	}
	if err == nil {
		return nil
	}
	log := r.Log.With(telemetry.Tenant, d.Tenant, "schedule", d.Name, "ref", d.Ref.String(), telemetry.Err, err.Error())
	panicked := new(fault.Panicked)
	switch {
	case fault.KindOf(err) == fault.Undecodable, errors.As(err, &panicked):
		reason := job.Cut(err.Error(), contract.MaxReason)
		if err := r.Store.SetAside(ctx, d.Ref, slice, d.WakeAt, reason, r.Clock.Now()); err != nil {
			return err
		}
		log.ErrorContext(ctx, "schedule set aside")
		r.Meter.Count(telemetry.SetAside, 1)
		came.Add("schedule_set_aside")
		return nil
	case fault.Retryable(err):
		came.Add("schedule_failed")
		return err
	}
	if err := r.Store.PutOff(ctx, d.Ref, slice, d.WakeAt, r.Clock.Now()); err != nil {
		return err
	}
	log.ErrorContext(ctx, "schedule could not be promoted")
	came.Add("schedule_passed_over")
	return nil
}
