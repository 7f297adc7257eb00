package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine/show"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/span"
)

// SpanOf formats a length of time; zero is "".
func SpanOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return span.Format(d)
}

// JobAnswer is the view of one job, with headers.
type JobAnswer struct {
	Status   int
	Location string `header:"Location" doc:"Address of the job"`
	ETag     string `header:"ETag" doc:"Version in quotes, for If-Match"`
	Replayed string `header:"Idempotency-Replayed" doc:"Mark true: an earlier request with the same key made the job, which is shown in its current state"`
	Link     string `header:"Link" doc:"Address at which the DEAD job of a replay is redriven, with rel=\"redrive\""`
	// RetryAfter is set where a request with wait did not wait.
	RetryAfter string `header:"Retry-After" doc:"Seconds after which to repeat the request; it did not wait, because too many requests of the tenant already wait"`
	Body       JobView
}

// AnswerJob answers with one job and all its contents.
func (s *Core) AnswerJob(ctx context.Context, r job.Row, status int) (*JobAnswer, error) {
	v, err := s.Show(ctx, r)
	if err == nil {
		err = s.Detail(ctx, r, &v)
	}
	return &JobAnswer{Status: status, ETag: Etag(r.Version), Body: v}, err
}

// JobView shows a job. Absent values are left out.
type JobView struct {
	JobID             job.ID          `json:"job_id" example:"01KB4YJ2V0S6Y3Q4M5N6P7R8T9"`
	Status            job.Status      `json:"status" enum:"BLOCKED,SCHEDULED,QUEUED,RUNNING,SUCCEEDED,DEAD,CANCELLED,SKIPPED,EXPIRED" doc:"Status; a job that waits for a retry is SCHEDULED with attempt > 1"`
	Task              string          `json:"task"`
	Pool              string          `json:"pool"`
	Priority          job.Priority    `json:"priority"`
	DueAt             rest.Instant    `json:"due_at" doc:"Time at which the job is due: as requested, or that of the next retry; for a BLOCKED job, the earliest possible one"`
	NominalAt         rest.Instant    `json:"nominal_at,omitzero" doc:"Time by the calendar of the schedule; absent for a job without a schedule"`
	Version           int64           `json:"version" doc:"Version of the job, which grows with every edit; the ETag is this in quotes"`
	Attempt           int64           `json:"attempt" doc:"Number of the current attempt, from 1"`
	MaxAttempts       int             `json:"max_attempts" doc:"Maximum number of attempts, the first one included"`
	CreatedAt         rest.Instant    `json:"created_at"`
	StartedAt         rest.Instant    `json:"started_at,omitzero" doc:"Start of the newest attempt that started; in its first seconds, the time at which its worker took it"`
	Limits            []LimitUse      `json:"limits,omitempty" doc:"Limits of work under which the job counts"`
	Limit             *limitWait      `json:"limit,omitempty" doc:"Limit of work that is full, while waiting_for is limit"`
	Unique            *UniqueView     `json:"unique,omitempty" doc:"Key that one open job of the tenant holds at a time"`
	Worker            string          `json:"worker,omitempty" doc:"Name of the worker that runs the job; only while it is RUNNING"`
	LeaseUntil        rest.Instant    `json:"lease_until,omitzero" doc:"Time until which the worker owns the attempt without another heartbeat; only while it is RUNNING"`
	FinishedAt        rest.Instant    `json:"finished_at,omitzero"`
	StartLatenessMS   *int64          `json:"start_lateness_ms,omitempty" doc:"Milliseconds from the later of due time and acceptance to the start of the handler"`
	Result            json.RawMessage `json:"result,omitempty" doc:"Value that the work returned, its numbers unchanged; lists show only small ones. The body of an HTTP answer that is not UTF-8 is in base64, marked by \"encoding\":\"base64\". A result that is not kept whole is {\"truncated\":true,\"preview\":…}, or an answer with a cut body; result_partial then has the code."`
	ResultPartial     string          `json:"result_partial,omitempty" enum:"result_too_large,result_lost" doc:"Code with which every use of the result fails, because only a preview or a part of it is kept; absent where result is the whole value"`
	WaitingFor        string          `json:"waiting_for,omitempty" enum:"due,retry,snooze,worker,handler,parents,pause,limit" doc:"Kind of event that the job waits for; handler: a worker that knows its task"`
	Paused            *jobPauseView   `json:"paused,omitempty" doc:"Pause of this job alone, while it waits; it has no effect on other jobs"`
	StatusReason      *job.Reason     `json:"status_reason,omitempty"`
	Progress          *progressView   `json:"progress,omitempty" doc:"Progress that the handler reported last"`
	CancelRequestedAt rest.Instant    `json:"cancel_requested_at,omitzero" doc:"Time at which the cancellation was requested"`
	RedriveOf         job.ID          `json:"redrive_of,omitempty" doc:"Identifier of the dead job that this job repeats"`
	RedrivenBy        job.ID          `json:"redriven_by,omitempty" doc:"Identifier of the job that repeats this dead job"`
	Schedule          string          `json:"schedule,omitempty" doc:"Name of the schedule that made the job"`
	Manual            bool            `json:"manual,omitempty" doc:"Whether a caller requested this run of the schedule, apart from its times"`
	Backfill          job.ID          `json:"backfill,omitempty" doc:"Identifier of the operation that made the job of a nominal time that had passed"`
	RunID             string          `json:"run_id,omitempty" doc:"Identifier of the run that the job belongs to"`
	Node              string          `json:"node,omitempty" doc:"Name of the node in the run"`
	Item              *int64          `json:"item,omitempty" doc:"Index of the item in the list of a node with for_each, from 0"`
	After             []job.ID        `json:"after,omitempty"`
	RunIf             dag.Rule        `json:"run_if,omitempty"`
	PayloadSize       int64           `json:"payload_size,omitempty" doc:"Size of the payload in bytes"`
	MetadataView

	*JobDetail
}

