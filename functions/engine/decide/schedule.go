package decide

import (
	"context"
	"fmt"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// What a wake-up of a schedule's job may come to besides the steps of every job.
const (
	Skipped job.Step = "skip"  // its schedule went on without it
	Left    job.Step = "leave" // promotion is to decide about it
)

// keyOf names the schedule that the row belongs to.
func keyOf(r job.Row) schedule.Key { return schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID} }

// scheduled asks the schedule of a job that would be fired, parked or expired: it may come to
// something else. done says that it did and was acted on.
func (w *Waker) scheduled(ctx context.Context, row job.Row, step job.Step, now time.Time) (job.Step, bool, error) {
	s, err := w.schedules.of(ctx, w.Store, keyOf(row), now)
	if fault.KindOf(err) == fault.NotFound { // nobody deletes one: the job was accepted, and runs
		return step, false, nil
	}
	if fault.KindOf(err) == fault.Undecodable { // the job can be read: it waits for its schedule
		w.Log.ErrorContext(ctx, "a job waits: its schedule cannot be read",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		_, write := job.Rewake(row, now.Add(job.Postpone(row.Postponed)), now, row.Postponed+1)
		return Left, true, w.Store.Put(ctx, write)
	}
	if err != nil {
		return step, true, err
	}
	switch s.Stands(row) {
	case schedule.IsPaused:
		step, err = w.parkForSchedule(ctx, row, now)
		return step, true, err
	case schedule.IsDeleted, schedule.Passed:
		if row.DueAt.After(now) { // until then an edit may bring its time back
			return Left, true, w.leave(ctx, row, now)
		}
		if row.Attempt > 1 {
			return job.StepFinishStop, true, w.cancel(ctx, row, s.SkipReason(row), now)
		}
		return Skipped, true, w.skip(ctx, s, row, s.SkipReason(row), now)
	case schedule.ToBeJudged:
		return Left, true, w.leave(ctx, row, now)
	}
	if step != job.StepFire || row.Attempt > 1 {
		return step, false, nil
	}
	if !row.Behind && !row.DueAt.After(now) { // a short pause may be over before a job is parked
		if done, err := w.dropped(ctx, s, row, now); done || err != nil {
			return Skipped, true, err
		}
	}
	if step, done, err := w.usedUp(ctx, s, row, now); done || err != nil {
		return step, true, err
	}
	return w.turn(ctx, s, row, now)
}

// leave gives the row a later wake-up: promotion comes by before.
func (w *Waker) leave(ctx context.Context, row job.Row, now time.Time) error {
	_, write := job.Rewake(row, now.Add(contract.Grace), now, 0)
	return w.Store.Put(ctx, write)
}

// skip fences the attempt and ends the job, while the schedule still is as it was read. All in
// one: nothing on the row would tell a worker who claims in between that it is to end.
func (w *Waker) skip(ctx context.Context, s schedule.Schedule, row job.Row, why job.Reason, now time.Time) error {
	after, write := job.Skip(row, why, now)
	if err := w.Store.Commit(ctx, write, schedule.Is(s), job.Fence(row.Key, row.Attempt, row.DueAt, now)); err != nil {
		return err
	}
	w.Log.InfoContext(ctx, "a schedule's job was skipped", telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, "schedule", row.ScheduleID, "reason", why.Code)
	return w.Announce(ctx, after)
}

// parkForSchedule parks a job whose schedule is paused. It may have been resumed while we did,
// and whoever resumed it may have looked into the parking place before us; so we look again.
func (w *Waker) parkForSchedule(ctx context.Context, row job.Row, now time.Time) (job.Step, error) {
	if row.Parked && !row.Behind {
		return job.StepPark, nil
	}
	if err := w.Store.NoteParked(ctx, row.Tenant, now); err != nil {
		return job.StepPark, err
	}
	row, write := job.Park(row, now)
	if err := w.Store.Put(ctx, write); err != nil {
		return job.StepPark, err
	}
	w.schedules.drop(keyOf(row))
	s, err := w.schedules.of(ctx, w.Store, keyOf(row), now)
	if err != nil || s.Stands(row) == schedule.IsPaused {
		return job.StepPark, err
	}
	return job.StepFire, w.unpark(ctx, row, now) // its worker asks the schedule again
}

// dropped skips a job that fell due under a pause of its task, or of everything, where that pause
// said so: only now that it is lifted it is known which time under it was the last.
func (w *Waker) dropped(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) (bool, error) {
	lifted, err := w.Store.Lifted(ctx, row.Tenant, row.Task, now)
	if err != nil {
		return false, err
	}
	for _, p := range lifted {
		ended := p.EndedAt()
		if row.DueAt.Before(p.Since) || row.DueAt.After(ended) || !s.Drops(p.Missed, ended, row) {
			continue
		}
		why := job.Reason{Code: job.CodePaused, Message: fmt.Sprintf("it passed under a pause of %s, which said: %s", p.Scope, p.Missed)}
		return true, w.skip(ctx, s, row, why, now)
	}
	return false, nil
}

// usedUp skips a job of a schedule that has run as often as it may, and ends the schedule.
func (w *Waker) usedUp(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) (job.Step, bool, error) {
	if s.MaxRuns() == 0 {
		return "", false, nil
	}
	counted, left, err := w.Store.RunsLeft(ctx, s, row.ID)
	if err != nil || counted || left {
		return "", false, err
	}
	why := job.Reason{Code: job.CodeMaxRuns, Message: fmt.Sprintf("the schedule has run %d times, which is its max_runs", s.MaxRuns())}
	if err := w.skip(ctx, s, row, why, now); err != nil {
		return Skipped, true, err
	}
	if !s.Next.IsZero() {
		_, write := schedule.End(s, job.CodeMaxRuns, now)
		if err := w.Store.Put(ctx, write); err != nil && store.Refused(err) == nil {
			return Skipped, true, err
		}
	}
	return Skipped, true, nil
}

// turn decides about a job of which another of its schedule may still be under way.
func (w *Waker) turn(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) (job.Step, bool, error) {
	if !s.Limited() {
		return job.StepFire, false, nil
	}
	slot, holder, err := w.holder(ctx, s, row)
	if err != nil || holder == nil {
		return job.StepFire, err != nil, err
	}
	waiting, err := w.waiting(ctx, row, slot)
	if err != nil {
		return job.StepFire, true, err
	}
	turn, displaced := s.TurnOf(row, waiting)
	over := job.Reason{Code: job.CodeOverlap, Message: fmt.Sprintf("job %s of the schedule was not over, and overlap is %s", holder.ID, s.Overlap)}
	if turn == schedule.TurnSkip {
		return Skipped, true, w.skip(ctx, s, row, over, now)
	}
	if s.Overlap != schedule.OverlapBufferAll && slot.Waiting != row.ID {
		if err := w.Store.Put(ctx, s.Wait(row.ID, slot)); err != nil {
			return job.StepPark, true, err
		}
	}
	if displaced && waiting.Status != "" {
		if err := w.skip(ctx, s, *waiting, over, now); err != nil && store.Refused(err) == nil {
			return job.StepPark, true, err
		}
	}
	if err := w.lineUp(ctx, s, row, now); err != nil {
		return job.StepPark, true, err
	}
	if turn == schedule.TurnCancel && holder.Status != "" {
		if err := w.cancel(ctx, *holder, job.Reason{Code: job.CodeOverlap, Message: "a later run of its schedule took its place"}, now); err != nil && store.Refused(err) == nil {
			return job.StepPark, true, err
		}
	}
	// The holder may have come to its end before we stood in the line.
	if _, holder, err = w.holder(ctx, s, row); err != nil || holder != nil {
		return job.StepPark, true, err
	}
	_, err = w.Parked(ctx, row.Key)
	return job.StepPark, true, err
}

// lineUp parks a job behind the one that is not over.
func (w *Waker) lineUp(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) error {
	if row.Parked && row.Behind {
		return nil
	}
	if err := w.Store.NoteLine(ctx, s.Key, now); err != nil {
		return err
	}
	_, write := job.ParkBehind(row, now)
	return w.Store.Put(ctx, write)
}

// holder is the other job that has the slot and is not over, nil for none.
func (w *Waker) holder(ctx context.Context, s schedule.Schedule, row job.Row) (schedule.Slot, *job.Row, error) {
	slot, err := w.Store.Slot(ctx, s.Key)
	if err != nil || slot.Holder == "" || slot.Holder == row.ID {
		return slot, nil, err
	}
	holder, err := w.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Holder})
	return slot, holder, err
}

