package spec

import (
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/job"
	"punctual/shared/operation"
)

// OperationView shows an operation, or the dry run of one.
type OperationView struct {
	OperationID    job.ID                  `json:"operation_id,omitempty" doc:"Identifier; absent for a dry run"`
	Action         operation.Action        `json:"action" enum:"backfill,cancel,pause,resume,run_now,reschedule,reprioritize,delete,redrive,purge,retry_runs,cancel_runs" doc:"Kind of the operation"`
	Status         operation.Status        `json:"status,omitempty" enum:"COUNTING,CANARY,RUNNING,PAUSED,SUCCEEDED,FAILED,STOPPED" doc:"Status: COUNTING while it notes what matches, CANARY while it waits for the first ones; FAILED if all that matched has failed, or with a status_reason. Absent for a dry run."`
	StatusReason   *job.Reason             `json:"status_reason,omitempty" doc:"Reason why the operation could not continue"`
	AsOf           rest.Instant            `json:"as_of" doc:"Time of the request, at which the operation counted what matches"`
	Matched        *int                    `json:"matched,omitempty" doc:"Number of jobs or runs that match, so far while it is COUNTING; of nominal times in the range of a backfill, which an edit of the schedule may change. In the end it is the sum of done, skipped and failed."`
	MatchedAtLeast *int                    `json:"matched_at_least,omitempty" doc:"Number of jobs, runs or nominal times that a dry run examined, instead of matched, if {=dry_run_s} s did not suffice for all"`
	Done           int                     `json:"done" doc:"Number of jobs or runs to which the action was done; of a backfill, of those that have succeeded"`
	Skipped        int                     `json:"skipped" doc:"Number of jobs or runs whose state did not allow the action any more; of a backfill, of nominal times that ran, or have not ended"`
	Failed         int                     `json:"failed" doc:"Number of jobs or runs to which the action could not be done; of a backfill, of those that have ended with any other status"`
	Open           int                     `json:"open" doc:"Number of jobs or runs of a backfill or a canary that have not ended, as far as the operation knows"`
	Errors         []operationError        `json:"errors" doc:"First {=operation_errors} errors"`
	Canary         rest.OrNull[canaryView] `json:"canary" doc:"Outcome of the first jobs; null if the others do not wait for it"`
	Schedule       string                  `json:"schedule,omitempty" doc:"Name of the schedule of a backfill"`
	From           rest.Instant            `json:"from,omitzero" doc:"Earliest nominal time of a backfill"`
	To             rest.Instant            `json:"to,omitzero" doc:"Time before which the nominal times of a backfill are"`
	Order          operation.Order         `json:"order,omitempty" enum:"oldest,newest" doc:"Nominal times that a backfill makes first"`
	MaxRunning     int                     `json:"max_running,omitempty" doc:"Maximum number of jobs or runs of a backfill that are open at a time"`
	Repeat         bool                    `json:"again,omitempty" doc:"Whether a backfill also makes nominal times that ran"`
	CreatedAt      rest.Instant            `json:"created_at" doc:"Time of the request"`
	EndedAt        rest.Instant            `json:"ended_at,omitzero" doc:"Time at which the operation ended"`
	By             string                  `json:"by,omitempty" doc:"Subject that requested the operation"`
	Reason         string                  `json:"reason,omitempty" doc:"Reason that was given for the operation"`
	EstimatedEndAt rest.Instant            `json:"estimated_end_at,omitzero" doc:"Time at which the operation ends if it continues as fast as so far; only while it is RUNNING"`
}

type operationError struct {
	JobID  job.ID `json:"job_id" doc:"Identifier of the job or run"`
	Code   string `json:"code" doc:"Code of the error"`
	Detail string `json:"detail" doc:"Explanation of the error, shortened"`
}

type canaryView struct {
	Succeeded int `json:"succeeded" doc:"Number of jobs that have succeeded"`
	Failed    int `json:"failed" doc:"Number of jobs that have failed"`
	Open      int `json:"open" doc:"Number of jobs that have not ended"`
}

// farthest is how far ahead the end of an operation is estimated.
const farthest = 10 * 366 * 24 * time.Hour

// ViewOperation shows an operation.
func ViewOperation(o operation.Operation, now time.Time) OperationView {
	v := OperationView{
		OperationID: o.ID, Action: o.Action, Status: o.Status, AsOf: rest.At(o.CreatedAt), Matched: &o.Matched,
		Done: o.Done, Skipped: o.Skipped, Failed: o.Failed, Open: len(o.Open), Errors: []operationError{},
		Schedule: o.Schedule,
		From:     rest.At(o.From), To: rest.At(o.To), Order: o.Order, MaxRunning: o.Most, Repeat: o.Repeat,
		CreatedAt: rest.At(o.CreatedAt), EndedAt: rest.At(o.EndedAt), By: o.By, Reason: o.Reason,
	}
	for _, e := range o.Errors {
		v.Errors = append(v.Errors, operationError(e))
	}
	if o.Why.Code != "" {
		v.StatusReason = &o.Why
	}
	if o.Status.Over() {
		v.Open = 0 // nothing of it is counted any more
	}
	if c := o.Bulk.Canary; c.Count > 0 {
		v.Canary = rest.OrNull[canaryView]{Value: &canaryView{c.Succeeded, c.Failed, len(c.Open)}}
		if !o.Status.Over() {
			v.Open = len(c.Open)
		}
	}
	v.EstimatedEndAt = rest.At(estimatedEnd(o, now))
	return v
}

// estimatedEnd is when an operation ends that goes on as fast as so far, but no faster than its rate allows; zero if
// that is not known.
func estimatedEnd(o operation.Operation, now time.Time) (at time.Time) {
	ended, since := o.Done+o.Skipped+o.Failed, o.CreatedAt
	if o.OnRows() {
		since = o.Bulk.BegunAt
	}
	if o.Status != operation.Running || ended == 0 || !now.After(since) {
		return at
	}
	left := max(0, o.Matched-ended)
	each := now.Sub(since) / time.Duration(ended)
	if r := o.Bulk.Rate; r.Count > 0 {
		each = max(each, r.Of(1))
	}
	if each > farthest/time.Duration(max(1, left)) { // a later end is no estimate
		return at
	}
	return now.Add(time.Duration(left) * each)
}

// OperationAnswer answers a request that makes an operation.
type OperationAnswer struct {
	Status   int
	Location string `header:"Location" doc:"Path of the operation; absent for a dry run"`
	Replayed string `header:"Idempotency-Replayed" doc:"Value true if an earlier request with the same key made the operation; absent otherwise"`
	Body     OperationView
}
