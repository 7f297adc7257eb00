package store

import (
	"context"
	"time"

	"punctual/shared/contract"
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

// DuePage reads one page of a slice, earliest wake-up first. next is "" at the end; an empty
// page with a next is not the end.
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
				Key: k, Version: i.Int("version"), Attempt: i.Int("attempt"), Pool: i.Str("pool"), Priority: i.Str("priority"),
				DueAt: i.Time("due_at"), WakeAt: i.Time(contract.AttrWakeAt),
			},
			Ref: item.Ref{Table: contract.Jobs, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrJobID)},
			Err: err,
		})
	}
	return found, page.Cursor, nil
}

// DueFront reads the earliest entries of a slice, as many as q.Limit at most; none says that it
// is empty.
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
	return job.Firing{Key: e.Key, Version: e.Version, Attempt: e.Attempt, Pool: e.Pool, Priority: job.Priority(e.Priority), DueAt: e.DueAt}
}

// SetAside takes a row that nobody can read out of the due index, so that it is not met hot
// again and again, and lists it with the reason for a person to look at. Only the index
// attributes go; the rest stays as it is. A row that has moved since is left alone.
func (s *Store) SetAside(ctx context.Context, ref item.Ref, slice, reason string, now time.Time) error {
	list := system("set_aside", ref.PK+"/"+ref.SK)
	if err := s.Put(ctx, item.Write{Ref: list, Name: "set_aside.note", Put: item.Item{
		contract.AttrPK: list.PK, contract.AttrSK: list.SK, "reason": reason, "slice": slice, "at": now.UnixMilli(),
	}}); err != nil {
		return err
	}
	_, err := s.table.Write(ctx, item.Write{
		Ref: ref, Name: "row.set_aside",
		When: []item.All{{{Attr: contract.AttrWakeSlice, Op: item.Eq, Value: slice}}},
		Set:  map[string]any{contract.AttrWakeSlice: nil, contract.AttrWakeAt: nil, contract.AttrNear: nil, "set_aside": reason},
	})
	if Refused(err) != nil {
		return nil
	}
	return err
}