// waiting is the other job that waits behind the holder, nil for none.
func (w *Waker) waiting(ctx context.Context, row job.Row, slot schedule.Slot) (*job.Row, error) {
	if slot.Waiting == "" || slot.Waiting == row.ID || slot.Waiting == slot.Holder {
		return nil, nil
	}
	return w.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Waiting})
}

// open reads a job that is not over, nil when it is, or is gone. No attempt of a row that cannot
// be read can start; such a job is over unless a worker is at it. It comes without a status then.
func (w *Waker) open(ctx context.Context, k job.Key) (*job.Row, error) {
	r, err := w.Store.Row(ctx, k)
	switch {
	case fault.KindOf(err) == fault.NotFound || err == nil && r.Status.Final():
		return nil, nil
	case fault.KindOf(err) == fault.Undecodable:
		c, err := w.Store.Claim(ctx, k)
		if fault.KindOf(err) == fault.Undecodable || err == nil && !c.MayRun(w.Clock.Now()) {
			return nil, nil
		}
		return &job.Row{Key: k}, err
	}
	return &r, err
}

// cancel asks a job to stop: its live owner, or else it ends at once.
func (w *Waker) cancel(ctx context.Context, row job.Row, why job.Reason, now time.Time) error {
	if row.Stop == job.NoStop {
		after, write := job.RequestStop(row, job.StopCancel, why, now)
		if err := w.Store.Put(ctx, write); err != nil {
			return err
		}
		row = after
	}
	c, err := w.Store.Claim(ctx, row.Key)
	if err != nil {
		return err
	}
	if !c.Live(row.Attempt, now) {
		return w.finishStop(ctx, row, now)
	}
	if c.Cancel || c.Outcome != nil {
		return nil
	}
	err = w.Store.Put(ctx, job.FlagCancel(row.Key, c.Attempt, c.Token))
	if store.Refused(err) != nil {
		return nil // it ended just now, and its report finds the stop
	}
	return err
}

