package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/span"
)

// ScheduleView shows a schedule.
type ScheduleView struct {
	Name               string                         `json:"name"`
	Calendar           calendarView                   `json:"calendar"`
	Job                *jobTemplateView               `json:"job,omitempty" doc:"Absent where each nominal time makes a run"`
	Dag                *dagTemplateView               `json:"dag,omitempty" doc:"In place of job"`
	Overlap            schedule.Overlap               `json:"overlap" enum:"allow,skip,buffer_one,buffer_all,cancel_running"`
	CatchUp            catchUpView                    `json:"catch_up"`
	PauseAfterFailures int                            `json:"pause_after_failures" doc:"0: no number of failures pauses it"`
	Version            int64                          `json:"version" doc:"Grows with every edit, pause and resume; the ETag is this in quotes"`
	CreatedAt          rest.Instant                   `json:"created_at"`
	UpdatedAt          rest.Instant                   `json:"updated_at"`
	Next               []rest.Instant                 `json:"next" doc:"The next {=next_shown} nominal times; none while it is paused without an end, or has ended"`
	Last               rest.OrNull[occurrenceView]    `json:"last,omitzero" doc:"The newest time that has passed; null before the first, absent in lists"`
	Paused             rest.OrNull[schedulePauseView] `json:"paused" doc:"null: it is not"`
	EffectiveAt        rest.Instant                   `json:"effective_at,omitzero" doc:"In the answer to a pause: nothing of it starts after this time. In the answer to an edit: times due up to then keep the job, overlap and catch_up that they had"`
	InFlight           []job.ID                       `json:"in_flight,omitzero" doc:"In the answer to a pause: those of its newest {=in_flight_looked} jobs that a worker is at"`
	EndedBy            string                         `json:"ended_by,omitempty" doc:"max_runs: it has run as often as it may"`
	FailuresInARow     int64                          `json:"failures_in_a_row,omitempty" doc:"Jobs that failed for good since the last that succeeded, while pause_after_failures counts them"`
	Notes              []string                       `json:"notes,omitempty" doc:"What is easily misread in its calendar"`
}

// calendarView shows a calendar as it was written.
type calendarView calendar.Spec

type jobTemplateView struct {
	Task        string          `json:"task"`
	Pool        string          `json:"pool"`
	Priority    job.Priority    `json:"priority"`
	Timeout     string          `json:"timeout"`
	StartWithin string          `json:"start_within,omitempty"`
	ExpireAfter string          `json:"expire_after,omitempty"`
	Retry       *spec.RetryView `json:"retry"`
	spec.LabelsView
	Literals    []string        `json:"allow_literals,omitempty" doc:"The strings of the payload that were declared to be no secrets"`
	PayloadSize int64           `json:"payload_size,omitempty" doc:"Bytes"`
	Payload     json.RawMessage `json:"payload,omitempty" doc:"Left out in lists, and when larger than {=item_kib} KB"`
}

type catchUpView struct {
	Policy schedule.Policy `json:"policy" enum:"none,last,all"`
	Window string          `json:"window"`
	Cap    int             `json:"cap"`
	After  string          `json:"after"`
}

type schedulePauseView struct {
	Reason      string       `json:"reason,omitempty"`
	By          string       `json:"by,omitempty" doc:"Who, or punctual after failures in a row"`
	Since       rest.Instant `json:"since"`
	EffectiveAt rest.Instant `json:"effective_at" doc:"Nothing starts later"`
	Until       rest.Instant `json:"until,omitzero"`
	Missed      string       `json:"missed,omitempty" doc:"Which of the times in it run after it; absent: as catch_up says"`
}

func viewTemplate(t schedule.Template) *jobTemplateView {
	v := &jobTemplateView{Task: t.Task, Pool: t.Pool, Priority: t.Priority, Timeout: span.Format(t.Timeout),
		StartWithin: spec.SpanOf(t.StartWithin), ExpireAfter: spec.SpanOf(t.ExpireAfter),
		Retry:      spec.ViewRetry(t.Retry),
		LabelsView: spec.ViewLabels(t.Labels), PayloadSize: t.PayloadSize}
	if t.Literals != nil {
		v.Literals = t.Literals.Pointers
	}
	return v
}

// NextShown is how many coming times a schedule shows.
const NextShown = 3

// viewSchedule shows what the schedule's own item has.
func viewSchedule(c schedule.Schedule, now time.Time) ScheduleView {
	v := ScheduleView{
		Name: c.Name, Calendar: calendarView(c.Spec), Overlap: c.Overlap,
		CatchUp: catchUpView{c.CatchUp.Policy, span.Format(c.CatchUp.Window), c.CatchUp.Cap,
			span.Format(cmp.Or(c.CatchUp.After, schedule.DefaultAfter))},
		PauseAfterFailures: c.PauseAfter,
		Version:            c.Epoch, CreatedAt: rest.Instant{Time: c.CreatedAt},
		UpdatedAt: rest.Instant{Time: c.UpdatedAt}, Next: []rest.Instant{}, EndedBy: c.EndedBy,
		FailuresInARow: c.Failures,
	}
	if c.Template.Dag != "" {
		v.Dag = viewDagTemplate(c.Template)
	} else {
		v.Job = viewTemplate(c.Template)
	}
	from := now
	if p := c.Paused; p != nil {
		v.Paused.Value = &schedulePauseView{p.Reason, p.By, rest.Instant{Time: p.Since},
			rest.Instant{Time: p.EffectiveAt}, rest.Instant{Time: p.Until}, p.Missed}
		from = p.Until
	}
	cal, err := c.Calendar()
	if err != nil {
		v.Notes = []string{fmt.Sprintf("nothing runs: the calendar cannot be read: %s", err)}
		return v
	}
	v.Notes = cal.Notes()
	if c.EndedBy == "" && !from.IsZero() {
		if from.Before(now) {
			from = now
		}
		for _, o := range cal.Preview(from, NextShown) {
			v.Next = append(v.Next, rest.Instant{Time: o.NominalAt})
		}
	}
	return v
}

// showSchedule shows one schedule with its payload and its last run.
func (s *Handler) showSchedule(ctx context.Context, c schedule.Schedule) (ScheduleView, error) {
	now := s.Now()
	v := viewSchedule(c, now)
	if c.Template.PayloadIn != job.InBlob {
		payload, err := s.Store.SchedulePayload(ctx, c)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return v, err
		}
		if v.Dag != nil {
			v.Dag.Params = payload
		} else {
			v.Job.Payload = payload
		}
	}
	last, _, err := s.occurrences(ctx, c,
		occurrenceFilter{before: now.Add(time.Millisecond), limit: 1, timesOnly: true}, "")
	v.Last.Known = true
	if len(last) > 0 {
		v.Last.Value = &last[0]
	}
	return v, err
}

// most returns how often a schedule may still run, at most.
func most(c schedule.Schedule) int {
	switch n := c.MaxRuns(); {
	case c.EndedBy != "":
		return 0
	case n > 0 && n < math.MaxInt:
		return int(n)
	}
	return math.MaxInt
}
