package store

import (
	"context"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/tenant"
)

// Limit implements LimitReader.
func (s *Store) Limit(ctx context.Context, t tenant.ID, name string) (limit.Limit, error) {
	i, err := s.table.Get(ctx, limit.Ref(t, name))
	if err != nil {
		return limit.Limit{}, err
	}
	if i == nil {
		return limit.Limit{}, fault.New(fault.NotFound, nil, "reading limit %q", name)
	}
	return limit.Parse(i, t)
}

// limitTries is how often a write is tried anew because another process was faster.
const limitTries = 8

// TakePermit implements PermitTaker.
func (s *Store) TakePermit(
	ctx context.Context, l limit.Limit, k limit.Key, id job.ID, attempt int64, now time.Time,
) (bucket int, taken bool, err error) {
	each, err := s.permitsOf(ctx, l, k, now)
	if err != nil || len(each) == 0 {
		return 0, false, err
	}
	no := horizon.ShardOf(string(id), len(each))
	for range limitTries {
		b := limit.Bucket{Key: k, No: no}
		err := s.Put(ctx, take(b, l, each[no], id, attempt, now))
		refused := Refused(err)
		if refused == nil {
			return no, err == nil, err
		}
		is := limit.ParseBucket(refused.Olds[0], no)
		if h := slices.IndexFunc(is.Holders, func(h limit.Holder) bool { return h.ID == id }); h >= 0 {
			if is.Holders[h].Attempt >= attempt {
				return no, true, nil
			}
			err := s.Put(ctx, b.Retake(id, attempt, now))
			if Refused(err) == nil {
				return no, err == nil, err
			}
			continue
		}
		if is.Epoch > l.Epoch { // the limit has changed since it was read
			return 0, false, fault.New(fault.Conflict, nil, "limit %q has changed", l.Name)
		}
		next, found, err := s.roomiest(ctx, k, each, no)
		if err != nil || !found {
			return 0, false, err
		}
		no = next
	}
	return 0, false, nil
}

func take(b limit.Bucket, l limit.Limit, n int, id job.ID, attempt int64, now time.Time) item.Write {
	if l.Epoch > 0 {
		return b.TakePlanned(n, l.Epoch, id, attempt, now)
	}
	return b.Take(n, id, attempt, now)
}

// permitsOf is how many permits each bucket of a key has. None: as many are held as there may be, so no bucket has any
// to give out yet.
func (s *Store) permitsOf(ctx context.Context, l limit.Limit, k limit.Key, now time.Time) ([]int, error) {
	if l.Epoch == 0 {
		return limit.Standard(l.MaxRunning), nil
	}
	i, err := s.table.Get(ctx, k.PlanRef())
	if err != nil {
		return nil, err
	}
	if p := limit.ParsePlan(i); p.Epoch >= l.Epoch {
		return p.Each, nil
	}
	return s.plan(ctx, l, k, now)
}

// staleTakers is how long after an epoch has begun a process may still give out permits of the one before. A worker
// that has read a limit longer ago than that does not start the attempt.
const staleTakers = time.Minute

// plan freezes the buckets of a key, and gives out its permits for the epoch of the limit.
func (s *Store) plan(ctx context.Context, l limit.Limit, k limit.Key, now time.Time) ([]int, error) {
	are, err := s.Buckets(ctx, l, k)
	if err != nil {
		return nil, err
	}
	recent := now.Sub(time.UnixMilli(l.Epoch)) < staleTakers
	for no, b := range are {
		if b.Epoch < l.Epoch && (!b.Absent || recent) {
			err := s.Put(ctx, limit.Bucket{Key: k, No: no}.Freeze(l.Epoch, now))
			if err != nil && Refused(err) == nil {
				return nil, err
			}
		}
	}
	if are, err = s.Buckets(ctx, l, k); err != nil {
		return nil, err
	}
	held := make([]int, len(are))
	for no, b := range are {
		held[no] = b.N
	}
	each := limit.Share(held, l.MaxRunning)
	if each == nil {
		return nil, nil
	}
	err = s.Put(ctx, k.PutPlan(limit.Plan{Epoch: l.Epoch, Each: each}, now))
	if refused := Refused(err); refused != nil {
		return limit.ParsePlan(refused.Olds[0]).Each, nil
	}
	return each, err
}

// Buckets implements LimitReader.
func (s *Store) Buckets(ctx context.Context, l limit.Limit, k limit.Key) ([]limit.Permits, error) {
	refs := make([]item.Ref, limit.Buckets(l.Widest))
	for no := range refs {
		refs[no] = limit.Bucket{Key: k, No: no}.Ref()
	}
	return s.buckets(ctx, refs)
}

