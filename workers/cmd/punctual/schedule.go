package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type schedules struct {
	common   `set:"kind=schedule"`
	Delete   deleteNamed      `cmd:"" aliases:"rm" help:"Delete schedules; running jobs continue, waiting ones end."`
	Apply    applySchedules   `cmd:"" help:"Create or replace the schedules of a YAML file."`
	Preview  previewSchedule  `cmd:"" help:"Show the next times of a schedule."`
	Why      whySchedule      `cmd:"" help:"Explain the outcome of a nominal time of a schedule."`
	Run      runSchedule      `cmd:"" help:"Start a job or a run of a schedule now, in addition to its times."`
	Backfill backfillSchedule `cmd:"" help:"Make past times of a schedule that did not run."`
	Pause    pauseSchedule    `cmd:"" help:"Pause a schedule."`
	Resume   resumeSchedule   `cmd:"" help:"Resume a paused schedule."`
}

var scheduleColumns = []column[rest.ScheduleView]{
	{"SCHEDULE", scheduleName},
	{"CALENDAR", func(v rest.ScheduleView) string {
		if v.Calendars == nil {
			return calendarText(v.Calendar)
		}
		var all []string
		for _, c := range v.Calendars {
			all = append(all, calendarText(c))
		}
		return strings.Join(all, "; ")
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
		p := v.Paused
		if p == nil {
			return ""
		}
		said := "since " + instant(&p.Since)
		if p.Until != nil {
			said += " until " + instant(p.Until)
		}
		if why := of(p.Reason); why != "" {
			said += ": " + why
		}
		return said
	}},
}

// calendarText is the rule of a calendar and its zone.
func calendarText(c rest.CalendarView) string {
	for _, form := range []*string{c.Cron, c.Every, c.Rrule} {
		if form != nil {
			return strings.TrimSpace(*form + " " + of(c.Timezone))
		}
	}
	return "dates"
}

func scheduleName(v rest.ScheduleView) string { return v.Name }

type applySchedules struct {
	source
	DryRun bool              `help:"Show the added, removed and moved times without changing anything."`
	Paused bool              `help:"Put every schedule of the file paused, whatever the file says."`
	Prune  bool              `help:"Delete schedules with the tag of --tag that are not in the file."`
	Tag    map[string]string `help:"Tag as name=value that the jobs and runs of the schedules have."`
	Yes    bool              `short:"y" help:"Do not ask for confirmation before --prune deletes."`
}

// Run tries every document before it puts one, so that an error in one of them leaves all as it was. Only when none
// is refused does it prune, and it asks for that before it puts anything.
func (c applySchedules) Run(s *shell) error {
	docs, err := c.documents(s)
	if err != nil {
		return err
	}
	if c.Paused {
		for i := range docs {
			if docs[i].body, err = withPaused(docs[i].body); err != nil {
				return err
			}
		}
	}
	if c.Prune != (len(c.Tag) > 0) {
		return usage{errors.New("--prune and --tag go together: what has the tag and is not in the file is deleted")}
	}
	var trials []trial
	refused := s.check(docs, func(d document) error {
		diff, err := client.Call[rest.ScheduleDiff](s.ctx, s.client, rest.DryRunSchedule, d.request())
		if err == nil {
			trials = append(trials, trial{d.name, diff})
		}
		return err
	})
	if c.DryRun && (refused == nil || len(trials) > 0) {
		if err := s.showTrials(trials); err != nil {
			return err
		}
	}
	if refused != nil {
		return refused
	}
	old, err := c.old(s, docs)
	if err != nil {
		return err
	}
	if c.DryRun {
		for _, name := range old {
			_, _ = fmt.Fprintf(s.err, "%s: would be deleted\n", name) // what was asked for is the list
		}
		return nil
	}
	if len(old) > 0 {
		err := s.confirm(c.Yes, fmt.Sprintf("%s would be deleted: %s", counted(len(old), "schedule"),
			strings.Join(old, ", ")), "nothing is changed")
		if err != nil {
			return err
		}
	}
	err = apply(s, docs, func(d document) (rest.ScheduleView, error) {
		return client.Call[rest.ScheduleView](s.ctx, s.client, rest.PutSchedule, d.request())
	}, scheduleName, scheduleColumns...)
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := s.client.DeleteSchedule(s.ctx, name); err != nil && !errors.Is(err, client.NotFound) {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
		_, _ = fmt.Fprintf(s.err, "%s: deleted\n", name)
	}
	return nil
}

