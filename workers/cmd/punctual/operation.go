package main

import (
	"fmt"
	"strconv"
	"strings"

	"punctual/shared/client/rest"
)

type createOperation struct {
	// Action is an argument that the API checks: its problem lists what is allowed.
	Action string `arg:"" help:"Action on each job or run, such as cancel, redrive, purge or retry_runs."`
	operationFilter
	operationSet
	Rate   string `help:"Maximum rate, as count/time, such as 500/1s."`
	Spread string `help:"Time over which the due times are dealt out evenly, such as 10m."`

	Canary       int64    `help:"Number of the oldest jobs or runs whose ends the others wait for."`
	MinSucceeded *float64 `help:"Share of the canary that has to succeed; default: 0.9."`
	Within       string   `help:"Time in which the canary has to end, such as 5m; default: 10m."`

	DryRun bool   `help:"Show how many match without changing anything."`
	Reason string `help:"Reason for the operation, shown with it."`
	Key    string `help:"Idempotency key of the request; default: a random one."`
	Wait   bool   `short:"w" help:"Wait until the operation ends, and exit with its exit code."`
}

// operationFilter is which jobs or runs an operation works on.
type operationFilter struct {
	All      bool              `help:"Select everything."`
	Job      []string          `help:"Identifier of a job; may be given several times. It excludes the other filters."`
	Run      []string          `help:"Identifier of a run; may be given several times. It excludes the other filters."`
	Status   string            `help:"Status of the jobs or runs."`
	Task     string            `help:"Name of the task."`
	Schedule string            `help:"Name of the schedule."`
	Dag      string            `help:"Name of the dag."`
	RunID    string            `help:"Identifier of the run whose nodes' jobs are selected."`
	Pool     string            `help:"Pool of the jobs."`
	Priority string            `help:"Priority of the jobs."`
	ID       string            `help:"Beginning of the identifier, 6 characters or more."`
	Code     string            `help:"Code of the reason for the status."`
	Group    string            `help:"Group of dead jobs, from dead groups."`
	Tag      map[string]string `help:"Tag of the jobs or runs, NAME=VALUE; up to three."`

	CreatedAfter   typedTime `group:"times" help:"Earliest creation: of today such as 11:26, or a date with a zone."`
	CreatedBefore  typedTime `group:"times" help:"Time before which they were created."`
	DueAfter       typedTime `group:"times" help:"Earliest due time."`
	DueBefore      typedTime `group:"times" help:"Time before which they are due."`
	FinishedAfter  typedTime `group:"times" help:"Earliest end."`
	FinishedBefore typedTime `group:"times" help:"Time before which they ended."`
	DeadAfter      typedTime `group:"times" help:"Earliest time of death."`
	DeadBefore     typedTime `group:"times" help:"Time before which the jobs died."`
}

// operationSet is what an operation gives to its jobs.
type operationSet struct {
	SetPriority  string    `help:"New priority, for reprioritize and redrive: critical, high, normal or low."`
	In           string    `xor:"when" help:"Delay until the jobs are due, for reschedule and redrive."`
	At           typedTime `xor:"when" help:"New due time: of today such as 11:26, or a date with a zone."`
	PayloadPatch string    `help:"Merge patch of the payloads, for redrive: JSON, @file, or -."`
}

// Run begins the operation.
func (c createOperation) Run(s *shell) error {
	r := rest.OperationRequest{Action: rest.OperationRequestAction(c.Action), All: ptr(c.All), Spread: ptr(c.Spread),
		DryRun: ptr(c.DryRun), Reason: ptr(c.Reason)}
	var err error
	if r.Filter, err = c.filter(s); err != nil {
		return err
	}
	if r.Set, err = c.set(s); err != nil {
		return err
	}
	if r.Rate, err = operationRate(c.Rate); err != nil {
		return err
	}
	if c.Canary != 0 || c.MinSucceeded != nil || c.Within != "" {
		r.Canary = &rest.CanaryRequest{Count: c.Canary, MinSucceeded: c.MinSucceeded, Within: ptr(c.Within)}
	}
	o, err := s.client.CreateOperation(s.ctx, c.Key, r)
	if err != nil {
		return err
	}
	if !c.Wait || c.DryRun {
		return show(s, o, operationID, operationColumns...)
	}
	return s.awaitOperation(*o.OperationID)
}

// filter returns the filter of the request; nil for none.
func (c operationFilter) filter(s *shell) (*rest.OperationFilterRequest, error) {
	f := rest.OperationFilterRequest{Status: ptr(rest.OperationFilterRequestStatus(strings.ToUpper(c.Status))),
		Task: ptr(c.Task), Schedule: ptr(c.Schedule), Dag: ptr(c.Dag), RunID: ptr(c.RunID),
		Pool: ptr(rest.OperationFilterRequestPool(c.Pool)), Code: ptr(c.Code), Group: ptr(c.Group), ID: ptr(c.ID),
		Priority: ptr(rest.OperationFilterRequestPriority(c.Priority))}
	if len(c.Job) > 0 {
		f.JobIds = &c.Job
	}
	if len(c.Run) > 0 {
		f.RunIds = &c.Run
	}
	if len(c.Tag) > 0 {
		f.Tags = &c.Tag
	}
	err := s.times(bound{&f.CreatedAfter, c.CreatedAfter}, bound{&f.CreatedBefore, c.CreatedBefore},
		bound{&f.DueAfter, c.DueAfter}, bound{&f.DueBefore, c.DueBefore},
		bound{&f.FinishedAfter, c.FinishedAfter}, bound{&f.FinishedBefore, c.FinishedBefore},
		bound{&f.DeadAfter, c.DeadAfter}, bound{&f.DeadBefore, c.DeadBefore})
	if err != nil || f == (rest.OperationFilterRequest{}) {
		return nil, err
	}
	return &f, nil
}

// set returns the new values of the request; nil for none.
func (c operationSet) set(s *shell) (*rest.OperationSetRequest, error) {
	set := rest.OperationSetRequest{Priority: ptr(rest.OperationSetRequestPriority(c.SetPriority)), Delay: ptr(c.In)}
	var err error
	if set.RunAt, err = s.coming("--at", c.At); err != nil {
		return nil, err
	}
	patch, err := s.value("--payload-patch", c.PayloadPatch)
	if err != nil {
		return nil, err
	}
	if patch != nil {
		set.PayloadPatch = patch
	}
	if set.Priority == nil && set.Delay == nil && set.RunAt == nil && set.PayloadPatch == nil {
		return nil, nil
	}
	return &set, nil
}

// operationRate reads a rate such as 500/1s; nil for none.
func operationRate(typed string) (*rest.OperationRateRequest, error) {
	if typed == "" {
		return nil, nil
	}
	number, per, _ := strings.Cut(typed, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || per == "" {
		return nil, usage{fmt.Errorf("--rate: %q is not a number and a time, such as 500/1s", typed)}
	}
	return &rest.OperationRateRequest{Count: n, Per: per}, nil
}
