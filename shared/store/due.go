package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
)

// DueQuery asks for one page of a slice or parking place.
type DueQuery struct {
	Slice  string
	Before time.Time // wake-ups from here on are left out; zero: none are
	Cursor string    // of the page before; "" for the first
	Limit  int       // entries of the page; 0 for the table's default
}

// Found is one entry of the due index. One that cannot be read has an Err of kind
// fault.Undecodable; Ref names its row all the same.
type Found struct {
	Entry
	Ref item.Ref
	Err error
}

// DuePage implements DueReader.
func (s *Store) DuePage(ctx context.Context, q DueQuery) (found []Found, next string, err error) {
	query := item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: q.Slice, Cursor: q.Cursor, Limit: q.Limit}
	if !q.Before.IsZero() {
		query.To = q.Before.UnixMilli()
	}
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, "", err
	}
	for _, i := range page.Items {
		k, err := job.KeyOf(i)
		found = append(found, Found{
			Entry: Entry{
				Key: k, Version: i.Int("version"), Attempt: i.Int("attempt"), Pool: i.Str("pool"),
				Priority: i.Str("priority"), DueAt: i.Time("due_at"), WakeAt: i.Time(contract.AttrWakeAt),
			},
			Ref: item.Ref{Table: contract.Jobs, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrJobID)},
			Err: err,
		})
	}
	return found, page.Cursor, nil
}

// DueFront implements DueReader.
func (s *Store) DueFront(ctx context.Context, q DueQuery) ([]Found, error) {
	for {
		found, next, err := s.DuePage(ctx, q)
		if err != nil || len(found) > 0 || next == "" {
			return found, err
		}
		q.Cursor = next
	}
}

// Firing is the attempt that the entry speaks of.
func (e Entry) Firing() job.Firing {
	return job.Firing{Key: e.Key, Version: e.Version, Attempt: e.Attempt, Pool: e.Pool,
		Priority: job.Priority(e.Priority), DueAt: e.DueAt}
}

// DeferFailed implements DueWriter.
func (s *Store) DeferFailed(ctx context.Context, ref item.Ref, indexKey string, wakeAt, now time.Time) error {
	at := now
	if _, err := horizon.ParseSlice(indexKey); wakeAt.After(at) &&
		err == nil { // found ahead of its time; in a parking place the time is a deadline
		at = wakeAt
	}
	_, err := s.table.Write(ctx, moved(WriteDueDeferFailed, ref, indexKey, wakeAt, at.Add(contract.RetryEvery)))
	if Refused(err) != nil {
		return nil
	}
	return err
}

// Deferred is an item of the due index whose wake-up was moved before the item was handled.
type Deferred struct {
	Ref      item.Ref
	IndexKey string
	WakeAt   time.Time
	Tries    int64 // how often in a row that was done
}

// Defer implements DueWriter.
func (s *Store) Defer(
	ctx context.Context, ref item.Ref, indexKey string, wakeAt, at time.Time,
) (d Deferred, ok bool, err error) {
	w := moved(WriteDueDefer, ref, indexKey, wakeAt, at)
	w.Add = map[string]int64{contract.AttrTries: 1}
	i, err := s.table.Write(ctx, w)
	switch {
	case Refused(err) != nil:
		return d, false, nil
	case err != nil:
		return d, false, err
	}
	return Deferred{
		ref,
		i.Str(contract.AttrWakeSlice),
		i.Time(contract.AttrWakeAt),
		i.Int(contract.AttrTries),
	}, true, nil
}

// Move implements DueWriter.
func (s *Store) Move(ctx context.Context, d Deferred, at time.Time) error {
	_, err := s.table.Write(ctx, moved(WriteDueMove, d.Ref, d.IndexKey, d.WakeAt, at))
	if Refused(err) != nil {
		return nil
	}
	return err
}

// moved is the write that gives an item found in place, at wakeAt, another wake-up.
func moved(name string, ref item.Ref, indexKey string, wakeAt, at time.Time) item.Write {
	to := horizon.SliceOf(at, 0)
	if found, err := horizon.ParseSlice(indexKey); err == nil {
		to.Shard = found.Shard
	}
	// The item says in which shard it lies: its next write asks whether it still is there.
	set := map[string]any{
		contract.AttrWakeSlice: to.String(), contract.AttrWakeAt: at.UnixMilli(),
		"shard": nil, contract.AttrNear: nil, "parked": nil, "behind": nil, "waits_limit": nil,
	}
	if to.Shard > 0 {
		set["shard"] = int64(to.Shard)
	}
	return item.Write{Ref: ref, Name: name, Set: set, When: []item.All{{
		{Attr: contract.AttrWakeSlice, Op: item.Eq, Value: indexKey},
		{Attr: contract.AttrWakeAt, Op: item.Eq, Value: wakeAt.UnixMilli()},
	}}}
}

// Quarantine implements DueWriter.
func (s *Store) Quarantine(
	ctx context.Context, ref item.Ref, indexKey string, wakeAt time.Time, reason string, now time.Time,
) error {
	list := system("set_aside", ref.Table+"/"+ref.PK+"/"+ref.SK)
	if err := s.Put(ctx, item.Write{Ref: list, Name: "set_aside.note", Put: item.Item{
		contract.AttrPK: list.PK, contract.AttrSK: list.SK, "reason": reason, "place": indexKey, "at": now.UnixMilli(),
		contract.AttrExpiresAt: now.Add(asideListed).Unix(),
	}}); err != nil {
		return err
	}
	return s.DeferFailed(ctx, ref, indexKey, wakeAt, now)
}

// asideListed is how long the list speaks of an item after it was met last.
const asideListed = 24 * time.Hour
