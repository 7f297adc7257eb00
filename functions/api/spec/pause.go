package spec

import (
	"context"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/job"
)

// Fields of a pause.
var (
	pauseReason = Reason.About("Reason for the pause.")
	pauseUntil  = Instant("until", "Time at which the pause ends by itself; default: none.")
	pauseMissed = Missed.About("Treatment of the schedules' times under the pause: drop, last or all; default: the " +
		"catch-up policy of each schedule. Jobs without a schedule always run.")

	PauseRequest = field.NewObject("PauseRequest", "Pause of everything, of one task or of one schedule.", pauseReason,
		pauseUntil, pauseMissed)
)

// Passed reports whether a pause has ended by its until.
func Passed(p job.Pause, now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// ReadPause reads the body of a pause; without a body it is a pause without an end.
func ReadPause(ctx context.Context, now time.Time) (p job.Pause, err error) {
	err = OptionalBody(ctx, PauseRequest, func(r *rest.Reader, f rest.Fields) {
		if pauseReason.Into(r, f, &p.Reason) {
			r.NoSecrets(f[pauseReason.Name()], nil)
		}
		if v, ok := f[pauseUntil.Name()]; ok {
			if t, ok := r.Ahead(v, now); ok {
				p.Until = t
				if !t.After(now) {
					r.Violation(v.Pointer, rest.CodeInThePast, "a time ahead", "a pause cannot end before it begins")
				}
			}
		}
		pauseMissed.Into(r, f, &p.Missed)
	})
	return p, err
}

// pausesFor is how long the pauses of a tenant are cached. The view of an accepted job shows whether a pause holds it,
// and reading the pauses for every job would put all reads on one partition.
const pausesFor = time.Second

// maxPausesSeen is how many tenants are cached.
const maxPausesSeen = 1000

// Held reports whether a pause seems to hold a job that is about to be accepted. It is only for the view.
func (s *Core) Held(ctx context.Context, r job.Row, now time.Time) bool {
	if !job.StartsSoon(r, now) {
		return false
	}
	pauses, err := s.Pauses.Get(ctx, r.Tenant, func(ctx context.Context) (job.Pauses, error) {
		return s.Store.Pauses(ctx, r.Tenant)
	})
	if err != nil {
		return false
	}
	_, held := pauses.Hold(r.Task, now)
	return held
}
