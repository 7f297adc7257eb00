package worker

import (
	"context"
	"slices"
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
	// lastLookFresh is how old it may be when an attempt is due that was judged before. It lets
	// the attempts that are due at one moment share a read.
	lastLookFresh = 20 * time.Millisecond
	// pausesKnown bounds how many tenants' pauses are remembered.
	pausesKnown = 1000
)

// pauses reads a tenant's pauses, and those for everyone, each at most once a second, whatever
// number of jobs and tenants ask.
type pauses struct {
	store *store.Store
	mu    sync.Mutex
	known map[tenant.ID]*pauseEntry
}

type pauseEntry struct {
	turn chan struct{} // taken while reading: the others wait for the answer
	at   time.Time     // monotonic, from before the read
	read job.Pauses
	trouble
}

// trouble is what the last reads of a key failed with. For a moment, doubled each time, it is the
// answer to all who ask for that key: they would only wait in their slots for the same, and take
// these from others.
type trouble struct {
	err   error
	times int
	until time.Time
}

const (
	troubleFirst = 500 * time.Millisecond
	troubleLast  = 4 * time.Second
)

// stands is the error that still stands; nil for none.
func (t *trouble) stands() error {
	if time.Now().Before(t.until) {
		return t.err
	}
	return nil
}

// note notes what a read came to, and returns it.
func (t *trouble) note(err error) error {
	if err == nil {
		*t = trouble{}
		return nil
	}
	t.err, t.until = err, time.Now().Add(doubled(troubleFirst, t.times, troubleLast))
	t.times++
	return err
}

// of returns the pauses that stand for t, its own read at most maxAge ago, and since when that is
// known (monotonic). Those for everyone are shared by all and never read more often than usual.
func (p *pauses) of(ctx context.Context, t tenant.ID, maxAge time.Duration) (job.Pauses, time.Time, error) {
	everyone, since, err := p.owned(ctx, job.Everyone, pausesFresh)
	if err != nil {
		return nil, time.Time{}, err
	}
	own, at, err := p.owned(ctx, t, maxAge)
	if since.Before(at) {
		at = since
	}
	return slices.Concat(everyone, own), at, err
}

// owned returns the pauses of one owner, read at most maxAge ago.
func (p *pauses) owned(ctx context.Context, owner tenant.ID, maxAge time.Duration) (job.Pauses, time.Time, error) {
	e := p.entry(owner)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, time.Time{}, ctx.Err()
	}
	defer func() { <-e.turn }()
	if time.Since(e.at) < maxAge {
		return e.read, e.at, nil
	}
	if err := e.stands(); err != nil {
		return nil, time.Time{}, err
	}
	at := time.Now()
	read, err := p.store.PausesOf(ctx, owner)
	if e.note(err) != nil {
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
