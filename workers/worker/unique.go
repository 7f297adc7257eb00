package worker

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/store"
)

// takeKey takes the unique key of a schedule's job that is due. Where another job holds it, the job is decided about
// anew.
func (w *Worker) takeKey(a *attempt) disposition {
	r := &a.seen.row
	if !r.TakesKeyWhenDue() || r.Attempt > 1 || !r.HoldsKey(a.l.before(r.Attempt)) {
		return disposition{}
	}
	ctx, cancel := w.call()
	defer cancel()
	for range claimTries {
		now := w.clock.Now()
		h, err := w.store.KeyHolder(ctx, r.Tenant, r.Unique.Key, now)
		switch {
		case err != nil:
			return noAnswer(reading, "reading the holder of a unique key", err)
		case h.Holds && h.ID == r.ID:
			return disposition{}
		case h.Holds:
			return reevaluate(a, "another job holds its unique key")
		}
		err = w.store.Put(ctx, job.TakeKey(*r, h.Gone(), now))
		switch {
		case err == nil:
			return disposition{}
		case store.Refused(err) == nil:
			return noAnswer(writing, "taking a unique key", err)
		}
	}
	return reevaluate(a, "its unique key changes hands all the time")
}

// markStart marks on the claim that the attempt starts now, where the unique key of the job is free from its start on:
// a request that comes later must make a new job. The handler starts after that, unless the facts have become old
// meanwhile; then the job counts as started all the same.
func (w *Worker) markStart(a *attempt) disposition {
	f, r := a.f, &a.seen.row
	if !r.MarksStart() || a.l.begun > 0 {
		return disposition{}
	}
	from := time.Now()
	c, err := w.write(job.BeginAttempt(f.key, f.attempt, a.l.token, w.clock.Now().Add(contract.Lease), r.DueAt))
	switch {
	case store.Refused(err) != nil:
		a.log.Warn("lost the lease of an attempt before it could start")
		a.claimed = false
		return giveBackFor(0)
	case err != nil:
		return noAnswer(writing, "marking the start of an attempt", err)
	}
	a.l.from, a.l.begun, a.l.cancel = from, c.Begun, c.Cancel
	if c.Cancel {
		return reevaluate(a, "cancel requested")
	}
	return w.refresh(a)
}
