package recur

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
)

// Admit says what the schedule of a job that is about to be fired or to expire wants: the job may have to be parked,
// skipped, left to promotion, or queued behind another run.
func (r *Recurrer) Admit(
	ctx context.Context, row job.Row, claim job.Claim, step job.Step, now time.Time,
) (Verdict, error) {
	if row.ManualOf != "" && step == job.StepFire {
		if v, held, err := r.keyHeld(ctx, row, claim, now); held || err != nil {
			return v, err
		}
	}
	switch {
	case schedule.Obeys(row) && step == job.StepFire && !job.HasStarted(row, claim):
		return r.obey(ctx, row, now)
	case row.ScheduleID == "" && row.StartsRun() && step == job.StepFire:
		return Verdict{Step: Began}, nil // a run that was requested by REST
	case row.ScheduleID == "":
		return Verdict{Step: step}, nil
	}
	return r.admit(ctx, row, claim, step, now)
}

// Forget has the next verdict read the schedule of a job from the table: a write that followed the last one was
// refused.
func (r *Recurrer) Forget(row job.Row) { r.schedules.Drop(keyOf(row)) }

// obey says what becomes of a job, or a run, that a person asked for and that obeys the overlap policy.
func (r *Recurrer) obey(ctx context.Context, row job.Row, now time.Time) (Verdict, error) {
	s, err := r.known(ctx, keyOf(row))
	if err != nil {
		return Verdict{Step: job.StepFire}, err
	}
	return r.overlap(ctx, s.For(row), row, now)
}

