package accept

import (
	"context"
	"slices"

	"punctual/functions/engine/arm"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Jobs are rows and contents, old and new.
type Jobs interface {
	store.Jobs
	store.ClaimReader
	store.ContentReader
	store.ContentWriter
	store.UniqueKeys
}

// Deps is what an Acceptor needs.
type Deps struct {
	process.Base
	Jobs  Jobs
	Queue message.Sender
}

// Acceptor accepts jobs. It is safe for concurrent use.
type Acceptor struct {
	Deps
	armer arm.Armer
}

// New returns an Acceptor.
func New(d Deps) *Acceptor {
	d.Base = d.WithDefaults()
	return &Acceptor{Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter}}
}

// Job is a job to accept.
type Job struct {
	Row job.Row // job.Route has set its lane and wake-up
	// Keep writes the job's contents before the row refers to them. Nil: there are none.
	Keep func(ctx context.Context, r job.Row) error
	// With is written in the row's transaction: an idempotency key, a link from the job it replaces.
	With []item.Write
	// OwnID says that no other caller can have this id. A row that is there already is then our own first
	// try, whose answer was lost, and counts as accepted.
	OwnID bool
}

// Put writes a job so that it cannot be lost. If the row exists already, or something of With is refused, that
// is an *item.Refused in which the row is write 0.
func (a *Acceptor) Put(ctx context.Context, j Job) error {
	if j.Keep != nil {
		if err := j.Keep(ctx, j.Row); err != nil {
			return err
		}
	}
	err := a.Jobs.Accept(ctx, j.Row, j.With...)
	if refused := store.Refused(err); j.OwnID && refused != nil {
		if _, own := refused.Olds[0]; own {
			return nil
		}
	}
	return err
}

// Unfired returns the firing of a job if the process that accepted it may have ended before it sent it; nil if it has
// not, or the job is forgotten. A repeat of the request that made the job sends it once more.
func (a *Acceptor) Unfired(ctx context.Context, k job.Key) (*job.Firing, error) {
	row, err := a.Jobs.Row(ctx, k)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	claim, err := a.Jobs.Claim(ctx, k)
	if err != nil || !job.MayBeUnfired(row, claim) {
		return nil, err
	}
	return new(row.Firing()), nil
}

// Fire sends the firings of accepted jobs that are due now; lane is for the metric. Firings that could not be
// sent are logged, and the sweeper sends them: the jobs are accepted anyway.
func (a *Acceptor) Fire(ctx context.Context, lane string, firings ...job.Firing) {
	errs := a.armer.FireAll(ctx, lane, firings, a.Clock.Now())
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 0 {
		a.Log.WarnContext(ctx, "firings were not sent; the sweeper will send them",
			telemetry.Tenant, firings[0].Tenant, "unsent", len(errs), telemetry.Err, errs[0].Error())
	}
}
