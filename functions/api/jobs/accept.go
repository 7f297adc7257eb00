package jobs

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/show"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// accepted is the view of a job that was accepted, by this request or by an earlier one with its key.
type accepted struct {
	view     spec.JobView
	replayed bool
	fire     *job.Firing // nil, or the firing that the caller sends: the job is due now
}

// accept writes a job that was checked: its contents first, its row second. With a key, row and key are one
// transaction. A request that loses the race for a key gets the answer of the one that won.
func (s *Handler) accept(
	ctx context.Context, who tenant.Identity, d *accept.Draft, key, bodyHash string, gone job.ID, now time.Time,
) (accepted, error) {
	random, err := s.Entropy.Next()
	if err != nil {
		return accepted{}, err
	}
	r := d.Row
	r.ID = job.NewID(now, random)
	r.Shard = horizon.ShardOf(string(r.ID), s.Shards)
	var send bool
	if d.After == nil {
		send = job.Route(&r, now)
	} else {
		r, send = d.After.Admit(r, s.Now()) // a parent may have ended since now
	}
	contents := d.Contents(who.Subject)
	r.Hold(contents)
	if err := s.Store.KeepContents(ctx, r, contents); err != nil {
		return accepted{}, err
	}
	if err := s.followParents(ctx, r, d.After, now); err != nil {
		return accepted{}, err
	}
	s.logLiterals(ctx, r, contents)
	a := accepted{view: spec.ViewJob(show.Job{Row: r, Paused: s.Held(ctx, r, now), At: now})}
	a.view.JobDetail = spec.DetailOf(r)
	kept := a.view // the key keeps the view without contents; a repeated request brings them
	a.view.Asked(contents)
	if send {
		a.fire = new(r.Firing())
	}
	if key == "" {
		return a, s.Engine.Accept.Put(ctx, accept.Job{Row: r, Unique: true})
	}
	answer, err := text.JSON(kept)
	if err != nil {
		return accepted{}, fmt.Errorf("keeping the answer of job %s: %w", r.ID, err)
	}
	err = s.Engine.Accept.Put(ctx,
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

func (s *Handler) logLiterals(ctx context.Context, r job.Row, c job.Contents) {
	if c.Literals == nil {
		return
	}
	s.Log.InfoContext(ctx, "a job declared literals to be no secrets",
		telemetry.Tenant, r.Tenant, telemetry.JobID, r.ID, "literals", len(c.Literals.Pointers))
}

// replay returns the job that an idempotency key names, as it is now; false if it names none. A deleted job
// frees its key: gone is its id then.
func (s *Handler) replay(
	ctx context.Context, t tenant.ID, key, bodyHash string, now time.Time,
) (a accepted, gone job.ID, ok bool, err error) {
	var row job.Row
	ok, gone, err = s.Replay(ctx, t, key, bodyHash, now, func(id job.ID) (err error) {
		row, err = s.Store.Row(ctx, job.Key{Tenant: t, ID: id})
		return err
	})
	if err != nil || !ok {
		return accepted{}, gone, false, err
	}
	a = accepted{replayed: true}
	if a.view, err = s.Show(ctx, row); err == nil {
		err = s.Detail(ctx, row, &a.view)
	}
	if err != nil {
		return accepted{}, "", false, err
	}
	// The process that accepted the job may have ended before it sent the firing. The client repeats its request
	// because it knows no better; it must not wait for the sweeper.
	a.fire, err = s.Engine.Accept.Unfired(ctx, row.Key)
	return a, "", err == nil, err
}
