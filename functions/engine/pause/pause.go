package pause

import (
	"context"
	"slices"
	"time"

	"punctual/shared/cache"
	"punctual/shared/clock"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// FactAge is how old the copy of a pause or a schedule may be when a job is decided about. If a pause is seen too
// late, a firing is sent that the worker refuses.
const FactAge = time.Second

// MaxFacts bounds how many pauses, or schedules, are kept.
const MaxFacts = 10_000

// Pauses reads the pauses that hold a tenant's jobs, and keeps what it read for FactAge. Those for everyone are kept
// once for all tenants, because they lie in one partition.
type Pauses struct {
	read func(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	kept *cache.Cache[tenant.ID, job.Pauses]
}

// New returns Pauses that are read by read.
func New(read func(ctx context.Context, owner tenant.ID) (job.Pauses, error), c clock.Clock) *Pauses {
	return &Pauses{read, cache.New[tenant.ID](cache.Options[job.Pauses]{Age: FactAge, Most: MaxFacts, Now: c.Now})}
}

// Of returns the pauses that apply to a tenant: its own and those for everyone.
func (p *Pauses) Of(ctx context.Context, t tenant.ID) (job.Pauses, error) {
	of := func(owner tenant.ID) (job.Pauses, error) {
		return p.kept.Get(ctx, owner, func(ctx context.Context) (job.Pauses, error) { return p.read(ctx, owner) })
	}
	everyone, err := of(job.Everyone)
	if err != nil {
		return nil, err
	}
	own, err := of(t)
	return slices.Concat(everyone, own), err
}

// Drop makes the next Of read the tenant's own pauses; the caller knows that one has just changed. Those for everyone
// are kept: an operator lifts them, without a message that an old copy could make useless.
func (p *Pauses) Drop(t tenant.ID) { p.kept.Drop(t) }
