package store

import (
	"context"
	"strconv"
	"time"

	"punctual/shared/item"
	"punctual/shared/tenant"
)

// WaitingSlot is a place among the waiting requests of a tenant.
type WaitingSlot struct {
	tenant tenant.ID
	name   string
	until  int64
}

// TakeWaiting implements WaitingSlots.
// The slots are attributes of one item, each with the time at which it is free.
func (s *Store) TakeWaiting(ctx context.Context, t tenant.ID, slots int, until, now time.Time) (WaitingSlot, bool,
	error) {
	ref := quotaRef(t, "waiting")
	seen, err := s.table.Get(ctx, ref)
	if err != nil {
		return WaitingSlot{}, false, err
	}
	const tries = 3
	for n := range tries {
		var free []string
		for i := range slots {
			if name := "slot_" + strconv.Itoa(i); seen.Int(name) <= now.UnixMilli() {
				free = append(free, name)
			}
		}
		if len(free) == 0 {
			return WaitingSlot{}, false, nil
		}
		// requests of one moment take different slots
		taken := WaitingSlot{t, free[(now.Nanosecond()/1000+7*n)%len(free)], until.UnixMilli()}
		err := s.Put(ctx, item.Write{Ref: ref, Name: WriteWaitingTake, Set: map[string]any{taken.name: taken.until},
			When: []item.All{
				{{Attr: taken.name, Op: item.Missing}}, {{Attr: taken.name, Op: item.Le, Value: now.UnixMilli()}},
			}})
		refused := Refused(err)
		if refused == nil {
			return taken, err == nil, err
		}
		seen = refused.Olds[0]
	}
	return WaitingSlot{}, false, nil // so many ask at once that the slots are as good as taken
}

// GiveWaiting implements WaitingSlots.
func (s *Store) GiveWaiting(ctx context.Context, w WaitingSlot) error {
	err := s.Put(ctx, item.Write{Ref: quotaRef(w.tenant, "waiting"), Name: WriteWaitingGive,
		Set:  map[string]any{w.name: nil},
		When: []item.All{{{Attr: w.name, Op: item.Eq, Value: w.until}}}})
	if Refused(err) != nil {
		return nil
	}
	return err
}
