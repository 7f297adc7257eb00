package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// A process does not ask the table about each request. It takes requests in lots: a lot of one when a tenant has been
// quiet, twice the last lot while the tenant needs more within a second, and at most a twentieth of its rate. What is
// left of a lot after lotKept is lost.
const (
	lotKept      = 5 * time.Second
	lotPart      = 20
	tenantsKnown = 10_000 // beyond that all are forgotten, which costs each tenant one write
)

// Store keeps what tenants have used of their limits.
type Store interface {
	store.RateLimits
	store.WaitingSlots
}

// Limiter bounds the requests of tenants. It is safe for concurrent use.
type Limiter struct {
	Store     Store
	Clock     clock.Clock
	Log       *slog.Logger
	RateLimit store.RateLimit // of each tenant; the zero RateLimit is no bound
	Waiting   int             // how many requests of a tenant may wait at once; 0 is no bound

	lots lots
}

func (l *Limiter) now() time.Time { return l.Clock.Now().UTC().Truncate(time.Millisecond) }

// Exceeded is the error of a request beyond the rate limit of its tenant.
type Exceeded struct {
	RateLimit store.RateLimit
	Wait      time.Duration // after which it may be repeated
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("a tenant may make %d requests a second, and %d at once after a rest; each %d jobs and each %s "+
		"written count as one more", e.RateLimit.Rate, e.RateLimit.Burst, contract.JobsOfOneRequest,
		text.Bytes(contract.BytesOfOneRequest))
}

// lots are the lots of the tenants that called this process.
type lots struct {
	mu   sync.Mutex
	held map[tenant.ID]*lot
}

type lot struct {
	left, size int
	took       time.Time
	refused    time.Time // no request is allowed before this time
}

// of returns the lot of a tenant. The caller holds the lock.
func (a *lots) of(t tenant.ID) *lot {
	if a.held == nil || len(a.held) >= tenantsKnown {
		a.held = map[tenant.ID]*lot{}
	}
	if a.held[t] == nil {
		a.held[t] = &lot{}
	}
	return a.held[t]
}

// Next decides how to answer a request. It is (0, 0) when the lot covers the request; take > 0 asks for a lot of that
// size from the table; wait > 0 lets the client wait.
func (a *lots) next(t tenant.ID, most int, now time.Time) (take int, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.of(t)
	age := now.Sub(l.took)
	switch {
	case now.Before(l.refused):
		return 0, l.refused.Sub(now)
	case l.left > 0 && age >= 0 && age < lotKept:
		l.left--
		return 0, 0
	case l.size > 0 && age >= 0 && age < time.Second:
		return min(2*l.size, most), 0
	}
	return 1, 0
}

// took records a new lot. The request that took it uses one of it.
func (a *lots) took(t tenant.ID, size int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.of(t)
	l.left, l.size, l.took = size-1, size, now
}

// refused records that no request is allowed before until.
func (a *lots) refused(t tenant.ID, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(t).refused = until
}

// Allow takes one request from the tenant's rate limit, or refuses with the time to wait. If the table does not answer,
// it lets the request through: the limit protects other tenants, and refusing everybody would not help them.
func (l *Limiter) Allow(ctx context.Context, t tenant.ID) error {
	now := l.now()
	size, wait := l.lots.next(t, max(1, l.RateLimit.Rate/lotPart), now)
	for ; wait == 0 && size > 0; size /= 2 { // half as many when a whole lot is not there
		var err error
		wait, err = l.Store.TakeRequests(ctx, t, l.RateLimit, size, now)
		if err != nil {
			l.Log.WarnContext(ctx, "a request was not counted", telemetry.Tenant, t, telemetry.Err, err.Error())
			return nil
		}
		if wait == 0 {
			l.lots.took(t, size, now)
			return nil
		}
		if size > 1 {
			wait = 0
		} else {
			l.lots.refused(t, now.Add(wait))
		}
	}
	if wait == 0 {
		return nil
	}
	return &Exceeded{l.RateLimit, wait}
}

// WeighBody draws the weight of a request's body from the tenant's rate limit.
func (l *Limiter) WeighBody(ctx context.Context, t tenant.ID, bytes int) error {
	return l.weigh(ctx, t, store.Weight(0, bytes), 0)
}

// WeighJobs draws the weight of jobs that a request makes. body is the size of the request's body, which was weighed
// before: what was admitted by that may leave any deficit.
func (l *Limiter) WeighJobs(ctx context.Context, t tenant.ID, jobs, body int) error {
	if store.Weight(0, body) > 0 {
		return l.weigh(ctx, t, store.Weight(jobs, 0), store.AnyDeficit)
	}
	return l.weigh(ctx, t, store.Weight(jobs, 0), 0)
}

// weigh draws n requests, or refuses with the time to wait if the tenant has a deficit of more than most. It may leave
// a deficit: otherwise a request that weighs more than a burst could never be made.
func (l *Limiter) weigh(ctx context.Context, t tenant.ID, n, most int) error {
	if n == 0 || l.RateLimit.Rate == 0 {
		return nil
	}
	now := l.now()
	drawn, wait, err := l.Store.DrawWeight(ctx, t, l.RateLimit, n, most, now)
	if err != nil { // as in allow
		l.Log.WarnContext(ctx, "the weight of a request was not counted", telemetry.Tenant, t, telemetry.Err,
			err.Error())
		return nil
	}
	if wait > 0 {
		l.lots.refused(t, now.Add(wait))
	}
	if drawn {
		return nil
	}
	return &Exceeded{l.RateLimit, wait}
}
