package operate

import (
	"context"
	"errors"
	"time"

	"punctual/shared/operation"
)

// Work brings an operation on until it has ended or is paused, or going says that the time is up. more says that it has
// to be continued, after a wait. An operation that another process works on is left to that.
func (o *Operator) Work(
	ctx context.Context, k operation.Key, going func() bool,
) (wait time.Duration, more bool, err error) {
	s, err := o.take(ctx, k)
	if s == nil || err != nil {
		return 0, false, err
	}
	for going() {
		wait, err := s.step(ctx)
		switch {
		case errors.Is(err, errLost):
			return 0, false, nil
		case err != nil:
			return s.giveUp(ctx, err)
		case !s.goesOn():
			if s.is.Action.Destroys() {
				s.Edit.Collect(ctx)
			}
			return 0, false, s.release(ctx, 0)
		case wait > patience:
			return wait, true, s.release(ctx, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			break
		}
	}
	return 0, true, s.release(ctx, 0)
}

// step does what comes next: it counts, works on a chunk, or looks at the canary. wait is how long nothing is to be
// done.
func (s *session) step(ctx context.Context) (wait time.Duration, err error) {
	switch b := s.is.Bulk; {
	case b.Phase == operation.Counting:
		return s.count(ctx)
	case len(b.Chunk) > 0: // its process has crashed, or has given up
		return 0, s.work(ctx, nil, true)
	case s.is.ChunkSize() > 0:
		if wait := b.RowsAt.Sub(s.now()); wait > 0 {
			return wait, nil
		}
		return 0, s.begin(ctx)
	case b.Phase == operation.InCanary:
		return s.watch(ctx)
	}
	return 0, s.change(ctx, s.idle, func(next *operation.Operation) { next.Finish(s.now()) })
}
