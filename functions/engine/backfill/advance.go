package backfill

import (
	"context"
	"time"

	"punctual/shared/audit"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/telemetry"
)

// StepsAtOnce bounds the steps that follow one event. What is left then the sweeper does.
const StepsAtOnce = 10

// Ended notes the end of a job that an operation has made, and goes on with the operation. An operation that is gone
// or has ended changes nothing. Where other processes change it all the time, the sweeper notes the end.
func (b *Backfiller) Ended(ctx context.Context, row job.Row) error {
	k := operation.Key{Tenant: row.Tenant, ID: row.Backfill}
	_, err := b.steps(ctx, k, &row)
	switch fault.KindOf(err) {
	case fault.NotFound:
		return nil
	case fault.Conflict, fault.Undecodable:
		b.Log.WarnContext(ctx, "the end of a job was not noted by the backfill that made it",
			telemetry.Tenant, row.Tenant, telemetry.JobID, row.ID, "operation", k.ID, telemetry.Err, err.Error())
		return nil
	}
	return err
}

// Advance brings an operation on from the rows of its jobs: at most StepsAtOnce steps. more says that there is more to
// do now.
func (b *Backfiller) Advance(ctx context.Context, k operation.Key) (more bool, err error) {
	return b.steps(ctx, k, nil)
}

// steps takes steps of an operation as long as there is something to do. The first one notes the end of that row, or of
// all jobs that have ended if row is nil.
func (b *Backfiller) steps(ctx context.Context, k operation.Key, row *job.Row) (more bool, err error) {
	for n := range StepsAtOnce {
		s := step{Backfiller: b, row: row, reads: row == nil && n == 0}
		if err := s.take(ctx, k); err != nil {
			return false, err
		}
		if more = s.more; !more {
			return false, nil
		}
	}
	return more, nil
}

// Change changes an operation by a request of a caller, and goes on with it.
func (b *Backfiller) Change(
	ctx context.Context, k operation.Key, by func(operation.Operation, time.Time) (operation.Operation, error),
) (operation.Operation, error) {
	changed := false
	after, err := b.Store.UpdateOperation(ctx, k, func(o operation.Operation) ([]item.Write, error) {
		next, err := by(o, b.now())
		if changed = next.Status != o.Status; !changed || err != nil {
			return nil, err
		}
		b.Notify.NoteEnd(ctx, o, &next)
		return []item.Write{o.Become(next)}, nil
	})
	if err == nil {
		b.Notify.AnnounceEndsOrLater(audit.Without(ctx), b.Store, after)
	}
	if err != nil || !changed || after.Status != operation.Running {
		return after, err
	}
	if _, err := b.Advance(ctx, k); err != nil { // the sweeper does it
		b.Log.WarnContext(ctx, "a resumed backfill waits for the sweeper",
			telemetry.Tenant, k.Tenant, "operation", k.ID, telemetry.Err, err.Error())
		return after, nil
	}
	return b.Store.Operation(ctx, k)
}
