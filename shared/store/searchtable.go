package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// SearchTable is the index of jobs in a table of its own. A job's entry is in the partition of its row, and so are its
// references: small items without data in partitions for its task, each of its tags and, if it is DEAD, its death. A
// search reads references of what its filter names, or all entries, newest first, and then the entries themselves.
//
// It implements SearchReader and SearchWriter, and is safe for concurrent use.
type SearchTable struct {
	store *Store
	clock clock.Clock
}

var _ SearchIndex = (*SearchTable)(nil)

// Names of writes.
const (
	WriteSearchEntry  = "search.entry"
	WriteSearchRef    = "search.reference"
	WriteSearchRemove = "search.remove"
)

const (
	// searchBehind is how far the table may be behind the jobs; an alarm says when it is more.
	searchBehind = 10 * time.Second
	// searchWrites bounds the entries that are written at the same time.
	searchWrites = 32
	// openMost is how long a reference outlives the time for which a job that starts when due is kept. One of a job
	// that takes longer to end is written anew at its end.
	openMost = 15 * 24 * time.Hour
)

// NewSearchTable returns the index in a table. A nil clock is the system's.
func NewSearchTable(c clock.Clock, t Table) *SearchTable {
	s := By(c, t, nil)
	return &SearchTable{s, s.clock}
}

// SearchIn returns the index in a table, nil for a deployment that has none.
func SearchIn(t Table, has bool) SearchIndex {
	if !has {
		return nil
	}
	return NewSearchTable(nil, t)
}

// attributes of an entry; times are milliseconds.
const (
	attrStage    = "stage"
	attrDied     = contract.AttrDeadAt
	attrCause    = "cause"
	attrTask     = "task"
	attrCode     = "code"
	attrTags     = "tags"
	attrFinished = "finished_at"
)

// entryTexts are the attributes of an entry that are texts, but for its key, status, pool, priority and tags.
func entryTexts(e *search.Entry) map[string]*string {
	return map[string]*string{attrTask: &e.Task, "schedule": &e.Schedule, "dag": &e.DAG, "run_id": &e.RunID,
		"pool": &e.Pool, attrCode: &e.Code, attrCause: &e.Group}
}

func entryTimes(e *search.Entry) map[string]*time.Time {
	return map[string]*time.Time{"created_at": &e.CreatedAt, "due_at": &e.DueAt, attrFinished: &e.FinishedAt,
		attrDied: &e.DeadAt}
}

func entryRef(k job.Key) item.Ref {
	return item.Ref{Table: contract.Search, PK: k.Ref().PK, SK: string(k.ID)}
}

// entryItem is the item of an entry.
func entryItem(e search.Entry) item.Item {
	ref := entryRef(e.Key)
	i := item.Item{contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, attrStage: e.Stage, "status": string(e.Status),
		"priority": string(e.Priority)}
	for name, value := range entryTexts(&e) {
		if *value != "" {
			i[name] = *value
		}
	}
	for name, at := range entryTimes(&e) {
		if !at.IsZero() {
			i[name] = at.UnixMilli()
		}
	}
	if len(e.Tags) > 0 {
		i[attrTags] = string(text.MustJSON(e.Tags))
	}
	if !e.ExpiresAt.IsZero() {
		i[contract.AttrExpiresAt] = e.ExpiresAt.Unix()
	}
	return i
}

func parseEntry(i item.Item) search.Entry {
	t, _, _ := strings.Cut(i.Str(contract.AttrPK), "#")
	e := search.Entry{Key: job.Key{Tenant: tenant.ID(t), ID: job.ID(i.Str(contract.AttrSK))}, Stage: i.Int(attrStage),
		Status: job.Status(i.Str("status")), Priority: job.Priority(i.Str("priority"))}
	for name, value := range entryTexts(&e) {
		*value = i.Str(name)
	}
	for name, at := range entryTimes(&e) {
		*at = i.Time(name)
	}
	if tags := i.Str(attrTags); tags != "" {
		_ = json.Unmarshal([]byte(tags), &e.Tags) // entryItem wrote it
	}
	if at := i.Int(contract.AttrExpiresAt); at != 0 {
		e.ExpiresAt = time.Unix(at, 0).UTC()
	}
	return e
}

// What references of a partition are of.
func ofTask(name string) string       { return "#task#" + name }
func ofTag(name, value string) string { return "#tag#" + name + "#" + value }

const ofDeaths = "#dead"

// deathKey sorts by the time of death, then by id.
func deathKey(at time.Time, id job.ID) string { return fmt.Sprintf("%013d#%s", at.UnixMilli(), id) }

// references are where a job is found besides its entry, other than by its death.
func references(e search.Entry) (parts []string) {
	parts = append(parts, ofTask(e.Task))
	for name, value := range e.Tags {
		parts = append(parts, ofTag(name, value))
	}
	return parts
}

// referencesUntil is how long references are kept that are written before the job ends.
func referencesUntil(e search.Entry) time.Time {
	from, kept := e.CreatedAt, contract.FinishedKept
	if e.DueAt.After(from) {
		from = e.DueAt
	}
	if e.RunID != "" {
		kept = contract.NodeKept
	}
	return from.Add(kept + openMost)
}