// lineFront is how many at the front of a line are looked at for one that can be read.
const lineFront = 4

// lineLag is how long an index may keep what stands in a line from being seen.
const lineLag = 2 * time.Second

// Announce follows the write that made a job final, whoever wrote it: the job is counted as
// settled, and its schedule hears of it. Where that fails, or nobody gets so far, Ended may be
// done again, and the sweeper looks after those that wait behind the job.
func (w *Waker) Announce(ctx context.Context, row job.Row) error {
	w.Meter.Count(telemetry.JobsSettled, 1, telemetry.Dim{Key: "outcome", Value: strings.ToLower(string(row.Status))})
	return w.Ended(ctx, row)
}

// Ended does for its schedule what is due once a job is final: failures in a row are counted,
// and whoever waits behind it has its turn. Doing it again changes nothing more.
func (w *Waker) Ended(ctx context.Context, row job.Row) error {
	if row.ScheduleID == "" || !row.Status.Final() {
		return nil
	}
	now := w.Clock.Now()
	s, err := w.schedules.of(ctx, w.Store, keyOf(row), now)
	if err == nil && (s.PauseAfter > 0 || s.Epoch < row.Epoch) {
		// Failures are counted by whoever settles them, so what was read a moment ago may not know
		// of the last: a success would then end a row of failures that it does not see.
		w.schedules.drop(keyOf(row))
		s, err = w.schedules.of(ctx, w.Store, keyOf(row), now)
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err == nil {
		err = w.countDead(ctx, s, row, now)
	}
	if err == nil {
		err = w.nextInLine(ctx, s, row, now)
	}
	if fault.KindOf(err) == fault.Undecodable { // that is not the job's fault, and again does not help
		w.Log.ErrorContext(ctx, "the end of a job could not be brought to its schedule",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("bringing schedule %q on after job %s: %w", row.ScheduleID, row.ID, err)
	}
	return nil
}

// countDead counts failures in a row, and pauses the schedule at as many as it stands.
func (w *Waker) countDead(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) error {
	if s.PauseAfter == 0 || s.Deleted() || row.Epoch != s.Epoch {
		return nil
	}
	var write item.Write
	switch {
	case row.Status == job.Dead:
		write = schedule.CountDead(s, row.ID)
	case row.Status == job.Succeeded && s.Failures > 0:
		write = schedule.ForgetDead(s)
	default:
		return nil
	}
	after, err := w.Store.WriteSchedule(ctx, write)
	if refused := store.Refused(err); refused != nil { // counted before, maybe by a try that got no further; or changed meanwhile
		if after, err = store.OldSchedule(refused, 0); err != nil || after.Epoch != s.Epoch || after.LastDead != row.ID {
			return nil
		}
	}
	w.schedules.drop(s.Key)
	if err != nil || row.Status != job.Dead || after.Paused != nil || after.Failures < int64(after.PauseAfter) {
		return err
	}
	_, write = schedule.PauseSchedule(after, schedule.Pause{
		By: schedule.ByPunctual, Reason: fmt.Sprintf("%d jobs in a row failed for good, the last with %s", after.Failures, row.Reason.Code),
	}, now.UTC().Truncate(time.Millisecond))
	if err := w.Store.Put(ctx, write); err != nil && store.Refused(err) == nil {
		return err
	}
	w.Log.WarnContext(ctx, "a schedule was paused after failures in a row", telemetry.Tenant, s.Tenant, "schedule", s.Name, "failures", after.Failures)
	return nil
}

// nextInLine brings on whoever waits behind a job that is over.
func (w *Waker) nextInLine(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) error {
	switch s.Overlap {
	case schedule.OverlapBufferOne, schedule.OverlapCancelRunning:
		slot, err := w.Store.Slot(ctx, s.Key)
		if err != nil || slot.Holder != row.ID || slot.Waiting == "" || slot.Waiting == row.ID {
			return err
		}
		_, err = w.Parked(ctx, job.Key{Tenant: row.Tenant, ID: slot.Waiting})
		return err
	case schedule.OverlapBufferAll:
		if slot, err := w.Store.Slot(ctx, s.Key); err != nil || slot.Holder != row.ID {
			return err
		}
		line := horizon.Line(string(s.Tenant), s.Name)
		found, err := w.Store.DueFront(ctx, store.DueQuery{Slice: line, Limit: lineFront})
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Err == nil {
				_, f.Err = w.Parked(ctx, f.Key)
			}
			if fault.KindOf(f.Err) != fault.Undecodable { // one that cannot be read does not keep those behind it
				return f.Err
			}
		}
		// Nobody that can be read waits, or does not show yet.
		again := message.Dispatch{V: message.V, Slice: line, At: now.Add(lineLag)}
		return w.Queue.Send(ctx, contract.DispatchQueue, message.Outgoing{Body: message.Encode(again), Delay: lineLag, Group: string(s.Tenant)})
	}
	return nil
}
