package dispatch

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

const (
	pageSize   = 100
	rowsAtOnce = 16
	// pageTime is the longest that one page takes. With less time left, a message carries the rest.
	pageTime = 10 * time.Second
	// pageRetry is how long a page waits after it has failed.
	pageRetry = 2 * time.Second
	// timerTime bounds making one timer, because the other messages of the batch wait meanwhile.
	timerTime = 3 * time.Second
	// timerRetry is how long no timer is made after one has failed.
	timerRetry = time.Minute
)

// pages runs do over the pages of a slice, from the message's cursor on. If the invocation's time runs short, or a
// later page fails, a new message carries the rest, and done is false. If the first page fails, so does the message:
// its redelivery repeats that page, and one that never succeeds ends in the dead-letter queue.
func (s *Stage) pages(ctx context.Context, d message.Dispatch, do func([]store.Found) error) (done bool, err error) {
	for first := true; ; first = false {
		found, next, err := s.Store.DuePage(ctx, store.DueQuery{Slice: d.Slice, Cursor: d.Cursor, Limit: pageSize})
		if err == nil {
			err = do(s.readable(ctx, found))
		}
		switch {
		case err != nil && first:
			return false, err
		case err != nil:
			s.Log.WarnContext(ctx, "page of a slice failed and will be retried", "slice", d.Slice,
				telemetry.Err, err.Error())
			return false, s.resend(ctx, d, pageRetry)
		}
		if next == "" {
			return true, nil
		}
		d.Cursor = next
		if !scan.TimeLeft(ctx, pageTime) {
			return false, s.resend(ctx, d, 0)
		}
	}
}

// readable drops entries that cannot be read; the sweeper sets their rows aside.
func (s *Stage) readable(ctx context.Context, found []store.Found) []store.Found {
	good := found[:0]
	for _, f := range found {
		if f.Err != nil {
			s.Log.ErrorContext(ctx, "index entry skipped", "ref", f.Ref.String(), telemetry.Err, f.Err.Error())
			continue
		}
		good = append(good, f)
	}
	return good
}

// await makes the timer of a slice whose time has not come. If that fails, the message itself waits in the queue and
// tries once a minute. The slice is then read once for each message about it, and a second firing is refused at its
// claim.
func (s *Stage) await(ctx context.Context, d message.Dispatch, slice horizon.Slice, early time.Duration) error {
	timer := job.SliceTimer(slice)
	if s.armed.Has(timer.Name) {
		return nil
	}
	if s.Clock.Now().UnixNano() < s.skips.Load() {
		return s.resend(ctx, d, min(early, timerRetry))
	}
	within, cancel := context.WithTimeout(ctx, timerTime)
	defer cancel()
	if err := s.Timer.Arm(within, timer); err != nil {
		s.skips.Store(s.Clock.Now().Add(timerRetry).UnixNano())
		s.Log.WarnContext(ctx, "timer could not be made", "slice", d.Slice, telemetry.Err, err.Error())
		return s.resend(ctx, d, min(early, timerRetry))
	}
	s.armed.Add(timer.Name)
	s.Meter.Count(telemetry.TimersArmed, 1)
	return nil
}

// slice sends the firings of all jobs in a slice. A slice that is overdue by more than the grace is left to the
// sweeper, which reads the rows first.
func (s *Stage) slice(ctx context.Context, d message.Dispatch, slice horizon.Slice) error {
	if s.Clock.Now().After(slice.Minute.Add(time.Minute + contract.Grace)) {
		s.Log.WarnContext(ctx, "slice was too late and was left to the sweeper", "slice", d.Slice)
		return nil
	}
	_, err := s.pages(ctx, d, func(found []store.Found) error {
		found = slices.DeleteFunc(found, func(f store.Found) bool { return !job.FiredBySlice(f.DueAt, f.WakeAt) })
		firings := make([]job.Firing, len(found))
		for i, f := range found {
			firings[i] = f.Firing()
		}
		for i, err := range s.engine.Arm.FireAll(ctx, "slice", firings, s.Clock.Now()) {
			if err := s.passOver(ctx, err, "job skipped", jobArgs(found[i].Key)...); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// passOver logs an error that a retry does not mend, so that one bad job does not stop the others; the sweeper sets it
// aside. An error that may go away by itself is returned.
func (s *Stage) passOver(ctx context.Context, err error, what string, args ...any) error {
	if err == nil || fault.Retryable(err) {
		return err
	}
	s.Log.ErrorContext(ctx, what, append(args, telemetry.Err, err.Error())...)
	return nil
}

func jobArgs(k job.Key) []any { return []any{telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID} }

// rounds are the waits before a parking place is read once more: the index may not show yet a job that was parked just
// before the pause was lifted.
var rounds = []time.Duration{2 * time.Second, 10 * time.Second, 60 * time.Second}

// promote promotes one schedule.
func (s *Stage) promote(ctx context.Context, k schedule.Key) error {
	s.engine.Recur.Reread(k.Tenant)
	_, err := s.engine.Recur.Promote(ctx, k)
	return s.passOver(ctx, err, "schedule skipped", telemetry.Tenant, k.Tenant, "schedule", k.Name)
}

// unpark decides about the jobs and schedules in a parking place whose pause was lifted.
func (s *Stage) unpark(ctx context.Context, d message.Dispatch, owner tenant.ID) error {
	s.engine.Reread(owner)
	if d.Cursor == "" {
		var came scan.Counter
		if err := s.engine.Recur.Slice(ctx, d.Slice, time.Time{}, &came); err != nil {
			return err
		}
	}
	return s.parked(ctx, d)
}

// parked decides about the jobs of a parking place, or about a schedule's queued jobs.
func (s *Stage) parked(ctx context.Context, d message.Dispatch) error {
	done, err := s.pages(ctx, d, func(found []store.Found) error {
		var g errgroup.Group
		g.SetLimit(rowsAtOnce)
		for _, f := range found {
			g.Go(func() error {
				err := fault.Guard(func() error { _, err := s.engine.Parked(ctx, f.Key); return err })
				return s.passOver(ctx, err, "job skipped", jobArgs(f.Key)...)
			})
		}
		return g.Wait()
	})
	if err != nil || !done || d.Round >= len(rounds) || d.Round < 0 {
		return err
	}
	d.Cursor = ""
	wait := rounds[d.Round]
	d.Round++
	return s.resend(ctx, d, wait)
}
