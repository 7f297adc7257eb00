package memory

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// index is one sparse secondary index: partitions of entries, ordered by sort key. Its own lock is
// taken after that of the bucket whose item changes.
type index struct {
	contract.Index
	keep []string // attributes that it projects

	mu      sync.RWMutex
	parts   map[string]*sorted[entry]
	waiting changes               // changes that it does not show yet, earliest first
	last    map[itemKey]time.Time // when the last waiting change of an item becomes visible
	n       int64                 // numbers changes, to keep their order
}

// entry is one item as the index shows it. at is the snapshot that it was projected from.
type entry struct {
	key  sortKey
	base itemKey
	at   item.Item
	size int // in bytes, of what the index shows
}

// sortKey is a string or a number, never both within one index.
type sortKey struct {
	s string
	n int64
}

func (k sortKey) compare(o sortKey) int {
	if c := cmp.Compare(k.n, o.n); c != 0 {
		return c
	}
	return strings.Compare(k.s, o.s)
}

func compareEntries(a, b entry) int {
	if c := a.key.compare(b.key); c != 0 {
		return c
	}
	if c := strings.Compare(a.base.pk, b.base.pk); c != 0 {
		return c
	}
	return strings.Compare(a.base.sk, b.base.sk)
}

// change removes one snapshot of an item from the index and adds another.
type change struct {
	due       time.Time
	n         int64
	base      itemKey
	old, next item.Item
}

func newIndex(s contract.Schema, ix contract.Index) *index {
	x := &index{Index: ix, parts: map[string]*sorted[entry]{}, last: map[itemKey]time.Time{}}
	for _, name := range append([]string{s.PK, s.SK, ix.PK, ix.SK}, ix.Project...) {
		if name != "" && !slices.Contains(x.keep, name) {
			x.keep = append(x.keep, name)
		}
	}
	return x
}

// keyOf returns an item's key in the index; false if it is not in it.
func (x *index) keyOf(i item.Item) (string, sortKey, bool) {
	pk, ok := i[x.PK].(string)
	if !ok {
		return "", sortKey{}, false
	}
	switch v := i[x.SK].(type) {
	case string:
		return pk, sortKey{s: v}, !x.SKIsNumber
	case int64:
		return pk, sortKey{n: v}, x.SKIsNumber
	}
	return pk, sortKey{}, x.SK == ""
}

// project returns the attributes of an item that the index shows.
func (x *index) project(i item.Item) item.Item {
	shown := make(item.Item, len(x.keep))
	for _, name := range x.keep {
		if v, ok := i[name]; ok {
			shown[name] = v
		}
	}
	return shown
}

// size returns the bytes of an item that the index shows.
func (x *index) size(i item.Item) int {
	n := 0
	for _, name := range x.keep {
		switch v := i[name].(type) {
		case string:
			n += len(name) + len(v)
		case int64:
			n += len(name) + item.NumberSize(v)
		}
	}
	return n
}

// cost returns the cost of a change in half units: nothing if the index shows the same as before, a
// delete and a put if the key changed.
func (x *index) cost(old, next item.Item) int64 {
	oldPK, oldKey, was := x.keyOf(old)
	nextPK, nextKey, is := x.keyOf(next)
	switch {
	case !was && !is:
		return 0
	case was && !is:
		return 2 * begun(x.size(old), 1<<10)
	case is && !was:
		return 2 * begun(x.size(next), 1<<10)
	case oldPK != nextPK || oldKey != nextKey:
		return 2*begun(x.size(old), 1<<10) + 2*begun(x.size(next), 1<<10)
	}
	for _, name := range x.keep {
		if old[name] != next[name] {
			return 2 * begun(max(x.size(old), x.size(next)), 1<<10)
		}
	}
	return 0
}

// apply makes a change visible after lag.
func (x *index) apply(now time.Time, lag time.Duration, base itemKey, old, next item.Item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	due := now.Add(lag)
	last, behind := x.last[base]
	if lag <= 0 && !behind {
		x.show(base, old, next)
		return
	}
	if behind && due.Before(last) {
		due = last // the changes of one item stay in order
	}
	x.last[base] = due
	x.n++
	heap.Push(&x.waiting, change{due: due, n: x.n, base: base, old: old, next: next})
}

// catchUp applies the changes whose lag has ended.
func (x *index) catchUp(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.waiting) > 0 && !x.waiting[0].due.After(now) {
		c := heap.Pop(&x.waiting).(change)
		x.show(c.base, c.old, c.next)
		if !x.last[c.base].After(c.due) {
			delete(x.last, c.base)
		}
	}
}

func (x *index) show(base itemKey, old, next item.Item) {
	oldPK, oldKey, was := x.keyOf(old)
	nextPK, nextKey, is := x.keyOf(next)
	if was && !(is && oldPK == nextPK && oldKey == nextKey) {
		if part := x.parts[oldPK]; part != nil {
			part.remove(entry{key: oldKey, base: base})
			if part.n == 0 {
				delete(x.parts, oldPK)
			}
		}
	}
	if is {
		part := x.parts[nextPK]
		if part == nil {
			part = &sorted[entry]{compare: compareEntries}
			x.parts[nextPK] = part
		}
		part.put(entry{key: nextKey, base: base, at: next, size: x.size(next)})
	}
}

// changes is a heap by due, then n.
type changes []change

func (c changes) Len() int { return len(c) }
func (c changes) Less(i, j int) bool {
	if !c[i].due.Equal(c[j].due) {
		return c[i].due.Before(c[j].due)
	}
	return c[i].n < c[j].n
}
func (c changes) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *changes) Push(v any)   { *c = append(*c, v.(change)) }
func (c *changes) Pop() any {
	old := *c
	v := old[len(old)-1]
	old[len(old)-1] = change{}
	*c = old[:len(old)-1]
	return v
}
