package worker

import (
	"context"
	"sync"
	"time"

	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

const (
	// pausesFresh is how old a read of the pauses may be when an attempt is judged; with the time
	// to its start it stays under contract.RowFresh.
	pausesFresh = time.Second
	// pausesKnown bounds how many tenants' pauses are remembered.
	pausesKnown = 1000
)

// pauses reads a tenant's pauses at most once a second, whatever number of jobs ask.
type pauses struct {
	store *store.Store
	mu    sync.Mutex
	known map[tenant.ID]*pauseEntry
}

type pauseEntry struct {
	turn chan struct{} // taken while reading: the others wait for the answer
	at   time.Time     // monotonic, from before the read
	read job.Pauses
}

// of returns the pauses that stand for t, and since when that is known (monotonic).
func (p *pauses) of(ctx context.Context, t tenant.ID) (job.Pauses, time.Time, error) {
	e := p.entry(t)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, time.Time{}, ctx.Err()
	}
	defer func() { <-e.turn }()
	if time.Since(e.at) < pausesFresh {
		return e.read, e.at, nil
	}
	at := time.Now()
	read, err := p.store.Pauses(ctx, t)
	if err != nil {
		return nil, time.Time{}, err
	}
	e.at, e.read = at, read
	return read, at, nil
}

func (p *pauses) entry(t tenant.ID) *pauseEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.known[t]
	if e == nil {
		if len(p.known) >= pausesKnown {
			clear(p.known) // read anew within the second anyway
		}
		e = &pauseEntry{turn: make(chan struct{}, 1)}
		p.known[t] = e
	}
	return e
}
