package spec

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/document"
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

// Pausing is the field paused of a schedule, which the reader of the schedule reads itself.
var Pausing = field.Value("paused", "Whether the schedule is paused: true, false, or an object with the reason. "+
	"Absent changes nothing; a new schedule is then not paused. true keeps the reason of a pause in force, and "+
	"removes its until. false resumes the schedule, as POST /v1/schedules/{name}/resume without a body does.",
	pausingSchema)

// pausing is the object form of Pausing.
var pausing = field.NewObject("PausingRequest", "Pause without an end.", pauseReason)

func pausingSchema(known huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeBoolean}, pausing.Schema(known)}}
}

// ReadPausing reads the value of Pausing. reason is nil if it is not given.
func ReadPausing(r *rest.Reader, v rest.Value) (on bool, reason *string, ok bool) {
	switch r.Doc.Kind(v.Node) {
	case document.KindBool:
		on, ok = r.Flag(v)
	case document.KindObject:
		f := pausing.Read(r, v)
		if pauseReason.Pointer(r, f, &reason) {
			r.NoSecrets(f[pauseReason.Name()], nil)
		}
		on, ok = true, f != nil
	default:
		r.Violation(v.Pointer, rest.CodeInvalidValue, "true, false or an object with the reason",
			"the value is neither a boolean nor an object")
	}
	return on, reason, ok
}

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
