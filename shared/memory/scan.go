package memory

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/text"
)

// scanned is where the previous page of a scan ended.
type scanned struct {
	Bucket int    `json:"b"`
	PK     string `json:"p,omitempty"`
	SK     string `json:"k,omitempty"`
	Blank  bool   `json:"e,omitempty"` // the previous page was an empty one
}

// Scan reads one page of a whole table; see store.Scanner. A cursor is of use to the same World only.
func (t *Table) Scan(ctx context.Context, table, cursor string, limit int) (item.Page, error) {
	c := Call{Op: TableScan, Ref: item.Ref{Table: table}, Name: table, Size: limit}
	f, err := t.world.enter(ctx, c)
	if err != nil {
		return item.Page{}, err
	}
	t.world.counts.tableCalls.Add(1)
	page, err := t.scan(table, cursor, limit)
	if err == nil {
		err = f.after(c)
	}
	if err != nil {
		return item.Page{}, err
	}
	return page, nil
}

func (t *Table) scan(table, cursor string, limit int) (item.Page, error) {
	s := t.spaces[table]
	if s == nil {
		return item.Page{}, fault.New(fault.NotFound, nil, "table %q", table)
	}
	var at scanned
	if b, err := base64.RawURLEncoding.DecodeString(cursor); cursor != "" && (err != nil ||
		json.Unmarshal(b, &at) != nil || at.Bucket < 0 || at.Bucket > bucketCount) || limit < 1 {
		return item.Page{}, fault.New(fault.Invalid, err, "reading table %s: a limit and a cursor of ours are needed",
			table)
	}
	if t.empty && !at.Blank {
		at.Blank = true
		return item.Page{Cursor: at.String()}, nil
	}
	at.Blank = false
	var page item.Page
	bytes := 0
	for ; at.Bucket < bucketCount; at = (scanned{Bucket: at.Bucket + 1}) {
		s.buckets[at.Bucket].after(itemKey{at.PK, at.SK}, func(k itemKey, i item.Item) bool {
			at.PK, at.SK = k.pk, k.sk
			page.Items = append(page.Items, i)
			bytes += i.Size()
			return len(page.Items) < limit && bytes < pageBytes
		})
		if len(page.Items) == limit || bytes >= pageBytes {
			page.Cursor = at.String()
			break
		}
	}
	s.units.read.Add(readCost(bytes) / 2)
	return page, nil
}

func (c scanned) String() string {
	return base64.RawURLEncoding.EncodeToString(text.MustJSON(c))
}

// after visits the items behind a key, in the order of their keys, until visit returns false.
func (b *bucket) after(last itemKey, visit func(itemKey, item.Item) bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.parts) == 0 { // a table without a sort key
		keys := slices.SortedFunc(maps.Keys(b.rows), func(x, y itemKey) int { return cmp.Compare(x.pk, y.pk) })
		for _, k := range keys {
			if k.pk > last.pk && !visit(k, b.rows[k].item) {
				return
			}
		}
		return
	}
	for _, pk := range slices.Sorted(maps.Keys(b.parts)) {
		if pk < last.pk {
			continue
		}
		goOn := true
		b.parts[pk].ascend(func(sk string) bool { return pk == last.pk && sk <= last.sk }, func(sk string) bool {
			k := itemKey{pk, sk}
			goOn = visit(k, b.rows[k].item)
			return goOn
		})
		if !goOn {
			return
		}
	}
}
