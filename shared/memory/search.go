package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// SearchIndex is the index of jobs in memory. It is not kept: a process fills it from the table when it starts.
//
// Each tenant's entries are in the order of their ids, in short runs of memory, with numbers in the place of texts. A
// search reads them one after the other, and compares a signature of their values first: a million entries in some
// tens of milliseconds, whatever the filters are. The DEAD ones are in the order of their deaths, too.
type SearchIndex struct {
	world *World

	mu      sync.RWMutex
	tenants map[tenant.ID]*indexed
}

// indexed are the entries of one tenant.
type indexed struct {
	texts dictionary
	byID  sorted[indexEntry]
	dead  sorted[indexEntry]
}

// indexEntry is a search.Entry without pointers. What most searches compare comes first, in one line of the cache.
type indexEntry struct {
	values                                        uint64 // signature of the texts
	task, schedule, dag, run, code, group, labels uint32 // numbers of texts
	status, priority, pool                        uint8
	expires, dead, finished, due, created         int64 // Unix milliseconds; 0: none
	stage                                         int64
	id                                            [26]byte
}

func newSearchIndex(w *World) *SearchIndex {
	return &SearchIndex{world: w, tenants: map[tenant.ID]*indexed{}}
}

func newIndexed() *indexed {
	byID := func(a, b indexEntry) int { return bytes.Compare(a.id[:], b.id[:]) }
	return &indexed{
		texts: newDictionary(),
		byID:  sorted[indexEntry]{compare: byID},
		dead: sorted[indexEntry]{compare: func(a, b indexEntry) int {
			if a.dead != b.dead {
				return map[bool]int{true: -1, false: 1}[a.dead < b.dead]
			}
			return byID(a, b)
		}},
	}
}

// PutEntries writes entries; see store.SearchWriter.
func (x *SearchIndex) PutEntries(_ context.Context, updates []search.Update) []error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range updates {
		of := x.tenants[e.Tenant]
		if of == nil {
			of = newIndexed()
			x.tenants[e.Tenant] = of
		}
		of.put(e.Entry)
	}
	return make([]error, len(updates))
}

// RemoveEntry removes an entry; see store.SearchWriter.
func (x *SearchIndex) RemoveEntry(_ context.Context, e search.Entry) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if of := x.tenants[e.Tenant]; of != nil {
		of.remove(idOf(e.ID))
	}
	return nil
}

// Clear removes all entries.
func (x *SearchIndex) Clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.tenants)
}

// Len returns how many entries there are.
func (x *SearchIndex) Len() (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, of := range x.tenants {
		n += of.byID.n
	}
	return n
}

func (of *indexed) put(e search.Entry) {
	id := idOf(e.ID)
	if was, ok := of.get(id); ok {
		if was.stage > e.Stage {
			return
		}
		of.remove(id)
	}
	next := of.pack(e)
	of.byID.put(next)
	if next.dead != 0 {
		of.dead.put(next)
	}
}

func (of *indexed) remove(id [26]byte) {
	was, ok := of.get(id)
	if !ok {
		return
	}
	of.byID.remove(was)
	if was.dead != 0 {
		of.dead.remove(was)
	}
	for _, n := range []uint32{was.task, was.schedule, was.dag, was.run, was.code, was.group, was.labels} {
		of.texts.drop(n)
	}
}

func (of *indexed) get(id [26]byte) (indexEntry, bool) {
	c, at := of.byID.find(indexEntry{id: id})
	if c == len(of.byID.chunks) {
		return indexEntry{}, false
	}
	found := of.byID.chunks[c][at]
	return found, found.id == id
}

func idOf(id job.ID) (to [26]byte) {
	copy(to[:], id)
	return to
}

func (of *indexed) pack(e search.Entry) indexEntry {
	tags := ""
	if len(e.Tags) > 0 {
		tags = string(text.MustJSON(e.Tags)) // with the names in order
	}
	return indexEntry{
		id: idOf(e.ID), status: numberOf(job.Statuses, e.Status), priority: numberOf(priorities, e.Priority),
		pool: numberOf(contract.Pools, e.Pool), stage: e.Stage,
		task: of.texts.add(e.Task), schedule: of.texts.add(e.Schedule), dag: of.texts.add(e.DAG),
		run: of.texts.add(e.RunID), code: of.texts.add(e.Code), group: of.texts.add(e.Group),
		labels: of.texts.add(tags), values: signature(e.Task, e.Schedule, e.DAG, e.RunID, e.Code, e.Group, e.Tags),
		created: milli(e.CreatedAt), due: milli(e.DueAt), finished: milli(e.FinishedAt), dead: milli(e.DeadAt),
		expires: milli(e.ExpiresAt),
	}
}

