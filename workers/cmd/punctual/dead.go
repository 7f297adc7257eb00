package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type deadLetters struct {
	Ls      listDead    `cmd:"" help:"List dead jobs, newest first."`
	Groups  groupDead   `cmd:"" help:"Count dead jobs by task and cause of failure."`
	Redrive redriveDead `cmd:"" help:"Redrive dead jobs: create a new job for each."`
	Purge   purgeDead   `cmd:"" help:"Delete dead jobs permanently."`
}

type listDead struct {
	Task     string            `help:"Name of the task whose jobs are shown."`
	Schedule string            `help:"Name of the schedule whose jobs are shown."`
	Dag      string            `help:"Name of the dag whose nodes' jobs are shown."`
	Code     string            `help:"Code of the error with which the jobs died."`
	Group    string            `help:"Group of the jobs, from dead groups."`
	Tag      map[string]string `help:"Tag of the jobs, NAME=VALUE; up to three."`
	After    typedTime         `help:"Earliest time of death: of today such as 11:26, or a date with a zone."`
	Before   typedTime         `help:"Time before which the jobs died."`
	Limit    int               `default:"20" help:"Maximum number of entries; 0 lists all."`
}

// Run lists the dead letters.
func (c listDead) Run(s *shell) error {
	id := func(d rest.DeadLetter) string { return d.JobID }
	filter := &rest.ListDeadLettersParams{Task: ptr(c.Task), Schedule: ptr(c.Schedule), Dag: ptr(c.Dag),
		Code: ptr(c.Code), Group: ptr(c.Group), Tags: tagFilter(c.Tag)}
	if err := s.times(bound{&filter.DeadAfter, c.After}, bound{&filter.DeadBefore, c.Before}); err != nil {
		return err
	}
	all := ofTask(s, c.Task, s.client.DeadLetters(s.ctx, filter))
	return list(s, all, c.Limit, id,
		column[rest.DeadLetter]{"JOB", id},
		column[rest.DeadLetter]{"TASK", func(d rest.DeadLetter) string { return d.Task }},
		column[rest.DeadLetter]{"DEAD", func(d rest.DeadLetter) string { return instant(&d.DeadAt) }},
		column[rest.DeadLetter]{"ATTEMPT", func(d rest.DeadLetter) string { return count(d.Attempt) }},
		column[rest.DeadLetter]{"REDRIVEN BY", func(d rest.DeadLetter) string { return of(d.RedrivenBy) }},
		column[rest.DeadLetter]{"WHY", func(d rest.DeadLetter) string { return reason(d.StatusReason) }})
}

type groupDead struct {
	Task  string    `help:"Name of the task whose jobs are counted."`
	After typedTime `help:"Earliest time of death: of today such as 11:26, or a date with a zone."`
	Limit int       `default:"1000" help:"Maximum number of jobs to count where jobs are not indexed; 0 counts all."`
}

// varying is what differs in the messages of one cause: ids, addresses and numbers.
var varying = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)

// Run shows the groups of dead letters, which it counts itself where the deployment has no index of jobs.
func (c groupDead) Run(s *shell) error {
	var after *time.Time
	if err := s.times(bound{&after, c.After}); err != nil {
		return err
	}
	var groups []rest.GroupView
	for g, err := range s.client.DeadLetterGroups(s.ctx, &rest.ListDeadLetterGroupsParams{DeadAfter: after}) {
		if errors.Is(err, client.NotIndexed) {
			if groups, err = c.count(s, after); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		if c.Task == "" || g.Task == c.Task {
			groups = append(groups, g)
		}
	}
	example := func(g rest.GroupView) string { return g.ExampleJobID }
	all := func(yield func(rest.GroupView, error) bool) {
		for _, g := range groups {
			if !yield(g, nil) {
				return
			}
		}
	}
	return list(s, ofTask(s, c.Task, all), 0, example,
		column[rest.GroupView]{"COUNT", func(g rest.GroupView) string { return count(g.Count) }},
		column[rest.GroupView]{"TASK", func(g rest.GroupView) string { return g.Task }},
		column[rest.GroupView]{"OLDEST", func(g rest.GroupView) string { return instant(&g.FirstAt) }},
		column[rest.GroupView]{"NEWEST", func(g rest.GroupView) string { return instant(&g.LastAt) }},
		column[rest.GroupView]{"SUCH AS", example},
		column[rest.GroupView]{"GROUP", func(g rest.GroupView) string { return g.Group }},
		column[rest.GroupView]{"WHY", func(g rest.GroupView) string {
			return reason(&rest.Reason{Code: g.Code, Message: ptr(g.Message)})
		}})
}

// count groups the newest dead letters, without the names of groups and counts by hour.
func (c groupDead) count(s *shell, after *time.Time) ([]rest.GroupView, error) {
	groups := map[[3]string]*rest.GroupView{}
	seen := 0
	for d, err := range s.client.DeadLetters(s.ctx, &rest.ListDeadLettersParams{Task: ptr(c.Task), DeadAfter: after}) {
		if err != nil {
			return nil, err
		}
		if c.Limit > 0 && seen == c.Limit {
			_, _ = fmt.Fprintf(s.err, "of the newest %d; --limit counts more\n", seen)
			break
		}
		seen++
		var code, message string
		if d.StatusReason != nil {
			code, message = d.StatusReason.Code, of(d.StatusReason.Message)
		}
		key := [3]string{d.Task, code, varying.ReplaceAllString(message, "…")}
		g := groups[key]
		if g == nil { // the newest comes first
			g = &rest.GroupView{Task: d.Task, Code: code, Message: message, LastAt: d.DeadAt, ExampleJobID: d.JobID}
			groups[key] = g
		}
		g.Count++
		g.FirstAt = d.DeadAt
	}
	var sorted []rest.GroupView
	for _, g := range groups {
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b rest.GroupView) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.LastAt.Compare(a.LastAt))
	})
	return sorted, nil
}

