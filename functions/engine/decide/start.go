package decide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/limits"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// starting is a job that is about to be fired or to expire, with what was read of it.
type starting struct {
	row    job.Row
	claim  job.Claim
	step   job.Step // job.StepFire or job.StepExpire
	window string   // that has passed, if it is to expire
	gently bool     // its firing may wait in a deep queue
	now    time.Time
}

// start asks whatever may hold the job back, in this order, and does what it says: its own pause, one of everything or
// of its task, then its run or its schedule, then its limits of work.
func (d *Decider) start(ctx context.Context, s starting, todo *effect.List) (job.Step, error) {
	if s.step == job.StepFire { // no pause holds up a deadline
		if s.row.IsPaused() {
			return d.keepPaused(ctx, s, todo)
		}
		held, err := d.held(ctx, s.row, s.now)
		if err != nil {
			return s.step, err
		}
		if held {
			return d.park(ctx, s, func() (bool, error) {
				d.Reread(s.row.Tenant)
				return d.held(ctx, s.row, s.now)
			})
		}
	}
	row, err := d.deferFirst(ctx, s.row, s.gently, s.now)
	if err != nil {
		return s.step, err
	}
	s.row = row
	if row.InRun() {
		return d.startNode(ctx, s, todo)
	}
	step, err := d.startJob(ctx, s, todo)
	if store.Refused(err) != nil {
		d.Schedules.Forget(row) // it may have changed
	}
	return step, err
}

// keepPaused leaves a paused job to its deadline, or ends it if its schedule has given it up.
func (d *Decider) keepPaused(ctx context.Context, s starting, todo *effect.List) (job.Step, error) {
	v, over, err := d.Schedules.GivenUp(ctx, s.row, s.claim, s.now)
	switch {
	case err != nil:
		return job.StepPark, err
	case over && v.Step == job.StepFinishStop:
		return v.Step, d.stopFor(ctx, s.row, v.Why, s.now, todo)
	case over:
		err := d.skip(ctx, s.row, v, s.now, todo)
		if store.Refused(err) != nil {
			d.Schedules.Forget(s.row) // it may have changed
		}
		return v.Step, err
	case s.row.WakeAt.After(s.now): // a worker has released an old firing
		return job.StepPark, nil
	}
	after, write := job.KeepPaused(s.row, s.now)
	return job.StepPark, d.Jobs.PutRow(ctx, after, write)
}

// startNode does what the run of a node's job says.
func (d *Decider) startNode(ctx context.Context, s starting, todo *effect.List) (job.Step, error) {
	for range tries {
		v, err := d.Runs.Admit(ctx, s.row, s.step, s.now)
		if err != nil {
			return s.step, err
		}
		switch v.Step {
		case job.StepFinishStop:
			return v.Step, d.stopFor(ctx, s.row, v.Why, s.now, todo)
		case job.StepPark:
			return d.park(ctx, s, func() (bool, error) { return d.Runs.Paused(ctx, s.row, s.now) })
		case runs.Reconciled:
			more, err := d.Runs.Reconcile(ctx, run.Of(s.row))
			todo.Add(more)
			if err != nil {
				return s.step, err
			}
			continue // what the run says now
		}
		return d.do(ctx, s, todo)
	}
	return s.step, fault.New(fault.Conflict, nil, "starting job %s: its run changed %d times meanwhile", s.row.ID,
		tries)
}

// tries bounds how often a run is asked because it had to be reconciled first.
const tries = 8

// startJob does what the schedule of a job says.
func (d *Decider) startJob(ctx context.Context, s starting, todo *effect.List) (job.Step, error) {
	v, err := d.Schedules.Admit(ctx, s.row, s.claim, s.step, s.now)
	for range tries {
		if err != nil || v.Step != recur.Supersedes {
			break
		}
		if err = d.supersede(ctx, s, *v.Holder, todo); err == nil {
			v, err = d.Schedules.Admit(ctx, s.row, s.claim, s.step, s.now)
		}
	}
	if err != nil {
		return s.step, err
	}
	switch v.Step {
	case recur.Supersedes:
		return s.step, fault.New(fault.Conflict, nil, "starting job %s: its unique key had %d holders meanwhile",
			s.row.ID, tries)
	case job.StepPark:
		return d.park(ctx, s, func() (bool, error) { return d.Schedules.Paused(ctx, s.row, s.claim) })
	case job.StepFinishStop:
		return v.Step, d.stopFor(ctx, s.row, v.Why, s.now, todo)
	case recur.Skipped:
		return v.Step, d.skip(ctx, s.row, v, s.now, todo)
	case recur.Left:
		return v.Step, d.leave(ctx, s, v)
	case recur.Began:
		return d.begin(ctx, s, v, todo)
	case recur.Queued:
		return job.StepPark, d.queue(ctx, s, v, todo)
	}
	return d.do(ctx, s, todo)
}

