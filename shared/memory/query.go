package memory

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// pageBytes is the most that DynamoDB reads for one page.
const pageBytes = 1 << 20

// cursor is where the previous page ended.
type cursor struct {
	S     string `json:"s,omitempty"` // the sort key, as a string or
	N     int64  `json:"n,omitempty"` // as a number
	PK    string `json:"p,omitempty"` // the item's own key, in an index
	SK    string `json:"k,omitempty"`
	Any   bool   `json:"a,omitempty"` // there was an entry before
	Blank bool   `json:"b,omitempty"` // the previous page was an empty one
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil { // cannot fail: strings, numbers and booleans
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (c cursor) entry() entry { return entry{key: sortKey{c.S, c.N}, base: itemKey{c.PK, c.SK}} }

// Query reads one page.
func (t *Table) Query(ctx context.Context, q item.Query) (item.Page, error) {
	c := Call{Op: TableQuery, Ref: item.Ref{Table: q.Table, PK: q.PK}, Name: q.Index, Size: q.Limit}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return item.Page{}, err
	}
	t.world.counts.tableCalls.Add(1)
	page, err := t.query(q)
	if err == nil {
		err = f.after(c)
	}
	if err != nil {
		return item.Page{}, err
	}
	return page, nil
}

func (t *Table) query(q item.Query) (item.Page, error) {
	s := t.spaces[q.Table]
	if s == nil {
		return item.Page{}, fault.New(fault.NotFound, nil, "table %q", q.Table)
	}
	bad := func(why string) (item.Page, error) {
		return item.Page{}, fault.New(fault.Invalid, nil, "querying %s %s of %q: %s", q.Table, q.Index, q.PK, why)
	}
	var x *index
	for _, candidate := range s.indexes {
		if candidate.Name == q.Index {
			x = candidate
		}
	}
	isNumber, hasSK := x != nil && x.SKIsNumber, s.schema.SK != ""
	if x != nil {
		hasSK = x.SK != ""
	}
	switch {
	case q.Index != "" && x == nil:
		return bad("no such index")
	case q.Index != "" && q.Consistent:
		return bad("an index has no consistent reads")
	case q.PK == "":
		return bad("the key is empty")
	case q.Limit < 0:
		return bad("the limit is negative")
	}
	var after cursor
	if q.Cursor != "" {
		b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		if err != nil || json.Unmarshal(b, &after) != nil {
			return bad("the cursor is not one of ours")
		}
	}
	from, okFrom := bound(q.From, isNumber)
	to, okTo := bound(q.To, isNumber)
	if !okFrom || !okTo || (q.From != nil || q.To != nil) && !hasSK {
		return bad("a bound has another type than the sort key")
	}
	if t.empty && !after.Blank {
		after.Blank = true
		s.units.read.Add(readCost(0) / 2)
		return item.Page{Cursor: after.String()}, nil
	}
	r := reader{s: s, x: x, q: q}
	// below and above cover what the range excludes at either end, and what was read before.
	r.below = func(e entry) bool {
		return q.From != nil && e.key.compare(from) < 0 || !q.Descending && after.Any &&
			compareEntries(e, after.entry()) <= 0
	}
	r.above = func(e entry) bool {
		return q.To != nil && e.key.compare(to) >= 0 || q.Descending && after.Any &&
			compareEntries(e, after.entry()) >= 0
	}
	if x != nil {
		x.catchUp(t.world.now())
		r.index()
	} else {
		r.table()
	}
	cost := readCost(r.bytes)
	if !q.Consistent {
		cost /= 2
	}
	s.units.read.Add(cost)
	page := item.Page{Items: r.items}
	if r.more {
		page.Cursor = cursor{S: r.last.key.s, N: r.last.key.n, PK: r.last.base.pk, SK: r.last.base.sk,
			Any: true}.String()
	}
	return page, nil
}

func bound(v any, number bool) (sortKey, bool) {
	switch v := v.(type) {
	case nil:
		return sortKey{}, true
	case string:
		return sortKey{s: v}, !number
	case int64:
		return sortKey{n: v}, number
	}
	return sortKey{}, false
}

// reader collects one page.
type reader struct {
	s            *space
	x            *index
	q            item.Query
	below, above func(entry) bool

	items []item.Item
	bytes int
	last  entry
	more  bool // there may be more after last
}

// take adds an entry to the page; false when the page is full.
func (r *reader) take(e entry, size int, show func() item.Item) bool {
	if len(r.items) > 0 && r.bytes+size > pageBytes {
		r.more = true
		return false
	}
	r.items = append(r.items, show())
	r.bytes += size
	r.last = e
	if r.q.Limit > 0 && len(r.items) == r.q.Limit {
		r.more = true // as DynamoDB: it has not looked whether anything follows
		return false
	}
	return true
}

func (r *reader) index() {
	r.x.mu.RLock()
	defer r.x.mu.RUnlock()
	part := r.x.parts[r.q.PK]
	if part == nil {
		return
	}
	visit := func(e entry) bool {
		if r.below(e) || r.above(e) {
			return false
		}
		return r.take(e, e.size, func() item.Item { return r.x.project(e.at) })
	}
	if r.q.Descending {
		part.descend(r.above, visit)
	} else {
		part.ascend(r.below, visit)
	}
}

func (r *reader) table() {
	b := &r.s.buckets[bucketOf(r.q.PK)]
	b.mu.RLock()
	defer b.mu.RUnlock()
	entryOf := func(sk string) entry { return entry{key: sortKey{s: sk}, base: itemKey{r.q.PK, sk}} }
	visit := func(sk string) bool {
		e := entryOf(sk)
		if r.below(e) || r.above(e) {
			return false
		}
		of := b.get(e.base)
		return r.take(e, of.size, func() item.Item { return of.item })
	}
	if r.s.schema.SK == "" {
		if i := b.get(itemKey{pk: r.q.PK}).item; i != nil {
			visit("")
		}
		return
	}
	part := b.parts[r.q.PK]
	if part == nil {
		return
	}
	if r.q.Descending {
		part.descend(func(sk string) bool { return r.above(entryOf(sk)) }, visit)
	} else {
		part.ascend(func(sk string) bool { return r.below(entryOf(sk)) }, visit)
	}
}
