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
