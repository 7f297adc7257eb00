package search

import (
	"encoding/json"
	"time"

	"punctual/shared/job"
)

// Entry is what the index holds of a job.
type Entry struct {
	job.Key
	Stage      int64 // how far the row had come; only a later row replaces an entry
	Status     job.Status
	Task       string
	Schedule   string // "" for none
	DAG        string // dag of the run of which the job is a node; "" for none
	RunID      string
	Pool       string
	Priority   job.Priority
	Code       string            // of the reason for the status; "" for none
	Group      string            // of a DEAD job; see Group
	Tags       map[string]string // the holder never changes it
	CreatedAt  time.Time
	DueAt      time.Time
	FinishedAt time.Time // zero: it has not ended
	DeadAt     time.Time // zero: it is not DEAD
	ExpiresAt  time.Time // when the entry goes with its row; zero: while the job is open
}

// Update is an entry that is to be written, and what is known of the one before it. Zero values are always right; an
// index that knows more writes less.
type Update struct {
	Entry
	// Found says that an entry of the job was written before, with the same task and tags.
	//exhaustruct:optional
	Found bool
	// DeadBefore is when the job had died, if it was DEAD before; zero if it was not.
	//exhaustruct:optional
	DeadBefore time.Time
}

// Listed reports whether a row is that of a job. A row that represents a run is none.
func Listed(r job.Row) bool { return !r.StartsRun() }

// EntryOf returns the entry of a row. tags is a JSON object of strings, "" for none; dag is the dag of the run of which
// the job is a node, "" for none.
func EntryOf(r job.Row, tags, dag string) Entry {
	e := Entry{
		Key: r.Key, Stage: StageOf(r), Status: r.Status, Task: r.Task, Schedule: r.Schedule(), DAG: dag, RunID: r.RunID,
		Pool: r.Pool, Priority: r.Priority, Code: r.Reason.Code, CreatedAt: r.CreatedAt, DueAt: r.DueAt,
		FinishedAt: r.FinishedAt, DeadAt: r.DeadAt, ExpiresAt: r.ExpiresAt,
	}
	if r.Status == job.Dead {
		e.Group = Group(r.Task, r.Reason.Code, r.Reason.Message)
	}
	if tags != "" {
		_ = json.Unmarshal([]byte(tags), &e.Tags) // what is no object of strings has no tags
	}
	return e
}

// steps is more than the number of statuses that a row has within one attempt, one after the other.
const steps = 4

// StageOf says how far a row has come. It never falls: version and attempt only grow, and a status within one attempt
// of one version is followed by later ones only.
func StageOf(r job.Row) int64 {
	step := int64(steps - 1)
	switch r.Status {
	case job.Blocked:
		step = 0
	case job.Scheduled:
		step = 1
	case job.Running:
		step = 2
	}
	return (r.Version+r.Attempt)*steps + step
}
