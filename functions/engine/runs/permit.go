package runs

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// permit lets one job of a run, or one item of a mapped node, be open at a time. The zero place is of no limit.
type permit struct {
	of     *limit
	bucket run.Bucket
	from   job.ID // the ended job that passes it on; "" for a free one
}

// write gives the place to a job. It goes in one transaction with the job's row.
func (p permit) write(to job.ID, now time.Time) item.Write {
	if p.from != "" {
		return p.bucket.Pass(p.from, to)
	}
	return p.bucket.Take(p.bucket.Capacity(p.of.n, p.of.open), to, now)
}

// errPermitLost says that another writer has got the place meanwhile. The row was not put.
var errPermitLost = errors.New("the place was taken meanwhile")

// held is the places of the job whose end is propagated, by the owner of the limit. They are passed on or freed before
// the end counts as propagated.
type held struct {
	by job.ID // "" if a whole run is derived: it holds none
	at map[string]run.Bucket
	// freed says that the run's permit was freed and its waiters are still to be read, also by another try.
	freed bool
}

func holds(x job.Row) *held {
	h := &held{by: x.ID, at: map[string]run.Bucket{}}
	if x.Permit > 0 {
		h.at[""] = run.Bucket{Key: run.Of(x), No: int(x.Permit) - 1}
	}
	if x.NodePermit > 0 {
		h.at[x.Node] = run.Bucket{Key: run.Of(x), Owner: x.Node, No: int(x.NodePermit) - 1}
	}
	return h
}

// limit is what one call knows of a limit's places.
type limit struct {
	owner    string // the mapped node; "" for the run
	n, open  int    // places, and how many of them slots of the time before buckets still use
	from     int    // the first bucket to be read, so that calls begin at different ones
	read     int    // how many buckets were read
	free     map[int]int
	holders  []job.ID // in the buckets read, and where
	at       []run.Bucket
	fruitful bool // the buckets read last had a free place
	freed    bool // the places of ended holders were freed
	full     bool // no free place was found
	searches singleflight.Group
}

// sampled is how many buckets are read at a time. If none of them has a free place, the limit counts as full for an
// end, however wide it is: the holders in these buckets end, and pass their places on.
const sampled = 16

