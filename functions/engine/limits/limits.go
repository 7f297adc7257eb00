package limits

import (
	"context"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/process"
	"punctual/shared/store"
)

// Store is what is read and written.
type Store interface {
	store.PermitGiver
	store.NoteWriter
	store.DueReader
	store.LimitWaiters
	store.JobReader
	store.ClaimReader
	store.Writes
}

// Limits admits attempts to the limits of their jobs. It is safe for concurrent use.
type Limits struct {
	process.Base
	Store Store
}

// state is what is known of a key.
type state struct {
	limit  limit.Limit
	key    limit.Key
	held   int // permits, without that of the job in question
	mine   bool
	are    []limit.Permits
	window limit.Window
}

// read reads the state of a key, as it is for a job ("" for none). found is false where there is no such limit.
func (l *Limits) read(ctx context.Context, k limit.Key, of job.ID) (s state, found bool, err error) {
	s.key = k
	s.limit, err = l.Store.Limit(ctx, k.Tenant, k.Name)
	if fault.KindOf(err) == fault.NotFound || err == nil && s.limit.Deleted {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	if s.limit.MaxRunning > 0 {
		s.are, err = l.Store.Buckets(ctx, s.limit, k)
	} else {
		var head limit.Permits
		head, err = l.Store.Waiting(ctx, k)
		s.are = []limit.Permits{head}
	}
	if err != nil {
		return s, false, err
	}
	for _, b := range s.are {
		s.held += b.N
		for _, h := range b.Holders {
			if h.ID == of {
				s.mine = true
				s.held--
			}
		}
	}
	if s.limit.Rate.Count > 0 {
		s.window, err = l.Store.Window(ctx, k)
	}
	return s, true, err
}

// marked says that jobs wait, or did a moment ago.
func (s *state) marked() bool { return len(s.are) > 0 && !s.are[0].Mark.IsZero() }

// running says that as many permits are held as there may be.
func (s *state) running() bool { return s.limit.MaxRunning > 0 && s.held >= s.limit.MaxRunning }

// started says that as many have started as may within the window, also soon.
func (s *state) started(now time.Time) bool {
	return s.limit.Rate.Count > 0 && s.window.Left(s.limit.Rate, now.Add(limit.Soon)) == 0
}

// free is how many may start now, at most of them.
func (s *state) free(most int, now time.Time) int {
	if s.limit.MaxRunning > 0 {
		most = min(most, s.limit.MaxRunning-s.held)
	}
	if s.limit.Rate.Count > 0 {
		most = min(most, s.window.Left(s.limit.Rate, now.Add(limit.Soon)))
	}
	return max(most, 0)
}

// KeysOf are the keys under which a job counts.
func KeysOf(r job.Row) []limit.Key {
	var keys []limit.Key
	for _, each := range r.Limits.List() {
		keys = append(keys, limit.Key{Tenant: r.Tenant, LimitKey: each})
	}
	return keys
}

// Free gives back the permits of an attempt that has ended, or of a job that does not start now, and returns the keys
// for which a job may wait.
func (l *Limits) Free(ctx context.Context, r job.Row, attempt int64, buckets []int) (freed []limit.Key, err error) {
	waits, err := l.Store.FreePermits(ctx, r.Key, r.Limits, attempt, buckets)
	return Freed(r, waits), err
}

// Freed are the keys of a job's limits for which a job may wait; waits says so in the order of its limits.
func Freed(r job.Row, waits []bool) (freed []limit.Key) {
	for no, k := range KeysOf(r) {
		if no < len(waits) && waits[no] {
			freed = append(freed, k)
		}
	}
	return freed
}
