package operate

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/notify"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/show"
	"punctual/shared/audit"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/operation"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Store is what an Operator reads and writes.
type Store interface {
	show.Store
	store.TaskReader
	store.OperationWriter
	store.OperationPages
}

// Operator carries out operations on rows. It is safe for concurrent use.
type Operator struct {
	process.Base
	Store   Store
	Queue   message.Sender
	Read    *show.Reader
	Edit    *edit.Editor
	Runs    *engine.Runs
	Entropy *accept.Entropy
	Notify  *notify.Notifier // announces the ends of operations; nil: they are not announced
	// Schemas validates payloads that an operation changes.
	Schemas runs.Schemas
}

const (
	// patience is the longest wait within one invocation; a longer one is a delay of the next message.
	patience = 2 * time.Second
	// watched is how often the rows of a canary are looked at.
	watched = 3 * time.Second
	// rowsAtOnce is how many rows are worked on at the same time.
	rowsAtOnce = 16
	// maxTries is how often a chunk is tried, for about an hour: rows do not fail because the store does for a while.
	// What cannot be done then has failed.
	maxTries = 60
)

// Create writes a new operation with the pages of its rows, if they are known, and what else goes into its transaction.
func (o *Operator) Create(ctx context.Context, is operation.Operation, with ...item.Write) error {
	if err := o.Store.NoteOperation(ctx, is.Key, o.now()); err != nil {
		return fmt.Errorf("noting operation %s: %w", is.ID, err)
	}
	if err := o.Store.CreateOperation(ctx, is, with...); err != nil {
		return fmt.Errorf("making operation %s: %w", is.ID, err)
	}
	return nil
}

// Ask asks for an operation to be continued, after a delay. If that fails, the sweeper asks for it.
func (o *Operator) Ask(ctx context.Context, k operation.Key, delay time.Duration) {
	if err := (arm.Asker{Queue: o.Queue}).Operate(ctx, k, delay); err != nil {
		o.Log.WarnContext(ctx, "an operation waits for the sweeper",
			telemetry.Tenant, k.Tenant, "operation", k.ID, telemetry.Err, err.Error())
	}
}

// Change changes an operation by a request of a caller, and has it continued.
func (o *Operator) Change(
	ctx context.Context, k operation.Key, by func(operation.Operation, time.Time) (operation.Operation, error),
) (operation.Operation, error) {
	changed, noted := false, false
	after, err := o.Store.UpdateOperation(ctx, k, func(is operation.Operation) ([]item.Write, error) {
		next, err := by(is, o.now())
		proceeds := next.Bulk.Canary.Overruled != is.Bulk.Canary.Overruled
		if changed = next.Status != is.Status || proceeds; !changed || err != nil {
			return nil, err
		}
		if is.Status.Over() && !noted { // the sweeper may have forgotten it
			if err := o.Store.NoteOperation(ctx, k, o.now()); err != nil {
				return nil, err
			}
			noted = true
		}
		if !next.Status.Over() {
			next.Bulk.NextAt = time.Time{}
		}
		o.Notify.NoteEnd(ctx, is, &next)
		return []item.Write{is.Become(next)}, nil
	})
	if err == nil {
		o.Notify.AnnounceEndsOrLater(audit.Without(ctx), o.Store, after)
	}
	if err == nil && !after.Status.Over() && after.Status != operation.Paused {
		o.Ask(ctx, k, 0)
	}
	return after, err
}

// now returns the time, to the millisecond as it is stored.
func (o *Operator) now() time.Time { return o.Clock.Now().UTC().Truncate(time.Millisecond) }
