package main

import (
	"fmt"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
	"punctual/shared/span"
)

type whySchedule struct {
	Name string    `arg:"" help:"Name of the schedule."`
	At   typedTime `help:"Nominal time: of today such as 11:26, or a date with a zone; default: the newest."`
}

// account is what is known about a time of a schedule.
type account struct {
	At         time.Time            `json:"at"`
	Occurrence *rest.OccurrenceView `json:"occurrence"` // of that time; null if nothing was due then
	Before     *rest.OccurrenceView `json:"before,omitempty"`
	Next       *rest.OccurrenceView `json:"next,omitempty"`
	Job        *rest.JobView        `json:"job,omitempty"`     // that the time has made
	Skipped    *rest.SkippedTime    `json:"skipped,omitempty"` // the time to come at which nothing will run
}

// Run prints what became of the time that the schedule had at that moment, or of those around it.
func (c whySchedule) Run(s *shell) error {
	now := s.now()
	at, err := c.At.on(now.Local())
	if err != nil {
		return usage{fmt.Errorf("--at %w", err)}
	}
	a := account{At: at}
	if at.IsZero() {
		a.At = now
	}
	schedule, err := s.client.Schedule(s.ctx, c.Name)
	if err != nil {
		return err
	}
	passed := rest.ListOccurrencesParams{Before: new(a.At.Add(time.Millisecond))}
	if a.Before, err = s.occurrence(c.Name, passed); err != nil {
		return err
	}
	pending := rest.ListOccurrencesParamsOutcomePending
	if a.Next, err = s.occurrence(c.Name, rest.ListOccurrencesParams{After: &a.At, Outcome: &pending}); err != nil {
		return err
	}
	if a.Next == nil {
		if a.Next, err = s.nextTime(c.Name, a.At); err != nil {
			return err
		}
	}
	switch {
	case a.Before != nil && covers(*a.Before, a.At):
		a.Occurrence, a.Before = a.Before, nil
	case a.Next != nil && covers(*a.Next, a.At):
		a.Occurrence, a.Next = a.Next, nil
	}
	if o := a.Occurrence; o == nil && at.IsZero() {
		a.Occurrence, a.Before = a.Before, nil // of now means: of the newest
	}
	if o := a.Occurrence; o != nil && of(o.JobID) != "" {
		job, err := s.client.Job(s.ctx, *o.JobID)
		if err == nil { // it may be forgotten by now, as jobs are some time after their end
			a.Job = &job
		}
	}
	if a.Occurrence == nil && a.At.After(now) {
		if a.Skipped, err = s.skippedTime(c.Name, a.At); err != nil {
			return err
		}
	}
	switch s.output {
	case "json", "yaml":
		return s.encode(a)
	case "name":
		if a.Occurrence != nil {
			_, err = fmt.Fprintln(s.out, a.Occurrence.Outcome)
		}
		return err
	}
	s.describe(schedule, a, now)
	return nil
}

// covers reports whether an occurrence is that of a time, to the minute as people write it.
func covers(o rest.OccurrenceView, at time.Time) bool {
	from, to := o.NominalAt, o.NominalAt
	if o.Until != nil {
		to = *o.Until
	}
	return !at.Before(from) && !at.After(to) || at.Truncate(time.Minute).Equal(from.Truncate(time.Minute))
}

// occurrence returns the first that a filter lets through, nil if there is none.
func (s *shell) occurrence(name string, filter rest.ListOccurrencesParams) (*rest.OccurrenceView, error) {
	filter.Limit = new(1)
	for o, err := range s.client.Occurrences(s.ctx, name, &filter) {
		if err != nil {
			return nil, err
		}
		return &o, nil
	}
	return nil, nil
}

// nextTime is the calendar's next time from then on, which nothing is known about yet; nil if there is none.
func (s *shell) nextTime(name string, from time.Time) (*rest.OccurrenceView, error) {
	after := from.Truncate(time.Minute).Add(-time.Millisecond)
	answer, err := client.Call[rest.PreviewAnswer](s.ctx, s.client, rest.PreviewSchedule, client.Request{
		Path: []string{name}, Params: rest.PreviewScheduleParams{After: &after, Count: new(1)}})
	if err != nil || len(answer.Items) == 0 {
		return nil, err
	}
	next := answer.Items[0]
	return &rest.OccurrenceView{NominalAt: next.NominalAt, DueAt: &next.DueAt,
		Outcome: rest.OccurrenceViewOutcomePending}, nil
}

