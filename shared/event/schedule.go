package event

import (
	"time"

	"punctual/shared/job"
	"punctual/shared/schedule"
)

// kinds are the events of schedules.
var kinds = map[schedule.Kind]Type{
	schedule.TimesMissed: ScheduleMissed, schedule.TimesSkipped: ScheduleSkipped, schedule.WasPaused: SchedulePaused,
	schedule.HasEnded: ScheduleEnded,
}

// OfKind is the event of a schedule of that kind.
func OfKind(k schedule.Kind) Type { return kinds[k] }

// scheduleData says of which schedule an event is, by the names of the API's view, and what happened.
type scheduleData struct {
	Name      string            `json:"name"`
	Task      string            `json:"task,omitempty"`
	Dag       string            `json:"dag,omitempty"`
	Version   int64             `json:"version"`
	CreatedAt instant           `json:"created_at"`
	UpdatedAt instant           `json:"updated_at"`
	Tags      map[string]string `json:"tags,omitempty"`
	Sequence  int64             `json:"sequence"`

	First  instant        `json:"first,omitzero"` // of times that did not become jobs
	Last   instant        `json:"last,omitzero"`
	Count  *int           `json:"count,omitempty"` // absent: too many to count
	Reason *job.Reason    `json:"status_reason,omitempty"`
	Paused *schedulePause `json:"paused,omitempty"`
}

type schedulePause struct {
	Reason      string  `json:"reason,omitempty"`
	By          string  `json:"by,omitempty"`
	Since       instant `json:"since"`
	EffectiveAt instant `json:"effective_at"`
	Until       instant `json:"until,omitzero"`
	Missed      string  `json:"missed,omitempty"`
}

// OfSchedule is an event of a schedule.
func OfSchedule(s schedule.Schedule, a schedule.Announcement) Event {
	e := newEvent(s.Tenant, kinds[a.Kind], "schedule/"+s.Name, time.UnixMilli(a.At).UTC(), a.Sequence)
	e.Schedule, e.Dag = s.Name, s.Template.Dag
	if e.Dag == "" {
		e.Task = s.Template.Task
	}
	e.tags = TagsOf(s.Template.Labels)
	d := scheduleData{Name: s.Name, Task: e.Task, Dag: e.Dag, Version: s.Epoch, CreatedAt: instant{s.CreatedAt},
		UpdatedAt: instant{s.UpdatedAt}, Tags: e.tags, Sequence: a.Sequence}
	if a.First != 0 {
		d.First, d.Last = instant{time.UnixMilli(a.First)}, instant{time.UnixMilli(a.Last)}
		if a.Count > 0 {
			d.Count = &a.Count
		}
	}
	if a.Reason.Code != "" {
		d.Reason = &a.Reason
	}
	if p := a.Pause; p != nil {
		d.Paused = &schedulePause{p.Reason, p.By, instant{p.Since}, instant{p.EffectiveAt}, instant{p.Until}, p.Missed}
	}
	e.data = d
	return e
}
