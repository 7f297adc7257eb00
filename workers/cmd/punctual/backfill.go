package main

import "punctual/shared/client/rest"

type backfillSchedule struct {
	Name       string    `arg:"" help:"Name of the schedule."`
	From       typedTime `required:"" help:"Earliest nominal time: of today such as 00:00, or a date with a zone."`
	To         typedTime `required:"" help:"Time before which the nominal times to make are."`
	MaxRunning int64     `help:"Maximum number of jobs or runs that are open at a time; default: 1."`
	Order      string    `help:"Nominal times to make first: oldest (default) or newest."`
	Repeat     bool      `name:"again" help:"Also make nominal times that ran."`
	DryRun     bool      `help:"Show how many times match and would be left out, without making anything."`
	Reason     string    `help:"Reason for the backfill, shown with it."`
	Key        string    `help:"Idempotency key of the request; default: a random one."`
	Wait       bool      `short:"w" help:"Wait until the backfill ends, and exit with its exit code."`
}

// Run makes past times of the schedule.
func (c backfillSchedule) Run(s *shell) error {
	from, err := s.typed("--from", c.From)
	if err != nil {
		return err
	}
	to, err := s.typed("--to", c.To)
	if err != nil {
		return err
	}
	o, err := s.client.Backfill(s.ctx, c.Key, c.Name, rest.BackfillRequest{
		From: from, To: to, MaxRunning: ptr(c.MaxRunning), Order: ptr(rest.BackfillRequestOrder(c.Order)),
		Again: ptr(c.Repeat), DryRun: ptr(c.DryRun), Reason: ptr(c.Reason)})
	if err != nil {
		return err
	}
	if !c.Wait || c.DryRun {
		return show(s, o, operationID, operationColumns...)
	}
	return s.awaitOperation(*o.OperationID)
}

// awaitOperation waits for the end of an operation and shows it.
func (s *shell) awaitOperation(id string) error {
	o, err := s.client.WaitOperation(s.ctx, id)
	if err != nil {
		return s.interrupted(err, "operation "+id, "punctual operation get "+id, "punctual operation stop "+id)
	}
	if err := show(s, o, operationID, operationColumns...); err != nil {
		return err
	}
	return over(string(*o.Status))
}

type operations struct {
	Ls      listOperations   `cmd:"" help:"List operations, newest first."`
	Get     getOperation     `cmd:"" help:"Show an operation."`
	Create  createOperation  `cmd:"" help:"Do one action to many jobs or runs."`
	Pause   pauseOperation   `cmd:"" help:"Pause an operation: nothing new is made, and what is open continues."`
	Resume  resumeOperation  `cmd:"" help:"Resume a paused operation."`
	Stop    stopOperation    `cmd:"" help:"Stop an operation; what is open continues."`
	Proceed proceedOperation `cmd:"" help:"Continue an operation without waiting for its canary, or after it failed."`
}

var operationColumns = []column[rest.OperationView]{
	{"OPERATION", operationID},
	{"ACTION", func(o rest.OperationView) string { return string(o.Action) }},
	{"SCHEDULE", func(o rest.OperationView) string { return of(o.Schedule) }},
	{"STATUS", func(o rest.OperationView) string { return of(o.Status) }},
	{"MATCHED", func(o rest.OperationView) string {
		if o.MatchedAtLeast != nil {
			return "at least " + count(*o.MatchedAtLeast)
		}
		return countOrNone(o.Matched)
	}},
	{"DONE", func(o rest.OperationView) string { return count(o.Done) }},
	{"SKIPPED", func(o rest.OperationView) string { return count(o.Skipped) }},
	{"FAILED", func(o rest.OperationView) string { return count(o.Failed) }},
	{"OPEN", func(o rest.OperationView) string { return count(o.Open) }},
	{"CREATED", func(o rest.OperationView) string { return instant(&o.CreatedAt) }},
	{"ENDS", func(o rest.OperationView) string {
		if o.EndedAt != nil {
			return instant(o.EndedAt)
		}
		return instant(o.EstimatedEndAt)
	}},
	{"WHY", func(o rest.OperationView) string { return reason(o.StatusReason) }},
}

func operationID(o rest.OperationView) string { return of(o.OperationID) }

type listOperations struct {
	Limit int `default:"20" help:"Maximum number of entries; 0 lists all."`
}

// Run lists the operations.
func (c listOperations) Run(s *shell) error {
	return list(s, s.client.Operations(s.ctx), c.Limit, operationID, operationColumns...)
}

// oneOperation is the argument of a verb about an operation.
type oneOperation struct {
	ID string `arg:"" help:"Identifier of the operation."`
}

type getOperation struct {
	oneOperation
	Wait bool `short:"w" help:"Wait until the operation ends, and exit with its exit code."`
}

// Run shows the operation.
func (c getOperation) Run(s *shell) error {
	if c.Wait {
		return s.awaitOperation(c.ID)
	}
	o, err := s.client.Operation(s.ctx, c.ID)
	return s.showOperation(o, err)
}

func (s *shell) showOperation(o rest.OperationView, err error) error {
	if err != nil {
		return err
	}
	return show(s, o, operationID, operationColumns...)
}

type pauseOperation struct{ oneOperation }

// Run pauses the operation.
func (c pauseOperation) Run(s *shell) error {
	return s.showOperation(s.client.PauseOperation(s.ctx, c.ID))
}

type resumeOperation struct{ oneOperation }

// Run resumes the operation.
func (c resumeOperation) Run(s *shell) error {
	return s.showOperation(s.client.ResumeOperation(s.ctx, c.ID))
}

type stopOperation struct{ oneOperation }

// Run stops the operation.
func (c stopOperation) Run(s *shell) error {
	return s.showOperation(s.client.StopOperation(s.ctx, c.ID))
}

type proceedOperation struct{ oneOperation }

// Run lets the operation continue whatever its canary says.
func (c proceedOperation) Run(s *shell) error {
	return s.showOperation(s.client.ProceedOperation(s.ctx, c.ID))
}
