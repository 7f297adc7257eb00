package recur

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

const (
	// steps bounds one promotion. A step covers about two thousand nominal times at most, and a schedule of
	// every second has many after a long outage.
	steps = 1000
	// stepTime is the longest that one step and the end of the pass take. With less time left, the next pass
	// continues.
	stepTime = 15 * time.Second
)

// Promote makes jobs of all nominal times of a schedule inside the horizon. A schedule whose pause has passed its
// until is resumed first. A schedule that is paused, deleted or ended is left alone. An absent one is no error.
func (r *Recurrer) Promote(ctx context.Context, k schedule.Key) (Promoted, error) {
	var did Promoted
	for range steps {
		s, err := r.read(ctx, k)
		if fault.KindOf(err) == fault.NotFound {
			return did, nil
		}
		if err != nil {
			return did, fmt.Errorf("promoting schedule %q: %w", k.Name, err)
		}
		more, err := r.step(ctx, s, &did)
		if store.Refused(err) != nil {
			continue // it changed meanwhile
		}
		if err != nil {
			return did, fmt.Errorf("promoting schedule %q: %w", k.Name, err)
		}
		if !more {
			return did, r.announceNoted(ctx, s)
		}
		if !scan.TimeLeft(ctx, stepTime) {
			break
		}
	}
	return did, fault.New(fault.Conflict, nil, "promoting schedule %q: there is more to do than one call may", k.Name)
}

// step does one thing for the schedule as it was read; more says that there is something left to do.
func (r *Recurrer) step(ctx context.Context, s schedule.Schedule, did *Promoted) (more bool, err error) {
	now := r.Clock.Now().UTC().Truncate(time.Millisecond)
	switch {
	case len(s.Events) >= schedule.MostEvents:
		return true, r.Announce(ctx, s)
	case s.Deleted():
		return false, nil
	case s.Paused.Over(now):
		return true, r.resume(ctx, s, now)
	case s.Paused != nil:
		return false, nil
	}
	pauses, err := r.pauses.Of(ctx, s.Tenant)
	if err != nil {
		return false, err
	}
	if p, held := pauses.Hold(s.Template.Task, now); held {
		if len(s.Events) > 0 { // where it waits for the end of the pause, no wake-up would announce them
			return true, r.Announce(ctx, s)
		}
		did.Held = true
		return r.hold(ctx, s, p, now)
	}
	if s.Parked {
		lifted, err := r.Store.Lifted(ctx, s.Tenant, s.Template.Task, now)
		if err != nil {
			return false, err
		}
		_, w := schedule.Release(s, lifted, now)
		return true, r.Store.Put(ctx, w)
	}
	if after, spent, err := r.Spend(ctx, s, now); spent || err != nil {
		return !after.Next.IsZero(), err
	}
	cal, err := s.Coming()
	if err != nil {
		return false, fault.New(fault.Undecodable, err, "reading the calendar of schedule %q", s.Name)
	}
	p, _, err := r.advance(ctx, s, now, did, func(has map[time.Time]bool) schedule.Plan {
		return s.PlanNext(cal, now, has)
	})
	if fault.KindOf(err) == fault.NotFound { // an edit may have replaced the payload meanwhile
		if is, readErr := r.Store.Schedule(ctx, s.Key); readErr == nil && is.Epoch != s.Epoch {
			return true, nil
		}
	}
	return p.More, err
}

// advance makes the jobs of one step, records the other times of it, and moves the schedule on. plan plans the step,
// for what is known of the times that have jobs already.
func (r *Recurrer) advance(
	ctx context.Context, s schedule.Schedule, now time.Time, did *Promoted,
	plan func(has map[time.Time]bool) schedule.Plan,
) (p schedule.Plan, after schedule.Schedule, err error) {
	p = plan(nil)
	if len(p.Passed) > 0 {
		has, err := r.Store.HaveJobs(ctx, s.Key, p.Passed)
		if err != nil {
			return p, s, err
		}
		if len(has) > 0 {
			p = plan(has)
		}
	}
	if err := r.makeAll(ctx, s, p.Make, now, did); err != nil {
		return p, s, err
	}
	after, writes := schedule.Advance(s, p, r.Clock.Now().UTC().Truncate(time.Millisecond))
	if len(writes) == 1 { // a transaction of one would cost twice
		err = r.Store.Put(ctx, writes[0])
	} else {
		err = r.Store.Commit(ctx, writes...)
	}
	if err != nil {
		return p, s, err
	}
	for _, e := range p.Ledger {
		did.Recorded += e.Count
		r.Meter.Count(telemetry.Promoted, int64(e.Count), telemetry.Dim{Key: "outcome", Value: e.Outcome})
		r.Log.InfoContext(ctx, "nominal times passed without a job", telemetry.Tenant, s.Tenant, "schedule", s.Name,
			"from", e.From, "to", e.To, "count", e.Count, "outcome", e.Outcome, "reason", e.Reason)
	}
	return p, after, nil
}

// hold parks a schedule until a pause of its task, or of everything, is lifted. The process that lifts the pause may
// have visited the parking place just before the schedule was there; so the pauses are read once more.
func (r *Recurrer) hold(ctx context.Context, s schedule.Schedule, p job.Pause, now time.Time) (more bool, err error) {
	if s.Parked || s.Next.IsZero() {
		return false, nil
	}
	if err := r.Store.NoteParked(ctx, s.Tenant, now); err != nil {
		return false, err
	}
	_, w := schedule.Hold(s, p, now)
	if err := r.Store.Put(ctx, w); err != nil {
		return false, err
	}
	r.Reread(s.Tenant)
	pauses, err := r.pauses.Of(ctx, s.Tenant)
	if err != nil {
		return false, err
	}
	_, held := pauses.Hold(s.Template.Task, now)
	return !held, nil
}

// resume ends a pause that has passed its until, and has the jobs unparked.
func (r *Recurrer) resume(ctx context.Context, s schedule.Schedule, now time.Time) error {
	after, w := schedule.Resume(s, "", now)
	if err := r.Store.Put(ctx, w); err != nil {
		return err
	}
	r.Log.InfoContext(ctx, "a pause has ended", telemetry.Tenant, s.Tenant, "schedule", s.Name, "until", s.Paused.Until)
	return r.Unpark(ctx, after)
}

// PromoteLater has dispatch promote a schedule, not before at.
func (r *Recurrer) PromoteLater(ctx context.Context, k schedule.Key, at time.Time) error {
	ask := message.Outgoing{Group: string(k.Tenant), Body: message.Encode(Ask(k, at))}
	return r.Queue.Send(ctx, contract.DispatchQueue, ask)
}