// do fires the job or has it expire, as neither a pause nor its schedule or run holds it back.
func (d *Decider) do(ctx context.Context, s starting, todo *effect.List) (job.Step, error) {
	switch {
	case s.step == job.StepExpire:
		return s.step, d.expire(ctx, s.row, s.claim, s.window, s.now, todo)
	case s.row.Limits != "":
		return d.within(ctx, s, todo)
	}
	return d.fireNow(ctx, s)
}

// fireNow sends the firing of a job, unless its last one is probably not lost.
func (d *Decider) fireNow(ctx context.Context, s starting) (job.Step, error) {
	back := s.claim.Waits.Until.Add(contract.Grace)
	if s.gently && s.claim.WaitsFor(s.row.Attempt) != "" && back.After(s.now) {
		return Postponed, d.postpone(ctx, s.row, back, s.now)
	}
	return d.refire(ctx, s.row, s.gently, s.now)
}

// park puts a job into a parking place, where the end of the pause finds it. The pause may have been lifted just before
// the job was there; so held is asked then, and if nothing holds the job any more, it is fired.
func (d *Decider) park(ctx context.Context, s starting, held func() (bool, error)) (job.Step, error) {
	row := s.row
	if row.Parked && !row.QueuedBehind && row.WaitsLimit == 0 {
		return job.StepPark, nil
	}
	if err := errors.Join(d.Jobs.NoteParked(ctx, row.Tenant, s.now), d.Jobs.NoteOpen(ctx, row)); err != nil {
		return job.StepPark, err
	}
	row, write := job.Park(row, s.now)
	if err := d.Jobs.PutRow(ctx, row, write); err != nil {
		return job.StepPark, err
	}
	if is, err := held(); is || err != nil {
		return job.StepPark, err
	}
	return job.StepFire, d.unpark(ctx, row, s.now)
}

// skip ends a job as skipped, under the condition that its schedule has not changed, where that has decided it.
func (d *Decider) skip(ctx context.Context, row job.Row, v recur.Verdict, now time.Time, todo *effect.List) error {
	var holds []item.Write
	if v.Schedule.Name != "" {
		holds = append(holds, schedule.Is(v.Schedule))
	}
	after, err := d.stop.Skip(ctx, row, v.Why, v.Uncounted || v.Unstarted, now, holds...)
	if err != nil {
		return err
	}
	todo.End(after)
	if v.Uncounted {
		return d.Schedules.End(ctx, v.Schedule, now)
	}
	return nil
}

// leave does nothing about a job yet: it gets a later wake-up, or a message that brings it back at its due time.
func (d *Decider) leave(ctx context.Context, s starting, v recur.Verdict) error {
	if v.WakeAt.IsZero() {
		return d.Queue.Send(ctx, contract.DispatchQueue, s.row.Firing().AtDue(s.now))
	}
	_, write := job.Rewake(s.row, v.WakeAt, s.now, v.Postponed)
	return d.Jobs.Put(ctx, write)
}

// begin creates the run that a row represents, in one transaction with the schedule's writes. If the transaction is
// refused, everything is decided anew. If there can be no run, the row ends.
func (d *Decider) begin(ctx context.Context, s starting, v recur.Verdict, todo *effect.List) (job.Step, error) {
	_, write := job.BeginRun(s.row, s.now)
	why, more, err := d.Runs.Launch(ctx, s.row, append([]item.Write{write}, v.With...)...)
	todo.Add(more)
	switch {
	case err != nil || why.Code == "":
		return recur.Began, err
	case s.row.ScheduleID == "":
		return recur.Skipped, d.stopFor(ctx, s.row, why, s.now, todo)
	}
	return recur.Skipped, d.skip(ctx, s.row, recur.Verdict{Schedule: v.Schedule, Why: why}, s.now, todo)
}

// queue parks a job as queued behind the one that holds the slot of its schedule, after the job that waited before is
// skipped, and then asks the holder to end if the schedule says so.
func (d *Decider) queue(ctx context.Context, s starting, v recur.Verdict, todo *effect.List) error {
	if w := v.Queue.Waits; w != nil {
		if err := d.Jobs.Put(ctx, *w); err != nil {
			return err
		}
	}
	if other := v.Queue.Displaced; other != nil {
		skipped := recur.Verdict{Schedule: v.Schedule, Why: v.Why}
		if err := d.skip(ctx, *other, skipped, s.now, todo); err != nil && store.Refused(err) == nil {
			return err
		}
	}
	if !s.row.Parked || !s.row.QueuedBehind {
		err := errors.Join(d.Jobs.NoteQueue(ctx, v.Schedule.Key, s.now), d.Jobs.NoteOpen(ctx, s.row))
		if err != nil {
			return err
		}
		_, write := job.ParkQueuedBehind(s.row, s.now)
		if err := d.Jobs.Put(ctx, write); err != nil {
			return err
		}
	}
	if holder := v.Queue.Cancelled; holder != nil {
		if err := d.displace(ctx, *holder, s.now, todo); err != nil && store.Refused(err) == nil {
			return err
		}
	}
	next, err := d.Schedules.InTurn(ctx, v.Schedule, s.row)
	todo.Wake = append(todo.Wake, next...)
	return err
}

