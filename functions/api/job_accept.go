package api

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// entropy makes a reader safe for concurrent use.
type entropy struct {
	mu sync.Mutex
	r  io.Reader
}

func (e *entropy) next() (b [10]byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err = io.ReadFull(e.r, b[:]); err != nil {
		err = fmt.Errorf("reading entropy for a job id: %w", err)
	}
	return b, err
}

// accepted is the view of a job that was accepted, by this request or by an earlier one with its key.
type accepted struct {
	view     JobView
	replayed bool
	fire     *job.Firing // nil, or the firing that the caller sends: the job is due now
}

// accept writes a job that was checked: its contents first, its row second. With a key, row and key are one
// transaction. A request that loses the race for a key gets the answer of the one that won.
func (s *stage) accept(
	ctx context.Context, who tenant.Identity, d *draft, key, bodyHash string, gone job.ID, now time.Time,
) (accepted, error) {
	random, err := s.entropy.next()
	if err != nil {
		return accepted{}, err
	}
	r := d.row
	r.ID = job.NewID(now, random)
	r.Shard = horizon.ShardOf(string(r.ID), s.Shards)
	var send bool
	if d.after == nil {
		send = job.Place(&r, now)
	} else {
		r, send = d.after.Admit(r, s.now()) // a parent may have ended since now
	}
	contents := d.contents(who)
	r.Hold(contents)
	if err := s.Store.KeepContents(ctx, r, contents); err != nil {
		return accepted{}, err
	}
	if err := s.followParents(ctx, r, d.after, now); err != nil {
		return accepted{}, err
	}
	s.logLiterals(ctx, r, contents)
	a := accepted{view: view(r, job.Claim{}, s.held(ctx, r, now), now)}
	a.view.JobDetail = detailOf(r)
	kept := a.view // the key keeps the view without contents; a repeated request brings them
	a.view.asked(contents)
	if send {
		a.fire = new(r.Firing())
	}
	if key == "" {
		return a, s.engine.Accept.Put(ctx, accept.Job{Row: r, Unique: true})
	}
	answer, err := text.JSON(kept)
	if err != nil {
		return accepted{}, fmt.Errorf("keeping the answer of job %s: %w", r.ID, err)
	}
	err = s.engine.Accept.Put(ctx,
		accept.Job{Row: r, With: []item.Write{store.Remember(who.Tenant, key, store.Remembered{
			IdempotencyKey: job.IdempotencyKey{JobID: r.ID, BodyHash: bodyHash,
				ExpiresAt: now.Add(contract.IdempotencyKept)}, Answer: string(answer),
		}, gone, now)}})
	if store.Refused(err) != nil {
		earlier, _, ok, err := s.replay(ctx, who.Tenant, key, bodyHash, now)
		switch {
		case ok && earlier.view.JobID == r.ID: // our own, which a retry repeated because its answer was lost
			return a, nil
		case err != nil || ok:
			return earlier, err
		}
		return accepted{}, fault.New(fault.Conflict, nil, "accepting a job under a key that has just expired")
	}
	return a, err
}

// contents returns what the job holds, declared by who.
func (d *draft) contents(who tenant.Identity) job.Contents {
	return job.Contents{Payload: d.payload, Labels: d.labels, Literals: literalsBy(who, d.literals)}
}

// literalsBy returns the declaration of these literals; nil for none.
func literalsBy(who tenant.Identity, pointers []string) *job.Literals {
	if len(pointers) == 0 {
		return nil
	}
	return &job.Literals{Pointers: pointers, By: who.Subject}
}

func (s *stage) logLiterals(ctx context.Context, r job.Row, c job.Contents) {
	if c.Literals == nil {
		return
	}
	s.Log.InfoContext(ctx, "a job declared literals to be no secrets",
		telemetry.Tenant, r.Tenant, telemetry.JobID, r.ID, "literals", len(c.Literals.Pointers))
}

// replay returns the job that an idempotency key stands for, as it is now; false if it stands for none. A deleted job
// frees its key: gone is its id then, whose key a new job may take.
func (s *stage) replay(
	ctx context.Context, t tenant.ID, key, bodyHash string, now time.Time,
) (a accepted, gone job.ID, ok bool, err error) {
	seen, ok, err := s.Store.Remembered(ctx, t, key, now)
	if err != nil || !ok {
		return accepted{}, "", false, err
	}
	k := job.Key{Tenant: t, ID: seen.JobID}
	row, err := s.Store.Row(ctx, k)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		if gone, err = s.freed(ctx, t, seen); gone != "" || err != nil {
			return accepted{}, gone, false, err
		}
		return accepted{}, "", false, reused(seen, bodyHash) // a run has the key
	case err != nil:
		return accepted{}, "", false, err
	}
	if err := reused(seen, bodyHash); err != nil {
		return accepted{}, "", false, err
	}
	a = accepted{replayed: true}
	if a.view, err = s.show(ctx, row); err == nil {
		err = s.detail(ctx, row, &a.view)
	}
	if err != nil {
		return accepted{}, "", false, err
	}
	// The process that accepted the job may have ended before it sent the firing. The client repeats its request
	// because it knows no better; it must not wait for the sweeper.
	a.fire, err = s.engine.Accept.Unfired(ctx, k)
	return a, "", err == nil, err
}

// freed returns the id that a key stands for if there is neither such a job nor such a run any more; "" if there is.
func (s *stage) freed(ctx context.Context, t tenant.ID, seen store.Remembered) (job.ID, error) {
	if _, err := s.Store.Row(ctx, job.Key{Tenant: t, ID: seen.JobID}); fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	if _, err := s.Store.Run(ctx, run.Key{Tenant: t, ID: seen.JobID}); fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	return seen.JobID, nil
}

// reused returns the problem that a key was used for another body.
func reused(seen store.Remembered, bodyHash string) error {
	if seen.BodyHash == bodyHash {
		return nil
	}
	return wire.NewProblem(spec.CodeKeyReused, "this key was used for another body less than %s ago",
		wire.InUnits(contract.IdempotencyKept, time.Hour, " hours"))
}

// sendTimeout bounds the sends after a job was written, because the client still waits for the answer.
const sendTimeout = 5 * time.Second

// fire sends firings of jobs that are due now. A failure is only logged: the jobs are accepted, and the due index
// brings them.
func (s *stage) fire(ctx context.Context, firings ...job.Firing) {
	if len(firings) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	s.engine.Accept.Fire(ctx, string(horizon.Now), firings...)
}

var keyAllowed = fmt.Sprintf("1 to %d printable ASCII characters", contract.MaxIdempotencyKey)

// readKey reads the Idempotency-Key header; "" is none.
func readKey(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", wire.OneMistake("Idempotency-Key", wire.CodeDuplicateField, "",
			"the header Idempotency-Key is given more than once")
	case !validKey(strings.TrimSpace(values[0])):
		return "", wire.OneMistake("Idempotency-Key", wire.CodeInvalidValue, keyAllowed,
			"the Idempotency-Key is not one")
	}
	return strings.TrimSpace(values[0]), nil
}

func validKey(key string) bool {
	bad := func(c rune) bool { return c < ' ' || c > '~' }
	return len(key) >= 1 && len(key) <= contract.MaxIdempotencyKey && !slices.ContainsFunc([]rune(key), bad)
}
