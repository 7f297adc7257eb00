package recur

import (
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// The steps of a wake-up that only the jobs of schedules have.
const (
	Skipped job.Step = "skip"  // the schedule skips the job
	Left    job.Step = "leave" // promotion decides about the job, or it is too early
	Began   job.Step = "begin" // the run that the row represents begins
	Queued  job.Step = "queue" // the job is queued behind another of its schedule
	// the job supersedes the one that holds its unique key, and is then decided about anew
	Supersedes job.Step = "supersede"
)

// Verdict is what a schedule says of a job that is about to be fired or to expire. Its caller does it.
type Verdict struct {
	Step     job.Step
	Schedule schedule.Schedule // as it applied to the job; the zero Schedule if none did
	Why      job.Reason        // of Skipped and of job.StepFinishStop
	// Uncounted says that the skipped job was never counted among the runs of its schedule, which has reached its
	// max_runs: the schedule ends.
	Uncounted bool
	// Unstarted says that the skipped job has not started, even if a worker was lost that had claimed it.
	Unstarted bool
	// WakeAt and Postponed are the next wake-up of a job that is Left; a zero WakeAt has it brought back at its due
	// time by a message.
	WakeAt    time.Time
	Postponed int64
	With      []item.Write // the schedule's part of the transaction in which a run that is Began begins
	Queue     Queue        // of a job that is Queued
	Holder    *job.Row     // of its unique key, for a job that Supersedes it
}

// Queue says what goes with queueing a job behind the one that holds the slot of its schedule.
type Queue struct {
	Waits     *item.Write // has the schedule know which job waits; nil under buffer_all
	Displaced *job.Row    // a job that waited before, and is skipped; nil for none
	Cancelled *job.Row    // the holder of the slot, if it is asked to end
}
