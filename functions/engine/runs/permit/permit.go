package permit

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
)

// Store is what permits are read from, and given back to.
type Store interface {
	store.RunPermits
	store.JobReader
	store.Writes
}

// Permit lets one job of a run, or one item of a mapped node, be open at a time. The zero Permit is of no limit.
type Permit struct {
	of     *limit
	bucket run.Bucket
	from   job.ID // the ended job that passes it on; "" for a free one
}

// Limited says that the permit is of a limit, so that it has to be written.
func (p Permit) Limited() bool { return p.of != nil }

// OfRun says that the permit is of the run's limit, not of a mapped node's.
func (p Permit) OfRun() bool { return p.of.owner == "" }

// No is the number of the permit's bucket.
func (p Permit) No() int { return p.bucket.No }

// Write gives the permit to a job. It goes in one transaction with the job's row.
func (p Permit) Write(to job.ID, now time.Time) item.Write {
	if p.from != "" {
		return p.bucket.Pass(p.from, to)
	}
	return p.bucket.Take(p.bucket.Capacity(p.of.n, p.of.open), to, now)
}

// Held is the permits of the job whose end is propagated, by the owner of the limit. They are passed on or freed before
// the end counts as propagated. It outlasts the Sets of the tries to propagate the end.
type Held struct {
	by job.ID // "" if a whole run is reconciled: it holds none
	at map[string]run.Bucket
	// freed says that the run's permit was freed and its waiters are still to be read, also by another try.
	freed bool
}

// HeldBy returns the permits that a row says its job holds; the zero Row holds none.
func HeldBy(x job.Row) *Held {
	h := &Held{by: x.ID, at: map[string]run.Bucket{}}
	if x.Permit > 0 {
		h.at[""] = run.Bucket{Key: run.Of(x), No: int(x.Permit) - 1}
	}
	if x.NodePermit > 0 {
		h.at[x.Node] = run.Bucket{Key: run.Of(x), Owner: x.Node, No: int(x.NodePermit) - 1}
	}
	return h
}

// limit is what one call knows of a limit's permits.
type limit struct {
	owner    string // the mapped node; "" for the run
	n, open  int    // permits, and how many of them slots of the time before buckets still use
	from     int    // the first bucket to be read, so that calls begin at different ones
	read     int    // how many buckets were read
	free     map[int]int
	holders  []job.ID // in the buckets read, and where
	at       []run.Bucket
	fruitful bool // the buckets read last had a free permit
	freed    bool // the permits of ended holders were freed
	full     bool // no free permit was found
	searches singleflight.Group
}

// sampled is how many buckets are read at a time. If none of them has a free permit, the limit counts as full for an
// end, however wide it is: the holders in these buckets end, and pass their permits on.
const sampled = 16

// Set is the permits of one run as one call knows them. It is safe for concurrent use.
type Set struct {
	store Store
	run   run.Run
	held  *Held

	mu     sync.Mutex // of the limits and of held
	limits map[string]*limit
}

// New returns the Set of a run as it was read, for the end of the job that holds those permits.
func New(from Store, is run.Run, held *Held) *Set {
	return &Set{store: from, run: is, held: held, limits: map[string]*limit{}}
}

// By is the job whose end is propagated; "" if the whole run is reconciled.
func (s *Set) By() job.ID { return s.held.by }

// HoldsOfRun says that the ended job still holds a permit of the run.
func (s *Set) HoldsOfRun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, holds := s.held.at[""]
	return holds
}