// JobDetail is shown only with a single job.
type JobDetail struct {
	Timeout     string     `json:"timeout,omitempty"`
	StartWithin string     `json:"start_within,omitempty"`
	ExpireAfter string     `json:"expire_after,omitempty"`
	Retry       *RetryView `json:"retry,omitempty"`
	TagsView
	Payload json.RawMessage `json:"payload,omitempty" doc:"Input of the job; left out when larger than {=item_kib} KiB"`
}

type progressView struct {
	Done  int64        `json:"done" doc:"Number of units that are done"`
	Total int64        `json:"total,omitempty" doc:"Number of all units"`
	Note  string       `json:"note,omitempty" doc:"Note of the handler"`
	At    rest.Instant `json:"at" doc:"Time of the report"`
}

type jobPauseView struct {
	Reason string       `json:"reason,omitempty" doc:"Reason for the pause"`
	By     string       `json:"by,omitempty" doc:"Subject that paused the job"`
	Since  rest.Instant `json:"since" doc:"Time at which the pause was made"`
}

// RetryView shows a retry policy.
type RetryView struct {
	MaxAttempts  int     `json:"max_attempts"`
	InitialDelay string  `json:"initial_delay"`
	Factor       float64 `json:"factor"`
	MaxDelay     string  `json:"max_delay"`
	Jitter       float64 `json:"jitter"`
	OnWorkerLost string  `json:"on_worker_lost" enum:"rerun,fail"`
}

// ViewRetry shows a retry policy.
func ViewRetry(p job.RetryPolicy) *RetryView {
	return &RetryView{p.MaxAttempts, span.Format(p.InitialDelay), p.Factor, span.Format(p.MaxDelay), p.Jitter,
		p.OnWorkerLost()}
}

