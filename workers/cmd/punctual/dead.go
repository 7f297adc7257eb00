package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"punctual/shared/client/rest"
)

type deadLetters struct {
	Ls      listDead    `cmd:"" help:"List dead jobs, newest first."`
	Groups  groupDead   `cmd:"" help:"Count dead jobs by task and cause of failure."`
	Redrive redriveDead `cmd:"" help:"Redrive dead jobs: create a new job for each."`
	Purge   purgeDead   `cmd:"" help:"Delete dead jobs permanently."`
}

type listDead struct {
	Task  string `help:"Name of the task whose jobs are shown."`
	Limit int    `default:"20" help:"Maximum number of entries; 0 lists all."`
}

// Run lists the dead letters.
func (c listDead) Run(s *shell) error {
	id := func(d rest.DeadLetter) string { return d.JobID }
	all := ofTask(s, c.Task, s.client.DeadLetters(s.ctx, &rest.ListDeadLettersParams{Task: ptr(c.Task)}))
	return list(s, all, c.Limit, id,
		column[rest.DeadLetter]{"JOB", id},
		column[rest.DeadLetter]{"TASK", func(d rest.DeadLetter) string { return d.Task }},
		column[rest.DeadLetter]{"DEAD", func(d rest.DeadLetter) string { return instant(&d.DeadAt) }},
		column[rest.DeadLetter]{"ATTEMPT", func(d rest.DeadLetter) string { return count(d.Attempt) }},
		column[rest.DeadLetter]{"REDRIVEN BY", func(d rest.DeadLetter) string { return of(d.RedrivenBy) }},
		column[rest.DeadLetter]{"WHY", func(d rest.DeadLetter) string { return reason(d.StatusReason) }})
}

type groupDead struct {
	Task  string `help:"Name of the task whose jobs are shown."`
	Limit int    `default:"1000" help:"Maximum number of dead jobs to count, newest first; 0 counts all."`
}

// deadGroup is the dead letters of one task with one cause.
type deadGroup struct {
	Count   int       `json:"count"`
	Task    string    `json:"task"`
	Code    string    `json:"code"`
	Message string    `json:"message,omitempty"` // with … for what differs between them: numbers and ids
	Oldest  time.Time `json:"oldest"`
	Newest  time.Time `json:"newest"`
	Example string    `json:"example"` // the newest job
}

// varying is what differs in the messages of one cause: ids, addresses and numbers.
var varying = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)

// Run counts the dead letters.
func (c groupDead) Run(s *shell) error {
	groups := map[[3]string]*deadGroup{}
	seen := 0
	dead := ofTask(s, c.Task, s.client.DeadLetters(s.ctx, &rest.ListDeadLettersParams{Task: ptr(c.Task)}))
	for d, err := range dead {
		if err != nil {
			return err
		}
		if c.Limit > 0 && seen == c.Limit {
			_, _ = fmt.Fprintf(s.err, "of the newest %d; --limit looks at more\n", seen)
			break
		}
		seen++
		var code, message string
		if d.StatusReason != nil {
			code, message = d.StatusReason.Code, varying.ReplaceAllString(of(d.StatusReason.Message), "…")
		}
		key := [3]string{d.Task, code, message}
		g := groups[key]
		if g == nil { // the newest comes first
			g = &deadGroup{Task: d.Task, Code: code, Message: message, Newest: d.DeadAt, Example: d.JobID}
			groups[key] = g
		}
		g.Count++
		g.Oldest = d.DeadAt
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *deadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Newest.Compare(a.Newest))
	})
	all := func(yield func(*deadGroup, error) bool) {
		for _, g := range sorted {
			if !yield(g, nil) {
				return
			}
		}
	}
	example := func(g *deadGroup) string { return g.Example }
	return list(s, all, 0, example,
		column[*deadGroup]{"COUNT", func(g *deadGroup) string { return strconv.Itoa(g.Count) }},
		column[*deadGroup]{"TASK", func(g *deadGroup) string { return g.Task }},
		column[*deadGroup]{"OLDEST", func(g *deadGroup) string { return instant(&g.Oldest) }},
		column[*deadGroup]{"NEWEST", func(g *deadGroup) string { return instant(&g.Newest) }},
		column[*deadGroup]{"SUCH AS", example},
		column[*deadGroup]{"WHY", func(g *deadGroup) string {
			return reason(&rest.Reason{Code: g.Code, Message: ptr(g.Message)})
		}})
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
