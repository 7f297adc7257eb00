package main

import (
	"fmt"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
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
	Job        *rest.JobView        `json:"job,omitempty"` // that the time has made
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
	return &rest.OccurrenceView{NominalAt: answer.Items[0].NominalAt, Outcome: rest.OccurrenceViewOutcomePending}, nil
}

// describe writes an account as sentences.
func (s *shell) describe(v rest.ScheduleView, a account, now time.Time) {
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintln(s.out, s.withLocal(fmt.Sprintf(format, args...)))
	}
	if a.Occurrence == nil {
		say("Nothing of %s was due at %s.", v.Name, instant(&a.At))
		if a.Before != nil {
			say("The time before it: %s", sentence(*a.Before))
		}
		if a.Next != nil {
			say("The next one: %s", sentence(*a.Next))
		}
	} else {
		say("%s", sentence(*a.Occurrence))
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
		b.WriteString(", because somebody asked for it")
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