// trySchedule has the API say what would change.
func trySchedule(s *shell, d document) ([]string, error) {
	diff, err := client.Call[rest.ScheduleDiff](s.ctx, s.client, rest.DryRunSchedule, d.request())
	return diff.Changed, err
}

// withPaused returns the body of a schedule with paused set; a reason that the file gives stays.
func withPaused(body []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if is := string(fields["paused"]); is == "" || is == "false" {
		fields["paused"] = json.RawMessage("true")
	}
	return json.Marshal(fields)
}

// known is an error when --prune would not know the schedules of this very file again.
func (c applySchedules) known(docs []document) error {
	for _, d := range docs {
		var body struct {
			Job, Dag *struct{ Tags map[string]string }
		}
		if err := json.Unmarshal(d.body, &body); err != nil {
			return err
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

// old returns the schedules that --prune deletes: those that have the tag and no document.
func (c applySchedules) old(s *shell, docs []document) ([]string, error) {
	if !c.Prune {
		return nil, nil
	}
	if err := c.known(docs); err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, d := range docs {
		kept[d.name] = true
	}
	var old []string
	for v, err := range s.client.Schedules(s.ctx) {
		if err != nil {
			return nil, err
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
	return old, nil
}

// trial is what a document would change.
type trial struct {
	Name string `json:"name"`
	rest.ScheduleDiff
}

// showTrials writes what the documents would change.
func (s *shell) showTrials(all []trial) error {
	switch s.output {
	case "json", "yaml":
		return s.encode(all)
	case "name":
		for _, t := range all {
			_, _ = fmt.Fprintln(s.out, t.Name)
		}
		return nil
	}
	for _, t := range all {
		_, _ = fmt.Fprintf(s.out, "%s: %d added, %d lost, %d moved through %s; %s\n", t.Name, len(t.Added), len(t.Lost),
			len(t.Moved), instant(&t.Through), t.changes())
		moments(s, "+", t.Added, func(o rest.OccurrenceTime) string { return instant(&o.DueAt) })
		moments(s, "-", t.Lost, func(o rest.OccurrenceTime) string { return instant(&o.DueAt) })
		moments(s, "~", t.Moved, func(m rest.MovedOccurrence) string {
			return instant(&m.From) + " to " + instant(&m.To)
		})
		if t.Cut {
			_, _ = fmt.Fprintln(s.out, "  there are more than are counted here")
		}
	}
	return nil
}

// changes returns the fields that would change.
func (t trial) changes() string {
	switch {
	case len(t.Changed) == 0:
		return "nothing changes"
	case slices.Contains(t.Changed, "") && t.Paused: // the pointer to the whole
		return "it is new, and begins paused"
	case slices.Contains(t.Changed, ""):
		return "it is new"
	}
	return "changes " + strings.Join(t.Changed, ", ")
}

// momentsShown is how many times of a kind a dry run shows of each schedule.
const momentsShown = 10

// moments writes the first of a kind of times, one a line.
func moments[T any](s *shell, sign string, all []T, text func(T) string) {
	for _, v := range all[:min(len(all), momentsShown)] {
		_, _ = fmt.Fprintln(s.out, " ", sign, text(v))
	}
	if more := len(all) - momentsShown; more > 0 {
		_, _ = fmt.Fprintf(s.out, "  %s and %d more\n", sign, more)
	}
}

type previewSchedule struct {
	Name  string `arg:"" help:"Name of the schedule."`
	Count int    `short:"n" default:"10" help:"Number of times to show."`
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
	all := previewed(answer, s.output != "name") // a time that is skipped has no name
	times := func(yield func(previewedTime, error) bool) {
		for _, p := range all {
			if !yield(p, nil) {
				return
			}
		}
	}
	due := func(p previewedTime) string {
		if p.skipped != "" {
			return ""
		}
		return instant(&p.DueAt)
	}
	return list(s, times, 0, due,
		column[previewedTime]{"DUE", due},
		column[previewedTime]{"LOCAL", func(p previewedTime) string { return p.Local }},
		column[previewedTime]{"LOAD", func(p previewedTime) string { return countOrNone(p.Load) }},
		column[previewedTime]{"FLAGS", func(p previewedTime) string { return strings.Join(p.Flags, " ") }},
		column[previewedTime]{"SKIPPED", func(p previewedTime) string { return p.skipped }})
}

// previewedTime is a time of a preview; skipped says why nothing runs then.
type previewedTime struct {
	rest.OccurrenceTime
	skipped string
}

// previewed are the times of a preview in order, on request with those that are skipped among them.
func previewed(answer rest.PreviewAnswer, skipped bool) []previewedTime {
	var all []previewedTime
	for _, o := range answer.Items {
		all = append(all, previewedTime{OccurrenceTime: o})
	}
	if skipped && answer.Skipped != nil {
		for _, o := range *answer.Skipped {
			all = append(all, previewedTime{rest.OccurrenceTime{NominalAt: o.NominalAt, Local: o.Local}, skippedWhy(o)})
		}
	}
	slices.SortStableFunc(all, func(a, b previewedTime) int { return a.NominalAt.Compare(b.NominalAt) })
	return all
}

// skippedWhy is the reason in words, or its code where there are none.
func skippedWhy(o rest.SkippedTime) string {
	why := cmp.Or(o.Why, string(o.Reason))
	if name := of(o.Exclusion); name != "" && !strings.Contains(why, name) {
		why += ": " + name
	}
	return why
}

// pausing is what any pause says.
type pausing struct {
	Reason string    `help:"Reason for the pause, shown with it."`
	Until  typedTime `help:"Time at which the pause ends by itself: of today such as 11:26, or a date with a zone."`
}

func (p pausing) request(s *shell) (rest.PauseRequest, error) {
	until, err := s.coming("--until", p.Until)
	return rest.PauseRequest{Reason: ptr(p.Reason), Until: until}, err
}

type pauseSchedule struct {
	Name string `arg:"" help:"Name of the schedule."`
	pausing
}

// Run pauses the schedule.
func (c pauseSchedule) Run(s *shell) error {
	request, err := c.request(s)
	if err != nil {
		return err
	}
	view, err := s.client.PauseSchedule(s.ctx, c.Name, request)
	if err != nil {
		return err
	}
	if err := show(s, view, scheduleName, scheduleColumns...); err != nil {
		return err
	}
	s.holds(view.EffectiveAt)
	return nil
}

type resumeSchedule struct {
	Name   string `arg:"" help:"Name of the schedule."`
	Missed string `help:"Missed times to run: drop, last or all; default: the setting of the pause."`
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

type pauses struct {
	Scope pause      `arg:"" help:"Pause a task or everything."`
	Ls    listPauses `cmd:"" help:"List the pauses."`
}

var pauseColumns = []column[rest.PauseView]{
	{"SCOPE", pauseScope},
	{"SINCE", func(v rest.PauseView) string { return instant(&v.Since) }},
	{"HOLDS FROM", func(v rest.PauseView) string { return instant(&v.EffectiveAt) }},
	{"UNTIL", func(v rest.PauseView) string {
		if v.Until == nil {
			return "lifted"
		}
		return instant(v.Until)
	}},
	{"BY", func(v rest.PauseView) string { return of(v.By) }},
	{"REASON", func(v rest.PauseView) string { return of(v.Reason) }},
}

func pauseScope(v rest.PauseView) string { return v.Scope }

type pause struct {
	Scope string `arg:"" help:"Scope of the pause: all, or task:NAME."`
	pausing
	Force bool `help:"Pause also a task that does not exist, such as a deleted one whose jobs still wait."`
}

// Run pauses the scope.
func (c pause) Run(s *shell) error {
	if task, ok := strings.CutPrefix(c.Scope, "task:"); ok && task != "" && !c.Force {
		if unknown := s.unknownTask(task); unknown != nil {
			return usage{fmt.Errorf("%w; nothing is paused; --force pauses it nevertheless", unknown)}
		}
	}
	request, err := c.request(s)
	if err != nil {
		return err
	}
	view, err := s.client.Pause(s.ctx, c.Scope, request)
	if err != nil {
		return err
	}
	if err := show(s, view, pauseScope, pauseColumns...); err != nil {
		return err
	}
	s.holds(&view.EffectiveAt)
	return nil
}

// holds says so when a pause does not hold yet: workers learn of it a little later.
func (s *shell) holds(from *time.Time) {
	if from == nil || s.output != "table" {
		return
	}
	if wait := from.Sub(s.now()); wait > 0 {
		_, _ = fmt.Fprintf(s.err, "It holds from %s, in %s; until then jobs may still start.\n",
			s.withLocal(instant(from)), max(wait.Round(time.Second), time.Second))
	}
}

type listPauses struct{}

// Run lists the pauses.
func (c listPauses) Run(s *shell) error {
	return list(s, s.client.Pauses(s.ctx), 0, pauseScope, pauseColumns...)
}

type resume struct {
	Scope string `arg:"" help:"Scope of the pause: all, or task:NAME."`
}

// Run lifts the pause.
func (c resume) Run(s *shell) error {
	if err := s.client.Resume(s.ctx, c.Scope); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, c.Scope)
	return err
}