// ViewJob shows a job.
func ViewJob(shown show.Job) JobView {
	r, c, paused, now := shown.Row, shown.Claim, shown.Paused, shown.At
	v := JobView{
		JobID: r.ID, Status: job.ReadStatus(r, c, now), Task: r.Task, Pool: r.Pool, Priority: r.Priority,
		DueAt: rest.At(r.DueAt), NominalAt: rest.At(r.NominalAt), Version: r.Version,
		Attempt: r.Attempt, MaxAttempts: r.Retry.MaxAttempts,
		CreatedAt: rest.At(r.CreatedAt), StartedAt: rest.At(job.StartedAt(r, c, now)),
		FinishedAt: rest.At(r.FinishedAt),
		WaitingFor: job.WaitingFor(r, c, paused, now), CancelRequestedAt: rest.At(r.CancelRequestedAt),
		RedriveOf: r.RedriveOf, RedrivenBy: r.RedrivenBy, Schedule: r.Schedule(), Manual: r.Manual(),
		Backfill: r.Backfill,
		RunID:    r.RunID, Node: r.Node, PayloadSize: r.PayloadSize,
	}
	if of, ok, err := dag.AfterOf(r); ok && err == nil {
		v.After, v.RunIf = of.IDs(), of.Rule
		if r.Status == job.Blocked {
			v.DueAt = rest.At(of.Due(r.CreatedAt))
		}
	}
	if !r.StartedAt.IsZero() {
		v.StartLatenessMS = new(r.LatenessMS)
	}
	if r.IsItem() {
		v.Item = new(r.ItemNo - 1)
	}
	if r.IsMapped() { // it is no job, and what its items are made from is no payload
		v.PayloadSize = 0
	}
	if r.Result != "" {
		v.Result = json.RawMessage(r.Result)
	}
	v.ResultPartial = Partial(r.Partial)
	v.Limits, v.Unique = ViewLimits(r.Limits), ViewUnique(r.Unique)
	if is, waits := r.FullLimit(); waits && v.WaitingFor == job.WaitsForLimit {
		v.Limit = &limitWait{viewLimit(is), shown.Ahead}
	}
	if p := r.Paused; r.IsPaused() && v.WaitingFor == "pause" {
		v.Paused = &jobPauseView{p.Reason, p.By, rest.At(p.Since)}
	}
	switch {
	case r.Reason.Code != "":
		v.StatusReason = new(r.Reason)
	case v.WaitingFor == "handler":
		v.StatusReason = &job.Reason{Code: job.CodeUnknownTask, Message: fmt.Sprintf(job.NoHandler, r.Task)}
	case r.QueuedBehind:
		v.StatusReason = &job.Reason{Code: job.CodeOverlap, Message: job.WaitsForEarlier}
	}
	if job.Owned(r, c, now) {
		v.Worker, v.LeaseUntil = c.Worker, rest.At(c.LeaseUntil)
	}
	if p := c.Progress; p != nil && c.Attempt == r.Attempt && r.Status.Open() {
		v.Progress = &progressView{p.Done, p.Total, p.Note, rest.At(p.At)}
	}
	v.MetadataView = ViewLabels(shown.Labels).MetadataView
	return v
}

// Partial is the code with which the use of a result fails, "" where the result is whole.
func Partial(p job.Partial) string {
	if p == job.Whole {
		return ""
	}
	return p.Reason().Code
}

// Etag returns the ETag of a version.
func Etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// Show returns the view of a row, with what its claim, pauses and schedule add.
func (s *Core) Show(ctx context.Context, r job.Row) (JobView, error) {
	shown, err := s.Read.Job(ctx, r)
	return ViewJob(shown), err
}

// ViewJobs shows the jobs of a page.
func ViewJobs(shown []show.Job) []JobView {
	views := make([]JobView, len(shown))
	for n, j := range shown {
		views[n] = ViewJob(j)
	}
	return views
}

// DetailOf returns the part of a job's detail that the row has.
func DetailOf(r job.Row) *JobDetail {
	return &JobDetail{Timeout: span.Format(r.Timeout), Retry: ViewRetry(r.Retry), StartWithin: SpanOf(r.StartWithin),
		ExpireAfter: SpanOf(r.ExpireAfter)}
}

// Detail adds the contents of a single job to its view.
func (s *Core) Detail(ctx context.Context, r job.Row, v *JobView) error {
	v.JobDetail = DetailOf(r)
	labels, err := s.Store.LabelsOf(ctx, r)
	if err != nil {
		return err
	}
	v.label(labels[0])
	v.Result, v.Payload, err = s.Read.Contents(ctx, r)
	return err
}

// Now returns the time, to the millisecond as it is stored.
func (s *Core) Now() time.Time { return s.Clock.Now().UTC().Truncate(time.Millisecond) }

// label adds the labels of a job to its detailed view.
func (v *JobView) label(l job.Labels) {
	shown := ViewLabels(l)
	v.TagsView, v.MetadataView = shown.TagsView, shown.MetadataView
}

// Asked adds the contents of a request to the view of its job.
func (v *JobView) Asked(c job.Contents) {
	if v.JobDetail == nil {
		v.JobDetail = &JobDetail{}
	}
	v.label(c.Labels)
	if len(c.Payload) <= contract.MaxItem {
		v.Payload = c.Payload
	}
}

// A schedule makes its jobs up to contract.Horizon ahead. When it is deleted, or edited so that a time is gone, the
// jobs of that time that have not started will not run. They are shown as SKIPPED at once and cannot be changed,
// although their rows become SKIPPED only when they are due.