// which are the dead jobs that a verb is for.
type which struct {
	ID     []string `arg:"" optional:"" help:"Identifiers of dead jobs."`
	Task   string   `help:"Name of a task: select all its dead jobs."`
	All    bool     `help:"Select all dead jobs."`
	DryRun bool     `help:"Show which jobs are selected without changing them."`
}

func (c which) request() (rest.DeadLettersRequest, error) {
	r := rest.DeadLettersRequest{DryRun: ptr(c.DryRun)}
	filter := c.Task != "" || c.All
	switch {
	case len(c.ID) > 0 && filter:
		return r, usage{errors.New("ids are not given together with --task or --all")}
	case len(c.ID) > 0:
		r.JobIds = &c.ID
	case filter:
		r.Filter = &rest.DeadLetterFilterRequest{Task: ptr(c.Task)}
	default:
		return r, usage{errors.New("which? give ids, --task or --all; --dry-run shows them first")}
	}
	return r, nil
}

type redriveDead struct {
	which
	corrections
	Yes bool `short:"y" help:"Do not ask for confirmation of --all."`
}

// Run redrives the dead jobs.
func (c redriveDead) Run(s *shell) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	corrected, given, err := c.read(s)
	if err != nil {
		return err
	}
	if c.All && !c.DryRun && !c.Yes {
		if err := s.agreed(s.client.RedriveDeadLetters, r, "would run again", "nothing is redriven"); err != nil {
			return err
		}
	}
	all := s.client.RedriveDeadLetters(s.ctx, r)
	if given && !c.DryRun {
		all = s.redriveCorrected(r, corrected)
	}
	return s.outcomes(ofTask(s, c.Task, all),
		column[rest.DeadLetterOutcome]{"NEW JOB", func(o rest.DeadLetterOutcome) string { return of(o.NewJobID) }})
}

type purgeDead struct {
	which
	Yes bool `short:"y" help:"Do not ask for confirmation."`
}

// Run purges the dead jobs.
func (c purgeDead) Run(s *shell) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	if !c.DryRun && !c.Yes {
		err := s.agreed(s.client.PurgeDeadLetters, r, "would be deleted for good", "nothing is deleted")
		if err != nil {
			return err
		}
	}
	return s.outcomes(ofTask(s, c.Task, s.client.PurgeDeadLetters(s.ctx, r)),
		column[rest.DeadLetterOutcome]{"DELETED", func(o rest.DeadLetterOutcome) string {
			switch {
			case o.Problem != nil:
				return "NO"
			case c.DryRun:
				return "would be"
			}
			return "yes"
		}})
}

// agreed counts the dead jobs that a request is for, by its dry run, and lets a person say no to what would become of
// them. For none it asks nothing.
func (s *shell) agreed(
	call func(context.Context, rest.DeadLettersRequest) iter.Seq2[rest.DeadLetterOutcome, error],
	r rest.DeadLettersRequest, would, no string,
) error {
	r.DryRun = new(true)
	n := 0
	for o, err := range call(s.ctx, r) {
		if err != nil {
			return err
		}
		if o.Problem == nil {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return s.confirm(false, counted(n, "dead job")+" "+would, no)
}

// counted is a number of things, such as 1 dead job or 2 dead jobs.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// outcomes lists what became of each, in a column of the verb's own; one that was refused makes the verb fail.
func (s *shell) outcomes(
	all iter.Seq2[rest.DeadLetterOutcome, error], became column[rest.DeadLetterOutcome],
) error {
	refused := 0
	counted := func(yield func(rest.DeadLetterOutcome, error) bool) {
		for o, err := range all {
			if o.Problem != nil {
				refused++
			}
			if !yield(o, err) {
				return
			}
		}
	}
	id := func(o rest.DeadLetterOutcome) string { return o.JobID }
	err := list(s, counted, 0, id,
		column[rest.DeadLetterOutcome]{"JOB", id},
		became,
		column[rest.DeadLetterOutcome]{"PROBLEM", func(o rest.DeadLetterOutcome) string {
			if o.Problem == nil {
				return ""
			}
			return string(o.Problem.Code) + ": " + o.Problem.Detail
		}})
	if err == nil && refused > 0 {
		err = fmt.Errorf("%d refused", refused)
	}
	return err
}
