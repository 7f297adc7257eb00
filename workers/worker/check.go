package worker

import (
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/contract"
	"punctual/shared/job" // run is a word of this package
	"punctual/shared/schedule"
)

// check reads what the start of a claimed attempt is decided by, and decides.
func (w *Worker) check(a *attempt) disposition {
	seen, err := w.readFacts(a.f)
	if err != nil {
		return unread(err)
	}
	a.seen = seen
	return w.decide(a)
}

// decide says whether the attempt may start by what was seen.
func (w *Worker) decide(a *attempt) disposition {
	seen, now := a.seen, w.clock.Now()
	_, held := seen.pauses.HoldRow(seen.row, now)
	verdict, why := job.MayStart(seen.row, a.l.before(a.f.attempt), a.f.version, a.f.attempt, held, now)
	if verdict == job.Start && seen.schedule != nil {
		why = w.refusedBySchedule(seen, a.l)
	}
	if verdict == job.Start && why == "" && seen.run != nil {
		why = seen.run.MayStart(seen.row, now)
	}
	if verdict == job.Start && why == "" && a.l.cancel {
		why = "cancel requested"
	}
	switch {
	case verdict == job.Stale:
		a.log.Debug("released a stale attempt", "why", why)
		return disposition{then: deleted}
	case verdict == job.Defer, verdict == job.Start && why != "":
		return reevaluate(a, why)
	}
	return disposition{} // a lost attempt is not started: it ends as what it is, whatever holds the job
}

// refusedBySchedule says why the attempt may not start by the rules of its schedule; "" if it may.
func (w *Worker) refusedBySchedule(seen *facts, l lease) string {
	if ok, validity := seen.schedule.MayStart(seen.row, hasStarted(&seen.row, l)); !ok {
		return validity
	}
	if hasStarted(&seen.row, l) { // its worker was lost: what decides about a start has let it start already
		return ""
	}
	if slices.ContainsFunc(seen.lifted, func(p job.Pause) bool { return seen.schedule.DroppedBy(p, seen.row) }) {
		return "it passed under a pause"
	}
	if late, is := seen.schedule.Missed(seen.row, seen.lifted, w.clock.Now()); is {
		return late.Message
	}
	return ""
}

// reevaluate releases an attempt that may not start, and has its job decided about anew.
func reevaluate(a *attempt, why string) disposition {
	a.log.Info("released an attempt that may not start", "why", why)
	return disposition{then: reevaluated}
}

// lastCheck reads, once an attempt is due that was claimed before, what may have changed since its row was read: a
// cancel or an expiry sets a flag on the claim, a pause is an item of its own, and an edit of a claimed job is refused.
// So the row need not be read again.
func (w *Worker) lastCheck(a *attempt) disposition {
	f, seen := a.f, a.seen
	if !seen.clock.Before(seen.row.DueAt) {
		return disposition{}
	}
	ctx, cancel := w.call()
	defer cancel()
	var reads errgroup.Group // all of them end: others share what is read
	var claim job.Claim
	reads.Go(func() (err error) {
		claim, err = w.store.Claim(ctx, f.key)
		return err
	})
	reads.Go(func() (err error) {
		seen.pauses, _, err = w.pauses.of(ctx, f.key.Tenant, lastCheckAge)
		return err
	})
	if seen.schedule != nil {
		k := schedule.Key{Tenant: seen.row.Tenant, Name: seen.row.ScheduleID}
		reads.Go(func() (err error) {
			seen.schedule, _, err = w.rules.of(ctx, k, lastCheckAge)
			return err
		})
	}
	if seen.run != nil {
		reads.Go(func() (err error) {
			seen.run, err = w.runOf(ctx, &seen.row)
			return err
		})
	}
	err := reads.Wait()
	seen.schedule = ruleOf(seen.schedule, &seen.row)
	if err != nil {
		return noAnswer(reading, "looking at a claim before its start", err)
	}
	if claim.Attempt != f.attempt || claim.Token != a.l.token || claim.Outcome != nil {
		a.log.Warn("lost the lease of an attempt before it could start")
		a.claimed = false
		return giveBackFor(0)
	}
	a.l.cancel = claim.Cancel
	return w.decide(a)
}

// readFacts reads what a start is decided by.
func (w *Worker) readFacts(f *firing) (*facts, error) {
	ctx, cancel := w.call()
	defer cancel()
	pauses, at, err := w.pauses.of(ctx, f.key.Tenant, pausesAge)
	if err != nil {
		return nil, err
	}
	seen := &facts{pauses: pauses, at: at, clock: w.clock.Now()}
	seen.row, err = w.store.Row(ctx, f.key) // read after at, which therefore holds for both
	if err == nil {
		seen.run, err = w.runOf(ctx, &seen.row)
	}
	if err != nil || seen.row.ScheduleID == "" {
		return seen, err
	}
	seen.schedule, at, err = w.rules.of(ctx, schedule.Key{Tenant: seen.row.Tenant, Name: seen.row.ScheduleID},
		pausesAge)
	seen.schedule = ruleOf(seen.schedule, &seen.row)
	if at.Before(seen.at) {
		seen.at = at
	}
	// No process may have met its firing while the pause held: then no process has parked it.
	if err == nil && seen.row.Attempt == 1 && seen.clock.After(seen.row.DueAt) {
		seen.lifted, err = w.pauses.lifted(ctx, seen.row.Tenant, seen.row.Task, seen.clock)
	}
	return seen, err
}

// refresh checks the lease and the age of the facts right before the start, and reads old facts again.
func (w *Worker) refresh(a *attempt) disposition {
	for range claimTries {
		if a.l.left() <= 0 {
			a.log.Warn("released an attempt whose lease had nearly ended before its start")
			return giveBackFor(0)
		}
		if time.Since(a.seen.at) <= contract.RowMaxAge {
			return disposition{}
		}
		if d := w.check(a); d.then != goOn {
			return d
		}
	}
	// The answers are too old when they arrive: the table is too slow to start anything.
	return giveBackFor(backoff(a.f.receives, time.Second, time.Minute))
}

// ruleOf returns a schedule with the rule that its job keeps; nil for none.
func ruleOf(s *schedule.Schedule, r *job.Row) *schedule.Schedule {
	if s == nil {
		return nil
	}
	own := s.For(*r)
	return &own
}

// hasStarted reports whether the job had started before this worker claimed its attempt.
func hasStarted(r *job.Row, l lease) bool {
	return job.HasStarted(*r, l.before(r.Attempt))
}
