package memory

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/shared/item"
	"punctual/shared/message"
)

// kept is what became of one thing: its state, or that it is gone. But for the first of a file, exactly one field is
// set. Reading it again after the same or a later one of that thing changes nothing but the stream, which is read
// again from where its reader stood.
type kept struct {
	Format  int          `json:"format,omitempty"` // the first of each file
	File    int          `json:"file,omitempty"`   // with Format: the number in the name of the file
	Before  int          `json:"before,omitempty"` // with Format, in a log: how many records the log before it has
	End     int          `json:"end,omitempty"`    // the last of a snapshot: how many records come before
	IDs     int64        `json:"ids,omitempty"`    // of messages, so far
	Row     *keptRow     `json:"row,omitempty"`
	Change  *keptChange  `json:"change,omitempty"` // a record of the stream; only in a snapshot
	Read    int64        `json:"read,omitempty"`   // the stream was handled up to this record
	Message *keptMessage `json:"message,omitempty"`
	Timer   *keptTimer   `json:"timer,omitempty"`
	Blob    *keptBlob    `json:"blob,omitempty"`
}

type keptRow struct {
	Table string   `json:"table"`
	PK    string   `json:"pk"`
	SK    string   `json:"sk,omitempty"`
	Item  keptItem `json:"item,omitempty"` // nil: removed
}

type keptChange struct {
	At   time.Time `json:"at"`
	Old  keptItem  `json:"old,omitempty"`
	Next keptItem  `json:"next,omitempty"`
}

// keptItem is an item whose numbers are read as the integers that they are.
type keptItem item.Item

// UnmarshalJSON reads an item.
func (i *keptItem) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return err
	}
	for name, v := range values {
		switch v := v.(type) {
		case string:
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				return fmt.Errorf("attribute %s: %w", name, err)
			}
			values[name] = n
		default:
			return fmt.Errorf("attribute %s is a %T", name, v)
		}
	}
	*i = values
	return nil
}

// keptMessage is a message, or with an empty body what a receive or a change of visibility made of it.
type keptMessage struct {
	Queue    string     `json:"queue"`
	ID       string     `json:"id"`
	Gone     bool       `json:"gone,omitempty"`
	Body     string     `json:"body,omitempty"`
	Group    string     `json:"group,omitempty"`
	Source   string     `json:"source,omitempty"`
	Sent     *time.Time `json:"sent,omitempty"`
	Visible  *time.Time `json:"visible,omitempty"` // from when; absent: from the start
	Receives int        `json:"receives,omitempty"`
}

type keptTimer struct {
	Name   string        `json:"name"`
	At     *time.Time    `json:"at,omitempty"` // absent: it has fired
	Body   string        `json:"body,omitempty"`
	MaxAge time.Duration `json:"max_age,omitempty"`
}

type keptBlob struct {
	Key  string `json:"key"`
	Body []byte `json:"body,omitempty"`
	Gone bool   `json:"gone,omitempty"`
}

// Open returns a World that keeps what it holds in the files of dir, which it makes if need be, and that holds
// what they keep. Tables, the stream, queues, timers and blobs are kept; secrets, functions and queues of
// tenants are not, and what Options.IndexLag and StreamLag still hide is shown. Only one World at a time may
// have dir open: the caller sees to that.
//
// The unfinished end of the last record, which no call was answered by, is cut off. Files with any other damage
// are an [ErrDamaged] that names the file and the byte, and are left as they are; see [Repair].
//
// An answered call is in a file, so that the end of the process loses none, however sudden it is. The files
// are synced once a second: when the machine fails, the calls of the last second may be lost. A call whose
// change cannot be written has no effect and is a fault.Unavailable. When a sync fails, or the files are gone, so is
// every later call that changes anything.
func Open(path string, o Options) (*World, error) {
	folder, err := Dir(path)
	if err != nil {
		return nil, err
	}
	return OpenFolder(folder, o)
}

