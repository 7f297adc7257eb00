package worker

import (
	"context"
	"slices"
	"time"

	"punctual/shared/cache"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

const (
	// pausesAge is how old a read of the pauses may be when an attempt is admitted; with the time
	// to its start it stays under contract.RowMaxAge.
	pausesAge = time.Second
	// lastCheckAge is how old it may be right before an attempt starts that was claimed earlier. It
	// lets the attempts that are due at one moment share a read.
	lastCheckAge = 20 * time.Millisecond
	// pausesKnown bounds how many tenants' pauses are kept, and how many schedules.
	pausesKnown = 1000

	troubleFirst = 500 * time.Millisecond
	troubleLast  = 4 * time.Second
)

// newCache returns a cache of what attempts are admitted by. An error is the answer for a moment,
// doubled each time, to all who ask for the same key: they would only wait in their slots for the
// same error, and take these from others.
func newCache[K comparable, V any]() *cache.Cache[K, V] {
	return cache.New[K](cache.Options[V]{Age: pausesAge, Most: pausesKnown,
		RetryAfter: func(failures int) time.Duration {
			return doubled(troubleFirst, failures-1, troubleLast)
		}})
}

// pauses reads a tenant's pauses, and those for everyone, each at most once a second, however many
// jobs and tenants ask.
type pauses struct {
	store Store
	known *cache.Cache[tenant.ID, job.Pauses] // by owner
	over  *cache.Cache[taskOf, job.Pauses]
}

// taskOf names a task of a tenant.
type taskOf struct {
	tenant tenant.ID
	task   string
}

func newPauses(s Store) *pauses {
	return &pauses{store: s, known: newCache[tenant.ID, job.Pauses](), over: newCache[taskOf, job.Pauses]()}
}

// of returns the pauses that hold t, its own read less than age ago, and since when that is
// known (monotonic). Those for everyone are shared by all and never read more often than usual.
func (p *pauses) of(ctx context.Context, t tenant.ID, age time.Duration) (job.Pauses, time.Time, error) {
	everyone, since, err := p.owned(ctx, job.Everyone, pausesAge)
	if err != nil {
		return nil, time.Time{}, err
	}
	own, at, err := p.owned(ctx, t, age)
	if since.Before(at) {
		at = since
	}
	return slices.Concat(everyone, own), at, err
}

// lifted returns the pauses that held a task and have ended. One lifted a moment ago is among them.
func (p *pauses) lifted(ctx context.Context, t tenant.ID, task string, now time.Time) (job.Pauses, error) {
	known, _, err := p.over.Within(ctx, taskOf{t, task}, lastCheckAge, func(ctx context.Context) (job.Pauses, error) {
		return p.store.Lifted(ctx, t, task, now)
	})
	return known, err
}

// owned returns the pauses of one owner.
func (p *pauses) owned(ctx context.Context, owner tenant.ID, age time.Duration) (job.Pauses, time.Time, error) {
	return p.known.Within(ctx, owner, age, func(ctx context.Context) (job.Pauses, error) {
		return p.store.PausesOf(ctx, owner)
	})
}

// schedules reads a schedule at most once a second, however many of its jobs ask.
type schedules struct {
	store Store
	known *cache.Cache[schedule.Key, *schedule.Schedule] // nil for one that is not there
}

func newSchedules(s Store) *schedules {
	return &schedules{store: s, known: newCache[schedule.Key, *schedule.Schedule]()}
}

// of returns the schedule, nil if there is none, read less than age ago, and since when that is
// known (monotonic).
func (s *schedules) of(ctx context.Context, k schedule.Key, age time.Duration) (*schedule.Schedule, time.Time, error) {
	return s.known.Within(ctx, k, age, func(ctx context.Context) (*schedule.Schedule, error) {
		read, err := s.store.Schedule(ctx, k)
		if fault.KindOf(err) == fault.NotFound {
			return nil, nil
		}
		return &read, err
	})
}
