package recur

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/event"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Announced are the kinds of events that changes of a tenant's schedules note.
func (r *Recurrer) Announced(ctx context.Context, t tenant.ID) (kinds schedule.Kinds) {
	for _, k := range schedule.AllKinds {
		if r.Notify.Asked(ctx, t, event.OfKind(k)) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// read reads a schedule that is to be changed.
func (r *Recurrer) read(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	s, err := r.Store.Schedule(ctx, k)
	s.Announced = r.Announced(ctx, k.Tenant)
	return s, err
}

// Announce announces the events that are pending on a schedule. If it fails, the wake-up of the schedule repeats it.
func (r *Recurrer) Announce(ctx context.Context, s schedule.Schedule) error {
	if len(s.Events) == 0 {
		return nil
	}
	for _, a := range s.Events {
		if err := r.Notify.Announce(ctx, event.OfSchedule(s, a)); err != nil {
			return fmt.Errorf("announcing the events of schedule %q: %w", s.Name, err)
		}
	}
	_, w := schedule.NotifyDone(s, r.Clock.Now().UTC().Truncate(time.Millisecond))
	return r.Store.Put(ctx, w)
}

// AnnounceOrLater announces what a change of a schedule has noted. A failure is left to the wake-up of the schedule.
func (r *Recurrer) AnnounceOrLater(ctx context.Context, s schedule.Schedule) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accept.SendTimeout)
	defer cancel()
	if err := unlessRefused(r.Announce(ctx, s)); err != nil {
		r.Log.WarnContext(ctx, "the events of a schedule will be announced at its wake-up",
			telemetry.Tenant, s.Tenant, "schedule", s.Name, telemetry.Err, err.Error())
	}
}

// announceNoted announces what a promotion has noted on a schedule, or a process that crashed. The schedule is as it
// was read before its last step.
func (r *Recurrer) announceNoted(ctx context.Context, s schedule.Schedule) error {
	if len(s.Events) == 0 && len(s.Announced) == 0 {
		return nil
	}
	s, err := r.Store.Schedule(ctx, s.Key)
	if err == nil {
		err = unlessRefused(r.Announce(ctx, s))
	}
	return err
}
