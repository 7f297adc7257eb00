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
	Pausing    *Pausing
}

// Pausing is whether a change leaves a schedule paused.
type Pausing struct {
	On     bool
	Reason *string // nil: that of the pause in force
}

// applied returns the pause that follows from one in force; nil is none. A pause in force that has no end and the
// reason stays as it is.
func (p Pausing) applied(is *schedule.Pause, by string) *schedule.Pause {
	if !p.On {
		return nil
	}
	if is != nil && is.Until.IsZero() && (p.Reason == nil || *p.Reason == is.Reason) {
		return is
	}
	after := &schedule.Pause{By: by}
	if is != nil {
		after.Reason, after.Missed = is.Reason, is.Missed
	}
	if p.Reason != nil {
		after.Reason = *p.Reason
	}
	return after
}

// apply makes the change in a schedule, in the name of by. kept is the schedule's payload; a payload that is equal as
// JSON is no change.
func (c Change) apply(to *schedule.Schedule, kept []byte, by string) {
	if c.Calendar != nil {
		to.Spec, to.Specs, to.Exclusions = c.Calendar.Spec, c.Calendar.Specs, c.Calendar.Exclusions
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
	if c.Pausing != nil {
		to.Paused = c.Pausing.applied(to.Paused, by)
	}
}

// Planned is the calendar, or the list of calendars, that a change gives a schedule.
type Planned struct {
	Spec       calendar.Spec
	Specs      []calendar.Spec // list in place of Spec; nil: it is no list
	Exclusions calendar.Exclusions
	AsRead     []item.Write // conditions that the exclusions have not changed
	Calendar   calendar.Union
}
