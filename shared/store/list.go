package store

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Newest implements JobLists.
// Ids begin with their time, and each partition is sorted by id, so merging the partitions is enough and no index is
// needed.
func (s *Store) Newest(ctx context.Context, t tenant.ID, from, before job.ID, expect int) iter.Seq2[job.Row, error] {
	return s.newest(ctx, t, allPartitions, func(item.Item) bool { return true }, from, before, expect)
}

// NewestOfTask implements JobLists.
func (s *Store) NewestOfTask(
	ctx context.Context, t tenant.ID, task string, parts []int, from, before job.ID,
) iter.Seq2[job.Row, error] {
	return s.newest(ctx, t, parts, func(i item.Item) bool { return i.Str("task") == task }, from, before,
		maxPage*contract.Partitions)
}

var allPartitions = func() (all []int) {
	for p := range contract.Partitions {
		all = append(all, p)
	}
	return all
}()

// newest is Newest over some partitions. What take leaves out is not parsed: it comes as the zero
// row with its key, so that the caller can stop when its time is up.
func (s *Store) newest(
	ctx context.Context, t tenant.ID, parts []int, take func(item.Item) bool, from, before job.ID, expect int,
) iter.Seq2[job.Row, error] {
	return func(yield func(job.Row, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		runs := make([]*run, len(parts))
		for n, p := range parts {
			q := item.Query{Table: contract.Jobs, PK: job.PartitionKey(t, p), Descending: true,
				Limit: min(max(2*expect/contract.Partitions, 2), maxPage)}
			if from != "" {
				q.From = string(from)
			}
			if before != "" {
				q.To = string(before)
			}
			runs[n] = &run{query: q, key: func(i item.Item) string { return i.Str(contract.AttrJobID) }}
		}
		for i, err := range s.merge(ctx, runs) {
			if err != nil {
				yield(job.Row{}, err)
				return
			}
			if job.IsGone(i) || i.Str("dag") != "" { // a row that represents a run is no job
				continue
			}
			var r job.Row
			var err error
			if take(i) {
				r, err = job.ParseRow(i)
			} else {
				r.Key, _ = job.KeyOf(i)
			}
			if err != nil {
				r.Key, _ = job.KeyOf(i)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// DeadLetter is one entry of the dead index. The index lags: the row decides.
type DeadLetter struct {
	job.Key
	DeadAt time.Time
}

// DeadLetters implements JobLists.
func (s *Store) DeadLetters(
	ctx context.Context, t tenant.ID, from, before time.Time, expect int,
) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		runs := make([]*run, contract.DeadShards)
		for n := range runs {
			q := item.Query{
				Table: contract.Jobs, Index: contract.DeadIndex, PK: job.PartitionKey(t, n), Descending: true,
				Limit: min(max(2*expect/contract.DeadShards, 2), maxPage),
			}
			if !from.IsZero() {
				q.From = from.UnixMilli()
			}
			if !before.IsZero() {
				q.To = before.UnixMilli()
			}
			runs[n] = &run{query: q, ties: true, key: func(i item.Item) string {
				return i.Time(contract.AttrDeadAt).UTC().Format("20060102150405.000") + i.Str(contract.AttrJobID)
			}}
		}
		for i, err := range s.merge(ctx, runs) {
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			k, err := job.KeyOf(i)
			if !yield(DeadLetter{k, i.Time(contract.AttrDeadAt)}, err) {
				return
			}
		}
	}
}

// DeadKeys implements JobLists.
func (s *Store) DeadKeys(ctx context.Context, t tenant.ID, most int) (keys []job.Key, all bool, err error) {
	var queries []item.Query
	for n := range contract.DeadShards {
		queries = append(queries,
			item.Query{Table: contract.Jobs, Index: contract.DeadIndex, PK: job.PartitionKey(t, n)})
	}
	return s.keys(ctx, queries, most, func(item.Item, job.Key) bool { return true })
}

// WakingKeys implements JobLists.
func (s *Store) WakingKeys(
	ctx context.Context, t tenant.ID, slices []string, now time.Time, most int,
) (keys []job.Key, all bool, err error) {
	var queries []item.Query
	for _, slice := range slices {
		queries = append(queries, item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: slice})
	}
	return s.keys(ctx, queries, most,
		func(i item.Item, k job.Key) bool { return k.Tenant == t && !i.Time("due_at").After(now) })
}

// queriesAtOnce bounds the queries of one read of keys.
const queriesAtOnce = 32

// keys runs queries and returns the keys that take lets through. What has no readable key is
// no one's. Once there are more than most it is false, and the rest is not read.
func (s *Store) keys(
	ctx context.Context, queries []item.Query, most int, take func(item.Item, job.Key) bool,
) (keys []job.Key, all bool, err error) {
	var mu sync.Mutex
	one := func(q item.Query) { // to its end, unless there is enough, or one has failed
		for {
			page, queryErr := s.table.Query(ctx, q)
			mu.Lock()
			for _, i := range page.Items {
				if k, err := job.KeyOf(i); err == nil && take(i, k) {
					keys = append(keys, k)
				}
			}
			if err == nil {
				err = queryErr
			}
			over := err != nil || len(keys) > most
			mu.Unlock()
			if q.Cursor = page.Cursor; over || q.Cursor == "" {
				return
			}
		}
	}
	var readers sync.WaitGroup
	next := make(chan item.Query)
	for range min(queriesAtOnce, len(queries)) {
		readers.Go(func() {
			for q := range next {
				one(q)
			}
		})
	}
	for _, q := range queries {
		next <- q
	}
	close(next)
	readers.Wait()
	if err != nil {
		return nil, false, err
	}
	return keys, len(keys) <= most, nil
}

// maxPage bounds what one query of a merge asks for.
const maxPage = 200

// run is one sorted partition on its way into a merge.
type run struct {
	query item.Query
	key   func(item.Item) string // sorts as the partition does
	ties  bool                   // the partition may hold equal sort keys, whose order is not said
	items []item.Item
	done  bool
	tie   int64 // the sort key whose items have been put in order
}

// fill reads on until something is there or the partition ends. Where ties are possible it
// reads to the end of one, so that they can be put in order.
func (r *run) fill(ctx context.Context, t Table) error {
	for !r.done && (len(r.items) == 0 || r.ties && r.unsettled()) {
		page, err := t.Query(ctx, r.query)
		if err != nil {
			return err
		}
		r.items = append(r.items, page.Items...)
		r.query.Cursor, r.done = page.Cursor, page.Cursor == ""
		r.query.Limit = min(2*r.query.Limit, maxPage)
	}
	if r.ties {
		r.settle()
	}
	return nil
}

// unsettled says that all items have the same instant: more of it may follow.
func (r *run) unsettled() bool {
	return r.items[0].Int(contract.AttrDeadAt) == r.items[len(r.items)-1].Int(contract.AttrDeadAt)
}

// settle orders the ties at the front by key, highest first; once for each group of them.
func (r *run) settle() {
	if len(r.items) == 0 || r.items[0].Int(contract.AttrDeadAt) == r.tie {
		return
	}
	r.tie = r.items[0].Int(contract.AttrDeadAt)
	same := 1
	for same < len(r.items) && r.items[same].Int(contract.AttrDeadAt) == r.tie {
		same++
	}
	slices.SortFunc(r.items[:same], func(a, b item.Item) int { return strings.Compare(r.key(b), r.key(a)) })
}

// heads is a heap of runs, the one with the highest key on top, or the lowest where the runs ascend.
type heads []*run

func (h heads) Len() int      { return len(h) }
func (h heads) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *heads) Push(x any)   { *h = append(*h, x.(*run)) }
func (h heads) Less(a, b int) bool {
	x, y := h[a].key(h[a].items[0]), h[b].key(h[b].items[0])
	if h[a].query.Descending {
		return x > y
	}
	return x < y
}
func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// merge iterates over the items of all runs in the order of their keys, which is that of their queries. The first pages
// are read at once, in parallel; the others as they are needed.
func (s *Store) merge(ctx context.Context, runs []*run) iter.Seq2[item.Item, error] {
	return func(yield func(item.Item, error) bool) {
		if err := s.fillAll(ctx, runs); err != nil {
			yield(nil, err)
			return
		}
		var open heads
		for _, r := range runs {
			if len(r.items) > 0 {
				open = append(open, r)
			}
		}
		heap.Init(&open)
		for len(open) > 0 {
			top := open[0]
			if !yield(top.items[0], nil) {
				return
			}
			top.items = top.items[1:]
			if err := top.fill(ctx, s.table); err != nil {
				yield(nil, err)
				return
			}
			if len(top.items) == 0 {
				heap.Pop(&open)
			} else {
				heap.Fix(&open, 0)
			}
		}
	}
}

func (s *Store) fillAll(ctx context.Context, runs []*run) error {
	var all sync.WaitGroup
	errs := make([]error, len(runs))
	for n, r := range runs {
		all.Go(func() { errs[n] = r.fill(ctx, s.table) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Rows implements JobReader.
func (s *Store) Rows(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	refs := make([]item.Ref, len(keys))
	for n, k := range keys {
		refs[n] = k.Ref()
	}
	items, err := s.table.GetMany(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	rows, there = make([]job.Row, len(keys)), make([]bool, len(keys))
	for n, i := range items {
		rows[n], err = rowOf(i, keys[n])
		there[n] = err == nil
	}
	return rows, there, nil
}
