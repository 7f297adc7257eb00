package store

import (
	"context"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// UniqueKeys are the keys of which each is held by at most one open job of a tenant.
type UniqueKeys interface {
	// KeyHolder reads which job holds a unique key.
	KeyHolder(ctx context.Context, t tenant.ID, key string, now time.Time) (KeyHolder, error)
}

// KeyHolder is what is known of the job that took a unique key last; the zero KeyHolder is that of a key that none has
// taken.
type KeyHolder struct {
	ID    job.ID
	Holds bool    // it still holds the key
	Row   job.Row // where it holds the key; of a row that cannot be read, its key only
}

// Gone is the job from which the key may be taken; "" for none.
func (h KeyHolder) Gone() job.ID {
	if h.Holds {
		return ""
	}
	return h.ID
}

// KeyHolder implements UniqueKeys. The row is read before the claim, so that a claim of a later attempt shows a start.
func (s *Store) KeyHolder(ctx context.Context, t tenant.ID, key string, now time.Time) (KeyHolder, error) {
	i, err := s.table.Get(ctx, job.UniqueRef(t, key))
	if err != nil || i == nil {
		return KeyHolder{}, err
	}
	h := KeyHolder{ID: job.HolderOf(i)}
	k := job.Key{Tenant: t, ID: h.ID}
	row, err := s.Row(ctx, k)
	switch kind := fault.KindOf(err); {
	case kind == fault.NotFound:
		return h, nil
	case kind == fault.Undecodable: // no attempt of it can start, so it holds the key only while a worker is at it
		c, err := s.Claim(ctx, k)
		if fault.KindOf(err) == fault.Undecodable {
			return h, nil
		}
		h.Row, h.Holds = job.Row{Key: k}, c.MayRun(now)
		return h, err
	case err != nil || row.Unique.Key != key || !row.HoldsKey(job.Claim{}):
		return h, err
	}
	var c job.Claim
	if row.Unique.Until == job.UntilStarted {
		if c, err = s.Claim(ctx, k); err != nil {
			return h, err
		}
	}
	h.Row, h.Holds = row, row.HoldsKey(c)
	return h, nil
}
