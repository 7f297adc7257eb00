package show

import (
	"context"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/store"
)

// An index knows which jobs are DEAD and which are RUNNING, so their lists do not read all jobs.

// MaxKnown is how many keys a page reads from an index and sorts.
const MaxKnown = 10_000

// deadOrder is the prefix of a cursor of a list in the order of death.
const deadOrder = "dead "

// dead fills a page with dead jobs, newest first. A tenant with more dead jobs than can be sorted for one page gets
// them in the order of death, the last one first. A list keeps the order in which it began.
func (p *listing) dead(ctx context.Context, before job.ID, position string) (next string, err error) {
	after, byDeath := strings.CutPrefix(position, deadOrder)
	if !byDeath {
		most := MaxKnown
		if position != "" { // more jobs may have died since the page before
			most *= 2
		}
		keys, all, err := p.Store.DeadKeys(ctx, p.tenant, most)
		if err != nil {
			return "", err
		}
		if all || position != "" {
			return p.among(ctx, keys, before)
		}
	}
	may := func(r job.Row) bool { return p.rowMay(r) && r.ID >= p.from && (p.to == "" || r.ID < p.to) }
	rows, next, err := p.DeadLetters(ctx, p.tenant, LetterFilter{row: may}, after, p.limit)
	if err != nil {
		return "", err
	}
	p.items, err = p.Listed(ctx, p.tenant, rows)
	if next != "" {
		next = deadOrder + next
	}
	return next, err
}

// waking returns the keys of jobs that may be running. The wake-up of a running job is the end of its lease, so it lies
// between the slowest sweeper and the next minute. A job that waited long for a worker may wake up later; the sweeper
// brings it back into this range.
func (p *listing) waking(ctx context.Context) ([]job.Key, error) {
	now := p.Now()
	swept, shards, err := p.Store.Slowest(ctx, store.Swept)
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
	for shard := range max(shards, p.Shards) {
		for _, slice := range horizon.Slices(from, now.Add(time.Minute), shard) {
			where = append(where, slice.String())
		}
	}
	keys, _, err := p.Store.WakingKeys(ctx, p.tenant, where, now, MaxKnown)
	return keys, err
}

// maxLag is how late the sweeper may be before its slices are too many to read for a list.
const maxLag = 30 * time.Minute

// among fills the page with the jobs of these keys that pass the filter, newest first.
func (p *listing) among(ctx context.Context, keys []job.Key, before job.ID) (next string, err error) {
	keys = slices.DeleteFunc(keys, func(k job.Key) bool { return before != "" && k.ID >= before || k.ID < p.from })
	slices.SortFunc(keys, func(a, b job.Key) int { return strings.Compare(string(b.ID), string(a.ID)) })
	p.began = p.Clock.Now()
	for lot := range slices.Chunk(slices.Compact(keys), store.ReadAtOnce) {
		found, there, err := p.Rows(ctx, lot)
		if err != nil {
			return "", err
		}
		rows := found[:0]
		for i, r := range found {
			if there[i] && !r.StartsRun() && p.rowMay(r) {
				rows = append(rows, r)
			}
		}
		if full, err := p.show(ctx, rows); err != nil || full != "" {
			return string(full), err
		}
		if p.late() {
			return string(lot[len(lot)-1].ID), nil
		}
	}
	return "", nil
}