func (r *Recurrer) admit(
	ctx context.Context, row job.Row, claim job.Claim, step job.Step, now time.Time,
) (Verdict, error) {
	s, err := r.known(ctx, keyOf(row))
	if fault.KindOf(err) == fault.NotFound { // no item of a schedule is ever deleted, but an accepted job must run
		return Verdict{Step: step}, nil
	}
	if fault.KindOf(err) == fault.Undecodable { // the job waits until its schedule can be read
		r.Log.ErrorContext(ctx, "a job was deferred: its schedule cannot be read",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		return Verdict{Step: Left, WakeAt: now.Add(job.Postpone(row.Postponed)), Postponed: row.Postponed + 1}, nil
	}
	if err != nil {
		return Verdict{Step: step}, err
	}
	s = s.For(row) // the rule of then
	started := job.HasStarted(row, claim)
	// Promotion decides about a job that is left, before the wake-up that it gets.
	left := Verdict{Step: Left, Schedule: s, WakeAt: now.Add(contract.Grace)}
	switch s.ValidityOf(row, started) {
	case schedule.IsPaused:
		if step != job.StepExpire {
			step = job.StepPark
		}
		return Verdict{Step: step, Schedule: s}, nil
	case schedule.IsDeleted, schedule.Passed:
		if v, over := givenUp(s, row, started, now); over {
			return v, nil
		}
		return left, nil
	case schedule.ToBeAdopted:
		return left, nil
	}
	if step != job.StepFire || row.Attempt > 1 {
		return Verdict{Step: step, Schedule: s}, nil
	}
	if row.StartsRun() && tooEarly(s, row, now) {
		if row.Parked { // firing it unparks it
			return Verdict{Step: step, Schedule: s}, nil
		}
		return Verdict{Step: Left, Schedule: s}, nil
	}
	// A short pause may be lifted before it has parked the job.
	if !started && !row.QueuedBehind && !row.DueAt.After(now) {
		why, skipped, err := r.leftOut(ctx, s, row, now)
		if skipped || err != nil {
			return Verdict{Step: Skipped, Schedule: s, Why: why}, err
		}
	}
	if v, held, err := r.keyHeld(ctx, row, claim, now); held || err != nil {
		v.Schedule = s
		return v, err
	}
	if v, used, err := r.usedUp(ctx, s, row); used || err != nil {
		return v, err
	}
	if started { // no rule ends it, but its worker may have been lost before it took the slot, or was counted
		return r.queueBehindOther(ctx, s, row)
	}
	return r.overlap(ctx, s, row, now)
}

// givenUp returns how a job ends that its schedule has given up; over is false for any other, and until the job is due:
// an edit may bring its nominal time back.
func givenUp(s schedule.Schedule, row job.Row, started bool, now time.Time) (v Verdict, over bool) {
	switch s.ValidityOf(row, started) {
	case schedule.IsDeleted, schedule.Passed:
	default:
		return v, false
	}
	v = Verdict{Step: Skipped, Schedule: s, Why: s.SkipReason(row)}
	if started {
		v.Step = job.StepFinishStop
	}
	return v, !row.DueAt.After(now)
}

// GivenUp returns how a job ends that its schedule has given up, whatever else holds it; over is false for any other. A
// job whose schedule cannot be read goes on to wait.
func (r *Recurrer) GivenUp(
	ctx context.Context, row job.Row, claim job.Claim, now time.Time,
) (v Verdict, over bool, err error) {
	if row.ScheduleID == "" {
		return v, false, nil
	}
	s, err := r.known(ctx, keyOf(row))
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Undecodable:
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	v, over = givenUp(s.For(row), row, job.HasStarted(row, claim), now)
	return v, over, nil
}

// Paused says whether the job's schedule is paused, as the table has it now.
func (r *Recurrer) Paused(ctx context.Context, row job.Row, claim job.Claim) (bool, error) {
	r.Forget(row)
	s, err := r.known(ctx, keyOf(row))
	return err == nil && s.ValidityOf(row, job.HasStarted(row, claim)) == schedule.IsPaused, err
}

// leftOut says whether a late job is skipped: by what a pause said that has ended, or by the catch-up policy.
func (r *Recurrer) leftOut(
	ctx context.Context, s schedule.Schedule, row job.Row, now time.Time,
) (why job.Reason, skipped bool, err error) {
	lifted, err := r.Store.Lifted(ctx, row.Tenant, row.Task, now)
	if err != nil {
		return why, false, err
	}
	if why, skipped = dropped(s, row, lifted); skipped {
		return why, true, nil
	}
	return r.missed(ctx, s, row, lifted, now)
}

// dropped says whether a job was due during a pause of its task, or of everything, that wanted it skipped. This is
// decided after the pause: only then it is known which missed time was the last.
func dropped(s schedule.Schedule, row job.Row, lifted job.Pauses) (why job.Reason, skipped bool) {
	for _, p := range lifted {
		if !s.DroppedBy(p, row) {
			continue
		}
		says := p.Missed
		if says == "" {
			says = "catch_up " + string(s.CatchUp.Policy)
		}
		return job.Reason{Code: job.CodePaused,
			Message: fmt.Sprintf("it passed under a pause of %s, which said: %s", p.Scope, says)}, true
	}
	return why, false
}

// missed says whether a job is late and left out by its catch-up policy.
func (r *Recurrer) missed(
	ctx context.Context, s schedule.Schedule, row job.Row, lifted job.Pauses, now time.Time,
) (why job.Reason, missed bool, err error) {
	why, missed = s.Missed(row, lifted, now)
	if !missed && s.Asks(row, lifted, now) {
		last, err := r.Store.CaughtUp(ctx, s.Key)
		if err != nil {
			return why, false, err
		}
		if missed = last.Decides(row); missed {
			why = s.MissedForAnother(last)
		}
	}
	return why, missed, nil
}

// usedUp says whether the schedule of a job has reached its max_runs without it.
func (r *Recurrer) usedUp(ctx context.Context, s schedule.Schedule, row job.Row) (v Verdict, used bool, err error) {
	if !s.CountsRuns() {
		return v, false, nil
	}
	counted, full, err := r.Store.RunsOf(ctx, s, row.ID)
	if err != nil || counted || s.MayRun(row.NominalAt, full) {
		return Verdict{Step: Skipped}, false, err
	}
	why := job.Reason{Code: job.CodeMaxRuns, Message: "each calendar that has this time has run as often as its " +
		"max_runs says"}
	if s.Specs == nil {
		why.Message = fmt.Sprintf("the schedule has run %d times, which is its max_runs", s.MaxRuns()[0])
	}
	return Verdict{Step: Skipped, Schedule: s, Why: why, Uncounted: true}, true, nil
}

// Spend notes which calendars of a schedule have reached their max_runs, and ends the schedule if all have. One without
// a next time, or of which that is known, is left as it is: then spent is false.
func (r *Recurrer) Spend(
	ctx context.Context, s schedule.Schedule, now time.Time,
) (after schedule.Schedule, spent bool, err error) {
	if s.Next.IsZero() || !s.CountsRuns() {
		return s, false, nil
	}
	_, full, err := r.Store.RunsOf(ctx, s, "")
	if err != nil || !s.NewlySpent(full) {
		return s, false, err
	}
	s.Announced = r.Announced(ctx, s.Tenant)
	after, write, err := schedule.Spend(s, full, now)
	if err != nil {
		return s, false, err
	}
	return after, true, r.Store.Put(ctx, write)
}

// End is Spend after a job was skipped for that. Where the schedule has changed meanwhile, promotion does it.
func (r *Recurrer) End(ctx context.Context, s schedule.Schedule, now time.Time) error {
	after, spent, err := r.Spend(ctx, s, now)
	if spent && err == nil {
		r.AnnounceOrLater(ctx, after)
	}
	return unlessRefused(err)
}

// fires says that nothing holds a job back; the run that a row represents begins.
func (r *Recurrer) fires(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) (Verdict, error) {
	if row.StartsRun() {
		return r.begin(ctx, s, row, now)
	}
	return Verdict{Step: job.StepFire, Schedule: s}, nil
}

// overlap says what becomes of a job while another run of its schedule may not be over.
func (r *Recurrer) overlap(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) (Verdict, error) {
	if !s.Limited() {
		return r.fires(ctx, s, row, now)
	}
	slot, holder, err := r.holder(ctx, s, row)
	if err != nil {
		return Verdict{Step: job.StepFire}, err
	}
	if holder == nil { // in turn: while the job of an earlier time is open, it queues
		next, err := r.ahead(ctx, s, slot, row.NominalAt)
		if err != nil || next != nil {
			return Verdict{Step: Queued, Schedule: s}, err
		}
		return r.fires(ctx, s, row, now)
	}
	waiting, err := r.waiting(ctx, row, slot)
	if err != nil {
		return Verdict{Step: job.StepFire}, err
	}
	action, displaced := s.OnOverlap(row, waiting)
	v := Verdict{Step: Queued, Schedule: s, Why: job.Reason{Code: job.CodeOverlap,
		Message: fmt.Sprintf("job %s of the schedule was not over, and overlap is %s", holder.ID, s.Overlap)}}
	if action == schedule.ActionSkip {
		v.Step = Skipped
		return v, nil
	}
	if s.Overlap != schedule.OverlapBufferAll && slot.Waiting != row.ID {
		v.Queue.Waits = new(s.Wait(row.ID, slot))
	}
	if displaced && waiting.Status != "" {
		v.Queue.Displaced = waiting
	}
	if action == schedule.ActionCancel && holder.Status != "" {
		v.Queue.Cancelled = holder
	}
	return v, nil
}

// queueBehindOther queues a job that has started, and was lost, behind another one that holds the slot. With the slot
// free, or its own, the job is fired.
func (r *Recurrer) queueBehindOther(ctx context.Context, s schedule.Schedule, row job.Row) (Verdict, error) {
	if !s.Limited() {
		return Verdict{Step: job.StepFire, Schedule: s}, nil
	}
	_, holder, err := r.holder(ctx, s, row)
	if err != nil || holder == nil {
		return Verdict{Step: job.StepFire, Schedule: s}, err
	}
	return Verdict{Step: Queued, Schedule: s}, nil
}

// InTurn returns what is to be decided about once a job was queued, as the holder of the slot may have ended before
// that: the first job that waits, or nothing.
func (r *Recurrer) InTurn(ctx context.Context, s schedule.Schedule, row job.Row) ([]effect.Wake, error) {
	slot, holder, err := r.holder(ctx, s, row)
	if err != nil || holder != nil {
		return nil, err
	}
	next, err := r.ahead(ctx, s, slot, row.NominalAt)
	switch {
	case err != nil:
		return nil, err
	case next == nil:
		return wake(row.Key), nil
	case !next.QueuedBehind: // its firing is on its way
		return nil, nil
	}
	return wake(next.Key), nil
}
