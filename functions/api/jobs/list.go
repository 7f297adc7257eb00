package jobs

import (
	"context"
	"strconv"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/tenant"
)

type listJobsInput struct {
	rest.Paging
	State         string `query:"status" doc:"Filter: status"`
	Task          string `query:"task"`
	Schedule      string `query:"schedule"`
	CreatedAfter  string `query:"created_after" format:"date-time" doc:"Filter: earliest created_at"`
	CreatedBefore string `query:"created_before" format:"date-time" doc:"Filter: time before which created_at lies"`

	Dag            string `query:"dag" doc:"Filter: name of the dag of the run of which the job is a node"`
	RunID          string `query:"run_id" doc:"Filter: identifier of the run of which the job is a node"`
	Pool           string `query:"pool" doc:"Filter: pool"`
	Priority       string `query:"priority" doc:"Filter: priority"`
	Code           string `query:"code" doc:"Filter: code of status_reason"`
	Group          string `query:"group" doc:"Filter: group of dead letters, as /v1/dead-letters/groups lists them"`
	ID             string `query:"id" doc:"Filter: beginning of the identifier"`
	DueAfter       string `query:"due_after" format:"date-time" doc:"Filter: earliest due_at"`
	DueBefore      string `query:"due_before" format:"date-time" doc:"Filter: time before which due_at lies"`
	FinishedAfter  string `query:"finished_after" format:"date-time" doc:"Filter: earliest finished_at"`
	FinishedBefore string `query:"finished_before" format:"date-time" doc:"Filter: time before which finished_at lies"`
	Order          string `query:"order" doc:"Order of the list; default newest"`
	rest.TagFilters
}

func (s *Handler) listJobs(
	ctx context.Context, who tenant.Identity, in *listJobsInput, after string, limit int,
) (found rest.Found[spec.JobView], err error) {
	f, err := in.searchFilter()
	if err != nil {
		return found, err
	}
	if needsIndex(f, listedBy) || in.Order == string(search.OldestFirst) {
		return s.searchJobs(ctx, who, f, in.Order, after, limit)
	}
	old := show.Filter{Status: f.Status, Task: f.Task, Schedule: f.Schedule, After: f.CreatedAfter,
		Before: f.CreatedBefore}
	page, next, err := s.Read.List(ctx, who.Tenant, old, after, limit)
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
