package recur

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// tooEarly says that a run must not begin yet. If runs may overlap, a run begins a little before its due time, and its
// jobs wait for that. If not, it begins at its due time, because only then it is known whether the run before has
// ended.
func tooEarly(s schedule.Schedule, row job.Row, now time.Time) bool {
	ahead := row.DueAt.Sub(now)
	return ahead > contract.NowLane || s.Limited() && ahead > 0
}

// begin creates the run that a row represents, in one transaction with the checks that a worker makes before it starts
// a job. s is nil for a run that was requested by REST. If the transaction is refused, everything is decided anew.
func (r *Recurrer) begin(
	ctx context.Context, d *decide.Decider, s *schedule.Schedule, row job.Row, now time.Time,
) (is job.Step, done bool, err error) {
	_, write := job.BeginRun(row, now)
	with := []item.Write{write}
	if s != nil {
		admit := r.admission
		if schedule.Obeys(row) {
			admit = r.slotWrites
		}
		more, err := admit(ctx, *s, row, now)
		if err != nil {
			return Began, true, err
		}
		with = append(with, more...)
	}
	why, err := r.Runs.Launch(ctx, row, with...)
	switch {
	case err != nil || why.Code == "":
		return Began, true, err
	case s == nil || schedule.Obeys(row):
		return Skipped, true, d.Stop(ctx, row, why, now)
	}
	return Skipped, true, d.Skip(ctx, row, why, schedule.Is(*s), now)
}

// admission returns the schedule's part of the transaction in which one of its runs begins: the condition that the
// schedule has not changed, its catch-up, its slot, and its count.
func (r *Recurrer) admission(
	ctx context.Context, s schedule.Schedule, row job.Row, now time.Time,
) ([]item.Write, error) {
	writes := []item.Write{schedule.Is(s)}
	if row.DueAt.Before(now) {
		lifted, err := r.Store.Lifted(ctx, row.Tenant, row.Task, now)
		if err != nil {
			return nil, err
		}
		if s.Asks(row, lifted, now) {
			last, err := r.Store.CaughtUp(ctx, s.Key)
			if err != nil {
				return nil, err
			}
			if last.Decides(row) { // another run began just now
				return nil, &item.Refused{}
			}
			writes = append(writes, s.CatchUpLast(row, last, now))
		}
	}
	slot, err := r.slotWrites(ctx, s, row, now)
	if err != nil {
		return nil, err
	}
	writes = append(writes, slot...)
	if s.MaxRuns() > 0 {
		writes = append(writes, s.CountRun(row)...)
	}
	return writes, nil
}

// slotWrites returns the write with which a run takes its schedule's slot; none where runs may overlap.
func (r *Recurrer) slotWrites(
	ctx context.Context, s schedule.Schedule, row job.Row, _ time.Time,
) ([]item.Write, error) {
	if !s.Limited() {
		return nil, nil
	}
	slot, holder, err := r.holder(ctx, s, row)
	switch {
	case err != nil:
		return nil, err
	case holder != nil: // another run took the slot just now
		return nil, &item.Refused{}
	case slot.Holder == "" || slot.Holder == row.ID:
		return []item.Write{s.TakeSlot(row.ID)}, nil
	}
	return []item.Write{s.TakeSlotFrom(row.ID, slot.Holder)}, nil
}

// closeTries bounds how often a row is read because another process changed it meanwhile.
const closeTries = 4

// RunOver ends the row of a run that has ended, and announces that to the schedule as the end of a job. The caller
// repeats it until it succeeds: if the row is final already, its end is announced once more.
func (r *Recurrer) RunOver(ctx context.Context, d *decide.Decider, is run.Run) error {
	k := job.Key{Tenant: is.Tenant, ID: is.ID}
	for range closeTries {
		row, err := r.Store.Row(ctx, k)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			return nil
		case err != nil:
			return fmt.Errorf("ending the row of run %s: %w", is.ID, err)
		case !row.StartsRun():
			return nil
		case row.Status.Final():
			return d.Announce(ctx, row)
		}
		_, write := job.CloseRun(row, rowStatus(is.Status), reasonOf(is), r.Clock.Now())
		if err := r.Store.Put(ctx, write); err != nil && store.Refused(err) == nil {
			return fmt.Errorf("ending the row of run %s: %w", is.ID, err)
		}
	}
	return fault.New(fault.Conflict, nil, "ending the row of run %s: it changed %d times meanwhile", is.ID, closeTries)
}

// rowStatus is the status of a row whose run has ended.
func rowStatus(s run.Status) job.Status {
	switch s {
	case run.Succeeded:
		return job.Succeeded
	case run.Cancelled:
		return job.Cancelled
	}
	return job.Dead
}

// reasonOf is why a run did not succeed; a run whose nodes failed has no reason of its own.
func reasonOf(is run.Run) job.Reason {
	if is.Status == run.Succeeded {
		return job.Reason{}
	}
	return job.Reason{
		Code:    cmp.Or(is.Reason.Code, "node_failed"),
		Message: cmp.Or(is.Reason.Message, "a node failed"),
	}
}