// limitOf returns what is known of a limit of n places. f.mu is not held.
func (r *Controller) limitOf(ctx context.Context, f *facts, owner string, n int) (*limit, error) {
	f.mu.Lock()
	l := f.limits[owner]
	f.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l = &limit{owner: owner, n: n, free: map[int]int{}, from: int(hashOf(string(f.held.by))) % run.Buckets(n)}
	if !f.run.InBuckets {
		var err error
		if l.open, err = r.openSlots(ctx, f, owner, n); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.limits[owner]; other != nil {
		return other, nil
	}
	f.limits[owner] = l
	return l, nil
}

// openSlots counts the jobs that are open in slots, in a run that was made before places lay in buckets.
func (r *Controller) openSlots(ctx context.Context, f *facts, owner string, n int) (open int, err error) {
	jobs, err := r.Store.Slots(ctx, f.run.Key, owner, n)
	if err != nil {
		return 0, err
	}
	keys := make([]job.Key, len(jobs))
	for i, id := range jobs {
		keys[i] = job.Key{Tenant: f.run.Tenant, ID: id}
	}
	rows, err := r.Store.Nodes(ctx, keys)
	for _, row := range rows {
		if row.Unfinished() {
			open++
		}
	}
	return open, err
}

// permit finds a place of a limit of n: the one that the ended job holds, or a free one. 0 says that there is no limit.
// The process that gets a permit uses it or gives it back.
func (r *Controller) acquire(ctx context.Context, f *facts, owner string, n int) (p permit, found bool, err error) {
	if n == 0 {
		return permit{}, true, nil
	}
	l, err := r.limitOf(ctx, f, owner, n)
	if err != nil {
		return permit{}, false, err
	}
	for {
		f.mu.Lock()
		if at, holds := f.held.at[owner]; holds {
			delete(f.held.at, owner)
			f.mu.Unlock()
			return permit{of: l, bucket: at, from: f.held.by}, true, nil
		}
		no, free := l.emptiest()
		full := l.full
		f.mu.Unlock()
		switch {
		case free:
			return permit{of: l, bucket: run.Bucket{Key: f.run.Key, Owner: owner, No: no}}, true, nil
		case full:
			return permit{}, false, nil
		}
		if _, err, _ := l.searches.Do("", func() (any, error) { return nil, r.findPermits(ctx, f, l) }); err != nil {
			return permit{}, false, err
		}
	}
}

// emptiest takes a place of the bucket that has the most free ones.
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

// findPermits reads the next buckets of a limit. The limit is full once all were read, or once none of those read
// last had a free place.
func (r *Controller) findPermits(ctx context.Context, f *facts, l *limit) error {
	f.mu.Lock()
	count, read := run.Buckets(l.n), l.read
	done := l.full || read == count || read > 0 && !l.fruitful && f.held.by != "" // a reconcile reads all of them
	f.mu.Unlock()
	if done {
		return r.freeEnded(ctx, f, l)
	}
	var buckets []run.Bucket
	for i := read; i < min(count, read+sampled); i++ {
		buckets = append(buckets, run.Bucket{Key: f.run.Key, Owner: l.owner, No: (l.from + i) % count})
	}
	holders, err := r.Store.PermitHolders(ctx, buckets)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
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

// freeEnded frees the places of jobs that have ended, where the run is reconciled and no place was found. Without it
// the limit is full.
func (r *Controller) freeEnded(ctx context.Context, f *facts, l *limit) error {
	f.mu.Lock()
	holders, at := l.holders, l.at
	check := f.held.by == "" && f.run.Status != run.Building && !l.freed
	l.freed, l.full, l.holders, l.at = true, true, nil, nil
	f.mu.Unlock()
	if !check {
		return nil
	}
	keys := make([]job.Key, len(holders))
	for i, id := range holders {
		keys[i] = job.Key{Tenant: f.run.Tenant, ID: id}
	}
	rows, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Unfinished() {
			continue
		}
		if err := r.Store.Put(ctx, at[i].Free(holders[i])); err != nil {
			if refused(err) {
				continue
			}
			return err
		}
		f.mu.Lock()
		l.free[at[i].No]++
		l.full = false
		f.mu.Unlock()
	}
	return nil
}

// forgetLimit forgets what was read of a limit, for a read after a write of one's own.
func (f *facts) forgetLimit(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.limits, owner)
}

// giveBack returns places that were not used.
func (f *facts) giveBack(permits ...permit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range permits {
		switch {
		case p.of == nil:
		case p.from != "":
			f.held.at[p.bucket.Owner] = p.bucket
		default:
			p.of.free[p.bucket.No]++
		}
	}
}

// lose notes that another writer was faster: of a free place, that its bucket is full.
func (f *facts) lose(p permit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.from == "" {
		p.of.free[p.bucket.No] = 0
	}
}

// freeHeld frees the places of the ended job that were not passed on, and says whether one was the run's.
func (r *Controller) freeHeld(ctx context.Context, h *held) (ofRun bool, err error) {
	for _, owner := range slices.Sorted(maps.Keys(h.at)) {
		if err := r.freeHeldOf(ctx, h, owner); err != nil {
			return h.freed, err
		}
		h.freed = h.freed || owner == ""
	}
	return h.freed, nil
}

// freeHeldOf frees the place that the ended job holds of one limit, if it holds one.
func (r *Controller) freeHeldOf(ctx context.Context, h *held, owner string) error {
	bucket, holds := h.at[owner]
	if !holds {
		return nil
	}
	if err := r.Store.Put(ctx, bucket.Free(h.by)); err != nil && !refused(err) {
		return err
	}
	delete(h.at, owner)
	return nil
}

func hashOf(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s)) // never fails
	return h.Sum32() & 0x7fffffff
}
