package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"punctual/shared/client/rest"
)

var jobColumns = []column[rest.JobView]{
	{"JOB", jobID},
	{"TASK", func(j rest.JobView) string { return j.Task }},
	{"STATUS", func(j rest.JobView) string { return string(j.Status) }},
	{"ATTEMPT", func(j rest.JobView) string { return count(j.Attempt) }},
	{"DUE", func(j rest.JobView) string { return instant(&j.DueAt) }},
	{"FINISHED", func(j rest.JobView) string { return instant(j.FinishedAt) }},
	{"WHY", func(j rest.JobView) string {
		if j.StatusReason == nil || j.Paused != nil {
			return waitsFor(j)
		}
		return reason(j.StatusReason)
	}},
}

func jobID(j rest.JobView) string { return j.JobID }

func reason(r *rest.Reason) string {
	if r == nil {
		return ""
	}
	if of(r.Message) == "" {
		return r.Code
	}
	return r.Code + ": " + *r.Message
}

type runJob struct {
	Task        string            `arg:"" help:"Name of the task."`
	Payload     string            `short:"p" help:"Payload of the job: JSON, @file, or - for standard input."`
	In          string            `xor:"when" help:"Delay from now until the start, such as 3s."`
	At          typedTime         `xor:"when" help:"Time of the start: today's 11:26, or a date with a zone."`
	Key         string            `help:"Idempotency key of the request; default: a random one."`
	Priority    string            `help:"Priority of the job: critical, high, normal or low; default: the task's."`
	Pool        string            `help:"Pool of workers that runs the job; default: the task's."`
	Timeout     string            `help:"Maximum duration of one attempt, such as 5m; default: the task's."`
	MaxAttempts int64             `help:"Maximum number of attempts; default: the task's."`
	StartWithin string            `help:"Maximum time from due time to start, such as 5m; later the job expires."`
	ExpireAfter string            `help:"Maximum time from due time to end, such as 1h; later the job expires."`
	After       []string          `help:"Identifier of a job that must end first; may be given several times."`
	RunIf       string            `help:"Rule for the outcomes of --after; default: all_succeeded."`
	Tag         map[string]string `help:"Tag of the job as name=value; may be given several times."`
	Limit       []string          `sep:"none" help:"Limit of work, as name or name:key; may be given several times."`
	uniqueOptions
	Wait bool `short:"w" help:"Wait until the job ends, and exit with its exit code."`
}

// Run creates the job.
func (c runJob) Run(s *shell) error {
	request, err := c.request(s)
	if err != nil {
		return err
	}
	job, err := s.client.CreateJob(s.ctx, c.Key, request)
	if err != nil {
		return err
	}
	return s.startedJob(job, c.Wait)
}

// request is the job that the options describe.
func (c runJob) request(s *shell) (rest.JobRequest, error) {
	r := rest.JobRequest{Task: c.Task, Delay: ptr(c.In), Priority: ptr(rest.JobRequestPriority(c.Priority)),
		Pool: ptr(rest.JobRequestPool(c.Pool)), Timeout: ptr(c.Timeout), StartWithin: ptr(c.StartWithin),
		ExpireAfter: ptr(c.ExpireAfter), RunIf: ptr(rest.JobRequestRunIf(c.RunIf)), Limits: limitUses(c.Limit),
		Unique: c.unique()}
	if c.MaxAttempts != 0 {
		r.Retry = &rest.RetryRequest{MaxAttempts: &c.MaxAttempts}
	}
	if len(c.After) > 0 {
		r.After = &c.After
	}
	if len(c.Tag) > 0 {
		r.Tags = &c.Tag
	}
	payload, err := s.value("--payload", c.Payload)
	if payload != nil {
		r.Payload = payload
	}
	if err != nil {
		return r, err
	}
	r.RunAt, err = s.coming("--at", c.At)
	return r, err
}

// uniqueOptions are those of a unique key.
type uniqueOptions struct {
	Unique     string `help:"Unique key, which one open job holds at a time."`
	Until      string `help:"End of the hold on the key: done or started; default: done."`
	OnConflict string `help:"Treatment while another job holds the key: return, reject or replace; default: return."`
}

