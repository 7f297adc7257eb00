package amend

import (
	"bytes"

	"punctual/functions/engine/accept"
	"punctual/shared/calendar"
	"punctual/shared/document"
	"punctual/shared/item"
	"punctual/shared/schedule"
)

// Change holds the new values of a schedule; nil for what does not change.
type Change struct {
	Calendar   *Planned
	Job        *accept.Draft
	Overlap    *schedule.Overlap
	CatchUp    *schedule.CatchUp
	PauseAfter *int
}

// apply makes the change in a schedule, in the name of by. kept is the schedule's payload; a payload that is equal as
// JSON is no change.
func (c Change) apply(to *schedule.Schedule, kept []byte, by string) {
	if c.Calendar != nil {
		to.Spec, to.Exclusions = c.Calendar.Spec, c.Calendar.Exclusions
	}
	if c.Job != nil {
		if c.Job.Payload != nil && kept != nil && document.Same(c.Job.Payload, kept) {
			c.Job.Payload = kept
		}
		old := to.Template
		to.Template = schedule.TemplateOf(c.Job.Row, c.Job.Labels)
		to.SetPayload(c.Job.Payload)
		to.Template.Literals = accept.LiteralsBy(by, c.Job.Literals)
		to.Template.Keep(old, kept != nil && bytes.Equal(c.Job.Payload, kept))
	}
	if c.Overlap != nil {
		to.Overlap = *c.Overlap
	}
	if c.CatchUp != nil {
		to.CatchUp = *c.CatchUp
	}
	if c.PauseAfter != nil {
		to.PauseAfter = *c.PauseAfter
	}
}

// Planned is a calendar that a change gives a schedule.
type Planned struct {
	Spec       calendar.Spec
	Exclusions calendar.Exclusions
	AsRead     []item.Write // conditions that the exclusions have not changed
	Calendar   calendar.Calendar
}
