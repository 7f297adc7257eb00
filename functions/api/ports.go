package api

import (
	"context"
	"iter"
	"time"

	"punctual/functions/engine"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Store is what the stage reads and writes, and what the engine needs beside. What is absent is a
// fault.NotFound, and what cannot be decoded a fault.Undecodable, unless a method says otherwise.
type Store interface {
	engine.Store
	jobs
	listedJobs
	contents
	schedules
	tasks
	pauses
	exclusions
	dags
	runs
	// Slowest says how far the slowest shard's pass has come, and how many shards were ever passed;
	// the zero time before the first pass.
	Slowest(ctx context.Context, w store.Watermark) (at time.Time, shards int, err error)
	// TakeRequests takes n requests from what a tenant may make; wait is 0 when they were taken.
	TakeRequests(
		ctx context.Context, t tenant.ID, a store.Allowance, n int, now time.Time,
	) (wait time.Duration, err error)
	// Held lists the restored tables for which the passes hold everything.
	Held(ctx context.Context) ([]string, error)
}

// jobs are single jobs, and lots of at most 100 in the order of their keys.
type jobs interface {
	// Row reads the row of a job; a forgotten one is absent.
	Row(ctx context.Context, k job.Key) (job.Row, error)
	// Rows reads rows for a list; there is false for one that is absent.
	Rows(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error)
	// Claim reads the claim of a job; an absent one is the zero Claim.
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	// Claims reads claims for a list; one that cannot be read is the zero Claim.
	Claims(ctx context.Context, keys []job.Key) ([]job.Claim, error)
	// Update decides again whenever another writer was faster, and is a fault.Conflict in the end.
	Update(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error)
	// Follow notes that child comes after parent, and returns the row of a parent that is over.
	Follow(ctx context.Context, parent, child job.Key, now time.Time) (over job.Row, err error)
	// Attempts reads a page of the attempts that have ended, oldest first, after that place.
	Attempts(ctx context.Context, r job.Row, after int64, limit int) (attempts []job.Attempt, more bool, err error)
	// Remembered reads what an idempotency key stands for; false if it stands for nothing.
	Remembered(ctx context.Context, t tenant.ID, key string, now time.Time) (store.Remembered, bool, error)
}

// listedJobs are the jobs of a tenant, newest first. A row that cannot be read comes as an error,
// and the iteration goes on. A time or id that is zero leaves its side open.
type listedJobs interface {
	// Newest iterates over jobs with from ≤ id < before; expect is how many are probably taken.
	Newest(ctx context.Context, t tenant.ID, from, before job.ID, expect int) iter.Seq2[job.Row, error]
	// NewestOfTask is Newest for the jobs of one task in these partitions.
	NewestOfTask(
		ctx context.Context, t tenant.ID, task string, parts []int, from, before job.ID,
	) iter.Seq2[job.Row, error]
	// Stretches iterates over the times in which a task may have jobs.
	Stretches(ctx context.Context, t tenant.ID, task string, before time.Time) iter.Seq2[store.Stretch, error]
	// DeadLetters iterates over the jobs that died at from ≤ time < before.
	DeadLetters(
		ctx context.Context, t tenant.ID, from, before time.Time, expect int,
	) iter.Seq2[store.DeadLetter, error]
	// DeadKeys reads the keys of all dead jobs, in no order; all is false if there are more than most.
	DeadKeys(ctx context.Context, t tenant.ID, most int) (keys []job.Key, all bool, err error)
	// WakingKeys reads the keys of the jobs that are due by now and wake up in these slices.
	WakingKeys(
		ctx context.Context, t tenant.ID, slices []string, now time.Time, most int,
	) (keys []job.Key, all bool, err error)
}

// contents are what jobs hold beside their rows. Keeping and forgetting are safe to repeat.
type contents interface {
	// KeepContents comes before the row is written.
	KeepContents(ctx context.Context, r job.Row, c job.Contents) error
	// PutPayload comes before the row is written.
	PutPayload(ctx context.Context, r job.Row, payload []byte) error
	// Payload reads the payload of a job; nil is none.
	Payload(ctx context.Context, r job.Row) ([]byte, error)
	// LabelsOf reads labels in the order of the rows; absent ones are empty.
	LabelsOf(ctx context.Context, rows ...job.Row) ([]job.Labels, error)
	// Content reads one item beside a row.
	Content(ctx context.Context, k job.Key, name string) (string, error)
	// ForgetPayload deletes the payload that the row names, where it is a blob.
	ForgetPayload(ctx context.Context, r job.Row) error
	// ForgetContents comes after the row was deleted.
	ForgetContents(ctx context.Context, r job.Row) error
}

// schedules are a tenant's schedules, with their jobs and ledgers.
type schedules interface {
	// Schedule reads a schedule, one that is deleted included.
	Schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error)
	// Schedules reads a page by name, after that name, without those that are deleted.
	Schedules(
		ctx context.Context, t tenant.ID, after string, limit int,
	) (found []store.FoundSchedule, more bool, err error)
	// UpdateSchedule is Update for a schedule; decide gets nil for an absent one.
	UpdateSchedule(
		ctx context.Context, k schedule.Key, decide func(*schedule.Schedule) ([]item.Write, error),
	) (schedule.Schedule, error)
	// ScheduleContents reads what each job of a schedule holds.
	ScheduleContents(ctx context.Context, s schedule.Schedule) (job.Contents, error)
	// SchedulePayload reads the payload that each job gets; nil is none.
	SchedulePayload(ctx context.Context, s schedule.Schedule) ([]byte, error)
	// PutSchedulePayload comes before the schedule is written.
	PutSchedulePayload(ctx context.Context, s schedule.Schedule, payload []byte) error
	// ForgetReplaced deletes the payload that a write of the schedule replaced, after that write.
	ForgetReplaced(ctx context.Context, old, after schedule.Schedule) error
	// HaveJobs says which of these nominal times have a job, forgotten ones included.
	HaveJobs(ctx context.Context, k schedule.Key, times []time.Time) (map[time.Time]bool, error)
	// JobsOf reads a page of a schedule's jobs with from ≤ nominal time < before; next is "" at the end.
	JobsOf(
		ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
	) (jobs []store.GroupJob, next string, err error)
	// Recorded reads a page of a schedule's ledger with from ≤ time < before; next is "" at the end.
	Recorded(
		ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
	) (entries []schedule.Entry, next string, err error)
}

