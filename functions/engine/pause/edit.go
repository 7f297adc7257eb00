package pause

import (
	"context"
	"maps"
	"time"

	"punctual/shared/audit"
	"punctual/shared/cache"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Waker has a tenant's parked jobs evaluated at a given time. It does not fail.
type Waker interface {
	Parked(ctx context.Context, t tenant.ID, at time.Time)
}

// Editor puts and lifts pauses on request.
type Editor struct {
	store store.Pauses
	wake  Waker
	clock clock.Clock
	seen  *cache.Cache[tenant.ID, job.Pauses]
}

// seenFor is how long the pauses of a tenant are kept for views. To read them for the view of each job that is accepted
// would put all reads on one partition.
const seenFor = time.Second

// maxSeen is how many tenants are kept for views.
const maxSeen = 1000

// NewEditor returns an Editor.
func NewEditor(s store.Pauses, w Waker, c clock.Clock) *Editor {
	return &Editor{s, w, c, cache.New[tenant.ID](cache.Options[job.Pauses]{Age: seenFor, Most: maxSeen, Now: c.Now})}
}

// Put puts a pause from now on in place of the one of its scope, and returns it. One that holds jobs already keeps the
// time from which it does; created is false then.
func (e *Editor) Put(
	ctx context.Context, t tenant.ID, p job.Pause, now time.Time,
) (_ job.Pause, created bool, _ error) {
	p.Since, p.EffectiveAt = now, now.Add(contract.EffectiveAfter)
	old, err := e.store.Pause(ctx, t, p.Scope)
	same := false
	switch {
	case fault.KindOf(err) == fault.NotFound, err == nil && old.Ended(now):
		created = true
	case old.Unreadable: // this write repairs it
	case err != nil:
		return p, false, err
	default:
		p.Since, p.EffectiveAt = old.Since, old.EffectiveAt
		same = p.By == old.By && p.Reason == old.Reason && p.Missed == old.Missed && p.Until.Equal(old.Until)
	}
	audit.From(ctx).Changed(audited(old, created), audited(p, false))
	if !same {
		err = e.store.PutPause(ctx, t, p)
		e.seen.Drop(t)
		if err != nil {
			return p, false, err
		}
	}
	if p.Since.Equal(now) {
		p.EffectiveAt = EffectiveAt(p.EffectiveAt, e.now())
	}
	if !p.Until.IsZero() {
		e.wake.Parked(ctx, t, p.Until)
	}
	return p, created, nil
}

// audited is what the audit compares of a pause.
func audited(p job.Pause, absent bool) any {
	if absent || p.Unreadable {
		return nil
	}
	fields := map[string]any{"reason": p.Reason, "missed": p.Missed, "until": p.Until}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == "" || v == time.Time{} })
	return fields
}

// Lift ends a pause, and has the jobs that it held evaluated. An absent one is a fault.NotFound.
func (e *Editor) Lift(ctx context.Context, t tenant.ID, scope string) error {
	err := e.store.DeletePause(ctx, t, scope, e.now())
	e.seen.Drop(t)
	if err == nil || fault.KindOf(err) == fault.NotFound { // an earlier request may have failed after its delete
		e.wake.Parked(ctx, t, e.now())
	}
	return err
}

// Holds reports whether a pause seems to hold a job that is being accepted. It is only for the view: the pauses may be
// old, and if they cannot be read none holds it.
func (e *Editor) Holds(ctx context.Context, r job.Row, now time.Time) bool {
	if !job.StartsSoon(r, now) {
		return false
	}
	pauses, err := e.seen.Get(ctx, r.Tenant, func(ctx context.Context) (job.Pauses, error) {
		return e.store.Pauses(ctx, r.Tenant)
	})
	if err != nil {
		return false
	}
	_, held := pauses.HoldRow(r, now)
	return held
}

// now returns the time, to the millisecond as it is stored.
func (e *Editor) now() time.Time { return e.clock.Now().UTC().Truncate(time.Millisecond) }
