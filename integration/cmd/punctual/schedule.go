package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type schedules struct {
	Apply   applySchedules  `cmd:"" help:"Create or replace the schedules of a YAML file."`
	Ls      listSchedules   `cmd:"" help:"List schedules."`
	Preview previewSchedule `cmd:"" help:"Show the next times of a schedule."`
	Why     whySchedule     `cmd:"" help:"Tell what became of a time of a schedule, and why."`
	Pause   pauseSchedule   `cmd:"" help:"Hold the times of a schedule."`
	Resume  resumeSchedule  `cmd:"" help:"Lift the pause of a schedule."`
}

var scheduleColumns = []column[rest.ScheduleView]{
	{"SCHEDULE", scheduleName},
	{"CALENDAR", func(v rest.ScheduleView) string {
		c := v.Calendar
		for _, form := range []*string{c.Cron, c.Every, c.Rrule} {
			if form != nil {
				return strings.TrimSpace(*form + " " + of(c.Timezone))
			}
		}
		return "dates"
	}},
	{"DOES", func(v rest.ScheduleView) string {
		if v.Dag != nil {
			return "dag " + v.Dag.Name
		}
		if v.Job != nil {
			return v.Job.Task
		}
		return ""
	}},
	{"NEXT", func(v rest.ScheduleView) string {
		if len(v.Next) == 0 {
			return ""
		}
		return instant(&v.Next[0])
	}},
	{"PAUSED", func(v rest.ScheduleView) string {
		if v.Paused == nil {
			return ""
		}
		return "since " + instant(&v.Paused.Since)
	}},
}

func scheduleName(v rest.ScheduleView) string { return v.Name }

type applySchedules struct {
	source
	DryRun bool              `help:"Show the times that would be added, lost and moved, and change nothing."`
	Prune  bool              `help:"Delete the schedules with --tag that the file does not hold."`
	Tag    map[string]string `help:"name=value, the tag of what it makes by which --prune knows its schedules."`
}

