package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	runs "punctual/shared/run" // run is a word of this package
	"punctual/shared/tenant"
)

// Run implements RunReader.
func (s *Store) Run(ctx context.Context, k runs.Key) (runs.Run, error) {
	i, err := s.table.Get(ctx, k.Ref())
	if err != nil {
		return runs.Run{}, err
	}
	return runOf(i, k)
}

func runOf(i item.Item, k runs.Key) (runs.Run, error) {
	if i == nil {
		return runs.Run{}, fault.New(fault.NotFound, nil, "reading run %s", k.ID)
	}
	return runs.Parse(i)
}

// UpdateRun implements RunWriter.
func (s *Store) UpdateRun(
	ctx context.Context, k runs.Key, decide func(runs.Run) ([]item.Write, error),
) (runs.Run, error) {
	parse := func(i item.Item) (runs.Run, error) { return runOf(i, k) }
	return update(ctx, s.table, k.Ref(), "run "+string(k.ID), parse, decide)
}

// WriteRun implements RunWriter.
func (s *Store) WriteRun(ctx context.Context, after runs.Run, w item.Write) error {
	err := s.Put(ctx, w)
	if refused := Refused(err); refused != nil {
		if old, err := runOf(refused.Olds[0], after.Key); err == nil && sameItem(old.Item(), after.Item()) {
			return nil
		}
	}
	return err
}

func sameItem(a, b item.Item) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if b[name] != v {
			return false
		}
	}
	return true
}

