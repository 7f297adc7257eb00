package memory

import (
	"context"
	"sort"
	"strconv"
	"sync"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// Limits of a table.
const (
	maxCommit = 100
	maxGet    = 100
)

// Table holds every table of a World. What it returns is what it holds: no caller may change an item, and a write makes
// a new one.
type Table struct {
	world  *World
	spaces map[string]*space
	lag    func(index string, ref item.Ref, n int64) time.Duration
	empty  bool // every other page of a query is empty
	stream stream
	epoch  int64 // of the last snapshot; guarded by the log's lock

	restored sync.Map // logical name → how often it was restored
}

func newTable(w *World, o Options) *Table {
	t := &Table{world: w, spaces: map[string]*space{}, lag: o.IndexLag, empty: o.EmptyPages}
	t.stream.init(o.StreamLag, o.StreamReplay)
	for _, s := range o.Schemas {
		t.spaces[s.Name] = newSpace(s)
	}
	return t
}

// space returns the table of a ref. The ref's key must fit it.
func (t *Table) space(ref item.Ref) (*space, error) {
	s := t.spaces[ref.Table]
	switch {
	case s == nil:
		return nil, fault.New(fault.NotFound, nil, "table %q", ref.Table)
	case ref.PK == "" || (ref.SK == "") != (s.schema.SK == ""):
		return nil, fault.New(fault.Invalid, nil, "key of %s: it does not fit the table's", ref)
	case len(ref.PK) > 2048 || len(ref.SK) > 1024:
		return nil, fault.New(fault.Invalid, nil, "key of %s: over 2048 or 1024 bytes", ref)
	}
	return s, nil
}

// read returns the item as it is now and counts the read.
func (t *Table) read(ref item.Ref) (item.Item, error) {
	s, err := t.space(ref)
	if err != nil {
		return nil, err
	}
	b := &s.buckets[bucketOf(ref.PK)]
	b.mu.RLock()
	r := b.get(itemKey{ref.PK, ref.SK})
	b.mu.RUnlock()
	s.units.read.Add(readCost(r.size))
	return r.item, nil
}

// Get reads one item, strongly consistent; nil means absent and is no error.
func (t *Table) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	c := Call{Op: TableGet, Ref: ref}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	t.world.counts.tableCalls.Add(1)
	i, err := t.read(ref)
	if err == nil {
		err = f.after(c)
	}
	if err != nil {
		return nil, err
	}
	return i, nil
}

// GetMany reads up to 100 items, each strongly consistent, in the order of refs; nil means absent.
func (t *Table) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	c := Call{Op: TableGetMany, Ref: refs[0], Size: len(refs)}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(refs) > maxGet {
		return nil, fault.New(fault.Invalid, nil, "getting %d items: %d is the most", len(refs), maxGet)
	}
	t.world.counts.tableCalls.Add(1)
	items := make([]item.Item, len(refs))
	for n, ref := range refs {
		if items[n], err = t.read(ref); err != nil {
			return nil, err
		}
	}
	if err := f.after(c); err != nil {
		return nil, err
	}
	return items, nil
}

// Identity says which table has that logical name now.
func (t *Table) Identity(ctx context.Context, table string) (item.Identity, error) {
	c := Call{Op: TableIdentity, Ref: item.Ref{Table: table}}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return item.Identity{}, err
	}
	if t.spaces[table] == nil {
		return item.Identity{}, fault.New(fault.NotFound, nil, "table %q", table)
	}
	times, restored := t.restored.Load(table)
	if !restored {
		times = 0
	}
	return item.Identity{ID: table + "-" + strconv.Itoa(times.(int)), Restored: restored}, f.after(c)
}

// Restored makes a table another one with the same items, as a restore from a backup does.
func (t *Table) Restored(table string) {
	times, _ := t.restored.LoadOrStore(table, 0)
	t.restored.Store(table, times.(int)+1)
}

// Write makes one conditional write and returns the item as it is then (nil after a delete). A
// condition that does not hold is an *item.Refused with the item as it was.
func (t *Table) Write(ctx context.Context, w item.Write) (item.Item, error) {
	c := Call{Op: TableWrite, Ref: w.Ref, Name: w.Name}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := t.space(w.Ref)
	if err == nil {
		err = check(w, s.schema)
	}
	if err != nil {
		return nil, err
	}
	t.world.counts.tableCalls.Add(1)
	if f.Twice { // an SDK repeats a write whose answer was lost; a transaction has a token against that
		_, _ = t.write(s, w)
	}
	next, err := t.write(s, w)
	if lost := f.after(c); lost != nil {
		return nil, lost
	}
	return next, err
}

func (t *Table) write(s *space, w item.Write) (item.Item, error) {
	b := &s.buckets[bucketOf(w.PK)]
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.get(itemKey{w.PK, w.SK})
	if !item.Any(w.When, old.item) {
		s.units.write.Add(writeCost(old.size, 0))
		return nil, &item.Refused{Name: w.Name, Olds: map[int]item.Item{0: old.item}}
	}
	next := w.Applied(old.item, s.schema.PK, s.schema.SK)
	size := next.Size()
	if err := fits(next, size, w, s); err != nil {
		return nil, err
	}
	s.units.write.Add(writeCost(old.size, size))
	if !w.Check {
		if err := t.world.keep(func() []kept { return []kept{rowFact(w, next)} }); err != nil {
			return nil, fault.New(fault.Unavailable, err, "%s of %s", w.Name, w.Ref)
		}
		defer t.world.done()
	}
	t.put(s, b, w, old.item, next, size)
	return next, nil
}

