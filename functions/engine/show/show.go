package show

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"punctual/shared/clock"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// MaxRead is how many rows a page of dead letters, of running jobs or of occurrences reads at most.
const MaxRead = 2000

// Jobs are single jobs, and lots of at most store.ReadAtOnce jobs in the order of their keys.
type Jobs interface {
	// Row reads the row of a job; a forgotten one is a fault.NotFound. Rows reads several; there says which exist.
	Row(ctx context.Context, k job.Key) (job.Row, error)
	Rows(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error)
	// Nodes reads rows in the order asked; an absent one is the zero Row.
	Nodes(ctx context.Context, keys []job.Key) ([]job.Row, error)
	// Claim reads a claim, the zero Claim if absent. Claims reads claims for a list; one that cannot be read is the
	// zero Claim.
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	Claims(ctx context.Context, keys []job.Key) ([]job.Claim, error)
	LabelsOf(ctx context.Context, rows ...job.Row) ([]job.Labels, error)
	// Result reads a job's result, wherever it is; "" is none. Payload reads the payload of a row; nil is none.
	Result(ctx context.Context, r job.Row) (string, error)
	Payload(ctx context.Context, r job.Row) ([]byte, error)
	// Pauses reads all pauses that apply to a tenant, also the operator's.
	Pauses(ctx context.Context, t tenant.ID) (job.Pauses, error)
}

// ListedJobs lists the jobs of a tenant, newest first. A row that cannot be read is an error of that element, and the
// iteration continues. A zero time or id leaves that end open.
type ListedJobs interface {
	// Newest iterates over jobs with from ≤ id < before; expect is how many the caller probably takes.
	Newest(ctx context.Context, t tenant.ID, from, before job.ID, expect int) iter.Seq2[job.Row, error]
	// NewestOfTask is Newest for the jobs of one task in these partitions.
	NewestOfTask(
		ctx context.Context, t tenant.ID, task string, parts []int, from, before job.ID,
	) iter.Seq2[job.Row, error]
	// Stretches iterates over the stretches of time in which a task may have jobs.
	Stretches(ctx context.Context, t tenant.ID, task string, before time.Time) iter.Seq2[store.Stretch, error]
	// DeadLetters iterates over the jobs that died at from ≤ time < before.
	DeadLetters(
		ctx context.Context, t tenant.ID, from, before time.Time, expect int,
	) iter.Seq2[store.DeadLetter, error]
	// DeadKeys reads the keys of all dead jobs, in no order. If there are more than most, all is false.
	DeadKeys(ctx context.Context, t tenant.ID, most int) (keys []job.Key, all bool, err error)
	// WakingKeys reads the keys of the jobs that are due by now and wake up in these slices. If there are more than
	// most, all is false.
	WakingKeys(
		ctx context.Context, t tenant.ID, slices []string, now time.Time, most int,
	) (keys []job.Key, all bool, err error)
	// Slowest returns the watermark of the slowest shard, and how many shards have one; the zero time before the first
	// pass.
	Slowest(ctx context.Context, w store.Watermark) (at time.Time, shards int, err error)
}

// Schedules are a tenant's schedules, with their jobs and ledgers.
type Schedules interface {
	// Schedule reads a schedule, a deleted one too; an absent one is a fault.NotFound.
	Schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error)
	// Schedules reads a page in the order of names, beginning after a name, without deleted ones.
	Schedules(
		ctx context.Context, t tenant.ID, after string, limit int,
	) (found []store.FoundSchedule, more bool, err error)
	// JobsOf reads a page of a schedule's jobs with from ≤ nominal time < before; next is "" at the end.
	JobsOf(
		ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
	) (jobs []store.GroupJob, next string, err error)
	// Recorded reads a page of a schedule's ledger with from ≤ time < before; next is "" at the end.
	Recorded(
		ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
	) (entries []schedule.Entry, next string, err error)
}

// Runs are a tenant's runs, newest first.
type Runs interface {
	// Runs reads some entries of the list and returns those that match; next is "" at the end. It leaves out a run that
	// is forgotten or cannot be read.
	Runs(ctx context.Context, t tenant.ID, q store.RunQuery) (found []store.ListedRun, next string, err error)
	// RunsNamed reads runs for a list; one that is absent or cannot be read is the zero Run.
	RunsNamed(ctx context.Context, keys []run.Key) ([]run.Run, error)
	// Params and RunContent read items that a run refers to; an absent one is a fault.NotFound.
	Params(ctx context.Context, r run.Run) (string, error)
	RunContent(ctx context.Context, k run.Key, name string) (string, error)
}

// Store is what a Reader reads.
type Store interface {
	Jobs
	ListedJobs
	Schedules
	Runs
}

// Nodes reads a run with the current rows of its nodes; a BLOCKED node has none. An absent run is a fault.NotFound.
type Nodes func(ctx context.Context, k run.Key) (run.Run, *dag.Graph, map[string]job.Row, error)

// Reader reads what is shown. It is safe for concurrent use.
type Reader struct {
	Store  Store
	Nodes  Nodes
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  *telemetry.Meter // nil drops metrics
	Shards int              // of the due index
}

// Now returns the time, to the millisecond as it is stored.
func (s *Reader) Now() time.Time { return s.Clock.Now().UTC().Truncate(time.Millisecond) }
