package accept

import (
	"context"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
)

// NotUnique is the error of a job whose unique key another job holds.
type NotUnique struct {
	Holder job.ID
	Key    string
	Detail string // why the other job does not take its fields; "" for no more than that it holds the key
}

func (e *NotUnique) Error() string {
	if e.Detail == "" {
		return job.NotUnique(e.Holder, e.Key)
	}
	return job.NotUnique(e.Holder, e.Key) + "; " + e.Detail
}

// TakeKey returns the write by which a new row takes its unique key, for the transaction that puts the row. Where it is
// refused, the key has another holder by now. holder is the other job that holds the key; nil for none.
func (a *Acceptor) TakeKey(ctx context.Context, r job.Row, now time.Time) (w item.Write, holder *job.Row, err error) {
	h, err := a.Jobs.KeyHolder(ctx, r.Tenant, r.Unique.Key, now)
	switch {
	case err != nil:
		return w, nil, err
	case h.Holds && h.ID != r.ID:
		return w, &h.Row, nil
	}
	return job.TakeKey(r, h.Gone(), now), nil, nil
}
