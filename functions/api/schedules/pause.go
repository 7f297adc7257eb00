package schedules

import (
	"context"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/recur"
	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

var (
	resumeMissed = spec.Missed.About("Selection of the nominal times in the pause that run now: drop, last or all; " +
		"default: that of the pause")

	resumeRequest = field.NewObject("ResumeRequest", "Resumption of a schedule.", resumeMissed)
)

func (s *Handler) pauseSchedule(ctx context.Context, who tenant.Identity, in *One) (*scheduleAnswer, error) {
	p, err := spec.ReadPause(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	if err := s.promoteFirst(ctx, in.Key); err != nil {
		return nil, err
	}
	after, changed, err := s.changeSchedule(ctx, in.Key, in.Version,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			if is := old.Paused; is != nil && is.Reason == p.Reason && is.Until.Equal(p.Until) &&
				is.Missed == p.Missed && is.By != schedule.ByPunctual {
				return nil, nil
			}
			_, write := schedule.PauseSchedule(old,
				schedule.Pause{Reason: p.Reason, By: who.Subject, Until: p.Until, Missed: p.Missed}, now)
			return []item.Write{write}, nil
		})
	if err != nil {
		return nil, err
	}
	effective := after.Paused.EffectiveAt
	if changed {
		effective = s.EffectiveAt(effective)
	}
	if !p.Until.IsZero() {
		s.wakeSchedule(ctx, after, p.Until)
	}
	out, err := s.answerSchedule(ctx, after, http.StatusOK, nil)
	if err != nil {
		return nil, err
	}
	out.Body.EffectiveAt = rest.At(effective)
	out.Body.InFlight, err = s.Read.InFlight(ctx, in.Key)
	return out, err
}

func (s *Handler) resumeSchedule(ctx context.Context, _ tenant.Identity, in *One) (*scheduleAnswer, error) {
	missed := ""
	err := spec.OptionalBody(ctx, resumeRequest, func(r *rest.Reader, f rest.Fields) {
		resumeMissed.Into(r, f, &missed)
	})
	if err != nil {
		return nil, err
	}
	after, resumed, err := s.changeSchedule(ctx, in.Key, in.Version,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			if old.Paused == nil {
				return nil, nil
			}
			_, write := schedule.Resume(old, missed, now)
			return []item.Write{write}, nil
		})
	if err == nil && resumed {
		s.promote(ctx, in.Key)
		s.WakeParked(ctx, in.Key.Tenant, s.Now())
		after, err = s.schedule(ctx, in.Key) // promotion has changed it
	}
	return s.answerSchedule(ctx, after, http.StatusOK, err)
}

// wakeSchedule lets dispatch resume a schedule when its pause ends, and re-evaluate the jobs that it holds.
func (s *Handler) wakeSchedule(ctx context.Context, paused schedule.Schedule, at time.Time) {
	s.WakeLater(ctx, paused.Tenant, at, append(arm.Unpark(paused.Tenant), recur.Ask(paused.Key, at))...)
}
