package submit

import (
	"context"
	"errors"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Store is what a Submitter reads and writes besides the rows that it has accepted.
type Store interface {
	store.JobReader
	store.RunReader
	store.IdempotencyKeys
	store.ContentWriter
	store.Followers
	store.Writes
	store.OperationReader
}

// Runs makes runs and decides about the jobs that wait for others.
type Runs interface {
	Create(ctx context.Context, n runs.Request) (is run.Run, created bool, err error)
	// Reconcile brings a run on from its rows, as its wake-up does.
	Reconcile(ctx context.Context, k run.Key) error
	// EvaluateAfter decides about a BLOCKED job by what the jobs that it waits for have done so far.
	EvaluateAfter(ctx context.Context, k job.Key) error
}

// Backfills makes backfills and brings them on.
type Backfills interface {
	Create(ctx context.Context, o operation.Operation, with ...item.Write) error
	// Advance takes the steps of an operation that can be taken now; more says that some are left.
	Advance(ctx context.Context, k operation.Key) (more bool, err error)
}

// Bulk makes operations on rows, and has them go on.
type Bulk interface {
	Create(ctx context.Context, o operation.Operation, with ...item.Write) error
	// Ask asks for an operation to be continued, after a delay.
	Ask(ctx context.Context, k operation.Key, delay time.Duration)
}

// Submitter accepts jobs and makes runs on request. It is safe for concurrent use.
type Submitter struct {
	process.Base
	Store  Store
	Accept *accept.Acceptor
	Runs   Runs
	Edit   Replacer
	// Backfills makes backfills.
	Backfills Backfills
	// Bulk makes operations on rows.
	Bulk    Bulk
	Entropy *accept.Entropy
}

// Replacer has a job take the fields of another one.
type Replacer interface {
	// Replace gives a job that has not been claimed every field of a draft but its task, its unique key and the jobs
	// that it comes after, in one transaction with other writes. One whose state does not allow that is an
	// *accept.NotUnique, one that has ended meanwhile an *item.Refused.
	Replace(ctx context.Context, k job.Key, d *accept.Draft, by string, with ...item.Write) (job.Row, error)
}

// Request is a request for a job or a run, with its idempotency key.
type Request struct {
	Who  tenant.Identity
	Key  string // "": none, and each request makes a job or run of its own
	Hash string // of the body that the key is for
}

// ErrKeyReused is the error of a request whose key was used for another body.
var ErrKeyReused = errors.New("the idempotency key was used for another body")

// once makes what a request asks for, unless an earlier request with its key has made it; then it returns what is kept
// with the key, of which the zero value is nothing. read reads what an id names; an absent one is a fault.NotFound.
// create writes the key by with, in one transaction with what it makes; taken says that another request has taken the
// key in the meantime.
func (s *Submitter) once(
	ctx context.Context, r Request, now time.Time, read func(job.ID) error,
	create func(with keyWrite) (taken bool, err error),
) (earlier store.Remembered, err error) {
	if r.Key == "" {
		_, err := create(nil)
		return earlier, err
	}
	earlier, freed, err := s.find(ctx, r, now, read)
	if earlier.JobID != "" || err != nil {
		return earlier, err
	}
	taken, err := create(func(id job.ID, held bool, answer []byte) item.Write {
		return store.Remember(r.Who.Tenant, r.Key, store.Remembered{
			IdempotencyKey: job.IdempotencyKey{
				JobID: id, BodyHash: r.Hash, ExpiresAt: now.Add(contract.IdempotencyKept),
			},
			Answer: string(answer), Held: held,
		}, freed, now)
	})
	if !taken {
		return earlier, err
	}
	if earlier, _, err = s.find(ctx, r, now, read); earlier.JobID == "" && err == nil {
		err = fault.New(fault.Conflict, nil, "submitting a request under a key that has just expired")
	}
	return earlier, err
}

// keyWrite returns the write of an idempotency key for a job or run and the answer to its request; nil without a key.
// held says that the request made no job, because the job held its unique key.
type keyWrite func(id job.ID, held bool, answer []byte) item.Write

// find returns what an earlier request with the key has made, as it is kept with the key; the zero value is nothing.
// What was deleted frees its key: freed is its id then.
func (s *Submitter) find(
	ctx context.Context, r Request, now time.Time, read func(job.ID) error,
) (earlier store.Remembered, freed job.ID, err error) {
	seen, ok, err := s.Store.Remembered(ctx, r.Who.Tenant, r.Key, now)
	if err != nil || !ok {
		return earlier, "", err
	}
	absent := false
	if err := read(seen.JobID); fault.KindOf(err) == fault.NotFound {
		absent = true
		if freed, err = s.freed(ctx, r.Who.Tenant, seen.JobID); freed != "" || err != nil {
			return earlier, freed, err
		}
	} else if err != nil {
		return earlier, "", err
	}
	if seen.BodyHash != r.Hash {
		return earlier, "", ErrKeyReused
	}
	if absent {
		return earlier, "", nil
	}
	return seen, "", nil
}

// freed returns the id if there is no such job, run or operation any more; "" if there is.
func (s *Submitter) freed(ctx context.Context, t tenant.ID, id job.ID) (job.ID, error) {
	if _, err := s.Store.Row(ctx, job.Key{Tenant: t, ID: id}); fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	if _, err := s.Store.Run(ctx, run.Key{Tenant: t, ID: id}); fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	_, err := s.Store.Operation(ctx, operation.Key{Tenant: t, ID: id})
	if fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	return id, nil
}

// newID returns the id of a new job or run.
func (s *Submitter) newID(now time.Time) (job.ID, error) {
	random, err := s.Entropy.Next()
	if err != nil {
		return "", err
	}
	return job.NewID(now, random), nil
}

// now returns the time, to the millisecond as it is stored.
func (s *Submitter) now() time.Time { return s.Clock.Now().UTC().Truncate(time.Millisecond) }
