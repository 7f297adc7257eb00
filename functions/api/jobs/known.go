package jobs

import (
	"context"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// An index knows which jobs are DEAD and which are RUNNING, so their lists do not read all jobs.

// MaxKnown is how many keys a page reads from an index and sorts.
const MaxKnown = 10_000

// deadOrder is the prefix of a cursor of a list in the order of death.
const deadOrder = "dead "

// dead fills a page with dead jobs, newest first. A tenant with more dead jobs than can be sorted for one page gets
// them in the order of death, the last one first. A list keeps the order in which it began.
func (s *Handler) dead(
	ctx context.Context, t tenant.ID, f jobFilter, before job.ID, position string, limit int, items *[]spec.JobView,
) (next string, err error) {
	after, byDeath := strings.CutPrefix(position, deadOrder)
	if !byDeath {
		most := MaxKnown
		if position != "" { // more jobs may have died since the page before
			most *= 2
		}
		keys, all, err := s.Store.DeadKeys(ctx, t, most)
		if err != nil {
			return "", err
		}
		if all || position != "" {
			return s.among(ctx, t, f, keys, before, limit, items)
		}
	}
	may := func(r job.Row) bool { return f.rowMay(r) && r.ID >= f.from && (f.to == "" || r.ID < f.to) }
	rows, next, err := s.lettersFrom(ctx, t, letterFilter{row: may}, after, limit)
	if err != nil {
		return "", err
	}
	*items, err = s.ShowAll(ctx, t, rows)
	if next != "" {
		next = deadOrder + next
	}
	return next, err
}

// waking returns the keys of jobs that may be running. The wake-up of a running job is the end of its lease, so it lies
// between the slowest sweeper and the next minute. A job that waited long for a worker may wake up later; the sweeper
// brings it back into this range.
func (s *Handler) waking(ctx context.Context, t tenant.ID) ([]job.Key, error) {
	now := s.Now()
	swept, shards, err := s.Store.Slowest(ctx, store.Swept)
	if err != nil {
		return nil, err
	}
	from := now.Add(-contract.Grace - time.Minute)
	if earliest := now.Add(-maxLag); !swept.IsZero() && swept.Before(from) {
		from = swept
		if from.Before(earliest) {
			from = earliest
		}
	}
	var where []string
	for shard := range max(shards, s.Shards) {
		for _, slice := range horizon.Slices(from, now.Add(time.Minute), shard) {
			where = append(where, slice.String())
		}
	}
	keys, _, err := s.Store.WakingKeys(ctx, t, where, now, MaxKnown)
	return keys, err
}

// maxLag is how late the sweeper may be before its slices are too many to read for a list.
const maxLag = 30 * time.Minute

// among fills a page with the jobs of these keys that pass the filter, newest first.
func (s *Handler) among(
	ctx context.Context, t tenant.ID, f jobFilter, keys []job.Key, before job.ID, limit int, items *[]spec.JobView,
) (next string, err error) {
	keys = slices.DeleteFunc(keys, func(k job.Key) bool { return before != "" && k.ID >= before || k.ID < f.from })
	slices.SortFunc(keys, func(a, b job.Key) int { return strings.Compare(string(b.ID), string(a.ID)) })
	keys = slices.Compact(keys)
	began := s.Clock.Now()
	for lot := range slices.Chunk(keys, store.ReadAtOnce) {
		found, there, err := s.Rows(ctx, lot)
		if err != nil {
			return "", err
		}
		rows := found[:0]
		for i, r := range found {
			if there[i] && !r.StartsRun() && f.rowMay(r) {
				rows = append(rows, r)
			}
		}
		views, err := s.ShowAll(ctx, t, rows)
		if err != nil {
			return "", err
		}
		for _, v := range views {
			if v.Status != f.status {
				continue
			}
			if *items = append(*items, v); len(*items) == limit {
				return string(v.JobID), nil
			}
		}
		if s.Clock.Now().Sub(began) >= contract.MaxListRead {
			return string(lot[len(lot)-1].ID), nil
		}
	}
	return "", nil
}