// displace asks the job or the run that holds the slot of a schedule to end, for a later one.
func (d *Decider) displace(ctx context.Context, holder job.Row, now time.Time, todo *effect.List) error {
	why := job.Reason{Code: job.CodeOverlap, Message: "a later run of its schedule took its place"}
	if !holder.StartsRun() {
		return d.stopFor(ctx, holder, why, now, todo)
	}
	more, err := d.Runs.CancelLaunched(ctx, holder, why.Message)
	todo.Add(more)
	return err
}

// supersede ends the job that holds the unique key of one that has fallen due, and that no worker has claimed. If it
// has changed meanwhile, all is decided anew.
func (d *Decider) supersede(ctx context.Context, s starting, holder job.Row, todo *effect.List) error {
	why := job.Reason{Code: job.CodeSuperseded,
		Message: fmt.Sprintf("job %s fell due with the same unique key", s.row.ID)}
	if holder.Status == job.Blocked {
		after, write := job.EndBlocked(holder, job.Skipped, why, holder.Parents, s.now)
		_, err := ended(after, d.Jobs.PutRow(ctx, after, write), todo)
		return err
	}
	after, err := d.stop.Skip(ctx, holder, why, false, s.now)
	_, err = ended(after, err, todo)
	return err
}

// stopFor asks a job to end as cancelled, for the reason that its schedule or run gives.
func (d *Decider) stopFor(ctx context.Context, row job.Row, why job.Reason, now time.Time, todo *effect.List) error {
	after, ended, err := d.stop.Stop(ctx, row, why, now)
	if ended {
		todo.End(after)
	}
	return err
}

// deferFirst writes the next wake-up of a node's job before its run is asked: that may bring on the whole run, and
// whatever becomes of it, it keeps no later pass from other rows. The row that it returns counts as postponed as often
// as before; the step that is taken counts itself.
func (d *Decider) deferFirst(ctx context.Context, row job.Row, gently bool, now time.Time) (job.Row, error) {
	if !gently || !row.InRun() || row.Parked {
		return row, nil
	}
	after, write := job.Rewake(row, now.Add(job.Postpone(row.Postponed)), now, row.Postponed+1)
	if err := d.Jobs.PutRow(ctx, after, write); err != nil {
		return row, err
	}
	after.Postponed = row.Postponed
	return after, nil
}

// held says whether a pause of everything or of its task holds the job.
func (d *Decider) held(ctx context.Context, row job.Row, now time.Time) (bool, error) {
	pauses, err := d.pauses.Of(ctx, row.Tenant)
	if err != nil {
		return false, err
	}
	_, held := pauses.HoldRow(row, now)
	return held, nil
}

// within fires a job if its limits of work have a permit for it.
func (d *Decider) within(ctx context.Context, s starting, todo *effect.List) (job.Step, error) {
	v, err := d.Limits.Admit(ctx, s.row, s.claim, s.now)
	if err != nil {
		return s.step, err
	}
	switch v.Step {
	case limits.Waits:
		return v.Step, d.waitForPermit(ctx, s, v, todo)
	case limits.Skipped:
		after, err := d.stop.Skip(ctx, s.row, v.Why, false, s.now)
		if err == nil {
			todo.End(after)
		}
		return v.Step, err
	}
	if v.Ahead && !s.row.Parked && !s.gently {
		row, write := job.Ready(s.row, s.now)
		if err := d.Jobs.PutRow(ctx, row, write); err != nil {
			return job.StepFire, err
		}
		return job.StepFire, d.fire(ctx, row, "ready")
	}
	return d.fireNow(ctx, s)
}

// waitForPermit puts a job among those that wait for a permit of one of its limits. Permits of its other limits are
// given back first, if a worker has claimed the attempt and so may have taken some: it takes all of them, or none. A
// permit may have been given back just before the job was there; so those that wait are looked at once more then.
func (d *Decider) waitForPermit(ctx context.Context, s starting, v limits.Verdict, todo *effect.List) error {
	row := s.row
	if s.claim.Attempt == row.Attempt {
		freed, err := d.Limits.Free(ctx, row, row.Attempt, nil)
		if err != nil {
			return err
		}
		todo.Freed = append(todo.Freed, freed...)
	}
	if row.WaitsLimit != int64(v.No) {
		if err := errors.Join(d.Jobs.NoteWaitingKey(ctx, v.Key, s.now), d.Jobs.NoteOpen(ctx, row)); err != nil {
			return err
		}
		after, write := job.ParkForLimit(row, v.No, s.now)
		if err := d.Jobs.PutRow(ctx, after, write); err != nil {
			return err
		}
		if v.Unmarked {
			if err := d.Jobs.Put(ctx, v.Key.MarkWaiting(s.now)); err != nil {
				return err
			}
		}
		todo.Freed = append(todo.Freed, v.Key)
	}
	if v.Cancel != nil {
		why := job.Reason{Code: job.CodeReplaced, Message: "a later job took its place under limit " + v.Key.Name}
		if err := d.stopFor(ctx, *v.Cancel, why, s.now, todo); err != nil && store.Refused(err) == nil {
			return err
		}
	}
	return nil
}
