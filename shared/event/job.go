package event

import (
	"encoding/json"
	"time"

	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/text"
)

// ends are the events of the final statuses.
var ends = map[job.Status]Type{
	job.Succeeded: JobSucceeded, job.Dead: JobDead, job.Expired: JobExpired, job.Cancelled: JobCancelled,
	job.Skipped: JobSkipped,
}

// MayMatter reports whether a change of the jobs table may be an event, or the end of an attempt of a delivery, by
// what an event source can filter by: the new status, and that the job waits for a retry.
func MayMatter(c item.Change) bool {
	if c.New == nil || c.New.Str("dag") != "" { // a row that represents a run is no job
		return false
	}
	_, end := ends[job.Status(c.New.Str("status"))]
	return end || c.New.Str("waiting") == "retry"
}

// Change is a change of a job's row.
type Change struct {
	Old *job.Row // nil: the row is new, or cannot be read
	New job.Row
}

// ReadChange reads a change for which MayMatter holds.
func ReadChange(c item.Change) (Change, error) {
	next, err := job.ParseRow(c.New)
	if err != nil {
		return Change{}, err
	}
	read := Change{New: next}
	if old, err := job.ParseRow(c.Old); err == nil {
		read.Old = &old
	}
	return read, nil
}

// Ended reports whether the change gave the job its final status.
func (c Change) Ended() bool {
	return c.New.Status.Final() && (c.Old == nil || !c.Old.Status.Final())
}

// Failed reports whether an attempt of the job failed with the change.
func (c Change) Failed() bool { return c.Old != nil && c.New.Failures > c.Old.Failures }

// Of returns the events that a change of a job is, in their order. A failed attempt that was the last one is two
// events. The job of a delivery has none.
func Of(c Change) (events []Event) {
	if c.New.Delivery() || c.New.IsMapped() {
		return nil
	}
	if c.Failed() {
		failed := attemptOf(c)
		at := failed.FinishedAt.Time
		if at.IsZero() { // it never started, and the time of its end is not known
			at = c.New.DueAt
		}
		e := ofJob(c.New, JobFailedAttempt, at, 2*c.Old.Attempt)
		e.failed = &failed
		events = append(events, e)
	}
	if c.Ended() {
		events = append(events, ofJob(c.New, ends[c.New.Status], c.New.FinishedAt, 2*c.New.Attempt+1))
	}
	return events
}

// ofJob is an event of a job. Attempts only grow, so twice the attempt, and one more for the end, is a sequence.
func ofJob(r job.Row, what Type, at time.Time, sequence int64) Event {
	e := newEvent(r.Tenant, what, "job/"+string(r.ID), at, sequence)
	e.Task, e.Schedule, e.Job = r.Task, r.Schedule(), &r
	return e
}

// instant is a time as views show it.
type instant struct{ time.Time }

// MarshalJSON writes the time.
func (i instant) MarshalJSON() ([]byte, error) {
	return []byte(i.UTC().Format(`"` + text.InstantLayout + `"`)), nil
}

// attempt is the attempt that failed.
type attempt struct {
	Attempt    int64      `json:"attempt"`
	Worker     string     `json:"worker,omitempty"`
	StartedAt  instant    `json:"started_at,omitzero"`
	FinishedAt instant    `json:"finished_at,omitzero"`
	Error      job.Reason `json:"error"`
}

func attemptOf(c Change) attempt {
	a := attempt{Attempt: c.Old.Attempt, Error: c.New.Reason}
	for _, of := range c.New.Attempts { // a row that is full may not have it any more
		if of.Attempt != a.Attempt || of.Start != 0 {
			continue
		}
		a.Worker, a.StartedAt, a.FinishedAt = of.Worker, instant{of.StartedAt}, instant{of.FinishedAt}
		if of.Error != nil {
			a.Error = *of.Error
		}
	}
	return a
}

type limitUse struct {
	Name string  `json:"name"`
	Key  *string `json:"key"`
}

type unique struct {
	Key        string         `json:"key"`
	Until      job.Until      `json:"until"`
	OnConflict job.OnConflict `json:"on_conflict"`
}