func (of *indexed) unpack(t tenant.ID, e *indexEntry) search.Entry {
	to := search.Entry{
		Key: job.Key{Tenant: t, ID: job.ID(e.id[:])}, Stage: e.stage, Status: valueOf(job.Statuses, e.status),
		Task: of.texts.value(e.task), Schedule: of.texts.value(e.schedule), DAG: of.texts.value(e.dag),
		RunID: of.texts.value(e.run), Pool: valueOf(contract.Pools, e.pool), Priority: valueOf(priorities, e.priority),
		Code: of.texts.value(e.code), Group: of.texts.value(e.group),
		CreatedAt: instant(e.created), DueAt: instant(e.due), FinishedAt: instant(e.finished), DeadAt: instant(e.dead),
		ExpiresAt: instant(e.expires),
	}
	if tags := of.texts.value(e.labels); tags != "" {
		_ = json.Unmarshal([]byte(tags), &to.Tags) // pack wrote it
	}
	return to
}

var priorities = []job.Priority{job.Critical, job.High, job.Normal, job.Low}

// numberOf returns the number of a word, 0 for one that is not listed.
func numberOf[T ~string](words []T, word T) uint8 { return uint8(slices.Index(words, word) + 1) }

func valueOf[T ~string](words []T, n uint8) T {
	if n == 0 {
		return ""
	}
	return words[n-1]
}