// unique is the unique key that the options ask for; nil for none. The API refuses options without a key.
func (o uniqueOptions) unique() *rest.UniqueRequest {
	if o == (uniqueOptions{}) {
		return nil
	}
	return &rest.UniqueRequest{Key: o.Unique, Until: ptr(rest.UniqueRequestUntil(o.Until)),
		OnConflict: ptr(rest.UniqueRequestOnConflict(o.OnConflict))}
}

// over is nil for a success.
func over(status string) error {
	if status == "SUCCEEDED" {
		return nil
	}
	return ended(status)
}

// interrupted says what goes on after Ctrl-C.
func (s *shell) interrupted(err error, what, show, stop string) error {
	if s.ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return interrupted(fmt.Sprintf("%s goes on; see it: %s; stop it: %s", what, show, stop))
}

// value reads JSON that an option gives, a file that it names by @, or standard input for -. nil is none.
func (s *shell) value(option, text string) (json.RawMessage, error) {
	raw, from := []byte(text), ""
	var err error
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		raw, err = io.ReadAll(s.in)
		from = "standard input: "
	case strings.HasPrefix(text, "@"):
		raw, err = os.ReadFile(text[1:])
		from = text[1:] + ": "
	}
	if err != nil {
		return nil, usage{fmt.Errorf("%s: %w", option, err)}
	}
	var any json.RawMessage
	if err := json.Unmarshal(raw, &any); err != nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			line, column := position(raw, int(e.Offset))
			from += fmt.Sprintf("line %d, column %d: ", line, column)
		}
		return nil, usage{fmt.Errorf("%s: %sthis is no JSON: %w", option, from, err)}
	}
	return any, nil
}

// position is the line and column, from 1, of the byte before offset.
func position(text []byte, offset int) (line, column int) {
	before := string(text[:max(0, min(offset, len(text))-1)])
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndex(before, "\n")
}

type getJob struct {
	ID string `arg:"" help:"Identifier of the job."`
}

// Run shows the job.
func (c getJob) Run(s *shell) error {
	job, err := s.client.Job(s.ctx, c.ID)
	if err != nil {
		return s.noJob(c.ID, "dag status", err)
	}
	return show(s, job, jobID, jobColumns...)
}

type listJobs struct {
	Status   string `help:"Status of the jobs to list, such as DEAD."`
	Task     string `help:"Name of the task whose jobs are shown."`
	Schedule string `help:"Name of the schedule whose jobs are shown."`
	Limit    int    `default:"20" help:"Maximum number of entries; 0 lists all."`

	Dag      string            `help:"Name of the dag whose nodes' jobs are shown."`
	RunID    string            `help:"Identifier of the run whose nodes' jobs are shown."`
	Pool     string            `help:"Pool of the jobs to list."`
	Priority string            `help:"Priority of the jobs to list."`
	Code     string            `help:"Code of the reason for the status."`
	Group    string            `help:"Group of dead jobs, as the API lists them."`
	ID       string            `help:"Beginning of the identifier, 6 characters or more."`
	Tag      map[string]string `help:"Tag of the jobs to list, NAME=VALUE; up to three."`
	Order    string            `help:"Order of the list: newest or oldest."`

	CreatedAfter   typedTime `group:"times" help:"Earliest creation: of today such as 11:26, or a date with a zone."`
	CreatedBefore  typedTime `group:"times" help:"Time before which the jobs were created."`
	DueAfter       typedTime `group:"times" help:"Earliest due time."`
	DueBefore      typedTime `group:"times" help:"Time before which the jobs are due."`
	FinishedAfter  typedTime `group:"times" help:"Earliest end."`
	FinishedBefore typedTime `group:"times" help:"Time before which the jobs ended."`
}

// Run lists the jobs.
func (c listJobs) Run(s *shell) error {
	filter := &rest.ListJobsParams{Status: ptr(rest.ListJobsParamsStatus(strings.ToUpper(c.Status))),
		Task: ptr(c.Task), Schedule: ptr(c.Schedule), Dag: ptr(c.Dag), RunID: ptr(c.RunID),
		Pool: ptr(rest.ListJobsParamsPool(c.Pool)), Priority: ptr(rest.ListJobsParamsPriority(c.Priority)),
		Code: ptr(c.Code), Group: ptr(c.Group), ID: ptr(c.ID), Order: ptr(rest.ListJobsParamsOrder(c.Order)),
		Tags: tagFilter(c.Tag)}
	if err := s.times(bound{&filter.CreatedAfter, c.CreatedAfter}, bound{&filter.CreatedBefore, c.CreatedBefore},
		bound{&filter.DueAfter, c.DueAfter}, bound{&filter.DueBefore, c.DueBefore},
		bound{&filter.FinishedAfter, c.FinishedAfter}, bound{&filter.FinishedBefore, c.FinishedBefore}); err != nil {
		return err
	}
	return list(s, ofTask(s, c.Task, s.client.Jobs(s.ctx, filter)), c.Limit, jobID, jobColumns...)
}

