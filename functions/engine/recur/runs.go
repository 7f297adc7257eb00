package recur

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// The steps of a wake-up that only the jobs of schedules have.
const (
	Skipped job.Step = "skip"  // the schedule skips the job
	Left    job.Step = "leave" // promotion decides about the job, or it is too early
	Began   job.Step = "begin" // the run that the row represents has begun
)

// keyOf names the schedule that the row belongs to.
func keyOf(r job.Row) schedule.Key { return schedule.KeyOfJob(r) }

// known returns a schedule as it was at most a second ago.
func (r *Recurrer) known(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	return r.schedules.Get(ctx, k,
		func(ctx context.Context) (schedule.Schedule, error) { return r.Store.Schedule(ctx, k) })
}

// Admit asks the schedule of a job that is about to be fired or to expire; it is a decide.Gate. The job may have to
// be parked, skipped, left to promotion, or queued behind another run.
func (r *Recurrer) Admit(
	ctx context.Context, d *decide.Decider, row job.Row, claim job.Claim, step job.Step, now time.Time,
) (is job.Step, done bool, err error) {
	switch {
	case schedule.Obeys(row) && step == job.StepFire && !job.HasStarted(row, claim):
		return r.obey(ctx, d, row, now)
	case row.ScheduleID == "" && row.StartsRun() && step == job.StepFire:
		return r.begin(ctx, d, nil, row, now)
	case row.ScheduleID == "":
		return step, false, nil
	}
	is, done, err = r.admit(ctx, d, row, claim, step, now)
	if store.Refused(err) != nil {
		r.schedules.Drop(keyOf(row)) // the schedule may have changed
	}
	return is, done, err
}

// obey decides about a job, or a run, that a person asked for and that obeys the overlap policy.
func (r *Recurrer) obey(
	ctx context.Context, d *decide.Decider, row job.Row, now time.Time,
) (is job.Step, done bool, err error) {
	s, err := r.known(ctx, keyOf(row))
	if err != nil {
		return job.StepFire, true, err
	}
	s = s.For(row)
	is, done, err = r.overlap(ctx, d, s, row, now)
	if is == job.StepFire && !done && row.StartsRun() {
		is, done, err = r.begin(ctx, d, &s, row, now)
	}
	if store.Refused(err) != nil {
		r.schedules.Drop(keyOf(row))
	}
	return is, done, err
}

