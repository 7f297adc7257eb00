package recur

import (
	"context"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Runs begins and cancels the runs that rows of schedules stand for.
type Runs interface {
	// Launch makes the run of a row together with those writes or not at all: refused, and there is no
	// run, is an *item.Refused. One that is there already is no error. why says that there can be none.
	Launch(ctx context.Context, row job.Row, with ...item.Write) (why job.Reason, err error)
	// CancelLaunched asks a run that has begun to end as cancelled. One that is over stays so.
	CancelLaunched(ctx context.Context, row job.Row, why string) error
}

// Store is what a Recurrer reads and writes: schedules, their slots and counts, and their jobs. A
// write whose condition does not hold is an *item.Refused with the items as they were.
type Store interface {
	accept.Jobs
	// Schedule reads a schedule; an absent one is a fault.NotFound, a deleted one is there.
	Schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error)
	// ScheduleContents reads what each job of a schedule holds.
	ScheduleContents(ctx context.Context, s schedule.Schedule) (job.Contents, error)
	// WriteSchedule returns the schedule as it then is.
	WriteSchedule(ctx context.Context, w item.Write) (schedule.Schedule, error)
	// DueSchedules reads a page of those whose wake-up lies in a slice; next is "" at the end.
	DueSchedules(ctx context.Context, q store.DueQuery) (due []store.DueSchedule, next string, err error)
	// HaveJobs says which of these nominal times have a job.
	HaveJobs(ctx context.Context, k schedule.Key, times []time.Time) (map[time.Time]bool, error)
	// RunsLeft says whether a job counts as a run already, and whether there are runs left.
	RunsLeft(ctx context.Context, s schedule.Schedule, id job.ID) (counted, left bool, err error)
	Slot(ctx context.Context, k schedule.Key) (schedule.Slot, error)
	// Lifted reads the pauses of a task, or of everything, that are over.
	Lifted(ctx context.Context, t tenant.ID, task string, now time.Time) (job.Pauses, error)
	// NoteLine notes that jobs wait in a schedule's line, so that somebody looks after them.
	NoteLine(ctx context.Context, k schedule.Key, now time.Time) error
	// DueFront reads the earliest entries of a slice or line.
	DueFront(ctx context.Context, q store.DueQuery) ([]store.Found, error)

	Row(ctx context.Context, k job.Key) (job.Row, error)
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	// KeepContents keeps what a job holds beside its row, before the row is written.
	KeepContents(ctx context.Context, r job.Row, c job.Contents) error
	Put(ctx context.Context, w item.Write) error
	Commit(ctx context.Context, writes ...item.Write) error
	PausesOf(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	NoteParked(ctx context.Context, t tenant.ID, now time.Time) error
	// SetAside and PutOff give what cannot be read or promoted its next wake-up.
	SetAside(ctx context.Context, ref item.Ref, slice string, wakeAt time.Time, reason string, now time.Time) error
	PutOff(ctx context.Context, ref item.Ref, slice string, wakeAt, now time.Time) error
}
