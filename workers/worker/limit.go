package worker

import (
	"context"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/limit"
)

// limitsOf reads the limits of work of a job, in the order of its list. One that is deleted, or was never there, bounds
// nothing: it is the zero Limit.
func (w *Worker) limitsOf(ctx context.Context, r *job.Row) (keys []limit.Key, are []limit.Limit, err error) {
	for _, each := range r.Limits.List() {
		k := limit.Key{Tenant: r.Tenant, LimitKey: each}
		l, err := w.store.Limit(ctx, k.Tenant, k.Name)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return nil, nil, err
		}
		if err != nil || l.Deleted {
			l = limit.Limit{}
		}
		keys, are = append(keys, k), append(are, l)
	}
	return keys, are, nil
}

// hasPermit looks, before an attempt is claimed, whether its limits have a permit left: where they have none, or where
// others wait, the job is decided about without a claim, which costs less. What is seen here holds for nothing.
func (w *Worker) hasPermit(a *attempt) disposition {
	if a.bounded == nil {
		return disposition{}
	}
	ctx, cancel := w.call()
	defer cancel()
	keys, are, err := w.limitsOf(ctx, a.bounded)
	if err != nil {
		return cannotRead(err)
	}
	now := w.clock.Now()
	for n, l := range are {
		full, err := w.isFull(ctx, l, keys[n], a.bounded, now)
		if err != nil {
			return cannotRead(err)
		}
		if full {
			return reevaluate(a, "a limit of work is full")
		}
	}
	return disposition{}
}

func cannotRead(err error) disposition {
	if fault.KindOf(err) == fault.Undecodable {
		return cannotDecode("read a limit of work that this worker cannot decode", err)
	}
	return noAnswer(reading, "reading a limit of work", err)
}

// isFull says whether a key has neither a permit nor a start left, or whether others wait for one. Of a wide limit only
// the first bucket is read: whether the others are full is seen when a permit is taken.
func (w *Worker) isFull(ctx context.Context, l limit.Limit, k limit.Key, r *job.Row, now time.Time) (bool, error) {
	if l.Name == "" {
		return false, nil
	}
	if l.Rate.Count > 0 {
		window, err := w.store.Window(ctx, k)
		if err != nil {
			return false, err
		}
		if next := window.Next(l.Rate, now); next.Sub(now) > limit.Soon {
			return true, nil
		}
	}
	head, err := w.store.Waiting(ctx, k)
	if err != nil || head.Holds(r.ID) {
		return false, err
	}
	waits := !head.Mark.IsZero() && r.ReadyAt.IsZero()
	full := l.MaxRunning > 0 && limit.Buckets(l.Widest) == 1 && head.N >= l.MaxRunning
	return waits || full, nil
}

// takePermits takes a permit of each limit of the job, and counts the start where a limit has a rate. A limit that has
// none left has the job decided about anew, which gives back what was taken of the others.
func (w *Worker) takePermits(a *attempt) disposition {
	r := &a.seen.row
	if r.Limits == "" {
		return disposition{}
	}
	ctx, cancel := w.call()
	defer cancel()
	keys, are, err := w.limitsOf(ctx, r)
	if err != nil {
		return cannotRead(err)
	}
	now := w.clock.Now()
	a.l.limits, a.l.permits = r.Limits, make([]int, len(are))
	for n, l := range are {
		if l.MaxRunning == 0 {
			continue
		}
		bucket, taken, err := w.store.TakePermit(ctx, l, keys[n], r.ID, r.Attempt, now)
		switch {
		case fault.KindOf(err) == fault.Conflict:
			return reevaluate(a, "a limit of work has just changed")
		case err != nil:
			return noAnswer(writing, "taking a permit", err)
		case !taken:
			return reevaluate(a, "a limit of work is full")
		}
		a.l.permits[n] = bucket
	}
	for n, l := range are {
		if l.Rate.Count == 0 {
			continue
		}
		if d := w.countStart(ctx, a, l.Rate, keys[n]); d.then != goOn {
			return d
		}
	}
	return disposition{}
}

// countStart counts a start under a rate, and waits for it for a moment.
func (w *Worker) countStart(ctx context.Context, a *attempt, rate limit.Rate, k limit.Key) disposition {
	for range claimTries {
		now := w.clock.Now()
		next, err := w.store.DrawStart(ctx, rate, k, now)
		switch {
		case err != nil:
			return noAnswer(writing, "counting a start under a limit of work", err)
		case next.IsZero():
			return disposition{}
		case next.Sub(now) > limit.Soon:
			return reevaluate(a, "the rate of a limit of work is used up")
		case !w.pause(next.Sub(now)):
			return giveBackFor(0)
		}
	}
	return reevaluate(a, "the rate of a limit of work is used up")
}
