package memory

import (
	"hash/maphash"
	"strings"
	"sync"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// bucketCount is the number of locks that share a table's partitions.
const bucketCount = 64

var seed = maphash.MakeSeed()

// space is one table: its items and its indexes.
type space struct {
	schema  contract.Schema
	buckets [bucketCount]bucket
	indexes []*index
	units   units
}

// bucket holds the partitions that hash to it. Its items are never changed, only replaced, so that
// the indexes and the stream may share a snapshot.
type bucket struct {
	mu    sync.RWMutex
	rows  map[itemKey]*row
	parts map[string]*sorted[string] // the sort keys of each partition; only in tables with one

	epoch  int64 // of the last snapshot that has these rows
	frozen []frozenRow
}

// frozenRow is a row as it was when a snapshot began.
type frozenRow struct {
	itemKey
	item item.Item
}

// freeze copies the rows for the snapshot of an epoch, unless that has them. The bucket is locked for writing; it is
// called before the first change since the snapshot began.
func (b *bucket) freeze(epoch int64) {
	if b.epoch >= epoch {
		return
	}
	b.epoch, b.frozen = epoch, make([]frozenRow, 0, len(b.rows))
	for p, r := range b.rows {
		b.frozen = append(b.frozen, frozenRow{p, r.item})
	}
}

// thaw returns the rows as they were when the snapshot of an epoch began, once.
func (b *bucket) thaw(epoch int64) []frozenRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeze(epoch)
	rows := b.frozen
	b.frozen = nil
	return rows
}

// itemKey is an item's key within its table.
type itemKey struct{ pk, sk string }

// row is an item, its size in bytes, and the number of its writes.
type row struct {
	item   item.Item
	size   int
	writes int64
}

func newSpace(s contract.Schema) *space {
	t := &space{schema: s}
	for i := range t.buckets {
		t.buckets[i].rows = map[itemKey]*row{}
		t.buckets[i].parts = map[string]*sorted[string]{}
	}
	for _, ix := range s.Indexes {
		t.indexes = append(t.indexes, newIndex(s, ix))
	}
	return t
}

func bucketOf(pk string) int { return int(maphash.String(seed, pk) % bucketCount) }

// get returns the row of a key, the zero row if there is none. The bucket is locked.
func (b *bucket) get(p itemKey) row {
	if r := b.rows[p]; r != nil {
		return *r
	}
	return row{}
}

// set replaces the item of a key; nil removes it. It returns the number of the write. The bucket is
// locked for writing.
func (b *bucket) set(p itemKey, next item.Item, size int, hasSK bool) int64 {
	r := b.rows[p]
	switch {
	case next == nil && r == nil:
		return 0
	case next == nil:
		delete(b.rows, p)
		if part := b.parts[p.pk]; part != nil {
			part.remove(p.sk)
			if part.n == 0 {
				delete(b.parts, p.pk)
			}
		}
		return r.writes + 1
	case r != nil:
		r.item, r.size = next, size
		r.writes++
		return r.writes
	}
	b.rows[p] = &row{item: next, size: size, writes: 1}
	if hasSK {
		part := b.parts[p.pk]
		if part == nil {
			part = &sorted[string]{compare: strings.Compare}
			b.parts[p.pk] = part
		}
		part.put(p.sk)
	}
	return 1
}
