package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/tenant"
)

// UpdateLimit implements Limits.
func (s *Store) UpdateLimit(
	ctx context.Context, t tenant.ID, name string, now time.Time,
	decide func(*limit.Limit) (limit.Limit, error),
) (limit.Limit, error) {
	return replace(ctx, s.table, limits(t, name), func(was *limit.Limit) (limit.Limit, error) {
		if was == nil || was.Deleted {
			next, err := decide(nil)
			if was == nil {
				was = &limit.Limit{}
			}
			return bounded(t, name, next).Becomes(*was, now), err
		}
		next, err := decide(was)
		if next = bounded(t, name, next); was.SameBounds(next) {
			return *was, err
		}
		return next.Becomes(*was, now), err
	})
}

// bounded is a limit of that name with the bounds of another.
func bounded(t tenant.ID, name string, by limit.Limit) limit.Limit {
	return limit.Limit{Tenant: t, Name: name, MaxRunning: by.MaxRunning, Rate: by.Rate, WhenFull: by.WhenFull}
}

func limits(t tenant.ID, name string) versioned[limit.Limit] {
	return versioned[limit.Limit]{
		ref: limit.Ref(t, name), kind: "limit", put: limit.WritePut,
		parse: parsed(func(i item.Item) (limit.Limit, error) { return limit.Parse(i, t) },
			func(i item.Item) limit.Limit {
				return limit.Limit{Tenant: t, Name: name, Version: i.Int("version"), Widest: contract.MaxRunning}
			}),
		version: func(l *limit.Limit) *int64 { return &l.Version },
		encode:  func(l limit.Limit) (item.Item, error) { return l.Item(), nil },
	}
}

// DeleteLimit implements Limits.
func (s *Store) DeleteLimit(
	ctx context.Context, t tenant.ID, name string, now time.Time, may func(limit.Limit) error,
) error {
	_, err := replace(ctx, s.table, limits(t, name), func(was *limit.Limit) (limit.Limit, error) {
		if was == nil || was.Deleted {
			return limit.Limit{}, fault.New(fault.NotFound, nil, "deleting limit %q", name)
		}
		next := *was
		next.Deleted, next.UpdatedAt = true, now
		return next, may(*was)
	})
	return err
}

// Limits implements Limits.
func (s *Store) Limits(
	ctx context.Context, t tenant.ID, after string, most int,
) (list []limit.Limit, more bool, err error) {
	return byName(ctx, s.table, contract.Tasks, limit.ListKey(t), after, most, func(i item.Item) (limit.Limit, bool) {
		l, err := limit.Parse(i, t)
		return l, err == nil && !l.Deleted
	})
}

// The keys of a limit are not listed by their permits, which lie where each key says. So a process that uses a key
// writes a note of it, at most once an hour, into one of a few partitions of the limit.
const (
	limitKeyNoted = time.Hour
	limitKeyKept  = 48 * time.Hour
	limitKeyFirst = "k" // begins the sort key of a note: the empty key has a note too
)

func limitKeysKey(t tenant.ID, name string, shard int) string {
	return "limit_keys#" + string(t) + "#" + name + "#" + strconv.Itoa(shard)
}

// NoteLimitKey implements LimitKeyNotes.
func (s *Store) NoteLimitKey(ctx context.Context, k limit.Key, now time.Time) error {
	shard := horizon.ShardOf(k.Key, noteShards)
	ref := item.Ref{Table: contract.Tasks, PK: limitKeysKey(k.Tenant, k.Name, shard), SK: limitKeyFirst + k.Key}
	if s.noted.within(ref, limitKeyNoted, now) {
		return nil
	}
	err := s.Put(ctx, item.Write{Ref: ref, Name: limit.WriteNote,
		Set: map[string]any{contract.AttrExpiresAt: now.Add(limitKeyKept).Unix()}})
	if err == nil {
		s.noted.add(ref, now)
	}
	return err
}