// Run puts each document, and goes on after one that is refused; only when none was does it prune.
func (c applySchedules) Run(s *shell) error {
	docs, err := c.documents(s)
	if err != nil {
		return err
	}
	if err := c.check(docs); err != nil {
		return err
	}
	if c.DryRun {
		var failed []error
		for _, d := range docs {
			if err := s.tryOut(d); err != nil {
				failed = append(failed, d.refused(err))
			}
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		return c.prune(s, docs)
	}
	err = apply(s, docs, func(d document) (rest.ScheduleView, error) {
		return client.Read[rest.ScheduleView](s.client.REST().PutScheduleWithBody(s.ctx, d.name, nil, asJSON,
			bytes.NewReader(d.body)))
	}, scheduleName, scheduleColumns...)
	if err != nil {
		return err
	}
	return c.prune(s, docs)
}

// check is an error when --prune would not know the schedules of this very file again.
func (c applySchedules) check(docs []document) error {
	if c.Prune != (len(c.Tag) > 0) {
		return usage{errors.New("--prune and --tag go together: what has the tag and is not in the file is deleted")}
	}
	for _, d := range docs {
		var body struct {
			Job, Dag *struct{ Tags map[string]string }
		}
		if json.Unmarshal(d.body, &body) != nil {
			continue // the API says better what is wrong
		}
		at, makes, tags := "/job", body.Job, map[string]string(nil)
		if body.Dag != nil {
			at, makes = "/dag", body.Dag
		}
		if makes != nil {
			tags = makes.Tags
		}
		if !tagged(tags, c.Tag) {
			n := d.at(at)
			return usage{d.wrong(n, "%s has not the tag of --tag: the next --prune would not know it", d.name)}
		}
	}
	return nil
}

func tagged(tags, want map[string]string) bool {
	for name, value := range want {
		if tags[name] != value {
			return false
		}
	}
	return true
}

// prune deletes the schedules that have the tag and no document, or with --dry-run only says which.
func (c applySchedules) prune(s *shell, docs []document) error {
	if !c.Prune {
		return nil
	}
	kept := map[string]bool{}
	for _, d := range docs {
		kept[d.name] = true
	}
	var old []string
	for v, err := range s.client.Schedules(s.ctx) {
		if err != nil {
			return err
		}
		tags := map[string]string{}
		if v.Job != nil && v.Job.Tags != nil {
			tags = *v.Job.Tags
		}
		if v.Dag != nil && v.Dag.Tags != nil {
			tags = *v.Dag.Tags
		}
		if !kept[v.Name] && tagged(tags, c.Tag) {
			old = append(old, v.Name)
		}
	}
	for _, name := range old {
		said := "would be deleted"
		if !c.DryRun {
			said = "deleted"
			if err := s.client.DeleteSchedule(s.ctx, name); err != nil && !errors.Is(err, client.NotFound) {
				return fmt.Errorf("deleting %s: %w", name, err)
			}
		}
		_, _ = fmt.Fprintf(s.err, "%s: %s\n", name, said) // what was asked for is the list
	}
	return nil
}

// tryOut shows what a document would change. A schedule that is new adds all of its times.
func (s *shell) tryOut(d document) error {
	diff, err := client.Read[rest.ScheduleDiff](s.client.REST().PatchScheduleWithBody(s.ctx, d.name,
		&rest.PatchScheduleParams{DryRun: new(true)}, asJSON, bytes.NewReader(d.body)))
	if errors.Is(err, client.NotFound) {
		diff, err = s.firstTimes(d)
	}
	if err != nil {
		return err
	}
	if s.output == "json" || s.output == "yaml" {
		return s.encode(diff)
	}
	_, _ = fmt.Fprintf(s.out, "%s: %d added, %d lost, %d moved through %s\n", d.name, len(diff.Added), len(diff.Lost),
		len(diff.Moved), instant(&diff.Through))
	for _, o := range diff.Added {
		_, _ = fmt.Fprintln(s.out, "  +", instant(&o.DueAt))
	}
	for _, o := range diff.Lost {
		_, _ = fmt.Fprintln(s.out, "  -", instant(&o.DueAt))
	}
	for _, m := range diff.Moved {
		_, _ = fmt.Fprintln(s.out, "  ~", instant(&m.From), "to", instant(&m.To))
	}
	if diff.Cut {
		_, _ = fmt.Fprintln(s.out, "  and more")
	}
	return nil
}

// newTimes is how many times of a new schedule a dry run shows.
const newTimes = 10

func (s *shell) firstTimes(d document) (rest.ScheduleDiff, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(d.body, &body); err != nil {
		return rest.ScheduleDiff{}, err
	}
	ask, err := json.Marshal(map[string]any{"calendar": body["calendar"], "name": d.name, "count": newTimes})
	if err != nil {
		return rest.ScheduleDiff{}, err
	}
	answer, err := client.Read[rest.PreviewAnswer](s.client.REST().PreviewCalendarWithBody(s.ctx, asJSON,
		bytes.NewReader(ask)))
	diff := rest.ScheduleDiff{Added: answer.Items, Cut: len(answer.Items) == newTimes}
	if n := len(answer.Items); n > 0 {
		diff.Through = answer.Items[n-1].DueAt
	}
	return diff, err
}

type listSchedules struct{}

// Run lists the schedules.
func (c listSchedules) Run(s *shell) error {
	return list(s, s.client.Schedules(s.ctx), 0, scheduleName, scheduleColumns...)
}

type previewSchedule struct {
	Name  string `arg:"" help:"Name of the schedule."`
	Count int    `short:"n" default:"10" help:"How many times."`
}

// Run shows the next times.
func (c previewSchedule) Run(s *shell) error {
	answer, err := s.client.PreviewSchedule(s.ctx, c.Name, c.Count)
	if err != nil {
		return err
	}
	if s.output == "json" || s.output == "yaml" {
		return s.encode(answer)
	}
	times := func(yield func(rest.OccurrenceTime, error) bool) {
		for _, o := range answer.Items {
			if !yield(o, nil) {
				return
			}
		}
	}
	due := func(o rest.OccurrenceTime) string { return instant(&o.DueAt) }
	return list(s, times, 0, due,
		column[rest.OccurrenceTime]{"DUE", due},
		column[rest.OccurrenceTime]{"LOCAL", func(o rest.OccurrenceTime) string { return o.Local }},
		column[rest.OccurrenceTime]{"FLAGS", func(o rest.OccurrenceTime) string { return strings.Join(o.Flags, " ") }})
}

// pausing is what any pause says.
type pausing struct {
	Reason string    `help:"Why; shown with the pause."`
	Until  time.Time `help:"When it lifts by itself, with a zone."`
}

func (p pausing) request() rest.PauseRequest {
	r := rest.PauseRequest{Reason: ptr(p.Reason)}
	if !p.Until.IsZero() {
		r.Until = &p.Until
	}
	return r
}

type pauseSchedule struct {
	Name string `arg:"" help:"Name of the schedule."`
	pausing
}

// Run pauses the schedule.
func (c pauseSchedule) Run(s *shell) error {
	view, err := s.client.PauseSchedule(s.ctx, c.Name, c.request())
	if err != nil {
		return err
	}
	return show(s, view, scheduleName, scheduleColumns...)
}

type resumeSchedule struct {
	Name   string `arg:"" help:"Name of the schedule."`
	Missed string `help:"What becomes of the times it held: drop, last or all; default: as the pause says."`
}

// Run resumes the schedule.
func (c resumeSchedule) Run(s *shell) error {
	view, err := s.client.ResumeSchedule(s.ctx, c.Name,
		rest.ResumeRequest{Missed: ptr(rest.ResumeRequestMissed(c.Missed))})
	if err != nil {
		return err
	}
	return show(s, view, scheduleName, scheduleColumns...)
}

type pause struct {
	Scope string `arg:"" help:"all, or task:NAME."`
	pausing
}

// Run pauses the scope.
func (c pause) Run(s *shell) error {
	view, err := s.client.Pause(s.ctx, c.Scope, c.request())
	if err != nil {
		return err
	}
	return show(s, view, func(v rest.PauseView) string { return v.Scope },
		column[rest.PauseView]{"SCOPE", func(v rest.PauseView) string { return v.Scope }},
		column[rest.PauseView]{"SINCE", func(v rest.PauseView) string { return instant(&v.Since) }},
		column[rest.PauseView]{"UNTIL", func(v rest.PauseView) string { return instant(v.Until) }},
		column[rest.PauseView]{"BY", func(v rest.PauseView) string { return of(v.By) }},
		column[rest.PauseView]{"REASON", func(v rest.PauseView) string { return of(v.Reason) }})
}

type resume struct {
	Scope string `arg:"" help:"all, or task:NAME."`
}

// Run lifts the pause.
func (c resume) Run(s *shell) error {
	if err := s.client.Resume(s.ctx, c.Scope); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, c.Scope)
	return err
}
