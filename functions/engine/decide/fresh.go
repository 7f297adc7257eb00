package decide

import (
	"context"
	"slices"
	"sync"
	"time"

	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// fresh remembers what was read a moment ago, so that a pass over many jobs does not ask the
// same for each of them. It holds a bounded number of answers.
type fresh[K comparable, V any] struct {
	mu   sync.Mutex
	seen map[K]answer[V]
}

type answer[V any] struct {
	v  V
	at time.Time
}

const freshMost = 10_000

// get returns what was read at most maxAge ago, or reads it.
func (f *fresh[K, V]) get(k K, now time.Time, maxAge time.Duration, read func() (V, error)) (V, error) {
	f.mu.Lock()
	a, ok := f.seen[k]
	f.mu.Unlock()
	if ok && now.Sub(a.at) <= maxAge {
		return a.v, nil
	}
	v, err := read()
	if err != nil {
		return v, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil || len(f.seen) >= freshMost {
		f.seen = map[K]answer[V]{}
	}
	f.seen[k] = answer[V]{v, now}
	return v, nil
}

// drop forgets an answer, so that the next get reads.
func (f *fresh[K, V]) drop(k K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, k)
}

// pauseAge: a pause missed by this much lets a firing go that its worker then refuses.
const pauseAge = time.Second

// DeepQueue is how many visible firings make a queue so deep that one which nobody has started
// yet is more likely waiting in it than lost.
const DeepQueue = 1000

// depthAge: SQS's own numbers are no younger.
const depthAge = 30 * time.Second

// pauses are kept by owner: those for everyone are one partition, which all tenants' jobs ask.
type pauses struct{ fresh[tenant.ID, job.Pauses] }

func (p *pauses) of(ctx context.Context, s *store.Store, t tenant.ID, now time.Time) (job.Pauses, error) {
	read := func(owner tenant.ID) (job.Pauses, error) {
		return p.get(owner, now, pauseAge, func() (job.Pauses, error) { return s.PausesOf(ctx, owner) })
	}
	everyone, err := read(job.Everyone)
	if err != nil {
		return nil, err
	}
	own, err := read(t)
	return slices.Concat(everyone, own), err
}

// Pauses reads tenants' pauses, each at most once a second.
type Pauses struct {
	Store *store.Store
	cache pauses
}

// Of returns the pauses that stand for a tenant.
func (p *Pauses) Of(ctx context.Context, t tenant.ID, now time.Time) (job.Pauses, error) {
	return p.cache.of(ctx, p.Store, t, now)
}

// Drop makes the next Of read the tenant's own; the caller knows that something has just changed.
// Those for everyone change by hand only: whoever lifts one wakes nobody by a message, and no
// such message can be missed for a second's age.
func (p *Pauses) Drop(t tenant.ID) { p.cache.drop(t) }

// schedules are those that jobs were asked to stand to, no older than pauses.
type schedules struct {
	fresh[schedule.Key, schedule.Schedule]
}

func (c *schedules) of(ctx context.Context, s *store.Store, k schedule.Key, now time.Time) (schedule.Schedule, error) {
	return c.get(k, now, pauseAge, func() (schedule.Schedule, error) { return s.Schedule(ctx, k) })
}

type depths struct{ fresh[string, int] }

func (d *depths) visible(ctx context.Context, q Queue, queue string, now time.Time) (int, error) {
	return d.get(queue, now, depthAge, func() (int, error) {
		depth, err := q.Depth(ctx, queue)
		return depth.Visible, err
	})
}

const (
	// sentOften is after how many looks a firing that nobody has taken was sent so often that it is
	// not lost as long as the queue holds some. Lost that often it would stay so, so it is sent all
	// the same once in a while: of sentAnyway looks, which are most of an hour apart.
	sentOften  = 3
	sentAnyway = 8
	someQueued = 20
)

// deepFor is beyond how many visible firings a queue counts as deep for a job that was found
// waiting that often.
func deepFor(postponed int64) int {
	if postponed >= sentOften && postponed%sentAnyway != 0 {
		return someQueued
	}
	return DeepQueue
}
