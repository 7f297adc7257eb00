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
	// Update reads a job's row, lets decide say what to write, and writes it. Where the row has changed, or
	// a write of decide's own was refused, it decides anew, a few times; then it is a fault.Conflict. An
	// absent or forgotten job is a fault.NotFound.
	Update(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error)
	// UpdateWithClaim is Update for what the claim decides too, and returns the row that decide saw last.
	UpdateWithClaim(
		ctx context.Context, k job.Key, decide func(*job.Row, *job.Claim) ([]item.Write, error),
	) (*job.Row, error)
	// Claim reads a job's claim; the zero Claim is the absent one.
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	// LabelsOf reads the labels of rows, in their order.
	LabelsOf(ctx context.Context, rows ...job.Row) ([]job.Labels, error)
	Put(ctx context.Context, w item.Write) error
	// PutRow makes a row what after is. It knows its own write again when the answer was lost.
	PutRow(ctx context.Context, after job.Row, w item.Write) error
	// WriteRow returns the row as it then is.
	WriteRow(ctx context.Context, w item.Write) (job.Row, error)
	Commit(ctx context.Context, writes ...item.Write) error
	// PausesOf reads the pauses that an owner has set: a tenant, or job.Everyone.
	PausesOf(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	// NoteParked notes that a tenant has parked jobs, so that somebody looks after them.
	NoteParked(ctx context.Context, t tenant.ID, now time.Time) error
}

// Queue is what a Decider needs of the queues.
type Queue interface {
	arm.Sender
	// Depth says about how much a queue holds.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Judge asks the owner of a job, its schedule or run, about a row that would come to step: to be fired or
// to expire. Of a BLOCKED job it judges those that it comes after. It returns the step that it comes to.
// done says that this has been acted on, through d; if not, d acts. A refused write means that the facts have
// changed, and everything is asked anew.
type Judge func(ctx context.Context, d *Decider, row job.Row, step job.Step, now time.Time) (is job.Step, done bool,
	err error)

// OnFinal follows the write that made a job final. It may be called more than once for the same end,
// after a crash or a lost answer, and does no more then. Its error does not take the end back.
type OnFinal func(ctx context.Context, d *Decider, row job.Row) error

// Deps is what a Decider needs. A nil Meter drops metrics.
type Deps struct {
	Jobs    Jobs
	Queue   Queue
	Clock   clock.Clock
	Log     *slog.Logger
	Meter   *telemetry.Meter
	Judge   Judge // nil: no job has an owner to ask
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
	if d.Judge == nil {
		d.Judge = func(_ context.Context, _ *Decider, _ job.Row, step job.Step, _ time.Time) (job.Step, bool, error) {
			return step, false, nil
		}
	}
	return &Decider{
		Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		pauses: NewPauses(d.Jobs.PausesOf, d.Clock),
		depths: cache.New[string](cache.Options[int]{Age: depthAge, Most: maxDepths, Now: d.Clock.Now}),
	}
}

// Reread makes the next decision about a tenant's jobs read its pauses anew; the caller knows
// that one has just changed.
func (d *Decider) Reread(t tenant.ID) { d.pauses.Drop(t) }

// Announce tells whoever hangs on the end of a row that others have made final, maybe once more.
func (d *Decider) Announce(ctx context.Context, row job.Row) error { return d.ended(ctx, row) }

// announce counts a job that has become final as settled, and tells whoever hangs on its end.
func (d *Decider) announce(ctx context.Context, row job.Row) error {
	d.settled(row)
	return d.ended(ctx, row)
}

func (d *Decider) settled(row job.Row) {
	d.Meter.Count(telemetry.JobsSettled, 1, telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(row.Status))})
}

// ended tells whoever hangs on a job's end, maybe once more.
func (d *Decider) ended(ctx context.Context, row job.Row) error {
	var errs []error
	for _, on := range d.OnFinal {
		errs = append(errs, on(ctx, d, row))
	}
	return errors.Join(errs...)
}