func milli(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

var signatureSeed = maphash.MakeSeed()

// signature has a bit for each value. A filter whose bits an entry lacks does not match it.
func signature(task, schedule, dag, run, code, group string, tags map[string]string) (bits uint64) {
	add := func(kind, value string) {
		if value != "" {
			bits |= 1 << (maphash.String(signatureSeed, kind+"\x00"+value) % 64)
		}
	}
	add("task", task)
	add("schedule", schedule)
	add("dag", dag)
	add("run", run)
	add("code", code)
	add("group", group)
	for name, value := range tags {
		add("tag", name+"\x00"+value)
	}
	return bits
}

// wanted is what a filter asks for, by the numbers of a tenant's dictionary.
type wanted struct {
	values                                uint64
	status, priority, pool                uint8
	task, schedule, dag, run, code, group uint32
	hidden                                uint32   // the task of deliveries, unless the filter names it; 0: none
	tags                                  []string // as they are in the text of the labels
	prefix                                string
	before                                string // id; "": any
	now                                   int64
	created, due, finished, deathAt       bounds
}

// bounds are after ≤ time < before, in milliseconds; 0 is open.
type bounds struct{ after, before int64 }

func (b bounds) hold(at int64) bool {
	return b == (bounds{}) || at != 0 && at >= b.after && (b.before == 0 || at < b.before)
}

// wants returns what a query asks for; false if the tenant has no job with one of its values.
func (of *indexed) wants(q search.Query, now time.Time) (w wanted, possible bool) {
	f := q.Filter
	w = wanted{
		values: signature(f.Task, f.Schedule, f.DAG, f.RunID, f.Code, f.Group, f.Tags), prefix: f.IDPrefix,
		status: numberOf(job.Statuses, f.Status), priority: numberOf(priorities, f.Priority),
		pool: numberOf(contract.Pools, f.Pool), before: string(q.Before), now: milli(now),
		created: bounds{milli(f.CreatedAfter), milli(f.CreatedBefore)},
		due:     bounds{milli(f.DueAfter), milli(f.DueBefore)}, finished: bounds{milli(f.FinishedAfter),
			milli(f.FinishedBefore)}, deathAt: bounds{milli(f.DeadAfter), milli(f.DeadBefore)},
	}
	if f.Status == job.Queued {
		w.status = numberOf(job.Statuses, job.Scheduled)
	}
	possible = true
	number := func(value string) uint32 {
		n, known := of.texts.numbers[value]
		possible = possible && (known || value == "")
		return n
	}
	w.task, w.schedule, w.dag = number(f.Task), number(f.Schedule), number(f.DAG)
	w.run, w.code, w.group = number(f.RunID), number(f.Code), number(f.Group)
	if f.Task == "" {
		w.hidden = of.texts.numbers[search.WebhookTask]
	}
	for name, value := range f.Tags {
		pair := text.MustJSON(map[string]string{name: value})
		w.tags = append(w.tags, string(pair[1:len(pair)-1])) // quotes within a text are escaped, so it is found whole
	}
	return w, possible
}

// lacks says that an entry cannot match, by what excludes most entries: it is asked for each, and is compiled into the
// loops.
func (w *wanted) lacks(e *indexEntry) bool {
	return e.values&w.values != w.values || w.status != 0 && w.status != e.status
}

// matches is search.Filter.Matches, for an entry that lacks nothing and whose time has not ended.
func (of *indexed) matches(w *wanted, e *indexEntry) bool {
	if e.expires != 0 && e.expires <= w.now {
		return false
	}
	if !equalOrAny(w.task, e.task) || !equalOrAny(w.schedule, e.schedule) || !equalOrAny(w.dag, e.dag) ||
		!equalOrAny(w.run, e.run) || !equalOrAny(w.code, e.code) || !equalOrAny(w.group, e.group) ||
		!equalOrAny(w.priority, e.priority) || !equalOrAny(w.pool, e.pool) || w.hidden != 0 && w.hidden == e.task {
		return false
	}
	if !w.finished.hold(e.finished) || !w.deathAt.hold(e.dead) || !w.created.hold(e.created) || !w.due.hold(e.due) ||
		w.prefix != "" && string(e.id[:len(w.prefix)]) != w.prefix || w.before != "" && string(e.id[:]) >= w.before {
		return false
	}
	for _, tag := range w.tags {
		if !strings.Contains(of.texts.value(e.labels), tag) {
			return false
		}
	}
	return true
}

func equalOrAny[T uint8 | uint32](want, has T) bool { return want == 0 || want == has }

// Search finds a page of entries; see store.SearchReader.
func (x *SearchIndex) Search(
	_ context.Context, t tenant.ID, q search.Query,
) (page search.Page, err error) {
	page.AsOf = x.asOf()
	x.mu.RLock()
	defer x.mu.RUnlock()
	of := x.tenants[t]
	if of == nil {
		return page, nil
	}
	w, possible := of.wants(q, x.world.now())
	if !possible {
		return page, nil
	}
	last := ""
	of.walk(q, &w, func(e *indexEntry) (goOn bool) {
		if !of.matches(&w, e) {
			return true
		}
		if len(page.Entries) == q.Limit {
			page.Next = last
			return false
		}
		page.Entries = append(page.Entries, of.unpack(t, e))
		last = positionOf(q.Order, e)
		return true
	})
	return page, nil
}

// walk visits the entries that lack nothing in the order of a query, from its position on, until visit returns false.
// The pointer is valid during the visit only: entries are not copied, since most do not match.
func (of *indexed) walk(q search.Query, w *wanted, visit func(*indexEntry) bool) {
	switch q.Order {
	case search.OldestFirst:
		from := max(q.Position, q.IDPrefix)
		c, at := of.byID.find(indexEntry{id: idOf(job.ID(from))})
		for ; c < len(of.byID.chunks); c, at = c+1, 0 {
			run := of.byID.chunks[c]
			for n := at; n < len(run); n++ {
				e := &run[n]
				if !w.lacks(e) && string(e.id[:]) != q.Position && !visit(e) {
					return
				}
			}
		}
	case search.LastDead:
		last := indexEntry{dead: math.MaxInt64}
		if at, id, ok := strings.Cut(q.Position, "#"); ok {
			last.dead, _ = strconv.ParseInt(at, 10, 64) // positionOf wrote it
			last.id = idOf(job.ID(id))
		}
		descendBelow(&of.dead, last, w, visit)
	default:
		below := highestID
		for _, id := range []string{string(q.Before), q.Position} {
			if id != "" && id < below {
				below = id
			}
		}
		if q.IDPrefix != "" {
			below = min(below, q.IDPrefix[:min(len(q.IDPrefix), len(highestID)-1)]+highestID) // above the prefix itself
		}
		descendBelow(&of.byID, indexEntry{id: idOf(job.ID(below))}, w, visit)
	}
}

// highestID is beyond every id.
const highestID = "~~~~~~~~~~~~~~~~~~~~~~~~~~"

// descendBelow visits the entries below another that lack nothing, the highest first, until visit returns false.
func descendBelow(s *sorted[indexEntry], below indexEntry, w *wanted, visit func(*indexEntry) bool) {
	c, at := s.find(below)
	for {
		if at == 0 {
			if c--; c < 0 {
				return
			}
			at = len(s.chunks[c])
		}
		for run := s.chunks[c]; at > 0; {
			at--
			if e := &run[at]; !w.lacks(e) && !visit(e) {
				return
			}
		}
	}
}

// positionOf is the position of an entry in the order of a query.
func positionOf(order search.Order, e *indexEntry) string {
	if order == search.LastDead {
		return strconv.FormatInt(e.dead, 10) + "#" + string(e.id[:])
	}
	return string(e.id[:])
}

// DeadGroups counts dead jobs by their cause; see store.SearchReader.
func (x *SearchIndex) DeadGroups(
	_ context.Context, t tenant.ID, from, now time.Time,
) (found search.Causes, err error) {
	found.AsOf = x.asOf()
	tally := search.NewTally(now)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if of := x.tenants[t]; of != nil {
		w, _ := of.wants(search.Query{Filter: search.Filter{DeadAfter: from}}, x.world.now())
		descendBelow(&of.dead, indexEntry{dead: math.MaxInt64}, &w, func(e *indexEntry) bool {
			if of.matches(&w, e) {
				tally.Add(of.texts.value(e.group), of.texts.value(e.task), of.texts.value(e.code), job.ID(e.id[:]),
					instant(e.dead))
			}
			return true
		})
	}
	found.Groups = tally.Groups()
	return found, nil
}

// asOf is the time before which the index has everything: that of the oldest change that was not handled, else now.
func (x *SearchIndex) asOf() time.Time {
	now := x.world.now()
	s := &x.world.table.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.done + 1 - s.first; n < int64(len(s.records)) {
		return s.records[max(n, 0)].at.UTC().Truncate(time.Millisecond)
	}
	return now.UTC().Truncate(time.Millisecond)
}
