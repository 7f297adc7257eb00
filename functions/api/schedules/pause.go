package schedules

import (
	"context"
	"net/http"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
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
	if !rest.IsName(in.Name) {
		return nil, errNoSchedule()
	}
	after, effective, err := s.Editor.Pause(ctx, in.Key, in.Version,
		schedule.Pause{Reason: p.Reason, By: who.Subject, Until: p.Until, Missed: p.Missed})
	if err != nil {
		return nil, asProblem(err)
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
	if !rest.IsName(in.Name) {
		return nil, errNoSchedule()
	}
	after, err := s.Editor.Resume(ctx, in.Key, in.Version, missed)
	return s.answerSchedule(ctx, after, http.StatusOK, asProblem(err))
}
