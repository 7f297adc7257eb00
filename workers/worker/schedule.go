package worker

import (
	"context"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// catchesUp lets an attempt that is late start where catch-up starts one of those that are late. false: another one
// has started.
func (w *Worker) catchesUp(seen *facts, l lease) (ok bool, err error) {
	s, r := seen.schedule, &seen.row
	if s == nil || hasStarted(r, l) || !s.Asks(*r, seen.lifted, w.clock.Now()) {
		return true, nil
	}
	ctx, cancel := w.call()
	defer cancel()
	for range claimTries {
		last, err := w.store.CaughtUp(ctx, s.Key)
		if err != nil || last.Decides(*r) {
			return false, err
		}
		if last.By == r.ID {
			return true, nil
		}
		if err = w.store.Put(ctx, s.CatchUpLast(*r, last, w.clock.Now())); store.Refused(err) == nil {
			return err == nil, err
		}
	}
	return false, nil // others start all the time: the job is decided about anew
}

// takesSlot takes the schedule's slot, if runs of the schedule may not overlap. false: another run
// holds it.
func (w *Worker) takesSlot(seen *facts) (ok bool, err error) {
	s, r := seen.schedule, &seen.row
	if r.Attempt > 1 || !schedule.Obeys(*r) && (s == nil || !s.Limited()) {
		return true, nil
	}
	ctx, cancel := w.call()
	defer cancel()
	k := schedule.KeyOfJob(*r)
	if s != nil && s.Overlap == schedule.OverlapBufferAll {
		slot, err := w.store.Slot(ctx, k)
		if err != nil {
			return false, err
		}
		first, err := schedule.FirstOpen(ctx, w.eachRow, *s, slot, r.NominalAt, w.clock.Now())
		if err != nil || first != nil {
			return false, err
		}
	}
	err = w.store.Put(ctx, k.TakeSlot(r.ID))
	for range claimTries {
		refused := store.Refused(err)
		if refused == nil {
			return err == nil, err
		}
		holder := schedule.ParseSlot(refused.Olds[0]).Holder
		if holder == "" || holder == r.ID {
			err = w.store.Put(ctx, k.TakeSlot(r.ID))
			continue
		}
		over, err2 := w.hasEnded(ctx, job.Key{Tenant: r.Tenant, ID: holder})
		if err2 != nil || !over {
			return false, err2
		}
		err = w.store.Put(ctx, k.TakeSlotFrom(r.ID, holder))
	}
	return false, nil // the slot keeps changing its holder: some run is going on
}

// eachRow reads rows one after the other: the first is usually the one that is open.
func (w *Worker) eachRow(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error) {
	rows, there = make([]job.Row, len(keys)), make([]bool, len(keys))
	for n, k := range keys {
		rows[n], err = w.store.Row(ctx, k)
		switch kind := fault.KindOf(err); {
		case err == nil:
			there[n] = true
		case kind != fault.NotFound && kind != fault.Undecodable:
			return nil, nil, err
		}
		if there[n] && rows[n].Status.Open() && !rows[n].IsPaused() {
			break
		}
	}
	return rows, there, nil
}

// hasEnded says whether the job that holds a slot holds nothing any more. Of one whose row cannot
// be read no attempt can start: it has ended unless a worker is at it.
func (w *Worker) hasEnded(ctx context.Context, k job.Key) (bool, error) {
	r, err := w.store.Row(ctx, k)
	switch fault.KindOf(err) {
	case fault.NotFound:
		return true, nil
	case fault.Undecodable:
		c, err := w.store.Claim(ctx, k)
		if fault.KindOf(err) == fault.Undecodable {
			return true, nil
		}
		return err == nil && !c.MayRun(w.clock.Now()), err
	}
	return err == nil && r.Status.Final(), err
}

// countsRun counts the attempt among the runs of the schedule's calendars that have its time. false: they have run as
// often as they may.
func (w *Worker) countsRun(seen *facts) (ok bool, err error) {
	s, r := seen.schedule, &seen.row
	if s == nil || r.Attempt > 1 || !s.CountsRuns() {
		return true, nil
	}
	ctx, cancel := w.call()
	defer cancel()
	full := make([]bool, len(s.Calendars()))
	for range len(full) + 1 { // each refusal but that of the note shows one more that is full
		writes := s.CountRun(*r, full)
		if len(writes) == 0 {
			return s.MayRun(r.NominalAt, full), nil
		}
		err = w.store.Commit(ctx, writes...)
		refused := store.Refused(err)
		if refused == nil {
			return err == nil, err
		}
		if _, counted := refused.Olds[0]; counted {
			return true, nil
		}
		full = s.FullBy(full, writes, refused)
	}
	return false, nil
}

// admitToSchedule takes the schedule's slot for an attempt that is due, and counts the run.
func (w *Worker) admitToSchedule(a *attempt) disposition {
	why := "another run of its schedule is not over"
	ok, err := w.takesSlot(a.seen)
	if ok && err == nil {
		why = "another job of its schedule that is late has started"
		ok, err = w.catchesUp(a.seen, a.l)
	}
	if ok && err == nil {
		why = "its schedule has run as often as it may"
		ok, err = w.countsRun(a.seen)
	}
	switch {
	case fault.KindOf(err) == fault.Undecodable:
		return cannotDecode("read a schedule's slot that this worker cannot decode", err)
	case err != nil:
		return noAnswer(writing, "taking the slot of a schedule", err)
	case !ok:
		return reevaluate(a, why)
	}
	return disposition{}
}
