package recur

import (
	"context"
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

// What a wake-up of a schedule's job may come to besides the steps of every job.
const (
	Skipped job.Step = "skip"  // its schedule went on without it
	Left    job.Step = "leave" // promotion is to decide about it, or its time has not come
	Began   job.Step = "begin" // the run that its row stands for goes on
)

// keyOf names the schedule that the row belongs to.
func keyOf(r job.Row) schedule.Key { return schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID} }

// known returns a schedule as it was at most a second ago.
func (r *Recurrer) known(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	return r.schedules.Get(ctx, k,
		func(ctx context.Context) (schedule.Schedule, error) { return r.Store.Schedule(ctx, k) })
}

// Judge asks the schedule of a job that would be fired or expire; it is a decide.Judge. The job may
// have to be parked, skipped, left to promotion, or to wait behind another run.
func (r *Recurrer) Judge(
	ctx context.Context, d *decide.Decider, row job.Row, step job.Step, now time.Time,
) (is job.Step, done bool, err error) {
	switch {
	case row.ScheduleID == "" && row.StartsRun() && step == job.StepFire:
		return r.begin(ctx, d, nil, row, now)
	case row.ScheduleID == "":
		return step, false, nil
	}
	is, done, err = r.judge(ctx, d, row, step, now)
	if store.Refused(err) != nil {
		r.schedules.Drop(keyOf(row)) // it may be the schedule that has changed
	}
	return is, done, err
}

func (r *Recurrer) judge(
	ctx context.Context, d *decide.Decider, row job.Row, step job.Step, now time.Time,
) (is job.Step, done bool, err error) {
	s, err := r.known(ctx, keyOf(row))
	if fault.KindOf(err) == fault.NotFound { // nobody deletes one: the job was accepted, and runs
		return step, false, nil
	}
	if fault.KindOf(err) == fault.Undecodable { // the job can be read: it waits for its schedule
		r.Log.ErrorContext(ctx, "a job waits: its schedule cannot be read",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		_, write := job.Rewake(row, now.Add(job.Postpone(row.Postponed)), now, row.Postponed+1)
		return Left, true, r.Store.Put(ctx, write)
	}
	if err != nil {
		return step, true, err
	}
	switch s.StandingOf(row) {
	case schedule.IsPaused:
		step, err = d.Park(ctx, row, now, func() (bool, error) {
			r.schedules.Drop(s.Key)
			s, err := r.known(ctx, s.Key)
			return err == nil && s.StandingOf(row) == schedule.IsPaused, err
		})
		return step, true, err
	case schedule.IsDeleted, schedule.Passed:
		if row.DueAt.After(now) { // until then an edit may bring its time back
			return Left, true, r.leave(ctx, row, now)
		}
		if row.Attempt > 1 {
			return job.StepFinishStop, true, d.Stop(ctx, row, s.SkipReason(row), now)
		}
		return Skipped, true, d.Skip(ctx, row, s.SkipReason(row), schedule.Is(s), now)
	case schedule.ToBeJudged:
		return Left, true, r.leave(ctx, row, now)
	}
	if step != job.StepFire || row.Attempt > 1 {
		return step, false, nil
	}
	if row.StartsRun() && tooEarly(s, row, now) {
		if row.Parked { // it goes on its way again
			return step, false, nil
		}
		return Left, true, r.Queue.Send(ctx, contract.DispatchQueue, row.Firing().AtDue(now))
	}
	if !row.QueuedBehind && !row.DueAt.After(now) { // a short pause may be over before a job is parked
		if done, err := r.dropped(ctx, d, s, row, now); done || err != nil {
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

// leave gives the row a later wake-up: promotion comes by before.
func (r *Recurrer) leave(ctx context.Context, row job.Row, now time.Time) error {
	_, write := job.Rewake(row, now.Add(contract.Grace), now, 0)
	return r.Store.Put(ctx, write)
}

// dropped skips a job that fell due under a pause of its task, or of everything, where that pause
// said so: only now that it is lifted it is known which time under it was the last.
func (r *Recurrer) dropped(ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row,
	now time.Time) (bool, error) {
	lifted, err := r.Store.Lifted(ctx, row.Tenant, row.Task, now)
	if err != nil {
		return false, err
	}
	for _, p := range lifted {
		ended := p.EndedAt()
		if row.DueAt.Before(p.Since) || row.DueAt.After(ended) || !s.Drops(p.Missed, ended, row) {
			continue
		}
		why := job.Reason{Code: job.CodePaused,
			Message: fmt.Sprintf("it passed under a pause of %s, which said: %s", p.Scope, p.Missed)}
		return true, d.Skip(ctx, row, why, schedule.Is(s), now)
	}
	return false, nil
}

// usedUp skips a job of a schedule that has run as often as it may, and ends the schedule.
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
	if err := d.Skip(ctx, row, why, schedule.Is(s), now); err != nil || s.Next.IsZero() {
		return true, err
	}
	_, write := schedule.End(s, job.CodeMaxRuns, now)
	return true, unlessRefused(r.Store.Put(ctx, write))
}

// unlessRefused is no error where somebody else has done, or undone, the same meanwhile.
func unlessRefused(err error) error {
	if store.Refused(err) != nil {
		return nil
	}
	return err
}

// overlap decides about a job of which another run of its schedule may not be over.
func (r *Recurrer) overlap(
	ctx context.Context, d *decide.Decider, s schedule.Schedule, row job.Row, now time.Time,
) (is job.Step, done bool, err error) {
	if !s.Limited() {
		return job.StepFire, false, nil
	}
	slot, holder, err := r.holder(ctx, s, row)
	if err != nil || holder == nil {
		return job.StepFire, err != nil, err
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
	// The holder may have come to its end before the job stood in the line.
	if _, holder, err = r.holder(ctx, s, row); err != nil || holder != nil {
		return job.StepPark, true, err
	}
	_, err = d.Parked(ctx, row.Key)
	return job.StepPark, true, err
}

// queue parks a job behind the one that is not over.
func (r *Recurrer) queue(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) error {
	if row.Parked && row.QueuedBehind {
		return nil
	}
	if err := r.Store.NoteLine(ctx, s.Key, now); err != nil {
		return err
	}
	_, write := job.ParkQueuedBehind(row, now)
	return r.Store.Put(ctx, write)
}

// holder is the other job that has the slot and is not over, nil for none.
func (r *Recurrer) holder(ctx context.Context, s schedule.Schedule, row job.Row) (schedule.Slot, *job.Row, error) {
	slot, err := r.Store.Slot(ctx, s.Key)
	if err != nil || slot.Holder == "" || slot.Holder == row.ID {
		return slot, nil, err
	}
	holder, err := r.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Holder})
	return slot, holder, err
}

// waiting is the other job that waits behind the holder, nil for none.
func (r *Recurrer) waiting(ctx context.Context, row job.Row, slot schedule.Slot) (*job.Row, error) {
	if slot.Waiting == "" || slot.Waiting == row.ID || slot.Waiting == slot.Holder {
		return nil, nil
	}
	return r.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Waiting})
}

// open reads a job that is not over, nil when it is, or is gone. No attempt of a row that cannot
// be read can start; such a job is over unless a worker is at it. It comes without a status then.
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
