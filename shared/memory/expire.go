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
	err := t.world.keep(func() []kept {
		var facts []kept
		for _, p := range old {
			facts = append(facts, rowFact(expiry(s, p), nil))
		}
		return facts
	})
	if err != nil {
		return 0 // the next call removes them
	}
	defer t.world.done()
	for _, p := range old {
		t.put(s, b, expiry(s, p), b.get(p).item, nil, 0)
	}
	return len(old)
}

func expiry(s *space, p itemKey) item.Write {
	return item.Write{Ref: item.Ref{Table: s.schema.Name, PK: p.pk, SK: p.sk}, Name: "expire", Delete: true}
}
