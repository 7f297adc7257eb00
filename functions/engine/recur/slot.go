package recur

import (
	"context"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// holder reads the schedule's slot and the other job that holds it, nil if there is none or it has ended.
func (r *Recurrer) holder(ctx context.Context, s schedule.Schedule, row job.Row) (schedule.Slot, *job.Row, error) {
	slot, err := r.Store.Slot(ctx, s.Key)
	if err != nil || slot.Holder == "" || slot.Holder == row.ID {
		return slot, nil, err
	}
	holder, err := r.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Holder})
	return slot, holder, err
}

// waiting reads the other job that is queued behind the holder of the slot, nil if there is none, or it has ended or
// was paused itself: a later job takes its position.
func (r *Recurrer) waiting(ctx context.Context, row job.Row, slot schedule.Slot) (*job.Row, error) {
	if slot.Waiting == "" || slot.Waiting == row.ID || slot.Waiting == slot.Holder {
		return nil, nil
	}
	other, err := r.open(ctx, job.Key{Tenant: row.Tenant, ID: slot.Waiting})
	if other != nil && other.IsPaused() {
		other = nil
	}
	return other, err
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

// ahead returns the open job of the earliest time before at that has not held the slot, under buffer_all; nil for none.
func (r *Recurrer) ahead(
	ctx context.Context, s schedule.Schedule, slot schedule.Slot, at time.Time,
) (*job.Row, error) {
	return schedule.FirstOpen(ctx, r.Store.Rows, s, slot, at, r.Clock.Now())
}

// wake asks to decide about one job.
func wake(k job.Key) []effect.Wake { return []effect.Wake{{Jobs: []job.Key{k}}} }