func (s *Store) buckets(ctx context.Context, refs []item.Ref) (are []limit.Permits, err error) {
	for chunk := range slices.Chunk(refs, ReadAtOnce) {
		items, err := s.table.GetMany(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			are = append(are, limit.ParseBucket(i, len(are)))
		}
	}
	return are, nil
}

// sampledBuckets is how many buckets are read at first in search of a permit.
const sampledBuckets = 16

// roomiest finds the bucket with the most permits left of those that follow no, or else of all others: for a job that
// was woken there is a permit, in whichever bucket it was given back.
func (s *Store) roomiest(ctx context.Context, k limit.Key, each []int, no int) (next int, found bool, err error) {
	order := make([]int, len(each))
	for i := range order {
		order[i] = (no + i) % len(each)
	}
	sample := min(len(each), sampledBuckets)
	for _, some := range [][]int{order[:sample], order[sample:]} {
		refs := make([]item.Ref, len(some))
		for i, at := range some {
			refs[i] = limit.Bucket{Key: k, No: at}.Ref()
		}
		are, err := s.buckets(ctx, refs)
		if err != nil {
			return 0, false, err
		}
		most := 0
		for i, b := range are {
			if left := each[some[i]] - b.N; left > most {
				most, next = left, some[i]
			}
		}
		if most > 0 {
			return next, true, nil
		}
	}
	return 0, false, nil
}

// FreePermit implements PermitGiver.
func (s *Store) FreePermit(
	ctx context.Context, l limit.Limit, k limit.Key, id job.ID, attempt int64, bucket int,
) (waits bool, err error) {
	buckets := []int{bucket}
	switch wide := limit.Buckets(l.Widest) > 1; {
	case !wide:
		buckets = []int{0}
	case bucket < 0:
		are, err := s.Buckets(ctx, l, k)
		if err != nil {
			return false, err
		}
		buckets = nil
		for no, b := range are {
			if slices.ContainsFunc(b.Holders, func(h limit.Holder) bool { return h.ID == id }) {
				buckets = append(buckets, no)
			}
		}
	}
	var head item.Item
	for _, no := range buckets {
		i, err := s.table.Write(ctx, limit.Bucket{Key: k, No: no}.Free(id, attempt))
		if refused := Refused(err); refused != nil {
			i, err = refused.Olds[0], nil
		}
		if err != nil {
			return false, err
		}
		if no == 0 {
			head = i
		}
	}
	if head == nil {
		if head, err = s.table.Get(ctx, k.Head().Ref()); err != nil {
			return false, err
		}
	}
	return !limit.ParseBucket(head, 0).Mark.IsZero(), nil
}

// FreePermits implements PermitGiver.
func (s *Store) FreePermits(
	ctx context.Context, k job.Key, of job.Limits, attempt int64, buckets []int,
) (waits []bool, err error) {
	list := of.List()
	waits = make([]bool, len(list))
	for no, each := range list {
		key := limit.Key{Tenant: k.Tenant, LimitKey: each}
		is, err := s.Limit(ctx, key.Tenant, key.Name)
		switch fault.KindOf(err) {
		case fault.NotFound:
			continue
		case fault.Undecodable: // that keeps no job from its end: its permit may be in any bucket
			is, err = limit.Limit{Widest: contract.MaxRunning}, nil
		}
		if err != nil {
			return nil, err
		}
		bucket := -1
		if no < len(buckets) {
			bucket = buckets[no]
		}
		if is.Widest > 0 {
			waits[no], err = s.FreePermit(ctx, is, key, k.ID, attempt, bucket)
		} else {
			var head limit.Permits
			head, err = s.Waiting(ctx, key)
			waits[no] = !head.Mark.IsZero()
		}
		if err != nil {
			return nil, err
		}
	}
	return waits, nil
}

// Waiting implements LimitReader.
func (s *Store) Waiting(ctx context.Context, k limit.Key) (limit.Permits, error) {
	i, err := s.table.Get(ctx, k.Head().Ref())
	return limit.ParseBucket(i, 0), err
}

// Window implements LimitReader.
func (s *Store) Window(ctx context.Context, k limit.Key) (limit.Window, error) {
	i, err := s.table.Get(ctx, k.WindowRef())
	return limit.ParseWindow(i), err
}

// DrawStart implements PermitTaker.
func (s *Store) DrawStart(ctx context.Context, r limit.Rate, k limit.Key, now time.Time) (next time.Time, err error) {
	w, err := s.Window(ctx, k)
	if err != nil {
		return time.Time{}, err
	}
	for range limitTries {
		if w.Left(r, now) == 0 {
			return w.Next(r, now), nil
		}
		err := s.Put(ctx, k.Draw(w, r, now))
		refused := Refused(err)
		if refused == nil {
			return time.Time{}, err
		}
		w = limit.ParseWindow(refused.Olds[0])
	}
	return now.Add(time.Millisecond), nil
}
