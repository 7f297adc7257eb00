package memory

import (
	"punctual/shared/contract"
	"punctual/shared/item"
)

// Expire removes what the tables' TTL allows to remove by now, as DynamoDB does within some days,
// and returns how many items it removed. Until it is called, expired items stay visible, as they
// may in DynamoDB. A World that runs for days needs a call now and then.
func (t *Table) Expire() int {
	removed := 0
	now := t.world.now().Unix()
	for _, s := range t.spaces {
		if !s.schema.TTL {
			continue
		}
		for n := range s.buckets {
			removed += t.expire(s, &s.buckets[n], now)
		}
	}
	return removed
}

func (t *Table) expire(s *space, b *bucket, now int64) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var old []itemKey
	for p, r := range b.rows {
		if at, ok := r.item[contract.AttrExpiresAt].(int64); ok && at < now {
			old = append(old, p)
		}
	}
	for _, p := range old {
		w := item.Write{Ref: item.Ref{Table: s.schema.Name, PK: p.pk, SK: p.sk}, Name: "expire", Delete: true}
		t.put(s, b, w, b.get(p).item, nil, 0)
	}
	return len(old)
}
