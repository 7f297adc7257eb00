package backfill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/notify"
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
	Notify *notify.Notifier // announces the ends of backfills; nil: they are not announced
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

// errGone says that there is no such schedule any more, or another one of its name.
var errGone = errors.New("the schedule is gone")

// withContents reads the schedule of an operation, and the contents of its jobs; errGone if it is gone.
func (b *Backfiller) withContents(
	ctx context.Context, o operation.Operation,
) (schedule.Schedule, job.Contents, error) {
	return store.ScheduleWithContents(ctx, b.Store, func() (schedule.Schedule, error) {
		s, err := b.Store.Schedule(ctx, o.ScheduleKey())
		if fault.KindOf(err) == fault.NotFound || err == nil && (s.Deleted() || !s.CreatedAt.Equal(o.Since)) {
			return s, errGone
		}
		return s, err
	})
}
