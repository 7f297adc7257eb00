package decide

import (
	"context"
	"log/slog"
	"time"

	"punctual/functions/engine/arm"
	"punctual/functions/engine/pause"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/stop"
	"punctual/shared/cache"
	"punctual/shared/clock"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Jobs is what a Decider reads and writes of jobs. A write whose condition does not hold is an
// *item.Refused with the item as it was.
type Jobs interface {
	// Update reads a job's row and writes what decide returns. Where the row has changed, or decide's own write
	// was refused, it reads the row once more and calls decide anew. After several tries that is a
	// fault.Conflict. An absent or forgotten job is a fault.NotFound.
	Update(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error)
	// UpdateWithClaim is Update for a decision that needs the claim, too. It returns the row that decide saw last.
	UpdateWithClaim(
		ctx context.Context, k job.Key, decide func(*job.Row, *job.Claim) ([]item.Write, error),
	) (*job.Row, error)
	// Claim reads a job's claim; the zero Claim is the absent one.
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	Put(ctx context.Context, w item.Write) error
	// PutRow does the write w, which turns the row into after. If the answer is lost, it reads the row to see
	// whether its write arrived.
	PutRow(ctx context.Context, after job.Row, w item.Write) error
	// WriteRow returns the row as it then is.
	WriteRow(ctx context.Context, w item.Write) (job.Row, error)
	Commit(ctx context.Context, writes ...item.Write) error
	// PausesOf reads the pauses that an owner has set: a tenant, or job.Everyone.
	PausesOf(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	// NoteParked notes that a tenant has parked jobs, so that the sweeper visits its parking places.
	NoteParked(ctx context.Context, t tenant.ID, now time.Time) error
	// NoteQueue notes that a schedule has queued jobs, so that the sweeper visits them.
	NoteQueue(ctx context.Context, k schedule.Key, now time.Time) error
	// NoteOpen has the lists of its task find a job that may wait for long.
	NoteOpen(ctx context.Context, r job.Row) error
}

// Queue is what a Decider needs of the queues.
type Queue interface {
	arm.Sender
	// Depth says how many messages a queue holds, approximately.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Deps is what a Decider needs. A nil Meter drops metrics.
type Deps struct {
	Jobs  Jobs
	Queue Queue
	Clock clock.Clock
	Log   *slog.Logger
	Meter *telemetry.Meter
	// Schedules and Runs are asked before a job of theirs starts.
	Schedules *recur.Recurrer
	Runs      *runs.Controller
}

// Decider decides about single jobs. What follows the ends that it brings about it leaves to its caller, as an
// effect.List. It is safe for concurrent use.
type Decider struct {
	Deps
	armer  arm.Armer
	stop   stop.Stopper
	pauses *pause.Pauses
	depths *cache.Cache[string, int]
}

const (
	depthAge  = 30 * time.Second // SQS's own numbers are as old
	maxDepths = 1000
)

// New returns a Decider.
func New(d Deps) *Decider {
	return &Decider{
		Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		stop:   stop.Stopper{Jobs: d.Jobs, Log: d.Log},
		pauses: pause.New(d.Jobs.PausesOf, d.Clock),
		depths: cache.New[string](cache.Options[int]{Age: depthAge, Most: maxDepths, Now: d.Clock.Now}),
	}
}

// Reread makes the next decision about a tenant's jobs read its pauses from the table; the caller knows that one
// has just changed.
func (d *Decider) Reread(t tenant.ID) { d.pauses.Drop(t) }
