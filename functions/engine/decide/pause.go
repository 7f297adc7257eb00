package decide

import (
	"context"
	"slices"
	"time"

	"punctual/shared/cache"
	"punctual/shared/clock"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// FactAge is how old a pause or a schedule may be when a job is decided about: one missed by this
// much lets a firing go that its worker then refuses.
const FactAge = time.Second

// MaxFacts bounds how many pauses, or schedules, are kept.
const MaxFacts = 10_000

// Pauses reads the pauses that hold a tenant's jobs, each at most once a second. They are kept by
// owner: those for everyone are one partition, which all tenants' jobs ask.
type Pauses struct {
	read func(ctx context.Context, owner tenant.ID) (job.Pauses, error)
	kept *cache.Cache[tenant.ID, job.Pauses]
}

// NewPauses returns Pauses that are read by read.
func NewPauses(read func(ctx context.Context, owner tenant.ID) (job.Pauses, error), c clock.Clock) *Pauses {
	return &Pauses{read, cache.New[tenant.ID](cache.Options[job.Pauses]{Age: FactAge, Most: MaxFacts, Now: c.Now})}
}

// Of returns the pauses that stand for a tenant.
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

// Drop makes the next Of read the tenant's own; the caller knows that something has just changed.
// Those for everyone change by hand only: whoever lifts one wakes nobody by a message, and no
// such message can be missed for a second's age.
func (p *Pauses) Drop(t tenant.ID) { p.kept.Drop(t) }
