package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// Watermark says how far a pass has come. It is a hint, never a proof.
type Watermark string

// The two watermarks of every shard.
const (
	Promoted Watermark = "promoted" // ahead, at the horizon
	Swept    Watermark = "swept"    // behind, at the grace
)

func system(kind, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "system#" + kind, SK: name}
}

// Watermark reads how far a shard's pass has come; the zero time if it never ran.
func (s *Store) Watermark(ctx context.Context, w Watermark, shard int) (time.Time, error) {
	i, err := s.table.Get(ctx, system(string(w), strconv.Itoa(shard)))
	return i.Time("at"), err
}

// SetWatermark moves a watermark forward; one that stands further ahead stays.
func (s *Store) SetWatermark(ctx context.Context, w Watermark, shard int, at time.Time) error {
	_, err := s.table.Write(ctx, item.Write{
		Ref: system(string(w), strconv.Itoa(shard)), Name: "watermark." + string(w), Set: map[string]any{"at": at.UnixMilli()},
		When: []item.All{{{Attr: "at", Op: item.Missing}}, {{Attr: "at", Op: item.Lt, Value: at.UnixMilli()}}},
	})
	if Refused(err) != nil {
		return nil
	}
	return err
}

// Shards agrees on the number of shards: the recorded number grows to n if it was smaller,
// and what is recorded is returned, so that readers cover every slice that may hold something.
func (s *Store) Shards(ctx context.Context, n int) (int, error) {
	ref := system("setting", "shards")
	i, err := s.table.Write(ctx, item.Write{
		Ref: ref, Name: "setting.shards", Set: map[string]any{"n": int64(n)},
		When: []item.All{{{Attr: "n", Op: item.Missing}}, {{Attr: "n", Op: item.Lt, Value: int64(n)}}},
	})
	if refused := Refused(err); refused != nil {
		return int(refused.Olds[0].Int("n")), nil
	}
	return int(i.Int("n")), err
}

// NoteParked remembers that something of a tenant is about to be parked, for the sweeper to
// look after. It comes before the parking.
func (s *Store) NoteParked(ctx context.Context, t tenant.ID, now time.Time) error {
	_, err := s.table.Write(ctx, item.Write{Ref: system("parked", string(t)), Name: "parked.note", Set: map[string]any{"at": now.UnixMilli()}})
	return err
}

// ForgetParked undoes a NoteParked older than before; a newer one stays, because what it
// announced may not be in the index yet.
func (s *Store) ForgetParked(ctx context.Context, t tenant.ID, before time.Time) error {
	_, err := s.table.Write(ctx, item.Write{
		Ref: system("parked", string(t)), Name: "parked.forget", Delete: true,
		When: []item.All{{{Attr: "at", Op: item.Lt, Value: before.UnixMilli()}}},
	})
	if Refused(err) != nil {
		return nil
	}
	return err
}

// ParkedTenants lists the tenants that NoteParked named.
func (s *Store) ParkedTenants(ctx context.Context) ([]tenant.ID, error) {
	var tenants []tenant.ID
	q := item.Query{Table: contract.Tasks, PK: "system#parked", Consistent: true}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			tenants = append(tenants, tenant.ID(strings.TrimSpace(i.Str(contract.AttrSK))))
		}
		if page.Cursor == "" {
			return tenants, nil
		}
		q.Cursor = page.Cursor
	}
}