// limitOf returns what is known of a limit of n permits.
func (s *Set) limitOf(ctx context.Context, owner string, n int) (*limit, error) {
	s.mu.Lock()
	l := s.limits[owner]
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l = &limit{owner: owner, n: n, free: map[int]int{}, from: int(Hash(string(s.held.by))) % run.Buckets(n)}
	if !s.run.InBuckets {
		var err error
		if l.open, err = s.openSlots(ctx, owner, n); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.limits[owner]; other != nil {
		return other, nil
	}
	s.limits[owner] = l
	return l, nil
}

// openSlots counts the jobs that are open in slots, in a run that was made before permits were kept in buckets.
func (s *Set) openSlots(ctx context.Context, owner string, n int) (open int, err error) {
	jobs, err := s.store.Slots(ctx, s.run.Key, owner, n)
	if err != nil {
		return 0, err
	}
	rows, err := s.rows(ctx, jobs)
	for _, row := range rows {
		if row.Unfinished() {
			open++
		}
	}
	return open, err
}

func (s *Set) rows(ctx context.Context, ids []job.ID) ([]job.Row, error) {
	keys := make([]job.Key, len(ids))
	for i, id := range ids {
		keys[i] = job.Key{Tenant: s.run.Tenant, ID: id}
	}
	return s.store.Nodes(ctx, keys)
}

// Acquire finds a permit of a limit of n: the one that the ended job holds, or a free one. n of 0 says that there is no
// limit. The caller that gets a permit uses it or gives it back.
func (s *Set) Acquire(ctx context.Context, owner string, n int) (p Permit, found bool, err error) {
	if n == 0 {
		return Permit{}, true, nil
	}
	l, err := s.limitOf(ctx, owner, n)
	if err != nil {
		return Permit{}, false, err
	}
	for {
		s.mu.Lock()
		if at, holds := s.held.at[owner]; holds {
			delete(s.held.at, owner)
			s.mu.Unlock()
			return Permit{of: l, bucket: at, from: s.held.by}, true, nil
		}
		no, free := l.emptiest()
		full := l.full
		s.mu.Unlock()
		switch {
		case free:
			return Permit{of: l, bucket: run.Bucket{Key: s.run.Key, Owner: owner, No: no}}, true, nil
		case full:
			return Permit{}, false, nil
		}
		if _, err, _ := l.searches.Do("", func() (any, error) { return nil, s.search(ctx, l) }); err != nil {
			return Permit{}, false, err
		}
	}
}

// emptiest takes a permit of the bucket that has the most free ones.
func (l *limit) emptiest() (no int, free bool) {
	most, buckets := 0, run.Buckets(l.n)
	for i := range l.read {
		if at := (l.from + i) % buckets; l.free[at] > most {
			no, most = at, l.free[at]
		}
	}
	if most > 0 {
		l.free[no]--
	}
	return no, most > 0
}

// search reads the next buckets of a limit. The limit is full once all were read, or once none of those read last had a
// free permit.
func (s *Set) search(ctx context.Context, l *limit) error {
	s.mu.Lock()
	count, read := run.Buckets(l.n), l.read
	done := l.full || read == count || read > 0 && !l.fruitful && s.held.by != "" // a reconcile reads all of them
	s.mu.Unlock()
	if done {
		return s.freeEnded(ctx, l)
	}
	var buckets []run.Bucket
	for i := read; i < min(count, read+sampled); i++ {
		buckets = append(buckets, run.Bucket{Key: s.run.Key, Owner: l.owner, No: (l.from + i) % count})
	}
	holders, err := s.store.PermitHolders(ctx, buckets)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.fruitful = false
	for i, b := range buckets {
		if left := b.Capacity(l.n, l.open) - len(holders[i]); left > 0 {
			l.free[b.No], l.fruitful = left, true
		}
		for _, id := range holders[i] {
			l.holders, l.at = append(l.holders, id), append(l.at, b)
		}
	}
	l.read += len(buckets)
	return nil
}

// freeEnded frees the permits of jobs that have ended, where the run is reconciled and no permit was found. Without
// one the limit is full.
func (s *Set) freeEnded(ctx context.Context, l *limit) error {
	s.mu.Lock()
	holders, at := l.holders, l.at
	check := s.held.by == "" && s.run.Status != run.Building && !l.freed
	l.freed, l.full, l.holders, l.at = true, true, nil, nil
	s.mu.Unlock()
	if !check {
		return nil
	}
	rows, err := s.rows(ctx, holders)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Unfinished() {
			continue
		}
		if err := s.store.Put(ctx, at[i].Free(holders[i])); err != nil {
			if refused(err) {
				continue
			}
			return err
		}
		s.mu.Lock()
		l.free[at[i].No]++
		l.full = false
		s.mu.Unlock()
	}
	return nil
}

// Forget forgets what was read of a limit, for a read after a write of one's own.
func (s *Set) Forget(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.limits, owner)
}

// GiveBack returns permits that were not used.
func (s *Set) GiveBack(permits ...Permit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range permits {
		switch {
		case p.of == nil:
		case p.from != "":
			s.held.at[p.bucket.Owner] = p.bucket
		default:
			p.of.free[p.bucket.No]++
		}
	}
}

// Lose notes that another writer was faster: of a free permit, that its bucket is full.
func (s *Set) Lose(p Permit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.from == "" {
		p.of.free[p.bucket.No] = 0
	}
}

// FreeHeld frees the permits of the ended job that were not passed on, and says whether one was the run's: then the
// waiters are to be read, until WaitersRead is called.
func (s *Set) FreeHeld(ctx context.Context) (ofRun bool, err error) {
	h := s.held
	for _, owner := range slices.Sorted(maps.Keys(h.at)) {
		if err := s.FreeHeldOf(ctx, owner); err != nil {
			return h.freed, err
		}
		h.freed = h.freed || owner == ""
	}
	return h.freed, nil
}

// WaitersRead notes that the waiters of the run were read since its permit was freed.
func (s *Set) WaitersRead() { s.held.freed = false }

// FreeHeldOf frees the permit that the ended job holds of one limit, if it holds one.
func (s *Set) FreeHeldOf(ctx context.Context, owner string) error {
	bucket, holds := s.held.at[owner]
	if !holds {
		return nil
	}
	if err := s.store.Put(ctx, bucket.Free(s.held.by)); err != nil && !refused(err) {
		return err
	}
	delete(s.held.at, owner)
	return nil
}

// refused says that a condition did not hold: another process has written since the bucket was read.
func refused(err error) bool { return store.Refused(err) != nil }

// Hash is a number that is the same for the same id. Calls that come together choose by it what they begin with, so
// that they meet less often.
func Hash(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id)) // never fails
	return h.Sum32() & 0x7fffffff
}
