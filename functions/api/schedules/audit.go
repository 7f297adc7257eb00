package schedules

import (
	"context"

	"punctual/functions/api/rest"
	"punctual/shared/audit"
	"punctual/shared/schedule"
	"punctual/shared/text"
)

// auditedView is what the audit compares of a schedule: the view with a pause in the form of a request, and with a hash
// in place of the payload, of which the audit keeps no value.
type auditedView struct {
	scheduleView
	Paused *auditedPause `json:"paused"`
}

type auditedPause struct {
	Reason string       `json:"reason,omitempty"`
	Until  rest.Instant `json:"until,omitzero"`
	Missed string       `json:"missed,omitempty"`
}

func viewAudited(s schedule.Schedule) auditedView {
	v := auditedView{scheduleView: viewSchedule(s, s.UpdatedAt)}
	if p := s.Paused; p != nil {
		v.Paused = &auditedPause{p.Reason, rest.At(p.Until), p.Missed}
	}
	payload := text.MustJSON(s.Template.PayloadHash + s.Template.Payload)
	if v.Dag != nil {
		v.Dag.Params = payload
	} else {
		v.Job.Payload = payload
	}
	return v
}

// noteChange returns a function that notes a change of a schedule for the audit.
func noteChange(ctx context.Context) func(old *schedule.Schedule, after schedule.Schedule) {
	return func(old *schedule.Schedule, after schedule.Schedule) {
		if old == nil || old.Deleted() {
			audit.From(ctx).Changed(nil, viewAudited(after))
			return
		}
		audit.From(ctx).Changed(viewAudited(*old), viewAudited(after))
	}
}