// put replaces old by next in the table, its indexes and the stream. The bucket is locked.
func (t *Table) put(s *space, b *bucket, w item.Write, old, next item.Item, size int) {
	if w.Check {
		return
	}
	p := itemKey{w.PK, w.SK}
	b.freeze(t.epoch)
	n := b.set(p, next, size, s.schema.SK != "")
	now := t.world.now()
	for _, x := range s.indexes {
		cost := x.cost(old, next)
		if cost == 0 {
			continue
		}
		s.units.indexWrite.Add(cost)
		var lag time.Duration
		if t.lag != nil {
			lag = t.lag(x.Name, w.Ref, n)
		}
		x.apply(now, lag, p, old, next)
	}
	if s.schema.Stream && !same(old, next) {
		t.stream.add(now, w.Ref, n, old, next)
	}
}

// Commit makes up to 100 writes of different items, all or none.
func (t *Table) Commit(ctx context.Context, writes ...item.Write) error {
	if len(writes) == 0 {
		return nil
	}
	c := Call{Op: TableCommit, Ref: writes[0].Ref, Name: writes[0].Name, Size: len(writes)}
	for _, w := range writes {
		c.Refs = append(c.Refs, w.Ref)
	}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return err
	}
	if len(writes) > maxCommit {
		return fault.New(fault.Invalid, nil, "committing %d writes: %d is the most", len(writes), maxCommit)
	}
	spaces := make([]*space, len(writes))
	seen := make(map[item.Ref]bool, len(writes))
	for n, w := range writes {
		if spaces[n], err = t.space(w.Ref); err != nil {
			return err
		}
		if err := check(w, spaces[n].schema); err != nil {
			return err
		}
		if seen[w.Ref] {
			return fault.New(fault.Invalid, nil, "committing %s: %s is written twice", w.Name, w.Ref)
		}
		seen[w.Ref] = true
	}
	t.world.counts.tableCalls.Add(1)
	err = t.commit(spaces, writes)
	if lost := f.after(c); lost != nil {
		return lost
	}
	return err
}

func (t *Table) commit(spaces []*space, writes []item.Write) error {
	defer lockAll(spaces, writes)()
	olds, nexts := make([]row, len(writes)), make([]row, len(writes))
	var refused *item.Refused
	for n, w := range writes {
		s := spaces[n]
		old := s.buckets[bucketOf(w.PK)].get(itemKey{w.PK, w.SK})
		if !item.Any(w.When, old.item) {
			if refused == nil {
				refused = &item.Refused{Name: w.Name, Olds: map[int]item.Item{}}
			}
			refused.Olds[n] = old.item
		}
		next := w.Applied(old.item, s.schema.PK, s.schema.SK)
		size := next.Size()
		if err := fits(next, size, w, s); err != nil {
			return err
		}
		olds[n], nexts[n] = old, row{item: next, size: size}
	}
	for n := range writes {
		spaces[n].units.write.Add(2 * writeCost(olds[n].size, nexts[n].size)) // DynamoDB bills a transaction twice
	}
	if refused != nil {
		return refused
	}
	err := t.world.keep(func() []kept {
		var facts []kept
		for n, w := range writes {
			if !w.Check {
				facts = append(facts, rowFact(w, nexts[n].item))
			}
		}
		return facts
	})
	if err != nil {
		return fault.New(fault.Unavailable, err, "%s of %s", writes[0].Name, writes[0].Ref)
	}
	defer t.world.done()
	for n, w := range writes {
		t.put(spaces[n], &spaces[n].buckets[bucketOf(w.PK)], w, olds[n].item, nexts[n].item, nexts[n].size)
	}
	return nil
}

// lockAll locks the buckets of all writes, always in the same order, and returns what unlocks them.
func lockAll(spaces []*space, writes []item.Write) func() {
	type lock struct {
		table  string
		bucket int
		at     *bucket
	}
	locks := make([]lock, 0, len(writes))
	for n, w := range writes {
		i := bucketOf(w.PK)
		locks = append(locks, lock{w.Table, i, &spaces[n].buckets[i]})
	}
	sort.Slice(locks, func(a, b int) bool {
		if locks[a].table != locks[b].table {
			return locks[a].table < locks[b].table
		}
		return locks[a].bucket < locks[b].bucket
	})
	held := locks[:0]
	for _, l := range locks {
		if len(held) == 0 || held[len(held)-1].at != l.at {
			l.at.mu.Lock()
			held = append(held, l)
		}
	}
	return func() {
		for _, l := range held {
			l.at.mu.Unlock()
		}
	}
}

func same(a, b item.Item) bool {
	if (a == nil) != (b == nil) || len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if w, ok := b[name]; !ok || v != w {
			return false
		}
	}
	return true
}