func (r *Recurrer) admit(
	ctx context.Context, d *decide.Decider, row job.Row, claim job.Claim, step job.Step, now time.Time,
) (is job.Step, done bool, err error) {
	s, err := r.known(ctx, keyOf(row))
	if fault.KindOf(err) == fault.NotFound { // no item of a schedule is ever deleted, but an accepted job must run
		return step, false, nil
	}
	if fault.KindOf(err) == fault.Undecodable { // the job waits until its schedule can be read
		r.Log.ErrorContext(ctx, "a job was deferred: its schedule cannot be read",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		_, write := job.Rewake(row, now.Add(job.Postpone(row.Postponed)), now, row.Postponed+1)
		return Left, true, r.Store.Put(ctx, write)
	}
	if err != nil {
		return step, true, err
	}
	s = s.For(row) // the rule of then
	started := job.HasStarted(row, claim)
	switch s.ValidityOf(row, started) {
	case schedule.IsPaused:
		if step == job.StepExpire {
			return step, false, nil
		}
		step, err = d.Park(ctx, row, now, func() (bool, error) {
			r.schedules.Drop(s.Key)
			s, err := r.known(ctx, s.Key)
			return err == nil && s.ValidityOf(row, started) == schedule.IsPaused, err
		})
		return step, true, err
	case schedule.IsDeleted, schedule.Passed:
		if row.DueAt.After(now) { // until it is due, an edit may bring its nominal time back
			return Left, true, r.leave(ctx, row, now)
		}
		if started {
			return job.StepFinishStop, true, d.Stop(ctx, row, s.SkipReason(row), now)
		}
		return Skipped, true, d.Skip(ctx, row, s.SkipReason(row), schedule.Is(s), now)
	case schedule.ToBeAdopted:
		return Left, true, r.leave(ctx, row, now)
	}
	if step != job.StepFire || row.Attempt > 1 {
		return step, false, nil
	}
	if row.StartsRun() && tooEarly(s, row, now) {
		if row.Parked { // firing it unparks it
			return step, false, nil
		}
		return Left, true, r.Queue.Send(ctx, contract.DispatchQueue, row.Firing().AtDue(now))
	}
	if started { // no rule ends it, but its worker may have been lost before it took the slot, or was counted
		if done, err := r.usedUp(ctx, d, s, row, now); done || err != nil {
			return Skipped, true, err
		}
		return r.queueBehindOther(ctx, d, s, row, now)
	}
	if !row.QueuedBehind && !row.DueAt.After(now) { // a short pause may be lifted before it has parked the job
		lifted, err := r.Store.Lifted(ctx, row.Tenant, row.Task, now)
		if err != nil {
			return step, true, err
		}
		if done, err := r.dropped(ctx, d, s, row, lifted, now); done || err != nil {
			return Skipped, true, err
		}
		if done, err := r.missed(ctx, d, s, row, lifted, now); done || err != nil {
			return Skipped, true, err
		}
	}
	if done, err := r.usedUp(ctx, d, s, row, now); done || err != nil {
		return Skipped, true, err
	}
	is, done, err = r.overlap(ctx, d, s, row, now)
	if is == job.StepFire && !done && row.StartsRun() {
		return r.begin(ctx, d, &s, row, now)
	}
	return is, done, err
}

// leave gives the row a later wake-up; promotion decides about the job before that.
func (r *Recurrer) leave(ctx context.Context, row job.Row, now time.Time) error {
	_, write := job.Rewake(row, now.Add(contract.Grace), now, 0)
	return r.Store.Put(ctx, write)
}

// dropped skips a job that was due during a pause of its task, or of everything, if that pause says so. This is decided
// after the pause: only then it is known which missed time was the last.
func (r *Recurrer) dropped(ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row,
	lifted job.Pauses, now time.Time) (bool, error) {
	for _, p := range lifted {
		if !s.DroppedBy(p, row) {
			continue
		}
		says := p.Missed
		if says == "" {
			says = "catch_up " + string(s.CatchUp.Policy)
		}
		why := job.Reason{Code: job.CodePaused,
			Message: fmt.Sprintf("it passed under a pause of %s, which said: %s", p.Scope, says)}
		return true, d.Skip(ctx, row, why, schedule.Is(s), now)
	}
	return false, nil
}

// missed skips a job that is late and that its catch-up policy leaves out.
func (r *Recurrer) missed(ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row,
	lifted job.Pauses, now time.Time) (bool, error) {
	why, missed := s.Missed(row, lifted, now)
	if !missed && s.Asks(row, lifted, now) {
		last, err := r.Store.CaughtUp(ctx, s.Key)
		if err != nil {
			return false, err
		}
		if missed = last.Decides(row); missed {
			why = s.MissedForAnother(last)
		}
	}
	if !missed {
		return false, nil
	}
	return true, d.Skip(ctx, row, why, schedule.Is(s), now)
}

// usedUp skips a job whose schedule has reached its max_runs, and ends the schedule.
func (r *Recurrer) usedUp(ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row,
	now time.Time) (bool, error) {
	if s.MaxRuns() == 0 {
		return false, nil
	}
	counted, left, err := r.Store.RunsLeft(ctx, s, row.ID)
	if err != nil || counted || left {
		return false, err
	}
	why := job.Reason{Code: job.CodeMaxRuns,
		Message: fmt.Sprintf("the schedule has run %d times, which is its max_runs", s.MaxRuns())}
	if err := d.SkipUncounted(ctx, row, why, schedule.Is(s), now); err != nil || s.Next.IsZero() {
		return true, err
	}
	_, write := schedule.End(s, job.CodeMaxRuns, now)
	return true, unlessRefused(r.Store.Put(ctx, write))
}

// unlessRefused returns nil for a refusal: another process has done the same, or undone it.
func unlessRefused(err error) error {
	if store.Refused(err) != nil {
		return nil
	}
	return err
}

// overlap decides about a job while another run of its schedule may not be over.
func (r *Recurrer) overlap(
	ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row, now time.Time,
) (is job.Step, done bool, err error) {
	if !s.Limited() {
		return job.StepFire, false, nil
	}
	slot, holder, err := r.holder(ctx, s, row)
	if err != nil {
		return job.StepFire, true, err
	}
	if holder == nil {
		return r.inTurn(ctx, d, s, slot, row, now)
	}
	waiting, err := r.waiting(ctx, row, slot)
	if err != nil {
		return job.StepFire, true, err
	}
	action, displaced := s.OnOverlap(row, waiting)
	over := job.Reason{Code: job.CodeOverlap,
		Message: fmt.Sprintf("job %s of the schedule was not over, and overlap is %s", holder.ID, s.Overlap)}
	if action == schedule.ActionSkip {
		return Skipped, true, d.Skip(ctx, row, over, schedule.Is(s), now)
	}
	if s.Overlap != schedule.OverlapBufferAll && slot.Waiting != row.ID {
		if err := r.Store.Put(ctx, s.Wait(row.ID, slot)); err != nil {
			return job.StepPark, true, err
		}
	}
	if displaced && waiting.Status != "" {
		if err := unlessRefused(d.Skip(ctx, *waiting, over, schedule.Is(s), now)); err != nil {
			return job.StepPark, true, err
		}
	}
	if err := r.queue(ctx, s, row, now); err != nil {
		return job.StepPark, true, err
	}
	if action == schedule.ActionCancel && holder.Status != "" {
		why := job.Reason{Code: job.CodeOverlap, Message: "a later run of its schedule took its place"}
		stop := func() error { return d.Stop(ctx, *holder, why, now) }
		if holder.StartsRun() {
			stop = func() error { return r.Runs.CancelLaunched(ctx, *holder, why.Message) }
		}
		if err := unlessRefused(stop()); err != nil {
			return job.StepPark, true, err
		}
	}
	return r.unlessFree(ctx, d, s, row)
}

// queueBehindOther queues a job that has started, and was lost, behind another one that holds the slot. With the slot
// free, or its own, the job is fired.
func (r *Recurrer) queueBehindOther(
	ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row, now time.Time,
) (is job.Step, done bool, err error) {
	if !s.Limited() {
		return job.StepFire, false, nil
	}
	_, holder, err := r.holder(ctx, s, row)
	if err != nil || holder == nil {
		return job.StepFire, err != nil, err
	}
	if err := r.queue(ctx, s, row, now); err != nil {
		return job.StepPark, true, err
	}
	return r.unlessFree(ctx, d, s, row)
}

// unlessFree decides anew about a job that was just queued: the holder may have ended before that.
func (r *Recurrer) unlessFree(ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row) (
	is job.Step, done bool, err error,
) {
	slot, holder, err := r.holder(ctx, s, row)
	if err != nil || holder != nil {
		return job.StepPark, true, err
	}
	next, err := r.ahead(ctx, s, slot, row.NominalAt)
	switch {
	case err != nil:
		return job.StepPark, true, err
	case next == nil:
		next = &row
	case !next.QueuedBehind: // its firing is on its way
		return job.StepPark, true, nil
	}
	_, err = d.Parked(ctx, next.Key)
	return job.StepPark, true, err
}

// inTurn fires a job while the slot is free, unless the job of an earlier time is open: then it queues.
func (r *Recurrer) inTurn(
	ctx context.Context, d *decide.Decider, s schedule.Schedule, slot schedule.Slot, row job.Row, now time.Time,
) (is job.Step, done bool, err error) {
	next, err := r.ahead(ctx, s, slot, row.NominalAt)
	if err != nil || next == nil {
		return job.StepFire, err != nil, err
	}
	if err := r.queue(ctx, s, row, now); err != nil {
		return job.StepPark, true, err
	}
	return r.unlessFree(ctx, d, s, row)
}

// ahead returns the open job of the earliest time before at that has not held the slot, under buffer_all; nil for none.
func (r *Recurrer) ahead(
	ctx context.Context, s schedule.Schedule, slot schedule.Slot, at time.Time,
) (*job.Row, error) {
	return schedule.FirstOpen(ctx, r.Store.Rows, s, slot, at, r.Clock.Now())
}

// queue parks a job as queued behind the one that holds the slot.
func (r *Recurrer) queue(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) error {
	if row.Parked && row.QueuedBehind {
		return nil
	}
	if err := errors.Join(r.Store.NoteQueue(ctx, s.Key, now), r.Store.NoteOpen(ctx, row)); err != nil {
		return err
	}
	_, write := job.ParkQueuedBehind(row, now)
	return r.Store.Put(ctx, write)
}

// holder reads the schedule's slot and the other job that holds it, nil if there is none or it has ended.
func (r *Recurrer) holder(ctx context.Context, s schedule.Schedule, row job.Row) (schedule.Slot, *job.Row, error) {
	slot, err := r.Store.Slot(ctx, s.Key)
	if err != nil || slot.Holder == "" || slot.Holder == row.ID {
		return slot, nil, err
	}
	holder, err := r.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Holder})
	return slot, holder, err
}

// waiting reads the other job that is queued behind the holder of the slot, nil if there is none or it has ended.
func (r *Recurrer) waiting(ctx context.Context, row job.Row, slot schedule.Slot) (*job.Row, error) {
	if slot.Waiting == "" || slot.Waiting == row.ID || slot.Waiting == slot.Holder {
		return nil, nil
	}
	return r.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Waiting})
}

// open reads a job, nil if it has ended or is gone. If its row cannot be read, no attempt can start, so the job counts
// as over unless a worker holds its claim; it is then returned with its key only.
func (r *Recurrer) open(ctx context.Context, k job.Key) (*job.Row, error) {
	row, err := r.Store.Row(ctx, k)
	switch {
	case fault.KindOf(err) == fault.NotFound || err == nil && row.Status.Final():
		return nil, nil
	case fault.KindOf(err) == fault.Undecodable:
		c, err := r.Store.Claim(ctx, k)
		if fault.KindOf(err) == fault.Undecodable || err == nil && !c.MayRun(r.Clock.Now()) {
			return nil, nil
		}
		return &job.Row{Key: k}, err
	}
	return &row, err
}
