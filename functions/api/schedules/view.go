package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/span"
)

// scheduleView shows a schedule.
type scheduleView struct {
	Name               string                         `json:"name" doc:"Name of the schedule"`
	Calendar           calendarView                   `json:"calendar,omitzero" doc:"Calendar as it was written; absent if there is a list"`
	Calendars          []calendarView                 `json:"calendars,omitempty" doc:"List of calendars as it was written, instead of calendar"`
	Job                *jobTemplateView               `json:"job,omitempty" doc:"Job that each nominal time makes; absent if there is a dag"`
	Dag                *dagTemplateView               `json:"dag,omitempty" doc:"Dag of which each nominal time makes a run, instead of job"`
	Overlap            schedule.Overlap               `json:"overlap" enum:"allow,skip,buffer_one,buffer_all,cancel_running" doc:"Treatment of a run that is due while an earlier one has not ended"`
	CatchUp            catchUpView                    `json:"catch_up" doc:"Policy for nominal times whose run could not start in time"`
	PauseAfterFailures int                            `json:"pause_after_failures" doc:"Number of jobs in a row that fail for good after which the schedule is paused; 0 is never"`
	Version            int64                          `json:"version" doc:"Version, which grows with every edit, pause and resume; in quotes it is the ETag"`
	CreatedAt          rest.Instant                   `json:"created_at" doc:"Time at which the schedule was created"`
	UpdatedAt          rest.Instant                   `json:"updated_at" doc:"Time of the newest change"`
	Next               []rest.Instant                 `json:"next" doc:"Next {=next_shown} nominal times; empty while the schedule is paused without an end, or if it has ended"`
	Last               rest.OrNull[occurrenceView]    `json:"last,omitzero" doc:"Newest nominal time that has passed; null before the first, absent in lists"`
	Paused             rest.OrNull[schedulePauseView] `json:"paused" doc:"Pause of the schedule; null if it is not paused"`
	EffectiveAt        rest.Instant                   `json:"effective_at,omitzero" doc:"In the answer to a pause, time after which nothing of the schedule starts. In the answer to an edit, time up to which due times keep their former job, overlap and catch_up."`
	InFlight           []job.ID                       `json:"in_flight,omitzero" doc:"Identifiers of the jobs that are running, among the newest {=in_flight_read} of the schedule; only in the answer to a pause"`
	EndedBy            string                         `json:"ended_by,omitempty" doc:"Reason why the schedule has ended: max_runs, because the maximum number of runs is reached"`
	FailuresInARow     int64                          `json:"failures_in_a_row,omitempty" doc:"Number of jobs that failed for good since the last success; only counted for pause_after_failures"`
	Notes              []string                       `json:"notes,omitempty" doc:"Notes about details of the calendar that are easily misread"`
}

// calendarView shows a calendar as it was written.
type calendarView calendar.Spec

type jobTemplateView struct {
	Task        string           `json:"task" doc:"Name of the task"`
	Pool        string           `json:"pool" doc:"Pool of workers that runs the job"`
	Priority    job.Priority     `json:"priority" doc:"Priority of the job"`
	Timeout     string           `json:"timeout" doc:"Maximum duration of one attempt"`
	StartWithin string           `json:"start_within,omitempty" doc:"Maximum time from due_at to the start of the first attempt; absent if there is no limit"`
	ExpireAfter string           `json:"expire_after,omitempty" doc:"Maximum time from due_at to the end of the job; absent if there is no limit"`
	Retry       *spec.RetryView  `json:"retry" doc:"Retry policy of the job"`
	Limits      []spec.LimitUse  `json:"limits,omitempty" doc:"Limits of work under which the job counts"`
	Unique      *spec.UniqueView `json:"unique,omitempty" doc:"Key that one open job of the tenant holds at a time; the job takes it when it falls due"`
	spec.LabelsView
	Literals    []string        `json:"allow_literals,omitempty" doc:"JSON pointers of the strings that were declared not to be secrets"`
	PayloadSize int64           `json:"payload_size,omitempty" doc:"Size of the payload in bytes"`
	Payload     json.RawMessage `json:"payload,omitempty" doc:"Input of the job; absent in lists, and if larger than {=item_kib} KB"`
}

