package recur

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// queueFront is how many of the jobs that are queued behind another are read to find one that can be read.
const queueFront = 4

// queueLag is how late an index may show that a job was queued behind another.
const queueLag = 2 * time.Second

// Ended updates the schedule of a job that has become final: it counts failures in a row. It returns the jobs that are
// queued behind this one and may go on now. If it fails or never runs, the sweeper finds the queued jobs.
func (r *Recurrer) Ended(ctx context.Context, row job.Row) (next []effect.Wake, err error) {
	if row.ScheduleID == "" && !schedule.Obeys(row) || !row.Status.Final() {
		return nil, nil
	}
	now := r.Clock.Now()
	s, err := r.known(ctx, keyOf(row))
	if err == nil && (s.PauseAfter > 0 || s.Epoch < row.Epoch) {
		// The kept copy of the schedule may lack the last failure, which another process has counted. A
		// success must see it to end the count.
		r.schedules.Drop(s.Key)
		s, err = r.known(ctx, s.Key)
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err == nil {
		err = r.countDead(ctx, s, row, now)
	}
	if err == nil {
		next, err = r.nextQueued(ctx, s, row, now)
	}
	if fault.KindOf(err) == fault.Undecodable { // a retry does not help, and the job has ended all the same
		r.Log.ErrorContext(ctx, "the schedule of an ended job could not be updated",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, telemetry.Err, err.Error())
		return next, nil
	}
	if err != nil {
		return next, fmt.Errorf("bringing schedule %q on after job %s: %w", row.Schedule(), row.ID, err)
	}
	return next, nil
}

// Passed returns the jobs that may go on because one of their schedule was paused: those that waited for its turn. If
// it fails or never runs, the sweeper finds them.
func (r *Recurrer) Passed(ctx context.Context, row job.Row) (next []effect.Wake, err error) {
	if row.ScheduleID == "" && !schedule.Obeys(row) {
		return nil, nil
	}
	s, err := r.known(ctx, keyOf(row))
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Undecodable:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.nextQueued(ctx, s, row, r.Clock.Now())
}

// countDead counts failures in a row, and pauses the schedule at its limit.
func (r *Recurrer) countDead(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) error {
	if row.ScheduleID == "" || s.PauseAfter == 0 || s.Deleted() || row.Epoch != s.Epoch {
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
	after, err := r.Store.WriteSchedule(ctx, write)
	// Refused: it was counted by an earlier try, which may have crashed before pausing, or the schedule has changed.
	if refused := store.Refused(err); refused != nil {
		if after, err = store.OldSchedule(refused, 0); err != nil || after.Epoch != s.Epoch ||
			after.LastDead != row.ID {
			return nil
		}
	}
	r.schedules.Drop(s.Key)
	if err != nil || row.Status != job.Dead || after.Paused != nil || after.Failures < int64(after.PauseAfter) {
		return err
	}
	what := "jobs"
	if row.StartsRun() {
		what = "runs"
	}
	why := fmt.Sprintf("%d %s in a row failed for good, the last with %s", after.Failures, what, row.Reason.Code)
	if paused, err := r.pause(ctx, after, why, now.UTC().Truncate(time.Millisecond)); err != nil || !paused {
		return err
	}
	r.Log.WarnContext(ctx, "a schedule was paused after failures in a row",
		telemetry.Tenant, s.Tenant, "schedule", s.Name, "failures", after.Failures)
	return nil
}

// pauseTries bounds how often a schedule is read that another process changes meanwhile.
const pauseTries = 4

// pause pauses a schedule after failures in a row, unless it was edited since.
func (r *Recurrer) pause(ctx context.Context, s schedule.Schedule, why string, now time.Time) (paused bool, err error) {
	s.Announced = r.Announced(ctx, s.Tenant)
	for range pauseTries {
		after, write := schedule.PauseSchedule(s, schedule.Pause{By: schedule.ByPunctual, Reason: why}, now)
		err := r.Store.Put(ctx, write)
		if err == nil {
			r.AnnounceOrLater(ctx, after)
			return true, nil
		}
		if store.Refused(err) == nil {
			return false, err
		}
		is, err := r.read(ctx, s.Key) // only an event may have been noted
		if err != nil || is.Epoch != s.Epoch {
			return false, err
		}
		s = is
	}
	return false, fault.New(fault.Conflict, nil, "pausing schedule %q: it changed %d times meanwhile", s.Name,
		pauseTries)
}

// nextQueued returns the next job that is queued behind one that has ended.
func (r *Recurrer) nextQueued(
	ctx context.Context, s schedule.Schedule, row job.Row, now time.Time,
) ([]effect.Wake, error) {
	overlap := s.For(row).Overlap
	if !s.For(row).Limited() { // it may hold no slot, but those that the schedule has by now may wait
		overlap = s.Overlap
	}
	switch overlap {
	case schedule.OverlapBufferOne, schedule.OverlapCancelRunning:
		slot, err := r.Store.Slot(ctx, s.Key)
		if err != nil || slot.Holder != row.ID || slot.Waiting == "" || slot.Waiting == row.ID {
			return nil, err
		}
		return wake(job.Key{Tenant: row.Tenant, ID: slot.Waiting}), nil
	case schedule.OverlapBufferAll:
		slot, holder, err := r.holder(ctx, s, row)
		if err != nil || holder != nil {
			return nil, err
		}
		return r.nextOfAll(ctx, s, slot, row, now)
	}
	return nil, nil
}

// nextOfAll is nextQueued under buffer_all, for the slot that no other job holds.
func (r *Recurrer) nextOfAll(
	ctx context.Context, s schedule.Schedule, slot schedule.Slot, row job.Row, now time.Time,
) (next []effect.Wake, err error) {
	queue, held := horizon.Line(string(s.Tenant), s.Name), slot.Holder == row.ID
	var found []store.Found
	if held {
		if found, err = r.Store.DueFront(ctx, store.DueQuery{Slice: queue, Limit: queueFront}); err != nil {
			return nil, err
		}
	}
	// The first may have waited behind this one, which never held the slot.
	first, err := r.ahead(ctx, s.For(row), slot, now)
	if err != nil {
		return nil, err
	}
	if first != nil && first.QueuedBehind {
		next = wake(first.Key)
	}
	if !held || first != nil && len(found) > 0 {
		return next, nil
	}
	var queued effect.Wake
	for _, f := range found {
		switch {
		case f.Err == nil:
			queued.Jobs = append(queued.Jobs, f.Key)
		case fault.KindOf(f.Err) == fault.Undecodable: // it does not hold up the next one
		case len(queued.Jobs) == 0:
			return next, f.Err
		}
	}
	// No queued job can be read, or the index does not show one yet.
	later := message.Ask(message.Verb{Line: &message.Schedule{Tenant: string(s.Tenant), Schedule: s.Name}})
	later.At = now.Add(queueLag)
	queued.Else = &message.Outgoing{Body: message.Encode(later), Delay: queueLag, Group: string(s.Tenant)}
	return append(next, queued), nil
}
