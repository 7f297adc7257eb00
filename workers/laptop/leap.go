package laptop

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/memory"
)

// leaping is the machine's clock, ahead by what it has leapt. A clock that runs evenly and faster would need all
// of the product to wait by it, and would let leases and timeouts run out sixty times too early
// under jobs that work in real time. This one is even while anything is under way, and leaps over
// the time in which nothing is.
type leaping struct {
	mu    sync.Mutex
	ahead time.Duration
	leapt chan struct{} // closed by the next leap
}

func leapingFrom(at time.Time) *leaping {
	c := &leaping{leapt: make(chan struct{})}
	if !at.IsZero() {
		c.ahead = time.Until(at)
	}
	return c
}

// Now returns the time.
func (c *leaping) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Leapt is closed by the next leap.
func (c *leaping) Leapt() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leapt
}

func (c *leaping) leap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	close(c.leapt)
	c.leapt = make(chan struct{})
}

const (
	maxSpeed = 600
	// firstYear and lastYear bound the time at the start.
	firstYear, lastYear = 1971, 2299
	// beforehand is how long before something is due a leap ends.
	beforehand = 50 * time.Millisecond
)

// run lets a minute pass in a part of it whenever nothing is under way, until ctx ends.
func (c *leaping) run(ctx context.Context, world *memory.World, speed int, writes *atomic.Int64) {
	tick := time.NewTicker(time.Minute / time.Duration(speed))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := c.Now()
		to := now.Truncate(time.Minute).Add(time.Minute) // when the passes begin
		next, resting := world.Resting()
		if !resting || writes.Load() > 0 {
			continue
		}
		if !next.IsZero() && next.Before(to) {
			to = next
		}
		if d := to.Sub(now) - beforehand; d > 0 {
			c.leap(d)
			world.Leapt()
		}
	}
}

// writing counts the requests under way that may change something.
func writing(h http.Handler, n *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			n.Add(1)
			defer n.Add(-1)
		}
		h.ServeHTTP(w, r)
	})
}