// OpenFolder is Open for any folder.
func OpenFolder(folder Folder, o Options) (*World, error) {
	w := New(o)
	l, err := openLog(w, o, folder)
	if err != nil {
		w.Close()
		return nil, err
	}
	w.log = l
	for _, q := range w.queues.queues {
		q.settle(w.now(), o.Released)
	}
	w.timers.rearm()
	return w, nil
}

// Writable returns why a call that changes something would fail now: the files are gone or closed, a sync has failed,
// or the disk is full. A World of New is always writable.
func (w *World) Writable() error {
	if w.log == nil {
		return nil
	}
	return w.log.writable()
}

// Failed returns why the files may lack something that was answered; nil if they lack nothing. After Close it says
// whether the last sync succeeded, too.
func (w *World) Failed() error {
	if w.log == nil {
		return nil
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.failed
}

// keep writes facts to the log and makes the caller the only one that changes anything, until done. Locks of
// items, queues, timers and blobs are taken before the log's, those of indexes and the stream after it.
func (w *World) keep(facts func() []kept) error {
	if w.log == nil {
		return nil
	}
	return w.log.begin(facts())
}

func (w *World) done() {
	if w.log != nil {
		w.log.mu.Unlock()
	}
}

// load takes over one fact of a file. Nothing else uses the World yet.
func (w *World) load(k kept, snapshot bool) error {
	switch {
	case k.IDs > 0:
		w.queues.ids.Store(k.IDs)
	case k.Row != nil:
		return w.table.load(*k.Row, snapshot)
	case k.Change != nil:
		w.table.stream.load(*k.Change)
	case k.Read > 0:
		w.table.stream.handled(k.Read)
	case k.Message != nil:
		return w.queues.load(*k.Message)
	case k.Timer != nil:
		w.timers.load(*k.Timer)
	case k.Blob != nil:
		w.blobs.load(*k.Blob)
	}
	return nil
}

// snapshot is all that a World held when a log began. A message, timer or blob may be as that log makes it: it makes it
// the same once more. Rows and the stream are as they were, since a change of a row makes a record of the stream.
type snapshot struct {
	world   *World
	ids     int64
	epoch   int64 // of the rows
	read    int64
	changes []record
}

// state begins a snapshot. The log's lock is held, so that nothing changes meanwhile; it is held for a short time only.
func (w *World) state() snapshot {
	w.table.epoch++
	s := snapshot{world: w, ids: w.queues.ids.Load(), epoch: w.table.epoch}
	s.read, s.changes = w.table.stream.unhandled()
	return s
}

// facts returns all that is in the snapshot, once. It locks nothing for longer than it takes to copy a part.
func (s snapshot) facts() iter.Seq[kept] {
	first := slices.Values([]kept{{IDs: s.ids}})
	stream := func(yield func(kept) bool) {
		if !yield(kept{Read: s.read}) {
			return
		}
		for _, r := range s.changes {
			if !yield(kept{Change: &keptChange{At: r.at, Old: keptItem(r.old), Next: keptItem(r.next)}}) {
				return
			}
		}
	}
	return func(yield func(kept) bool) {
		for _, part := range []iter.Seq[kept]{first, s.rows, stream, s.messages, s.timers, s.blobs} {
			for k := range part {
				if !yield(k) {
					return
				}
			}
		}
	}
}

func (s snapshot) rows(yield func(kept) bool) {
	spaces := s.world.table.spaces
	for _, name := range slices.Sorted(maps.Keys(spaces)) {
		for n := range spaces[name].buckets {
			for _, r := range spaces[name].buckets[n].thaw(s.epoch) {
				if !yield(kept{Row: &keptRow{Table: name, PK: r.pk, SK: r.sk, Item: keptItem(r.item)}}) {
					return
				}
			}
		}
	}
}

// someMessages is how many messages are copied while their queue is locked.
const someMessages = 1000

func (s snapshot) messages(yield func(kept) bool) {
	queues := s.world.queues.queues
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		for some := range slices.Chunk(q.all(s.world), someMessages) {
			facts := make([]kept, 0, len(some))
			q.mu.Lock()
			for _, l := range some {
				facts = append(facts, messageFact(name, l, l.visibleAt))
			}
			q.mu.Unlock()
			for _, k := range facts {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// all returns the messages of a queue, and those that leave it.
func (q *queue) all(w *World) []*stored {
	q.mu.Lock()
	defer q.mu.Unlock()
	messages := make([]*stored, 0, len(q.byID))
	for _, l := range q.byID {
		messages = append(messages, l)
	}
	if w.log != nil {
		w.log.mu.Lock()
		defer w.log.mu.Unlock()
	}
	return slices.AppendSeq(messages, maps.Values(q.leaving))
}

func (s snapshot) timers(yield func(kept) bool) {
	for _, t := range s.world.timers.Armed() {
		if !yield(timerFact(t)) {
			return
		}
	}
}

func (s snapshot) blobs(yield func(kept) bool) {
	b := s.world.blobs
	b.mu.RLock()
	all := make([]kept, 0, len(b.bodies))
	for key, body := range b.bodies {
		all = append(all, kept{Blob: &keptBlob{Key: key, Body: body}})
	}
	b.mu.RUnlock()
	for _, k := range all {
		if !yield(k) {
			return
		}
	}
}

// rowFact is what a write makes of its item.
func rowFact(w item.Write, next item.Item) kept {
	return kept{Row: &keptRow{Table: w.Table, PK: w.PK, SK: w.SK, Item: keptItem(next)}}
}

// load takes over a row. A snapshot has the stream's records apart, and build follows it.
func (t *Table) load(r keptRow, snapshot bool) error {
	s := t.spaces[r.Table]
	if s == nil {
		return fmt.Errorf("there is no table %q", r.Table)
	}
	next := item.Item(r.Item)
	b := &s.buckets[bucketOf(r.PK)]
	p := itemKey{r.PK, r.SK}
	if snapshot {
		b.rows[p] = &row{item: next, size: next.Size(), writes: 1}
		return nil
	}
	old := b.get(p).item
	b.set(p, next, next.Size(), s.schema.SK != "")
	for _, x := range s.indexes {
		x.show(p, old, next)
	}
	if s.schema.Stream && !same(old, next) {
		t.stream.push(record{at: t.world.now(), old: old, next: next})
	}
	return nil
}

// build makes what is in order from the rows of a snapshot: sorting all at once takes a fraction of the time that it
// takes to put each where it belongs.
func (t *Table) build() {
	var work sync.WaitGroup
	for _, s := range t.spaces {
		if s.schema.SK != "" {
			work.Go(s.buildParts)
		}
		for _, x := range s.indexes {
			work.Go(func() { x.build(s) })
		}
	}
	work.Wait()
}

func (s *space) buildParts() {
	for n := range s.buckets {
		b := &s.buckets[n]
		keys := map[string][]string{}
		for p := range b.rows {
			keys[p.pk] = append(keys[p.pk], p.sk)
		}
		for pk, some := range keys {
			b.parts[pk] = sortedOf(strings.Compare, some)
		}
	}
}

func (x *index) build(s *space) {
	entries := map[string][]entry{}
	for n := range s.buckets {
		for p, r := range s.buckets[n].rows {
			if pk, key, is := x.keyOf(r.item); is {
				entries[pk] = append(entries[pk], entry{key: key, base: p, at: r.item, size: x.size(r.item)})
			}
		}
	}
	for pk, some := range entries {
		x.parts[pk] = sortedOf(compareEntries, some)
	}
}

// unhandled returns the records that are not handled yet, and the number of the one before them.
func (s *stream) unhandled() (before int64, changes []record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := max(s.first, s.done+1)
	return from - 1, slices.Clone(s.records[min(from-s.first, int64(len(s.records))):])
}

// load adds a record of a snapshot.
func (s *stream) load(c keptChange) {
	s.push(record{at: c.At, shown: c.At, old: item.Item(c.Old), next: item.Item(c.Next)})
}

// handled drops the records up to number n: a file has them no more.
func (s *stream) handled(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.read = n, n
	drop := min(max(n-s.first+1, 0), int64(len(s.records)))
	s.records = slices.Delete(s.records, 0, int(drop))
	s.first = n + 1
}

// messageFact is a message as it is: visible from then on, the zero time being always.
func messageFact(queue string, l *stored, visible time.Time) kept {
	m := keptMessage{Queue: queue, ID: l.id, Body: l.body, Group: l.group, Source: l.source, Sent: &l.sentAt,
		Receives: l.receives}
	if !visible.IsZero() {
		m.Visible = &visible
	}
	return kept{Message: &m}
}

// movedFact is what a receive, or a change of visibility, makes of a message.
func movedFact(queue string, l *stored, visible time.Time) kept {
	return kept{Message: &keptMessage{Queue: queue, ID: l.id, Visible: &visible, Receives: l.receives}}
}

func goneFact(queue string, l *stored) kept {
	return kept{Message: &keptMessage{Queue: queue, ID: l.id, Gone: true}}
}

// load takes over what a file says about a message. settle shows the messages.
func (qs *Queues) load(m keptMessage) error {
	q := qs.queues[m.Queue]
	if q == nil {
		return fmt.Errorf("there is no queue %q", m.Queue)
	}
	if m.Gone {
		delete(q.byID, m.ID)
		return nil
	}
	l := q.byID[m.ID]
	if m.Body != "" {
		l = &stored{id: m.ID, body: m.Body, group: m.Group, source: m.Source, at: -1}
		if m.Sent != nil {
			l.sentAt = *m.Sent
		}
		q.byID[m.ID] = l
	}
	if l == nil {
		return nil // deleted by someone else at the time
	}
	l.receives, l.visibleAt = m.Receives, time.Time{}
	if m.Visible != nil {
		l.visibleAt = *m.Visible
	}
	var n int64
	if _, err := fmt.Sscanf(m.ID, idForm, &n); err == nil && n > qs.ids.Load() {
		qs.ids.Store(n)
	}
	return nil
}

// settle puts every message where it belongs: visible ones in the order in which they became so. With released,
// none is in flight.
func (q *queue) settle(now time.Time, released bool) {
	since := func(l *stored) time.Time {
		if l.visibleAt.IsZero() {
			return l.sentAt
		}
		return l.visibleAt
	}
	all := slices.SortedFunc(maps.Values(q.byID), func(a, b *stored) int {
		return cmp.Or(since(a).Compare(since(b)), strings.Compare(a.id, b.id))
	})
	for _, l := range all {
		q.n++
		l.n = q.n
		if !l.visibleAt.After(now) || released && l.receives > 0 {
			q.show(l)
			continue
		}
		if l.receives > 0 {
			l.flying = true
			q.inFlight++
		}
		heap.Push(&q.later, l)
	}
}

func timerFact(t message.Timer) kept {
	return kept{Timer: &keptTimer{Name: t.Name, At: &t.At, Body: t.Body, MaxAge: t.MaxAge}}
}

func firedFact(name string) kept { return kept{Timer: &keptTimer{Name: name}} }

// load takes over a timer; rearm lets it run.
func (ts *Timers) load(t keptTimer) {
	if t.At == nil {
		delete(ts.armed, t.Name)
		return
	}
	ts.armed[t.Name] = &armed{Timer: message.Timer{Name: t.Name, At: *t.At, Body: t.Body, MaxAge: t.MaxAge}}
}

// rearm lets the timers of a file run; one whose time has passed fires at once.
func (ts *Timers) rearm() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, a := range ts.armed {
		ts.start(a)
	}
}

func (b *Blobs) load(k keptBlob) {
	if k.Gone {
		delete(b.bodies, k.Key)
		return
	}
	b.bodies[k.Key] = k.Body
}
