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

// Store is what a Recurrer reads and writes: schedules, their slots and counts, and their jobs. A
// write whose condition does not hold is an *item.Refused with the items as they were.
type Store interface {
	accept.Jobs
	// Schedule reads a schedule, a deleted one too; an absent one is a fault.NotFound.
	Schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error)
	// ScheduleContents reads the contents of each job of a schedule.
	ScheduleContents(ctx context.Context, s schedule.Schedule) (job.Contents, error)
	// UpdateSchedule writes what decide returns for the schedule as it is: nil for none.
	UpdateSchedule(ctx context.Context, k schedule.Key,
		decide func(*schedule.Schedule) ([]item.Write, error)) (schedule.Schedule, error)
	// WriteSchedule returns the schedule as it then is.
	WriteSchedule(ctx context.Context, w item.Write) (schedule.Schedule, error)
	// DueSchedules reads a page of the schedules whose wake-up lies in a slice; next is "" at the end.
	DueSchedules(ctx context.Context, q store.DueQuery) (due []store.DueSchedule, next string, err error)
	// HaveJobs says which of these nominal times have a job.
	HaveJobs(ctx context.Context, k schedule.Key, times []time.Time) (map[time.Time]bool, error)
	// RunsLeft says whether a job is counted as a run already, and whether the schedule may run once more.
	RunsLeft(ctx context.Context, s schedule.Schedule, id job.ID) (counted, left bool, err error)
	Slot(ctx context.Context, k schedule.Key) (schedule.Slot, error)
	// CaughtUp reads which late job of a schedule started last under catch-up "last".
	CaughtUp(ctx context.Context, k schedule.Key) (schedule.CaughtUp, error)
	// Lifted reads the pauses of a task, or of everything, that have ended.
	Lifted(ctx context.Context, t tenant.ID, task string, now time.Time) (job.Pauses, error)
	// DueFront reads the earliest entries of a slice, or of a schedule's queued jobs.
	DueFront(ctx context.Context, q store.DueQuery) ([]store.Found, error)

	Row(ctx context.Context, k job.Key) (job.Row, error)
	// Rows reads several rows; there says which of them exist.
	Rows(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error)
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	// KeepContents writes a job's contents, before the row is written.
	KeepContents(ctx context.Context, r job.Row, c job.Contents) error
	Put(ctx context.Context, w item.Write) error
	Commit(ctx context.Context, writes ...item.Write) error
	PausesOf(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	NoteParked(ctx context.Context, t tenant.ID, now time.Time) error
	// Quarantine and DeferFailed give a schedule that cannot be read, or not be promoted, another wake-up.
	Defer(ctx context.Context, ref item.Ref, slice string, wakeAt, at time.Time) (d store.Deferred, ok bool, err error)
	Move(ctx context.Context, d store.Deferred, at time.Time) error
	Quarantine(ctx context.Context, ref item.Ref, slice string, wakeAt time.Time, reason string, now time.Time) error
	DeferFailed(ctx context.Context, ref item.Ref, slice string, wakeAt, now time.Time) error
}
