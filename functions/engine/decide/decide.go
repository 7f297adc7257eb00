package decide

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"punctual/functions/engine/arm"
	"punctual/shared/cache"
	"punctual/shared/clock"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
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
	// LabelsOf reads the labels of rows, in their order.
	LabelsOf(ctx context.Context, rows ...job.Row) ([]job.Labels, error)
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
	// NoteOpen has the lists of its task find a job that may wait for long.
	NoteOpen(ctx context.Context, r job.Row) error
}

// Queue is what a Decider needs of the queues.
type Queue interface {
	arm.Sender
	// Depth says how many messages a queue holds, approximately.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Gate asks the schedule or the run of a job that is about to be fired or to expire, and returns the step to take
// instead, or the same one. For a BLOCKED job it evaluates the jobs that it comes after. done says that Gate has
// taken that step itself, through d; otherwise d takes it. A refused write means that the facts have changed; then
// d reads everything once more.
type Gate func(
	ctx context.Context, d *Decider, row job.Row, claim job.Claim, step job.Step, now time.Time,
) (is job.Step, done bool, err error)

// OnFinal is called after the write that made a job final. After a crash or a lost answer it may be called more than
// once for the same end; the second call changes nothing. If it fails, the job is final all the same.
type OnFinal func(ctx context.Context, d *Decider, row job.Row) error

// Deps is what a Decider needs. A nil Meter drops metrics.
type Deps struct {
	Jobs    Jobs
	Queue   Queue
	Clock   clock.Clock
	Log     *slog.Logger
	Meter   *telemetry.Meter
	Gate    Gate // nil: no job has a schedule or a run
	OnFinal []OnFinal
}

// Decider decides about single jobs. It is safe for concurrent use.
type Decider struct {
	Deps
	armer  arm.Armer
	pauses *Pauses
	depths *cache.Cache[string, int]
}

// New returns a Decider.
func New(d Deps) *Decider {
	if d.Gate == nil {
		d.Gate = func(
			_ context.Context, _ *Decider, _ job.Row, _ job.Claim, step job.Step, _ time.Time,
		) (job.Step, bool, error) {
			return step, false, nil
		}
	}
	return &Decider{
		Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		pauses: NewPauses(d.Jobs.PausesOf, d.Clock),
		depths: cache.New[string](cache.Options[int]{Age: depthAge, Most: maxDepths, Now: d.Clock.Now}),
	}
}

// Reread makes the next decision about a tenant's jobs read its pauses from the table; the caller knows that one
// has just changed.
func (d *Decider) Reread(t tenant.ID) { d.pauses.Drop(t) }

// Announce notifies the schedule and the children of a row that another process has made final. It may be repeated.
func (d *Decider) Announce(ctx context.Context, row job.Row) error { return d.ended(ctx, row) }

// announce counts a job that has become final as settled, and notifies its schedule and its children.
func (d *Decider) announce(ctx context.Context, row job.Row) error {
	d.settled(row)
	return d.ended(ctx, row)
}

func (d *Decider) settled(row job.Row) {
	d.Meter.Count(telemetry.JobsSettled, 1, telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(row.Status))})
	if row.Heartbeat() && row.Status == job.Succeeded {
		d.Meter.Count(telemetry.Heartbeats, 1, telemetry.Dim{Key: "pool", Value: row.Pool})
	}
}

// ended calls every OnFinal. It may be repeated.
func (d *Decider) ended(ctx context.Context, row job.Row) error {
	var errs []error
	for _, on := range d.OnFinal {
		errs = append(errs, on(ctx, d, row))
	}
	return errors.Join(errs...)
}