type catchUpView struct {
	Policy schedule.Policy `json:"policy" enum:"none,last,all" doc:"Selection of late runs that start: none, the last one, or all"`
	Window string          `json:"window" doc:"Age of a nominal time beyond which its run does not start"`
	Cap    int             `json:"cap" doc:"Maximum number of late runs that start with the policy all, the newest first"`
	After  string          `json:"after" doc:"Time after due_at from which a run that has not started is late"`
}

type schedulePauseView struct {
	Reason      string       `json:"reason,omitempty" doc:"Reason for the pause"`
	By          string       `json:"by,omitempty" doc:"Subject that paused the schedule, or punctual after failures in a row"`
	Since       rest.Instant `json:"since" doc:"Time at which the pause was made"`
	EffectiveAt rest.Instant `json:"effective_at" doc:"Time after which nothing of the schedule starts"`
	Until       rest.Instant `json:"until,omitzero" doc:"Time at which the pause ends by itself; absent if it does not"`
	Missed      string       `json:"missed,omitempty" doc:"Selection of the nominal times in the pause that run after it; absent if catch_up selects them"`
}

func viewTemplate(t schedule.Template) *jobTemplateView {
	v := &jobTemplateView{Task: t.Task, Pool: t.Pool, Priority: t.Priority, Timeout: span.Format(t.Timeout),
		StartWithin: spec.SpanOf(t.StartWithin), ExpireAfter: spec.SpanOf(t.ExpireAfter),
		Retry: spec.ViewRetry(t.Retry), Limits: spec.ViewLimits(t.Limits),
		Unique:     spec.ViewUnique(t.Unique),
		LabelsView: spec.ViewLabels(t.Labels), PayloadSize: t.PayloadSize}
	if t.Literals != nil {
		v.Literals = t.Literals.Pointers
	}
	return v
}

// NextShown is how many coming times a schedule shows.
const NextShown = 3

// viewSchedule shows what the schedule's own item has.
func viewSchedule(c schedule.Schedule, now time.Time) scheduleView {
	v := scheduleView{
		Name: c.Name, Calendar: calendarView(c.Spec), Overlap: c.Overlap,
		CatchUp: catchUpView{c.CatchUp.Policy, span.Format(c.CatchUp.Window), c.CatchUp.Cap,
			span.Format(cmp.Or(c.CatchUp.After, schedule.DefaultAfter))},
		PauseAfterFailures: c.PauseAfter,
		Version:            c.Epoch, CreatedAt: rest.At(c.CreatedAt),
		UpdatedAt: rest.At(c.UpdatedAt), Next: []rest.Instant{}, EndedBy: c.EndedBy,
		FailuresInARow: c.Failures,
	}
	if c.Template.StartsRun() {
		v.Dag = viewDagTemplate(c.Template)
	} else {
		v.Job = viewTemplate(c.Template)
	}
	from := now
	if p := c.Paused; p != nil {
		v.Paused.Value = &schedulePauseView{p.Reason, p.By, rest.At(p.Since),
			rest.At(p.EffectiveAt), rest.At(p.Until), p.Missed}
		from = p.Until
	}
	for _, one := range c.Specs {
		v.Calendars = append(v.Calendars, calendarView(one))
	}
	cal, err := c.Coming()
	if err != nil {
		v.Notes = []string{fmt.Sprintf("The schedule does not run, because its calendar cannot be read: %s", err)}
		return v
	}
	v.Notes = cal.Notes()
	if c.EndedBy == "" && !from.IsZero() {
		if from.Before(now) {
			from = now
		}
		for _, o := range cal.Preview(from, NextShown) {
			v.Next = append(v.Next, rest.At(o.NominalAt))
		}
	}
	return v
}

// showSchedule shows one schedule with its payload and its last run.
func (s *Handler) showSchedule(ctx context.Context, c schedule.Schedule) (scheduleView, error) {
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
	last, _, err := s.Read.Occurrences(ctx, c,
		show.OccurrenceFilter{Before: now.Add(time.Millisecond), Limit: 1, TimesOnly: true}, "")
	v.Last.Known = true
	if len(last) > 0 {
		v.Last.Value = new(viewOccurrence(last[0]))
	}
	return v, err
}
