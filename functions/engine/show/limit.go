package show

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/store"
)

// MaxWaiters is how many jobs that wait for a key of a limit of work are counted.
const MaxWaiters = 1000

// waitersAtOnce is how many keys' waiters are read at the same time.
const waitersAtOnce = 16

// ahead counts, for each row that waits for a limit of work, the jobs that wait for the same key before it. The waiters
// of a key are read once.
func (s *Reader) ahead(ctx context.Context, rows []job.Row) (map[job.ID]int, error) {
	waiting := map[limit.Key][]job.Row{}
	for _, r := range rows {
		if l, waits := r.FullLimit(); waits {
			k := limit.Key{Tenant: r.Tenant, LimitKey: l}
			waiting[k] = append(waiting[k], r)
		}
	}
	ahead := map[job.ID]int{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(waitersAtOnce)
	for k, own := range waiting {
		g.Go(func() error {
			waiters, err := s.Store.LimitWaiters(ctx, k, MaxWaiters)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range own {
				ahead[r.ID] = before(waiters, r)
			}
			return err
		})
	}
	return ahead, g.Wait()
}

// before counts the waiters before a row. The index may not have the row yet, or no longer.
func before(waiters []store.Entry, r job.Row) (n int) {
	for _, w := range waiters {
		as := job.Priority(w.Priority)
		if w.Key.ID == r.ID || job.ServedBefore(r.Priority, r.DueAt, r.ID, as, w.DueAt, w.Key.ID) {
			return n
		}
		n++
	}
	return n
}

// Waiting counts the jobs that wait for each key of a limit of work, MaxWaiters of a key at most.
func (s *Reader) Waiting(ctx context.Context, keys []limit.Key) ([]int, error) {
	counts := make([]int, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(waitersAtOnce)
	for n, k := range keys {
		g.Go(func() error {
			waiters, err := s.Store.LimitWaiters(ctx, k, MaxWaiters)
			counts[n] = len(waiters)
			return err
		})
	}
	return counts, g.Wait()
}