// tasks are a tenant's tasks.
type tasks interface {
	// Task reads a task, the built-in ones included.
	Task(ctx context.Context, t tenant.ID, name string) (job.Task, error)
	// Tasks reads a page of the tenant's own tasks by name, after that name.
	Tasks(ctx context.Context, t tenant.ID, after string, limit int) (tasks []job.Task, more bool, err error)
	// UpdateTask is Update for a task of the tenant's own; decide gets nil for an absent one. Changing
	// a built-in task is a fault.Refused.
	UpdateTask(
		ctx context.Context, t tenant.ID, name string, decide func(*job.Task) (job.Task, error),
	) (job.Task, error)
	DeleteTask(ctx context.Context, t tenant.ID, name string) error
}

// pauses are the pauses of all jobs of a tenant, or of one task.
type pauses interface {
	// Pauses reads all that apply to a tenant, those for everybody included.
	Pauses(ctx context.Context, t tenant.ID) (job.Pauses, error)
	Pause(ctx context.Context, t tenant.ID, scope string) (job.Pause, error)
	// PutPause takes the place of the pause of the same scope.
	PutPause(ctx context.Context, t tenant.ID, p job.Pause) error
	DeletePause(ctx context.Context, t tenant.ID, scope string, now time.Time) error
}

// exclusions are a tenant's exclusions.
type exclusions interface {
	Exclusion(ctx context.Context, t tenant.ID, name string) (store.Exclusion, error)
	// Exclusions reads a page by name, after that name.
	Exclusions(
		ctx context.Context, t tenant.ID, after string, limit int,
	) (list []store.Exclusion, more bool, err error)
	// ExclusionsNamed reads up to 100, each named once; what is absent is left out.
	ExclusionsNamed(ctx context.Context, t tenant.ID, names []string) ([]store.Exclusion, error)
	// UpdateExclusion is Update for an exclusion; decide gets nil for an absent one.
	UpdateExclusion(
		ctx context.Context, t tenant.ID, name string, decide func(*store.Exclusion) (store.Exclusion, error),
	) (store.Exclusion, error)
	// DeleteExclusion leaves the copies that schedules hold.
	DeleteExclusion(ctx context.Context, t tenant.ID, name string) error
}

// dags are a tenant's dags, each with its versions.
type dags interface {
	// PutDag makes a definition that is kept already the newest version; the same one makes no new version.
	PutDag(
		ctx context.Context, t tenant.ID, name, definition string, now time.Time,
	) (d store.Dag, created bool, err error)
	// Dag reads the newest version; a deleted dag is absent.
	Dag(ctx context.Context, t tenant.ID, name string) (store.Dag, error)
	// DagVersion reads one version; each of a deleted dag is absent.
	DagVersion(ctx context.Context, t tenant.ID, name string, version int64) (store.Dag, error)
	// DagVersions reads a page, newest first, below that version; 0 begins with the newest.
	DagVersions(
		ctx context.Context, t tenant.ID, name string, below int64, limit int,
	) (versions []store.Dag, more bool, err error)
	// Dags reads a page by name, after that name, without those that are deleted.
	Dags(ctx context.Context, t tenant.ID, after string, limit int) (dags []store.Dag, more bool, err error)
	// DeleteDag leaves the dag's runs. An error of free, asked after the dag was read, keeps the dag.
	DeleteDag(ctx context.Context, t tenant.ID, name string, now time.Time, free func() error) error
}

// runs are a tenant's runs, newest first, with what was done to them.
type runs interface {
	// Runs looks at some entries of the list and returns those that match; next is "" at its end. A run
	// that is forgotten or cannot be read is left out.
	Runs(ctx context.Context, t tenant.ID, q store.RunQuery) (found []store.ListedRun, next string, err error)
	// RunsNamed reads runs for a list; the zero Run is one that is absent or cannot be read.
	RunsNamed(ctx context.Context, keys []run.Key) ([]run.Run, error)
	// Events reads a page of what was done, oldest first; next is "" at the end.
	Events(ctx context.Context, k run.Key, cursor string, limit int) (events []run.Event, next string, err error)
	// ForgetRun comes after the run's jobs were forgotten. A run that somebody has acted on is refused.
	ForgetRun(ctx context.Context, r run.Run) error
}