type cancelJobs struct {
	ID []string `arg:"" help:"Identifiers of the jobs."`
}

// Run cancels each job, and goes on after one that cannot be cancelled.
func (c cancelJobs) Run(s *shell) error {
	return each(s, c.ID, func(ctx context.Context, id string) (rest.JobView, error) {
		job, err := s.client.CancelJob(ctx, id)
		return job, s.noJob(id, "dag cancel", err)
	}, jobID, jobColumns...)
}

type redriveJobs struct {
	ID []string `arg:"" help:"Identifiers of dead jobs."`
	corrections
}

// Run redrives each job, and goes on after one that cannot be.
func (c redriveJobs) Run(s *shell) error {
	request, _, err := c.read(s)
	if err != nil {
		return err
	}
	return each(s, c.ID, func(ctx context.Context, id string) (rest.JobView, error) {
		return s.client.RedriveCorrected(ctx, id, request)
	}, jobID, jobColumns...)
}

type jobs struct {
	Pause  pauseJobs  `cmd:"" help:"Pause jobs that wait; each starts only once it is resumed."`
	Resume resumeJobs `cmd:"" help:"Resume paused jobs."`
}

type pauseJobs struct {
	ID     []string `arg:"" help:"Identifiers of the jobs."`
	Reason string   `help:"Reason for the pause, shown with the job."`
}

// Run pauses each job, and goes on after one that cannot be paused.
func (c pauseJobs) Run(s *shell) error {
	return each(s, c.ID, func(ctx context.Context, id string) (rest.JobView, error) {
		return s.client.PauseJob(ctx, id, rest.JobPauseRequest{Reason: ptr(c.Reason)})
	}, jobID, jobColumns...)
}

type resumeJobs struct {
	ID []string `arg:"" help:"Identifiers of the jobs."`
}

// Run resumes each job, and goes on after one that cannot be resumed.
func (c resumeJobs) Run(s *shell) error {
	return each(s, c.ID, s.client.ResumeJob, jobID, jobColumns...)
}

// each lists the answers of act to each id. It goes on after one that fails.
func each[T any](
	s *shell, ids []string, call func(context.Context, string) (T, error), name func(T) string, columns ...column[T],
) error {
	var answers []T
	var failed []error
	for _, id := range ids {
		if answer, err := call(s.ctx, id); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", id, err))
		} else {
			answers = append(answers, answer)
		}
	}
	if len(answers) > 0 || s.output != "table" { // heads without a row would say that something was done
		if err := list(s, given(answers), 0, name, columns...); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// deleted deletes each of the named, lists those that are gone, and goes on after one that cannot be deleted.
func deleted(s *shell, names []string, remove func(context.Context, string) error) error {
	name := func(gone string) string { return gone }
	return each(s, names, func(ctx context.Context, name string) (string, error) {
		return name, remove(ctx, name)
	}, name, column[string]{"DELETED", name})
}

type listAttempts struct {
	ID string `arg:"" help:"Identifier of the job."`
}

// Run lists the attempts.
func (c listAttempts) Run(s *shell) error {
	attempt := func(a rest.AttemptView) string { return count(a.Attempt) }
	err := list(s, s.client.Attempts(s.ctx, c.ID), 0, attempt,
		column[rest.AttemptView]{"ATTEMPT", attempt},
		column[rest.AttemptView]{"OUTCOME", func(a rest.AttemptView) string { return string(a.Outcome) }},
		column[rest.AttemptView]{"WORKER", func(a rest.AttemptView) string { return of(a.Worker) }},
		column[rest.AttemptView]{"STARTED", func(a rest.AttemptView) string { return instant(a.StartedAt) }},
		column[rest.AttemptView]{"FINISHED", func(a rest.AttemptView) string { return instant(a.FinishedAt) }},
		column[rest.AttemptView]{"ERROR", func(a rest.AttemptView) string { return reason(a.Error) }})
	return s.noJob(c.ID, "dag status", err)
}
