package worker

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// A call that gets no answer concerns its key, its tenant or the store. A call for a key that no process has separates
// the store from the others: if it is answered, the store works, and polling goes on.

// callTime bounds one call; a claim that took longer would leave little of its lease.
const callTime = 10 * time.Second

// access is the kind of a call that the worker makes for a firing.
type access bool

const (
	reading access = false
	writing access = true
)

// probeAge is for how long one probe answers for all failed calls of its kind.
const probeAge = 500 * time.Millisecond

// probes asks the store about keys that no process has.
type probes struct {
	store Store
	made  atomic.Int64
	known *cache.Cache[access, struct{}]
}

func newProbes(s Store) *probes {
	return &probes{store: s, known: cache.New[access](cache.Options[struct{}]{
		Age: probeAge, Most: 2, RetryAfter: func(int) time.Duration { return probeAge },
	})}
}

// answered reports whether the store answers a call of this kind. Each probe has another key, so that no partition that
// is in trouble speaks for the store. The write is refused, because there is no such claim.
func (p *probes) answered(ctx context.Context, kind access) bool {
	_, err := p.known.Get(ctx, kind, func(ctx context.Context) (struct{}, error) {
		k := job.Key{Tenant: job.Everyone, ID: job.ID("probe-" + strconv.FormatInt(p.made.Add(1), 10))}
		var err error
		if kind == reading {
			_, err = p.store.Claim(ctx, k)
		} else {
			err = p.store.Put(ctx, item.Write{Ref: k.ClaimRef(), Name: "claim.probe",
				Set:  map[string]any{"attempt": int64(0)},
				When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}}})
		}
		if store.Refused(err) != nil || ofOneKey(fault.KindOf(err)) {
			return struct{}{}, nil
		}
		return struct{}{}, err
	})
	return err == nil
}

// tenantsInTrouble bounds how many tenants are known to be in trouble; beyond it all are forgotten.
const tenantsInTrouble = 1000

// The time for which the firings of a tenant stay away: from the first, doubled, to the last.
const (
	awayFirst = 500 * time.Millisecond
	awayLast  = 30 * time.Second
)

// troubles keeps the firings of a tenant away from the slots when calls for several of its jobs got no answer and none
// has been answered since. Each such call may take callTime, in a slot that another tenant's job could have.
type troubles struct {
	mu    sync.Mutex
	known map[tenant.ID]*trouble
}

type trouble struct {
	job      job.ID    // whose call failed last
	failures int       // of others than job, in a row
	until    time.Time // the firings stay away
	trial    job.ID    // the firing that tries whether calls are answered again; "" for none
}

// away returns how long a firing stays away; 0 if it may go on. After each time one firing goes on as a trial.
func (t *troubles) away(k job.Key, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[k.Tenant]
	switch {
	case known == nil || known.failures == 0 || known.trial == k.ID:
		return 0
	case now.Before(known.until):
		return known.until.Sub(now)
	}
	known.trial, known.until = k.ID, now.Add(callTime)
	return 0
}

// failed notes that a call for a job got no answer, although the store answers.
func (t *troubles) failed(k job.Key, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[k.Tenant]
	switch {
	case known == nil:
		if t.known == nil || len(t.known) >= tenantsInTrouble {
			t.known = map[tenant.ID]*trouble{}
		}
		t.known[k.Tenant] = &trouble{job: k.ID}
		return
	case known.failures == 0 && known.job == k.ID: // it may be this job alone
		return
	case known.failures > 0 && known.trial != k.ID && now.Before(known.until): // several failed at once
		return
	}
	known.job, known.trial = k.ID, ""
	known.until = now.Add(doubled(awayFirst, known.failures, awayLast))
	known.failures++
}

// answered notes that the calls for a firing were answered.
func (t *troubles) answered(k job.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, k.Tenant)
}

// ofOneKey says whether a fault concerns only the key that was asked for: a transaction holds it,
// its partition is hot, or its item is broken. Anything else, such as an outage or a missing grant,
// may concern the store.
func ofOneKey(kind fault.Kind) bool {
	switch kind {
	case fault.Conflict, fault.Throttled, fault.Undecodable, fault.Invalid, fault.TooLarge:
		return true
	}
	return false
}
