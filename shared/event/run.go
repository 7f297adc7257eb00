package event

import (
	"time"

	"punctual/shared/job"
	"punctual/shared/run"
)

// statuses are the events of the statuses that a run comes to.
var statuses = map[run.Status]Type{
	run.Succeeded: RunSucceeded, run.Failed: RunFailed, run.Held: RunHeld, run.Cancelled: RunCancelled,
}

// OfStatus is the event that a run has come to a status: a final one, or HELD.
func OfStatus(s run.Status) Type { return statuses[s] }

// runData is the view of a run without its params and nodes, as it was when the event happened, by the names of the
// API's view.
type runData struct {
	RunID        job.ID            `json:"run_id"`
	Dag          *string           `json:"dag"`
	DagVersion   *int64            `json:"dag_version"`
	Status       run.Status        `json:"status"`
	StatusReason *job.Reason       `json:"status_reason,omitempty"`
	CreatedAt    instant           `json:"created_at"`
	DueAt        instant           `json:"due_at"`
	FinishedAt   instant           `json:"finished_at,omitzero"`
	NominalAt    instant           `json:"nominal_at,omitzero"`
	Schedule     string            `json:"schedule,omitempty"`
	Backfill     job.ID            `json:"backfill,omitempty"`
	Priority     job.Priority      `json:"priority,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Sequence     int64             `json:"sequence"`
}

// OfRun is an event of a run with these tags.
func OfRun(r run.Run, a run.Announcement, tags map[string]string) Event {
	at := time.UnixMilli(a.At).UTC()
	e := newEvent(r.Tenant, statuses[a.Status], "run/"+string(r.ID), at, a.Sequence)
	d := runData{
		RunID: r.ID, Status: a.Status, CreatedAt: instant{r.CreatedAt}, DueAt: instant{r.DueAt},
		NominalAt: instant{r.NominalAt}, Schedule: r.Schedule, Backfill: r.Backfill, Priority: r.Priority, Tags: tags,
		Sequence: a.Sequence,
	}
	if r.Dag != "" {
		d.Dag, d.DagVersion = &r.Dag, &r.DagVersion
	}
	if a.Reason.Code != "" {
		d.StatusReason = &a.Reason
	}
	if a.Status.Final() {
		d.FinishedAt = instant{at}
	}
	e.Schedule, e.Dag, e.data, e.tags = r.Schedule, r.Dag, d, tags
	return e
}

// TagsWith are the tags of what the event is about. l are the labels of its job.
func (e Event) TagsWith(l job.Labels) map[string]string {
	if e.Job != nil {
		return TagsOf(l)
	}
	return e.tags
}
