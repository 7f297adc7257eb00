package sweeper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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
	s.left.forget(now.Add(-2 * time.Minute))
	walked := s.pass.Revisit(ctx, since(now.Add(-time.Minute), now, shards),
		func(ctx context.Context, slice horizon.Slice) error {
			q := store.DueQuery{Slice: slice.String(), Before: now}
			return scan.Each(ctx, q.Slice, func(cursor string) ([]store.Found, string, error) {
				q.Cursor = cursor
				page, next, err := s.Store.DuePage(ctx, q)
				return slices.DeleteFunc(page, func(f store.Found) bool {
					return f.Err == nil && (!job.MayHaveDeadline(f.DueAt, f.WakeAt) || s.left.is(f.Entry, now))
				}), next, err
			}, func(f store.Found) error { return s.one(ctx, f, q.Slice, came, s.deadline) })
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
		err := s.each(ctx, store.DueQuery{Slice: slice, Before: now}, came, s.deadline)
		if err != nil {
			failed.Add(1)
		}
		return err
	})
	walked.Slices, walked.Failed = walked.Slices+int(read.Load()), walked.Failed+int(failed.Load())
	walked.Cut = walked.Cut || !all
	return walked, errors.Join(err, err2, err3, err4)
}

// deadline decides about the job of an entry whose deadline may have passed.
func (s *Stage) deadline(ctx context.Context, e store.Entry) (job.Step, error) {
	step, left, deadline, err := s.engine.Deadline(ctx, e)
	if err == nil && left {
		s.left.note(e, deadline)
	}
	return step, err
}

// left remembers the entries whose jobs have time until their deadline. Their rows are not read before that: thousands
// of jobs that have just died, and wait for their dead letters, are in the slices that a laptop reads each second. The
// zero value is ready for use.
type left struct {
	mu      sync.Mutex
	entries map[store.Entry]time.Time // by what the index shows of a job: its deadline; zero: it has none
}

func (l *left) note(e store.Entry, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[store.Entry]time.Time{}
	}
	l.entries[e] = deadline
}

// is reports whether the job of an entry has time.
func (l *left) is(e store.Entry, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	deadline, noted := l.entries[e]
	return noted && (deadline.IsZero() || !now.After(deadline))
}

// forget forgets the entries with a wake-up before a time: their slices are not read for deadlines any more.
func (l *left) forget(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.entries, func(e store.Entry, _ time.Time) bool { return e.WakeAt.Before(before) })
}