// Nodes implements JobReader.
func (s *Store) Nodes(ctx context.Context, keys []job.Key) ([]job.Row, error) {
	rows := make([]job.Row, 0, len(keys))
	for lot := range slices.Chunk(keys, ReadAtOnce) {
		refs := make([]item.Ref, len(lot))
		for n, k := range lot {
			refs[n] = k.Ref()
		}
		items, err := s.table.GetMany(ctx, refs)
		if err != nil {
			return nil, err
		}
		for n, i := range items {
			var r job.Row
			if i != nil {
				if r, err = job.ParseNode(lot[n], i); err != nil {
					return nil, err
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// Count implements RunCounters.
func (s *Store) Count(ctx context.Context, k runs.Key, counter item.Ref, n int64, now time.Time) (int64, error) {
	i, err := s.table.Write(ctx, k.CountAt(counter, n, now))
	return i.Int("n"), err
}

// Counted implements RunCounters.
func (s *Store) Counted(ctx context.Context, counter item.Ref) (int64, error) {
	i, err := s.table.Get(ctx, counter)
	return i.Int("n"), err
}

// Weights implements RunCounters.
func (s *Store) Weights(ctx context.Context, k runs.Key) (runs.Weights, error) {
	i, err := s.table.Get(ctx, k.WeightsRef())
	return runs.ReadWeights(i), err
}

// PermitHolders implements RunPermits.
func (s *Store) PermitHolders(ctx context.Context, buckets []runs.Bucket) ([][]job.ID, error) {
	refs := make([]item.Ref, len(buckets))
	for n, b := range buckets {
		refs[n] = b.Ref()
	}
	held := make([][]job.ID, 0, len(buckets))
	for lot := range slices.Chunk(refs, ReadAtOnce) {
		items, err := s.table.GetMany(ctx, lot)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			held = append(held, runs.Holders(i))
		}
	}
	return held, nil
}

// Slots implements RunPermits.
func (s *Store) Slots(ctx context.Context, k runs.Key, node string, n int) (jobs []job.ID, err error) {
	refs := make([]item.Ref, n)
	for i := range refs {
		refs[i] = k.SlotRef(node, i)
	}
	for lot := range slices.Chunk(refs, ReadAtOnce) {
		items, err := s.table.GetMany(ctx, lot)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			if i != nil {
				jobs = append(jobs, job.ID(i.Str("holder")))
			}
		}
	}
	return jobs, nil
}

// Waiters implements RunPermits.
func (s *Store) Waiters(ctx context.Context, k runs.Key, n int) (runs.Waiters, error) {
	items, err := s.table.GetMany(ctx, k.WaiterRefs(n))
	if err != nil {
		return runs.Waiters{}, err
	}
	return runs.ReadWaiters(items, n), nil
}

// PutDefinition implements RunWriter.
func (s *Store) PutDefinition(ctx context.Context, t tenant.ID, hash, body string) error {
	ref := runs.DefinitionRef(t, hash)
	return s.Put(ctx, item.Write{Ref: ref, Name: WriteDagDefinition, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": body,
	}})
}

// Definition implements RunReader.
func (s *Store) Definition(ctx context.Context, t tenant.ID, hash string) (string, error) {
	return s.body(ctx, runs.DefinitionRef(t, hash), "the definition of a dag")
}

func (s *Store) body(ctx context.Context, ref item.Ref, what string) (string, error) {
	i, err := s.table.Get(ctx, ref)
	if err != nil {
		return "", err
	}
	if i == nil {
		return "", fault.New(fault.NotFound, nil, "reading %s", what)
	}
	return i.Str("body"), nil
}

// RunContent implements RunReader.
func (s *Store) RunContent(ctx context.Context, k runs.Key, name string) (string, error) {
	return s.body(ctx, k.ContentRef(name), name+" of run "+string(k.ID))
}

// Params implements RunReader.
func (s *Store) Params(ctx context.Context, r runs.Run) (string, error) {
	if r.Params != runs.ParamsInItem {
		return r.Params, nil
	}
	return s.RunContent(ctx, r.Key, runs.ParamsContent)
}

// Events implements RunLists.
func (s *Store) Events(ctx context.Context, k runs.Key, cursor string, limit int) ([]runs.Event, string, error) {
	page, err := s.table.Query(ctx, item.Query{
		Table: contract.Runs, PK: k.Ref().PK, From: runs.EventsFrom, To: runs.EventsTo, Cursor: cursor, Limit: limit,
		Consistent: true,
	})
	if err != nil {
		return nil, "", err
	}
	var events []runs.Event
	for _, i := range page.Items {
		if e, err := runs.ParseEvent(i); err == nil {
			events = append(events, e)
		}
	}
	return events, page.Cursor, nil
}

// eventsSlack is how much the time until which events are kept may be off: it is set once a day at most.
const eventsSlack = 24 * time.Hour

// eventsAtOnce is how many events are kept at the same time.
const eventsAtOnce = 16

// KeepEvents implements RunWriter.
func (s *Store) KeepEvents(ctx context.Context, k runs.Key, until time.Time) error {
	cursor := ""
	for {
		page, err := s.table.Query(ctx, item.Query{
			Table: contract.Runs, PK: k.Ref().PK, From: runs.EventsFrom, To: runs.EventsTo, Cursor: cursor,
			Limit: ReadAtOnce, Consistent: true,
		})
		if err != nil {
			return err
		}
		var refs []item.Ref
		for _, i := range page.Items {
			at := time.Unix(i.Int(contract.AttrExpiresAt), 0)
			if at.Sub(until).Abs() >= eventsSlack {
				refs = append(refs, item.Ref{Table: contract.Runs, PK: k.Ref().PK, SK: i.Str(contract.AttrSK)})
			}
		}
		for lot := range slices.Chunk(refs, eventsAtOnce) {
			errs := make([]error, len(lot))
			var all sync.WaitGroup
			for n, ref := range lot {
				all.Go(func() {
					if err := s.Put(ctx, runs.KeepEvent(ref, until)); Refused(err) == nil {
						errs[n] = err
					}
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return nil
		}
	}
}

// RunItems implements RunReader.
func (s *Store) RunItems(ctx context.Context, r runs.Run, until time.Time) ([]item.Ref, error) {
	refs := []item.Ref{r.ListRef()}
	q := item.Query{Table: contract.Runs, PK: r.Ref().PK, Limit: ReadAtOnce, Consistent: true}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("reading the items of run %s: %w", r.ID, err)
		}
		for _, i := range page.Items {
			sk := i.Str(contract.AttrSK)
			others := sk == r.Ref().SK || strings.HasPrefix(sk, runs.EventsFrom)
			if !others && i.Int(contract.AttrExpiresAt) < until.Unix() {
				refs = append(refs, item.Ref{Table: contract.Runs, PK: q.PK, SK: sk})
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return refs, nil
		}
	}
}

// RunQuery asks for runs of a tenant, newest first. Zero values ask for all.
type RunQuery struct {
	From, Before  time.Time // From ≤ created_at < Before
	Dag, Schedule string
	Below         string // the place of the last one of the page before
	Read          int    // entries of the list to look at, at most; 0: ReadAtOnce
}

// ListedRun is a run in a list, and the place after which the list goes on.
type ListedRun struct {
	runs.Run
	Position string
}

// Runs implements RunLists.
func (s *Store) Runs(ctx context.Context, t tenant.ID, q RunQuery) (found []ListedRun, next string, err error) {
	query := item.Query{
		Table: contract.Runs, PK: runs.ListKey(t), Descending: true, Limit: ReadAtOnce, Consistent: true,
	}
	if q.Read > 0 {
		query.Limit = min(q.Read, ReadAtOnce)
	}
	if !q.From.IsZero() {
		query.From = runs.ListFrom(q.From)
	}
	if !q.Before.IsZero() {
		query.To = runs.ListFrom(q.Before)
	}
	if q.Below != "" {
		query.To = q.Below
	}
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, "", err
	}
	var refs []item.Ref
	var cursors []string
	for _, i := range page.Items {
		cursor := i.Str(contract.AttrSK)
		next = cursor
		if q.Dag != "" && i.Str("dag") != q.Dag || q.Schedule != "" && i.Str("schedule") != q.Schedule {
			continue
		}
		_, id, _ := strings.Cut(cursor, "#")
		refs, cursors = append(refs, runs.Key{Tenant: t, ID: job.ID(id)}.Ref()), append(cursors, cursor)
	}
	if page.Cursor == "" {
		next = ""
	}
	if len(refs) == 0 {
		return nil, next, nil
	}
	items, err := s.table.GetMany(ctx, refs)
	if err != nil {
		return nil, "", err
	}
	for n, i := range items {
		if i == nil {
			continue
		}
		if r, err := runs.Parse(i); err == nil {
			found = append(found, ListedRun{r, cursors[n]})
		}
	}
	return found, next, nil
}

// RunsNamed implements RunReader.
func (s *Store) RunsNamed(ctx context.Context, keys []runs.Key) ([]runs.Run, error) {
	found := make([]runs.Run, 0, len(keys))
	for lot := range slices.Chunk(keys, ReadAtOnce) {
		refs := make([]item.Ref, len(lot))
		for n, k := range lot {
			refs[n] = k.Ref()
		}
		items, err := s.table.GetMany(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			var r runs.Run
			if i != nil {
				if read, err := runs.Parse(i); err == nil {
					r = read
				}
			}
			found = append(found, r)
		}
	}
	return found, nil
}

// DueRun is one wake-up of a run in the due index. The index lags: the item decides.
type DueRun struct {
	runs.Key
	WakeAt time.Time
	Ref    item.Ref
	Err    error // of kind fault.Undecodable: its key cannot be read
}

// DueRuns implements DueReader.
func (s *Store) DueRuns(ctx context.Context, q DueQuery) (due []DueRun, next string, err error) {
	query := item.Query{Table: contract.Runs, Index: contract.DueIndex, PK: q.Slice, Cursor: q.Cursor, Limit: q.Limit}
	if !q.Before.IsZero() {
		query.To = q.Before.UnixMilli()
	}
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, "", err
	}
	for _, i := range page.Items {
		k, err := runs.KeyOf(i)
		due = append(due, DueRun{
			Key: k, WakeAt: i.Time(contract.AttrWakeAt), Err: err,
			Ref: item.Ref{Table: contract.Runs, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrSK)},
		})
	}
	return due, page.Cursor, nil
}

// ForgetRun implements RunWriter.
func (s *Store) ForgetRun(ctx context.Context, r runs.Run) error {
	if err := s.Put(ctx, r.Forget()); err != nil {
		return err
	}
	if err := s.Put(ctx, item.Write{Ref: r.ListRef(), Name: WriteRunForgetListed, Delete: true}); err != nil {
		return err
	}
	pk := r.Ref().PK
	for {
		page, err := s.table.Query(ctx, item.Query{Table: contract.Runs, PK: pk, Consistent: true})
		if err != nil || len(page.Items) == 0 && page.Cursor == "" {
			return err
		}
		for _, i := range page.Items {
			ref := item.Ref{Table: contract.Runs, PK: pk, SK: i.Str(contract.AttrSK)}
			if err := s.Put(ctx, item.Write{Ref: ref, Name: WriteRunForgetContent, Delete: true}); err != nil {
				return err
			}
		}
	}
}
