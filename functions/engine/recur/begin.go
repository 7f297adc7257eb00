package recur

import (
	"cmp"
	"context"
	"fmt"
	"time"

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

// begin says that the run which a row represents is to begin, in one transaction with the checks that a worker makes
// before it starts a job.
func (r *Recurrer) begin(ctx context.Context, s schedule.Schedule, row job.Row, now time.Time) (v Verdict, err error) {
	v = Verdict{Step: Began, Schedule: s}
	if schedule.Obeys(row) {
		v.With, err = r.slotWrites(ctx, s, row)
	} else {
		v.With, err = r.admission(ctx, s, row, now)
	}
	return v, err
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
	slot, err := r.slotWrites(ctx, s, row)
	if err != nil {
		return nil, err
	}
	writes = append(writes, slot...)
	if s.CountsRuns() {
		full := make([]bool, len(s.Calendars()))
		if s.Specs != nil { // it may run for one of them while another one is full
			if _, full, err = r.Store.RunsOf(ctx, s, row.ID); err != nil {
				return nil, err
			}
		}
		writes = append(writes, s.CountRun(row, full)...)
	}
	return writes, nil
}

// slotWrites returns the write with which a run takes its schedule's slot; none where runs may overlap.
func (r *Recurrer) slotWrites(ctx context.Context, s schedule.Schedule, row job.Row) ([]item.Write, error) {
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

// CloseRow ends the row of a run that has ended, and returns it; found is false if there is none. A row that is final
// already is returned as it is.
func (r *Recurrer) CloseRow(ctx context.Context, is run.Run) (row job.Row, found bool, err error) {
	k := job.Key{Tenant: is.Tenant, ID: is.ID}
	for range closeTries {
		row, err := r.Store.Row(ctx, k)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			return row, false, nil
		case err != nil:
			return row, false, fmt.Errorf("ending the row of run %s: %w", is.ID, err)
		case !row.StartsRun():
			return row, false, nil
		case row.Status.Final():
			return row, true, nil
		}
		_, write := job.CloseRun(row, rowStatus(is.Status), reasonOf(is), r.Clock.Now())
		if err := r.Store.Put(ctx, write); err != nil && store.Refused(err) == nil {
			return row, false, fmt.Errorf("ending the row of run %s: %w", is.ID, err)
		}
	}
	return row, false, fault.New(fault.Conflict, nil, "ending the row of run %s: it changed %d times meanwhile", is.ID,
		closeTries)
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
