package backfill

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// Store is what a Backfiller reads and writes.
type Store interface {
	accept.Jobs
	store.ScheduleReader
	store.OperationWriter
}

// Backfiller brings backfills on. It is safe for concurrent use.
type Backfiller struct {
	process.Base
	Store  Store
	Accept *accept.Acceptor
}

// Create writes a new backfill, with those writes in one transaction.
func (b *Backfiller) Create(ctx context.Context, o operation.Operation, with ...item.Write) error {
	if err := b.Store.NoteOperation(ctx, o.Key, b.now()); err != nil {
		return fmt.Errorf("noting backfill %s: %w", o.ID, err)
	}
	if err := b.Store.CreateOperation(ctx, o, with...); err != nil {
		return fmt.Errorf("making backfill %s: %w", o.ID, err)
	}
	return nil
}

// now returns the time, to the millisecond as it is stored.
func (b *Backfiller) now() time.Time { return b.Clock.Now().UTC().Truncate(time.Millisecond) }

// rereads is how often a schedule is read whose payload is replaced meanwhile.
const rereads = 8

// withContents reads a schedule and the contents of its jobs. An edit between the two reads may have replaced the
// contents; then it reads both once more. found is false if there is no such schedule, or another one.
func (b *Backfiller) withContents(
	ctx context.Context, o operation.Operation,
) (s schedule.Schedule, c job.Contents, found bool, err error) {
	for range rereads {
		s, err = b.Store.Schedule(ctx, o.ScheduleKey())
		if fault.KindOf(err) == fault.NotFound || err == nil && (s.Deleted() || !s.CreatedAt.Equal(o.Since)) {
			return s, c, false, nil
		}
		if err != nil {
			return s, c, false, err
		}
		c, err = b.Store.ScheduleContents(ctx, s)
		if fault.KindOf(err) != fault.NotFound {
			return s, c, true, err
		}
	}
	return s, c, false, fault.New(fault.Conflict, nil,
		"reading schedule %q: its payload was replaced %d times meanwhile", o.Schedule, rereads)
}
