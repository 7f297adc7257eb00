package jobs

import (
	"context"
	"strconv"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

type listJobsInput struct {
	rest.Paging
	State         string `query:"status" doc:"Filter: status"`
	Task          string `query:"task"`
	Schedule      string `query:"schedule"`
	CreatedAfter  string `query:"created_after" format:"date-time" doc:"Filter: earliest created_at"`
	CreatedBefore string `query:"created_before" format:"date-time" doc:"Filter: time before which created_at lies"`
}

func (s *Handler) listJobs(
	ctx context.Context, who tenant.Identity, in *listJobsInput, after string, limit int,
) (found rest.Found[spec.JobView], err error) {
	f := show.Filter{Status: job.Status(in.State), Task: in.Task, Schedule: in.Schedule}
	var wrong fault.Violations
	rest.FilterWord(&wrong, "status", in.State, rest.WordsOf(job.Statuses))
	rest.FilterName(&wrong, "task", in.Task)
	rest.FilterName(&wrong, "schedule", in.Schedule)
	f.After, f.Before = rest.ReadRange(&wrong, "created_after", in.CreatedAfter, "created_before", in.CreatedBefore)
	if len(wrong) > 0 {
		return found, wrong
	}
	page, next, err := s.Read.List(ctx, who.Tenant, f, after, limit)
	return rest.Found[spec.JobView]{Items: spec.ViewJobs(page), Next: next}, err
}

type attemptView struct {
	Attempt         int64        `json:"attempt" doc:"Number of the attempt, from 1"`
	Worker          string       `json:"worker,omitempty" doc:"Name of the worker that ran the attempt"`
	StartedAt       rest.Instant `json:"started_at,omitzero" doc:"Start of the attempt; absent if it never started"`
	FinishedAt      rest.Instant `json:"finished_at,omitzero" doc:"End of the attempt; absent if it never started"`
	StartLatenessMS *int64       `json:"start_lateness_ms,omitempty" doc:"Milliseconds from the later of due time and acceptance to the start; absent if the attempt never started"`
	Outcome         string       `json:"outcome" enum:"succeeded,failed,snoozed,lost" doc:"Outcome of the attempt. lost: the worker ended, and the attempt was started once more; its times are the earliest possible start and the latest possible end."`
	Error           *job.Reason  `json:"error,omitempty" doc:"Error with which the attempt failed"`
}

func viewAttempt(a job.Attempt) attemptView {
	v := attemptView{Attempt: a.Attempt, Worker: a.Worker, Outcome: a.Outcome, Error: a.Error}
	if !a.StartedAt.IsZero() {
		v.StartedAt, v.FinishedAt, v.StartLatenessMS = rest.At(a.StartedAt),
			rest.At(a.FinishedAt), &a.LatenessMS
	}
	return v
}

type attemptsInput struct {
	ByID
	rest.Paging
}

func (s *Handler) listAttempts(
	ctx context.Context, _ tenant.Identity, in *attemptsInput, after string, limit int,
) (found rest.Found[attemptView], err error) {
	r, err := s.row(ctx, in.Key)
	if err != nil {
		return found, err
	}
	attempts, more, err := s.Store.Attempts(ctx, r, rest.CursorNumber(after), limit)
	return rest.FoundRows(attempts, more, viewAttempt, func(a job.Attempt) string {
		return strconv.Itoa(int(a.Position()))
	}), err
}
