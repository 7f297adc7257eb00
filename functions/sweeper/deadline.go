package sweeper

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/store"
)

// Deadlines ends the jobs and runs whose deadline has passed within the last minute, whatever holds them. Handle does
// that once a minute; a laptop calls this every second.
func (s *Stage) Deadlines(ctx context.Context) error {
	if held, err := scan.Held(ctx, s.Store, s.Log, s.Meter); err != nil || len(held) > 0 {
		return err
	}
	now := s.Clock.Now()
	var came scan.Counter
	walked := s.pass.Revisit(ctx, since(now.Add(-time.Minute), now, s.Shards),
		func(ctx context.Context, slice horizon.Slice) error {
			return s.engine.Runs.Slice(ctx, slice.String(), now, &came)
		})
	repeated, err := s.deadlines(ctx, now, s.Shards, &came)
	if counts := came.Counts(); len(counts) > 0 {
		s.Log.InfoContext(ctx, "deadlines passed", "runs", walked, "jobs", repeated, "came", counts)
	}
	return err
}

// deadlines decides about the jobs whose deadline has passed. The wake-up of a job that waits is never later than its
// deadline: it is in a slice of the last minute, in a parking place, in a queue behind another run or in a line for a
// permit. What a pass misses, the sweep of the slices finds after the grace.
func (s *Stage) deadlines(ctx context.Context, now time.Time, shards int, came *scan.Counter) (scan.Walked, error) {
	walked := s.pass.Revisit(ctx, since(now.Add(-time.Minute), now, shards),
		func(ctx context.Context, slice horizon.Slice) error {
			return s.each(ctx, store.DueQuery{Slice: slice.String(), Before: now}, came,
				func(ctx context.Context, e store.Entry) (job.Step, error) {
					if !job.MayHaveDeadline(e.DueAt, e.WakeAt) {
						return job.StepNothing, nil
					}
					return s.engine.Deadline(ctx, e)
				})
		})
	tenants, err := s.Store.ParkedTenants(ctx)
	lines, err2 := s.Store.Queues(ctx)
	limits, err3 := s.Store.WaitingKeys(ctx)
	var held []string
	for _, t := range tenants {
		held = append(held, horizon.Parkings(string(t.ID))...)
	}
	for _, k := range lines {
		held = append(held, horizon.Line(string(k.Tenant), k.Name))
	}
	for _, k := range limits {
		held = append(held, job.WaiterQueues(k.Tenant, k.LimitKey)...)
	}
	var read, failed atomic.Int64
	all, err4 := eachInTime(ctx, held, now, func(slice string) error {
		read.Add(1)
		err := s.each(ctx, store.DueQuery{Slice: slice, Before: now}, came, s.engine.Deadline)
		if err != nil {
			failed.Add(1)
		}
		return err
	})
	walked.Slices, walked.Failed = walked.Slices+int(read.Load()), walked.Failed+int(failed.Load())
	walked.Cut = walked.Cut || !all
	return walked, errors.Join(err, err2, err3, err4)
}