// PutEntries implements SearchWriter.
func (x *SearchTable) PutEntries(ctx context.Context, updates []search.Update) []error {
	errs := make([]error, len(updates))
	free := make(chan struct{}, searchWrites)
	var all sync.WaitGroup
	for n, u := range updates {
		free <- struct{}{}
		all.Go(func() {
			errs[n] = fault.Guard(func() error { return x.put(ctx, u) })
			<-free
		})
	}
	all.Wait()
	return errs
}

// put writes an entry and then its references. A crash between them is repaired by the delivery that follows it, since
// an entry of the same stage is written once more; one that is later has references of its own.
func (x *SearchTable) put(ctx context.Context, u search.Update) error {
	entry := item.Write{Ref: entryRef(u.Key), Name: WriteSearchEntry, Put: entryItem(u.Entry), When: []item.All{
		{{Attr: contract.AttrPK, Op: item.Missing}}, {{Attr: attrStage, Op: item.Le, Value: u.Stage}}}}
	_, err := x.store.table.Write(ctx, entry)
	if refused := new(item.Refused); errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the entry of job %s: %w", u.ID, err)
	}
	for _, w := range x.referenceWrites(u) {
		if _, err := x.store.table.Write(ctx, w); err != nil {
			return fmt.Errorf("writing a reference of job %s: %w", u.ID, err)
		}
	}
	return nil
}

// referenceWrites are the writes of references that an update calls for.
func (x *SearchTable) referenceWrites(u search.Update) (writes []item.Write) {
	pk, until := u.Key.Ref().PK, referencesUntil(u.Entry)
	if !u.Found || u.ExpiresAt.After(until) {
		if u.ExpiresAt.After(until) {
			until = u.ExpiresAt
		}
		for _, part := range references(u.Entry) {
			ref := item.Ref{Table: contract.Search, PK: pk + part, SK: string(u.ID)}
			writes = append(writes, item.Write{Ref: ref, Name: WriteSearchRef, Put: item.Item{
				contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, contract.AttrExpiresAt: until.Unix()}})
		}
	}
	if !u.DeadBefore.IsZero() && !u.DeadBefore.Equal(u.DeadAt) {
		writes = append(writes, removal(pk, u.ID, u.DeadBefore))
	}
	if !u.DeadAt.IsZero() {
		ref := item.Ref{Table: contract.Search, PK: pk + ofDeaths, SK: deathKey(u.DeadAt, u.ID)}
		death := item.Item{contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, attrCause: u.Group, attrTask: u.Task,
			attrCode: u.Code}
		if !u.ExpiresAt.IsZero() {
			death[contract.AttrExpiresAt] = u.ExpiresAt.Unix()
		}
		writes = append(writes, item.Write{Ref: ref, Name: WriteSearchRef, Put: death})
	}
	return writes
}

func removal(pk string, id job.ID, died time.Time) item.Write {
	return item.Write{Ref: item.Ref{Table: contract.Search, PK: pk + ofDeaths, SK: deathKey(died, id)},
		Name: WriteSearchRemove, Delete: true}
}

// RemoveEntry implements SearchWriter. References to an entry that is gone lead nowhere, and go by their time to live.
func (x *SearchTable) RemoveEntry(ctx context.Context, e search.Entry) error {
	if !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(x.clock.Now()) {
		return nil
	}
	writes := []item.Write{{Ref: entryRef(e.Key), Name: WriteSearchRemove, Delete: true}}
	if !e.DeadAt.IsZero() {
		writes = append(writes, removal(e.Key.Ref().PK, e.ID, e.DeadAt))
	}
	for _, w := range writes {
		if _, err := x.store.table.Write(ctx, w); err != nil {
			return fmt.Errorf("removing the entry of job %s: %w", e.ID, err)
		}
	}
	return nil
}

func (x *SearchTable) asOf() time.Time { return x.clock.Now().Add(-searchBehind) }

// deathAt reads a deathKey.
func deathAt(key string) (at time.Time, id job.ID) {
	ms, name, _ := strings.Cut(key, "#")
	n, _ := strconv.ParseInt(ms, 10, 64) // deathKey wrote it
	return time.UnixMilli(n).UTC(), job.ID(name)
}

// DeadGroups implements SearchReader.
func (x *SearchTable) DeadGroups(
	ctx context.Context, t tenant.ID, from, now time.Time,
) (found search.Causes, err error) {
	found.AsOf = x.asOf()
	tally := search.NewTally(now)
	var mu sync.Mutex
	err = x.partitions(ctx, func(ctx context.Context, p int) error {
		q := item.Query{Table: contract.Search, PK: job.PartitionKey(t, p) + ofDeaths}
		if !from.IsZero() {
			q.From = deathKey(from, "")
		}
		for {
			page, err := x.store.table.Query(ctx, q)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, i := range page.Items {
				if task := i.Str(attrTask); task != search.WebhookTask {
					at, id := deathAt(i.Str(contract.AttrSK))
					tally.Add(i.Str(attrCause), task, i.Str(attrCode), id, at)
				}
			}
			mu.Unlock()
			if q.Cursor = page.Cursor; q.Cursor == "" {
				return nil
			}
		}
	})
	found.Groups = tally.Groups()
	return found, err
}

// partitions calls do for all partitions at once.
func (x *SearchTable) partitions(ctx context.Context, do func(context.Context, int) error) error {
	errs := make([]error, contract.Partitions)
	var all sync.WaitGroup
	for p := range errs {
		all.Go(func() { errs[p] = fault.Guard(func() error { return do(ctx, p) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}
