package main

import (
	"errors"
	"fmt"
	"iter"

	"punctual/shared/client/rest"
)

type deadLetters struct {
	Ls      listDead    `cmd:"" help:"List dead letters, newest first."`
	Redrive redriveDead `cmd:"" help:"Run dead jobs again, each as a new one."`
	Purge   purgeDead   `cmd:"" help:"Delete dead jobs."`
}

type listDead struct {
	Task  string `help:"Only jobs of a task."`
	Limit int    `default:"20" help:"How many at most; 0 is all."`
}

// Run lists the dead letters.
func (c listDead) Run(s *shell) error {
	id := func(d rest.DeadLetter) string { return d.JobID }
	return list(s, s.client.DeadLetters(s.ctx, &rest.ListDeadLettersParams{Task: ptr(c.Task)}), c.Limit, id,
		column[rest.DeadLetter]{"JOB", id},
		column[rest.DeadLetter]{"TASK", func(d rest.DeadLetter) string { return d.Task }},
		column[rest.DeadLetter]{"DEAD", func(d rest.DeadLetter) string { return instant(&d.DeadAt) }},
		column[rest.DeadLetter]{"ATTEMPT", func(d rest.DeadLetter) string { return count(d.Attempt) }},
		column[rest.DeadLetter]{"REDRIVEN BY", func(d rest.DeadLetter) string { return of(d.RedrivenBy) }},
		column[rest.DeadLetter]{"WHY", func(d rest.DeadLetter) string { return reason(d.StatusReason) }})
}

// which are the dead jobs that a verb is for.
type which struct {
	ID     []string `arg:"" optional:"" help:"Ids of dead jobs."`
	Task   string   `help:"All of a task."`
	All    bool     `help:"All there are."`
	DryRun bool     `help:"Only say which."`
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
}

// Run redrives the dead jobs.
func (c redriveDead) Run(s *shell) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	return s.outcomes(s.client.RedriveDeadLetters(s.ctx, r))
}

type purgeDead struct {
	which
}

// Run purges the dead jobs.
func (c purgeDead) Run(s *shell) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	return s.outcomes(s.client.PurgeDeadLetters(s.ctx, r))
}

// outcomes lists what became of each; one that was refused makes the verb fail.
func (s *shell) outcomes(all iter.Seq2[rest.DeadLetterOutcome, error]) error {
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
		column[rest.DeadLetterOutcome]{"NEW JOB", func(o rest.DeadLetterOutcome) string { return of(o.NewJobID) }},
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
