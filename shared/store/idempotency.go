package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Remembered is what a client's idempotency key refers to: the job, and the answer that was given when it
// was accepted. A repetition is answered with the job as it is now; the answer of then is for versions that repeat it.
type Remembered struct {
	job.IdempotencyKey
	Answer string
	Held   bool // the request made no job: the job held the unique key that it asked for
}

// keyRef is where a tenant's key is kept: under its hash, so that any printable key is a legal one.
func keyRef(t tenant.ID, key string) item.Ref {
	sum := sha256.Sum256([]byte(key))
	return item.Ref{Table: contract.Jobs, PK: "idem#" + string(t) + "#" + hex.EncodeToString(sum[:16]), SK: "key"}
}

// Remember is the write of a key; it goes in one transaction with the job's Accept. It is refused while the key
// exists; one past its time counts as absent, and one of the job gone, which was deleted: "" is none.
func Remember(t tenant.ID, key string, r Remembered, gone job.ID, now time.Time) item.Write {
	ref := keyRef(t, key)
	w := item.Write{
		Ref: ref, Name: WriteKeyRemember,
		Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrJobID: ref.SK, "job": string(r.JobID), "body_hash": r.BodyHash,
			"answer":               r.Answer,
			contract.AttrExpiresAt: r.ExpiresAt.Unix(),
		},
		When: []item.All{
			{{Attr: contract.AttrPK, Op: item.Missing}},
			{{Attr: contract.AttrExpiresAt, Op: item.Le, Value: now.Unix()}},
		},
	}
	if r.Held {
		w.Put["held"] = "1"
	}
	if gone != "" {
		w.When = append(w.When, item.All{{Attr: "job", Op: item.Eq, Value: string(gone)}})
	}
	return w
}

// Remembered implements IdempotencyKeys.
func (s *Store) Remembered(ctx context.Context, t tenant.ID, key string, now time.Time) (Remembered, bool, error) {
	i, err := s.table.Get(ctx, keyRef(t, key))
	if err != nil || i == nil || i.Int(contract.AttrExpiresAt) <= now.Unix() {
		return Remembered{}, false, err
	}
	return Remembered{
		IdempotencyKey: job.IdempotencyKey{
			JobID: job.ID(i.Str("job")), BodyHash: i.Str("body_hash"),
			ExpiresAt: time.Unix(i.Int(contract.AttrExpiresAt), 0).UTC(),
		},
		Answer: i.Str("answer"), Held: i.Str("held") != "",
	}, true, nil
}
