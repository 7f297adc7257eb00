package notify

import (
	"context"
	"fmt"

	"punctual/functions/engine/accept"
	"punctual/shared/event"
	"punctual/shared/item"
	"punctual/shared/operation"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// NoteEnd notes on an operation that it ends with a change, if that is to be announced. The Notifier may be nil.
func (n *Notifier) NoteEnd(ctx context.Context, before operation.Operation, after *operation.Operation) {
	if n != nil && after.EndsAfter(before) && n.Asked(ctx, before.Tenant, event.OperationEnded) {
		after.NoteEnd()
	}
}

// AnnounceEnds announces the ends that are noted on an operation, and removes them. It may be repeated.
func (n *Notifier) AnnounceEnds(ctx context.Context, s store.OperationWriter, o operation.Operation) error {
	if n == nil || len(o.Ends) == 0 {
		return nil
	}
	for _, end := range o.Ends {
		if err := n.Announce(ctx, event.OfOperation(o, end)); err != nil {
			return fmt.Errorf("announcing the end of operation %s: %w", o.ID, err)
		}
	}
	_, err := s.UpdateOperation(ctx, o.Key, func(is operation.Operation) ([]item.Write, error) {
		next := is
		if next.Announced(o.Ends); len(next.Ends) == len(is.Ends) {
			return nil, nil
		}
		return []item.Write{is.Become(next)}, nil
	})
	return err
}

// AnnounceEndsOrLater is AnnounceEnds after a change. If it fails, the sweeper repeats it.
func (n *Notifier) AnnounceEndsOrLater(ctx context.Context, s store.OperationWriter, o operation.Operation) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accept.SendTimeout)
	defer cancel()
	if err := n.AnnounceEnds(ctx, s, o); err != nil {
		n.Log.WarnContext(ctx, "the end of an operation will be announced by the sweeper",
			telemetry.Tenant, o.Tenant, "operation", o.ID, telemetry.Err, err.Error())
	}
}
