package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
)

// present is a table without the items whose time has ended. DynamoDB removes them within some
// days; until then no reader may see them, or an answer would depend on when that happens.
//
// It knows every kind of item that has an expires_at: rows and tombstones, contents, idempotency keys,
// pauses, schedules' tombstones, ledgers and replaced payloads. Claims are left out: their time to live only
// clears away what no attempt can ask about any more, and a claim is read by its attempt, lease and outcome
// alone. Entries of an index carry no expires_at; the row that an entry leads to is absent.
type present struct {
	Table
	clock clock.Clock
}

// over says that the item's time has passed.
func over(i item.Item, now time.Time) bool {
	at, expires := i[contract.AttrExpiresAt].(int64)
	return expires && at <= now.Unix()
}

// expires says whether items of the table go by their expires_at.
func expires(table string) bool { return table != contract.Claims }

func (p present) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	i, err := p.Table.Get(ctx, ref)
	if expires(ref.Table) && over(i, p.clock.Now()) {
		return nil, err
	}
	return i, err
}

func (p present) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	items, err := p.Table.GetMany(ctx, refs)
	now := p.clock.Now()
	for n, i := range items {
		if expires(refs[n].Table) && over(i, now) {
			items[n] = nil
		}
	}
	return items, err
}

func (p present) Query(ctx context.Context, q item.Query) (item.Page, error) {
	page, err := p.Table.Query(ctx, q)
	if expires(q.Table) {
		now := p.clock.Now()
		page.Items = slices.DeleteFunc(page.Items, func(i item.Item) bool { return over(i, now) })
	}
	return page, err
}

func (p present) Write(ctx context.Context, w item.Write) (item.Item, error) {
	now := p.clock.Now()
	i, err := p.Table.Write(ctx, replacing(w, now))
	return i, unseen(err, now, w)
}

func (p present) Commit(ctx context.Context, writes ...item.Write) error {
	out, now := writes, p.clock.Now()
	for n, w := range writes {
		if !mayReplace(w) {
			continue
		}
		if &out[0] == &writes[0] {
			out = slices.Clone(writes)
		}
		out[n] = replacing(w, now)
	}
	return unseen(p.Table.Commit(ctx, out...), now, writes...)
}

// mayReplace says that the write puts an item where there must be none.
func mayReplace(w item.Write) bool {
	return w.Put != nil && expires(w.Table) && slices.ContainsFunc(w.When, asksForNone)
}

func asksForNone(all item.All) bool {
	return slices.ContainsFunc(all, func(c item.Cond) bool {
		return c.Op == item.Missing && (c.Attr == contract.AttrPK || c.Attr == contract.AttrJobID)
	})
}

// replacing lets a write that asks for no item replace one whose time has ended.
func replacing(w item.Write, now time.Time) item.Write {
	if mayReplace(w) {
		hasExpired := item.Cond{Attr: contract.AttrExpiresAt, Op: item.Le, Value: now.Unix()}
		w.When = append(slices.Clone(w.When), item.All{hasExpired})
	}
	return w
}

// unseen takes out of a refusal what was in the way but may not be seen any more.
func unseen(err error, now time.Time, writes ...item.Write) error {
	var refused *item.Refused
	if !errors.As(err, &refused) {
		return err
	}
	var olds map[int]item.Item
	for n, old := range refused.Olds {
		if n < len(writes) && expires(writes[n].Table) && over(old, now) {
			if olds == nil {
				olds = maps.Clone(refused.Olds)
			}
			olds[n] = nil
		}
	}
	if olds != nil {
		refused.Olds = olds
	}
	return err
}