// LimitKeys implements Limits.
func (s *Store) LimitKeys(
	ctx context.Context, t tenant.ID, name string, most int,
) (keys []limit.Key, more bool, err error) {
	found, errs := make([][]limit.Key, noteShards), make([]error, noteShards)
	var all sync.WaitGroup
	for shard := range noteShards {
		all.Go(func() { found[shard], errs[shard] = s.limitKeys(ctx, t, name, shard, most+1) })
	}
	all.Wait()
	keys = slices.Concat(found...)
	slices.SortFunc(keys, func(a, b limit.Key) int { return strings.Compare(a.Key, b.Key) })
	return keys[:min(most, len(keys))], len(keys) > most, errors.Join(errs...)
}

func (s *Store) limitKeys(
	ctx context.Context, t tenant.ID, name string, shard, most int,
) (keys []limit.Key, err error) {
	q := item.Query{Table: contract.Tasks, PK: limitKeysKey(t, name, shard), Limit: most}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return keys, err
		}
		for _, i := range page.Items {
			key, _ := strings.CutPrefix(i.Str(contract.AttrSK), limitKeyFirst)
			keys = append(keys, limit.Key{Tenant: t, LimitKey: job.LimitKey{Name: name, Key: key}})
			if len(keys) == most {
				return keys, nil
			}
		}
		if page.Cursor == "" {
			return keys, nil
		}
		q.Cursor = page.Cursor
	}
}

// LimitUse is how much of a key is used.
type LimitUse struct {
	limit.Key
	Running int
	Window  limit.Window
}

// LimitUses implements Limits.
func (s *Store) LimitUses(ctx context.Context, l limit.Limit, keys []limit.Key) ([]LimitUse, error) {
	buckets := limit.Buckets(l.Widest)
	var refs []item.Ref
	for _, k := range keys {
		refs = append(refs, k.WindowRef())
		for no := range buckets {
			refs = append(refs, limit.Bucket{Key: k, No: no}.Ref())
		}
	}
	items := make([]item.Item, 0, len(refs))
	for chunk := range slices.Chunk(refs, ReadAtOnce) {
		lot, err := s.table.GetMany(ctx, chunk)
		if err != nil {
			return nil, err
		}
		items = append(items, lot...)
	}
	uses := make([]LimitUse, len(keys))
	for n, k := range keys {
		own := items[n*(buckets+1) : (n+1)*(buckets+1)]
		uses[n] = LimitUse{Key: k, Window: limit.ParseWindow(own[0])}
		for no, i := range own[1:] {
			uses[n].Running += limit.ParseBucket(i, no).N
		}
	}
	return uses, nil
}

// sortedWaiters is how many jobs of a queue are read to put them in their order where some have a deadline: these lie
// first in a queue, in the order of their deadlines.
const sortedWaiters = 100

// LimitWaiters implements LimitWaiters.
func (s *Store) LimitWaiters(ctx context.Context, k limit.Key, most int) (waiters []Entry, err error) {
	for _, queue := range job.WaiterQueues(k.Tenant, k.LimitKey) {
		want := most - len(waiters)
		if want <= 0 {
			break
		}
		found, err := s.waitersOf(ctx, queue, want)
		more := err == nil && want < sortedWaiters && len(found) == want
		if more && job.WakesByDeadline(found[0].DueAt, found[0].WakeAt) {
			found, err = s.waitersOf(ctx, queue, sortedWaiters)
		}
		if err != nil {
			return nil, err
		}
		slices.SortFunc(found, func(a, b Entry) int {
			return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.Key.ID, b.Key.ID))
		})
		waiters = append(waiters, found[:min(len(found), want)]...)
	}
	return waiters, nil
}

// waitersOf reads the first entries of a queue that can be read, in the order in which they lie there.
func (s *Store) waitersOf(ctx context.Context, queue string, most int) (waiters []Entry, err error) {
	q := DueQuery{Slice: queue}
	for len(waiters) < most {
		q.Limit = most - len(waiters)
		found, next, err := s.DuePage(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, f := range found[:min(len(found), q.Limit)] {
			if f.Err == nil {
				waiters = append(waiters, f.Entry)
			}
		}
		if next == "" {
			break
		}
		q.Cursor = next
	}
	return waiters, nil
}