// skippedTime is the time of the calendar in a minute to come at which nothing will run; nil if there is none.
func (s *shell) skippedTime(name string, at time.Time) (*rest.SkippedTime, error) {
	minute := at.Truncate(time.Minute)
	answer, err := client.Call[rest.PreviewAnswer](s.ctx, s.client, rest.PreviewSchedule, client.Request{
		Path: []string{name}, Params: rest.PreviewScheduleParams{After: new(minute.Add(-time.Millisecond)),
			Count: new(1)}})
	if err != nil || answer.Skipped == nil {
		return nil, err
	}
	for _, o := range *answer.Skipped {
		if o.NominalAt.Truncate(time.Minute).Equal(minute) {
			return &o, nil
		}
	}
	return nil, nil
}

// willBe says what a time to come will start; "" for one that has passed or has begun.
func willBe(v rest.ScheduleView, o rest.OccurrenceView, now time.Time) string {
	due := o.NominalAt
	if o.DueAt != nil {
		due = *o.DueAt
	}
	if o.Outcome != rest.OccurrenceViewOutcomePending || !due.After(now) {
		return ""
	}
	starts := "nothing"
	switch {
	case v.Dag != nil:
		starts = "a run of the dag " + v.Dag.Name
	case v.Job != nil:
		starts = "a job of the task " + v.Job.Task
	}
	said := fmt.Sprintf("It will start %s at %s, in %s", starts, instant(&due),
		span.Format(due.Sub(now).Round(time.Second)))
	if p := v.Paused; p != nil && (p.Until == nil || p.Until.After(due)) {
		said += ", if the schedule is resumed before"
	}
	return said + "."
}

// describe writes an account as sentences.
func (s *shell) describe(v rest.ScheduleView, a account, now time.Time) {
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintln(s.out, s.withLocal(fmt.Sprintf(format, args...)))
	}
	if a.Occurrence == nil {
		was := "was"
		if a.At.After(now) {
			was = "will be"
		}
		if o := a.Skipped; o != nil {
			say("The time %s of %s will be skipped: %s", instant(&o.NominalAt), v.Name, plain(skippedWhy(*o)))
		} else {
			say("Nothing of %s %s due at %s.", v.Name, was, instant(&a.At))
		}
		if a.Before != nil {
			say("The time before it: %s", sentence(*a.Before))
		}
		if a.Next != nil {
			say("The next one: %s", sentence(*a.Next))
			if coming := willBe(v, *a.Next, now); coming != "" {
				say("%s", coming)
			}
		}
	} else {
		say("%s", sentence(*a.Occurrence))
		if coming := willBe(v, *a.Occurrence, now); coming != "" {
			say("%s", coming)
		}
		if id := of(a.Occurrence.RunID); id != "" {
			say("Its run: punctual dag watch %s", id)
		}
		if a.Job != nil {
			if a.Job.StatusReason != nil {
				say("Its job is %s: %s", a.Job.Status, plain(reason(a.Job.StatusReason)))
			}
			say("Its job: punctual get %s; its attempts: punctual attempts %[1]s", a.Job.JobID)
		}
	}
	if v.Paused != nil {
		say("The schedule is paused since %s: %s", instant(&v.Paused.Since), plain(of(v.Paused.Reason)))
	}
	if len(v.Next) == 0 && v.Paused == nil {
		say("It has no more times.")
	} else if len(v.Next) > 0 && v.Next[0].After(now) && a.Next == nil {
		say("Its next time: %s", instant(&v.Next[0]))
	}
}

// sentence is what became of a time.
func sentence(o rest.OccurrenceView) string {
	var b strings.Builder
	b.WriteString(instant(&o.NominalAt))
	if o.Until != nil {
		b.WriteString(" to " + instant(o.Until))
	}
	if o.Count != nil {
		fmt.Fprintf(&b, ", %d times", *o.Count)
	}
	b.WriteString(": " + string(o.Outcome))
	if o.Manual != nil && *o.Manual {
		b.WriteString(", on request")
	}
	if status := of(o.Status); status != "" {
		b.WriteString(", " + status)
	}
	if o.StartLatenessMs != nil {
		fmt.Fprintf(&b, ", started %d ms late", *o.StartLatenessMs)
	}
	if why := of(o.Why); why != "" {
		b.WriteString("; " + plain(why))
	} else if why := of(o.Reason); why != "" {
		b.WriteString("; " + plain(why))
	}
	return b.String()
}
