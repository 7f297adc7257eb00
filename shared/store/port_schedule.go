package store

import (
	"context"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// ScheduleReader reads what belongs to one schedule, or is counted over all of a tenant's.
type ScheduleReader interface {
	// Schedule reads a schedule, also a deleted one, as its epoch goes on. An absent one is a fault.NotFound.
	Schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error)
	// ScheduleContents reads the contents that each job of a schedule gets.
	ScheduleContents(ctx context.Context, c schedule.Schedule) (job.Contents, error)
	// SchedulePayload reads the payload that each job of a schedule gets; nil is none.
	SchedulePayload(ctx context.Context, c schedule.Schedule) ([]byte, error)
	// Slot reads which of a schedule's jobs runs and which wait.
	Slot(ctx context.Context, k schedule.Key) (schedule.Slot, error)
	// CaughtUp reads which late job of a schedule started last under catch-up "last".
	CaughtUp(ctx context.Context, k schedule.Key) (schedule.CaughtUp, error)
	// HaveJobs says which of a schedule's nominal times have jobs, also forgotten ones. It is exact: it asks by the
	// ids that their jobs must have, whereas JobsOf asks an index that lags.
	HaveJobs(ctx context.Context, k schedule.Key, times []time.Time) (map[time.Time]bool, error)
	// RunsOf says whether the job was counted among the schedule's runs, and of each calendar, by its position, whether
	// it has reached its max_runs.
	RunsOf(ctx context.Context, c schedule.Schedule, id job.ID) (counted bool, full []bool, err error)
	// UsedBySchedules reads how many runs a minute a tenant's schedules take of its quota.
	UsedBySchedules(ctx context.Context, t tenant.ID) (int64, error)
}

// ScheduleWriter writes schedules and their payloads.
type ScheduleWriter interface {
	// UpdateSchedule is JobWriter.Update for a schedule. decide gets nil if there is none of that name, and also gets
	// a deleted one, as its epoch goes on.
	UpdateSchedule(
		ctx context.Context, k schedule.Key, decide func(*schedule.Schedule) ([]item.Write, error),
	) (schedule.Schedule, error)
	// WriteSchedule does one write of a schedule and returns it as it then is.
	WriteSchedule(ctx context.Context, w item.Write) (schedule.Schedule, error)
	// PutSchedulePayload writes the payload of a template to where SetPayload has put it, if it is not in the
	// template. It comes before the write of the schedule and is safe to repeat.
	PutSchedulePayload(ctx context.Context, c schedule.Schedule, payload []byte) error
	// ForgetReplaced deletes the object of a payload that a write of the schedule has replaced; an item was deleted
	// with that write. It comes after the write and is safe to repeat. An object that a failure leaves stays: the
	// bucket lets no payload of a schedule expire.
	ForgetReplaced(ctx context.Context, old, after schedule.Schedule) error
}

// ScheduleLists reads schedules, their jobs and their ledgers in pages. What cannot be read is left out.
type ScheduleLists interface {
	// Schedules reads a page of a tenant's schedules in the order of names, without deleted ones, beginning after a
	// name; limit is at least 1. more says that the page is not the last.
	Schedules(ctx context.Context, t tenant.ID, after string, limit int) (found []FoundSchedule, more bool, err error)
	// JobsOf reads a page of a schedule's jobs with from ≤ nominal time < before; a zero time leaves that side open.
	// Manual runs are among them. next is "" at the end. The index lags; JobReader.Rows reads the rows.
	JobsOf(
		ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
	) (jobs []GroupJob, next string, err error)
	// Recorded reads a page of a schedule's ledger: the entries that begin at from ≤ time < before; a zero time
	// leaves that side open. next is "" at the end. An entry may extend beyond its beginning; it never begins before
	// the times that it is about.
	Recorded(
		ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
	) (entries []schedule.Entry, next string, err error)
	// RunsMade reads how many runs of each calendar were counted, by the position of the schedule and that of the
	// calendar. Where there is no max_runs, none is counted.
	RunsMade(ctx context.Context, schedules []schedule.Schedule) ([][]int64, error)
}

// Exclusions are tenants' lists of days that schedules leave out.
type Exclusions interface {
	// Exclusion reads a tenant's exclusion; an absent one is a fault.NotFound.
	Exclusion(ctx context.Context, t tenant.ID, name string) (Exclusion, error)
	// ExclusionsNamed reads up to ReadAtOnce exclusions, each named once; absent ones are left out.
	ExclusionsNamed(ctx context.Context, t tenant.ID, names []string) ([]Exclusion, error)
	// Exclusions reads a page of a tenant's exclusions in the order of names, beginning after a name; limit is at
	// least 1. more says that the page is not the last. One that cannot be read is left out.
	Exclusions(ctx context.Context, t tenant.ID, after string, limit int) (list []Exclusion, more bool, err error)
	// UpdateExclusion is Tasks.UpdateTask for an exclusion.
	UpdateExclusion(
		ctx context.Context, t tenant.ID, name string, decide func(*Exclusion) (Exclusion, error),
	) (Exclusion, error)
	// DeleteExclusion deletes an exclusion; an absent one is a fault.NotFound. Schedules that name it have a copy.
	DeleteExclusion(ctx context.Context, t tenant.ID, name string) error
}
