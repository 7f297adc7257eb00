package api

import (
	"context"
	"sync"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// What a process knows of a tenant's allowance, so that it need not ask the table for each request. It
// takes requests in lots: one of them after a rest, twice as many as the last time while it needs more
// within a second, up to a twentieth of a second's. A lot that is not used within lotKept is lost.
const (
	lotKept      = 5 * time.Second
	lotPart      = 20
	tenantsKnown = 10_000 // then all are forgotten: that costs each a write
)

// allowances are those of the tenants that asked this process.
type allowances struct {
	mu   sync.Mutex
	held map[tenant.ID]*lot
}

type lot struct {
	left, size int
	took       time.Time
	refused    time.Time // until then there is none
}

// of is the lot of a tenant. The lock is held.
func (a *allowances) of(t tenant.ID) *lot {
	if a.held == nil || len(a.held) >= tenantsKnown {
		a.held = map[tenant.ID]*lot{}
	}
	if a.held[t] == nil {
		a.held[t] = &lot{}
	}
	return a.held[t]
}

// next says what to do for a request: answer it from the lot (0, 0), take a lot of that size, or let
// the client wait.
func (a *allowances) next(t tenant.ID, most int, now time.Time) (take int, wait time.Duration) {
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

// took notes a lot, of which the first is used up by the request that took it.
func (a *allowances) took(t tenant.ID, size int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.of(t)
	l.left, l.size, l.took = size-1, size, now
}

// refused notes that there is nothing until then.
func (a *allowances) refused(t tenant.ID, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(t).refused = until
}

// allow takes one request from what a tenant may make, or refuses it with the time to wait. When the
// table does not answer it lets all through: the limit is there for others' sake, and they are no better
// off when nobody is served.
func (s *stage) allow(ctx context.Context, t tenant.ID) error {
	now := s.now()
	size, wait := s.allowances.next(t, max(1, s.Allowance.Rate/lotPart), now)
	for ; wait == 0 && size > 0; size /= 2 { // less, where there is no whole lot
		var err error
		wait, err = s.Store.TakeRequests(ctx, t, s.Allowance, size, now)
		if err != nil {
			s.Log.WarnContext(ctx, "a request was not counted", telemetry.Tenant, t, telemetry.Err, err.Error())
			return nil
		}
		if wait == 0 {
			s.allowances.took(t, size, now)
			return nil
		}
		if size > 1 {
			wait = 0
		} else {
			s.allowances.refused(t, now.Add(wait))
		}
	}
	if wait == 0 {
		return nil
	}
	seconds := max(1, int((wait+time.Second-1)/time.Second))
	return wire.NewProblem(wire.CodeRateLimited, "a tenant may make %d requests a second, and %d at once after a rest",
		s.Allowance.Rate, s.Allowance.Burst).After(seconds)
}