// jobData is the view of a job without payload and result, and without what only its worker knows. The names are those
// of the API's view; a test there compares them.
type jobData struct {
	JobID             job.ID            `json:"job_id"`
	Status            job.Status        `json:"status"`
	Task              string            `json:"task"`
	Pool              string            `json:"pool"`
	Priority          job.Priority      `json:"priority"`
	DueAt             instant           `json:"due_at"`
	NominalAt         instant           `json:"nominal_at,omitzero"`
	Version           int64             `json:"version"`
	Attempt           int64             `json:"attempt"`
	MaxAttempts       int               `json:"max_attempts"`
	CreatedAt         instant           `json:"created_at"`
	StartedAt         instant           `json:"started_at,omitzero"`
	Limits            []limitUse        `json:"limits,omitempty"`
	Unique            *unique           `json:"unique,omitempty"`
	FinishedAt        instant           `json:"finished_at,omitzero"`
	LatenessMS        *int64            `json:"start_lateness_ms,omitempty"`
	WaitingFor        string            `json:"waiting_for,omitempty"`
	StatusReason      *job.Reason       `json:"status_reason,omitempty"`
	CancelRequestedAt instant           `json:"cancel_requested_at,omitzero"`
	RedriveOf         job.ID            `json:"redrive_of,omitempty"`
	Schedule          string            `json:"schedule,omitempty"`
	Manual            bool              `json:"manual,omitempty"`
	Backfill          job.ID            `json:"backfill,omitempty"`
	RunID             string            `json:"run_id,omitempty"`
	Node              string            `json:"node,omitempty"`
	Item              *int64            `json:"item,omitempty"`
	After             []job.ID          `json:"after,omitempty"`
	RunIf             dag.Rule          `json:"run_if,omitempty"`
	PayloadSize       int64             `json:"payload_size,omitempty"`
	Metadata          json.RawMessage   `json:"metadata,omitempty"`
	Tags              map[string]string `json:"tags,omitempty"`
	FailedAttempt     *attempt          `json:"failed_attempt,omitempty"`
	Sequence          int64             `json:"sequence"`
}

func (e Event) jobData(l job.Labels) jobData {
	r := *e.Job
	d := jobData{
		JobID: r.ID, Status: r.Status, Task: r.Task, Pool: r.Pool, Priority: r.Priority, DueAt: instant{r.DueAt},
		NominalAt: instant{r.NominalAt}, Version: r.Version, Attempt: r.Attempt, MaxAttempts: r.Retry.MaxAttempts,
		CreatedAt: instant{r.CreatedAt}, StartedAt: instant{r.StartedAt}, FinishedAt: instant{r.FinishedAt},
		WaitingFor: r.Waiting, CancelRequestedAt: instant{r.CancelRequestedAt}, RedriveOf: r.RedriveOf,
		Schedule: r.Schedule(), Manual: r.Manual(), Backfill: r.Backfill, RunID: r.RunID, Node: r.Node,
		PayloadSize: r.PayloadSize, Metadata: json.RawMessage(l.Metadata), Tags: TagsOf(l), FailedAttempt: e.failed,
		Sequence: e.Sequence,
	}
	for _, k := range r.Limits.List() {
		use := limitUse{Name: k.Name}
		if k.Key != "" {
			use.Key = &k.Key
		}
		d.Limits = append(d.Limits, use)
	}
	if u := r.Unique; u.Key != "" {
		d.Unique = &unique{u.Key, u.Until, u.OnConflict}
	}
	if !r.StartedAt.IsZero() {
		d.LatenessMS = &r.LatenessMS
	}
	if r.Reason.Code != "" {
		d.StatusReason = &r.Reason
	}
	if r.IsItem() {
		n := r.ItemNo - 1
		d.Item = &n
	}
	if of, ok, err := dag.AfterOf(r); ok && err == nil {
		d.After, d.RunIf = of.IDs(), of.Rule
	}
	return d
}

// TagsOf are the tags among labels. Those that cannot be read are none.
func TagsOf(l job.Labels) (tags map[string]string) {
	if l.Tags != "" {
		_ = json.Unmarshal([]byte(l.Tags), &tags)
	}
	return tags
}
