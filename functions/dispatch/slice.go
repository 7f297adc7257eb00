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
	// pageTime is what one page may take at worst; with less left the rest goes on in a message.
	pageTime = 10 * time.Second
	// pageAgain is how long a page that failed waits.
	pageAgain = 2 * time.Second
	// timerTime is what one timer may take: what else came with the message is not to wait for it.
	timerTime = 3 * time.Second
	// timerAgain is how long nobody asks for timers after one has failed.
	timerAgain = time.Minute
)

// pages runs do over the pages of a slice from the message's cursor on. When the invocation's time
// runs short, or a page fails behind others, the rest goes on in a message of its own; done is false
// then. So a message that comes again repeats one page, and one that cannot be handled ends in the
// dead-letter queue.
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
			s.Log.WarnContext(ctx, "page of a slice failed and will be read again", "slice", d.Slice,
				telemetry.Err, err.Error())
			return false, s.again(ctx, d, pageAgain)
		}
		if next == "" {
			return true, nil
		}
		d.Cursor = next
		if !scan.TimeLeft(ctx, pageTime) {
			return false, s.again(ctx, d, 0)
		}
	}
}

// readable drops entries that cannot be read; the sweeper sets their rows aside.
func (s *Stage) readable(ctx context.Context, found []store.Found) []store.Found {
	good := found[:0]
	for _, f := range found {
		if f.Err != nil {
			s.Log.ErrorContext(ctx, "index entry passed over", "ref", f.Ref.String(), telemetry.Err, f.Err.Error())
			continue
		}
		good = append(good, f)
	}
	return good
}

// await has a slice that is early read at its time, by its timer. While none can be had the message
// itself waits in the queue, and asks again each minute: the slice is then read once for each message
// about it, and what is fired twice is refused at its claim.
func (s *Stage) await(ctx context.Context, d message.Dispatch, slice horizon.Slice, early time.Duration) error {
	timer := job.SliceTimer(slice)
	if s.armed.Has(timer.Name) {
		return nil
	}
	if s.Clock.Now().UnixNano() < s.skips.Load() {
		return s.again(ctx, d, min(early, timerAgain))
	}
	within, cancel := context.WithTimeout(ctx, timerTime)
	defer cancel()
	if err := s.Timer.Arm(within, timer); err != nil {
		s.skips.Store(s.Clock.Now().Add(timerAgain).UnixNano())
		s.Log.WarnContext(ctx, "timer could not be made", "slice", d.Slice, telemetry.Err, err.Error())
		return s.again(ctx, d, min(early, timerAgain))
	}
	s.armed.Add(timer.Name)
	s.Meter.Count(telemetry.TimersArmed, 1)
	return nil
}

// slice sends the firings of all that a minute holds. What is overdue by more than the grace is the
// sweeper's, who asks the row first.
func (s *Stage) slice(ctx context.Context, d message.Dispatch, slice horizon.Slice) error {
	if s.Clock.Now().After(slice.Minute.Add(time.Minute + contract.Grace)) {
		s.Log.WarnContext(ctx, "slice came too late and is left to the sweeper", "slice", d.Slice)
		return nil
	}
	_, err := s.pages(ctx, d, func(found []store.Found) error {
		found = slices.DeleteFunc(found, func(f store.Found) bool { return !job.FiredBySlice(f.DueAt, f.WakeAt) })
		firings := make([]job.Firing, len(found))
		for i, f := range found {
			firings[i] = f.Firing()
		}
		for i, err := range s.armer.FireAll(ctx, "slice", firings, s.Clock.Now()) {
			if err := s.passOver(ctx, found[i].Key, err); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// passOver keeps one bad job from stopping all others: only what may go better next time is
// an error of the message. The rest is left to the sweeper.
func (s *Stage) passOver(ctx context.Context, k job.Key, err error) error {
	if err == nil || fault.Retryable(err) {
		return err
	}
	s.Log.ErrorContext(ctx, "job passed over", telemetry.Tenant, k.Tenant, telemetry.JobID, k.ID, telemetry.Err,
		err.Error())
	return nil
}

// rounds are the waits before a parking place is looked at again: a job that was parked just
// before the pause was lifted may not be in the index yet.
var rounds = []time.Duration{2 * time.Second, 10 * time.Second, 60 * time.Second}

// promote promotes one schedule. One that cannot be read is left to the sweeper, who sets it aside.
func (s *Stage) promote(ctx context.Context, k schedule.Key) error {
	s.recur.Reread(k.Tenant)
	_, err := s.recur.Promote(ctx, k)
	if err == nil || fault.Retryable(err) {
		return err
	}
	s.Log.ErrorContext(ctx, "schedule passed over", telemetry.Tenant, k.Tenant, "schedule", k.Name, telemetry.Err,
		err.Error())
	return nil
}

// unpark brings on all that a parking place holds and that no pause holds any more: jobs, and
// schedules that stood still.
func (s *Stage) unpark(ctx context.Context, d message.Dispatch, owner tenant.ID) error {
	s.decider.Reread(owner)
	s.recur.Reread(owner)
	if d.Cursor == "" {
		var came scan.Counter
		if err := s.recur.Slice(ctx, d.Slice, time.Time{}, &came); err != nil {
			return err
		}
	}
	return s.parked(ctx, d)
}

// parked brings on the jobs of a parking place, or of a schedule's line.
func (s *Stage) parked(ctx context.Context, d message.Dispatch) error {
	done, err := s.pages(ctx, d, func(found []store.Found) error {
		var g errgroup.Group
		g.SetLimit(rowsAtOnce)
		for _, f := range found {
			g.Go(func() error {
				err := fault.Guard(func() error { _, err := s.decider.Parked(ctx, f.Key); return err })
				return s.passOver(ctx, f.Key, err)
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
	return s.again(ctx, d, wait)
}
