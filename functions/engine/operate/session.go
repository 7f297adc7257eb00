package operate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/telemetry"
)

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// session is the work of one process on an operation, as long as it has the lease.
type session struct {
	*Operator
	owner   string
	is      operation.Operation // as this process has written it last
	page    int                 // whose ids are known; -1: none
	ids     []job.ID
	latest  []job.ID // while it counts: the ids on the last page, unless that is full
	repeats bool     // another process may have worked on some rows of the chunk
	until   int      // how many rows were counted when latest was known; -1: it is not
}

// errLost says that another process works on the operation, or that it was changed in a way that ends this step.
var errLost = errors.New("another process works on the operation")

// take takes the lease of an operation; nil if there is nothing to do.
func (o *Operator) take(ctx context.Context, k operation.Key) (*session, error) {
	random, err := o.Entropy.Next()
	if err != nil {
		return nil, err
	}
	s := &session{Operator: o, owner: hex.EncodeToString(random[:]), page: -1, until: -1}
	taken := false
	s.is, err = o.Store.UpdateOperation(ctx, k, func(is operation.Operation) ([]item.Write, error) {
		taken = is.OnRows() && !is.Status.Over() && is.Status != operation.Paused && !is.Waits(o.now())
		if !taken {
			return nil, nil
		}
		next := is
		next.Bulk.Owner, next.Bulk.LeaseUntil = s.owner, o.now().Add(operation.Lease)
		next.Bulk.NextAt = time.Time{}
		return []item.Write{is.Become(next)}, nil
	})
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("taking operation %s: %w", k.ID, err)
	case !taken:
		return nil, nil
	}
	return s, nil
}

func (s *session) goesOn() bool { return !s.is.Status.Over() && s.is.Status != operation.Paused }

// change writes the operation as change makes it, with those writes in one transaction, if it is as this process has
// read it: same says so of what only the process with the lease changes. If it is not, because of an own write whose
// answer was lost or of a request that overruled the canary, nothing is written, and the session goes on from what
// there is. What change gets may have been paused or stopped meanwhile.
func (s *session) change(
	ctx context.Context, same func(is operation.Operation) bool, change func(next *operation.Operation),
	with ...item.Write,
) error {
	after, err := s.Store.UpdateOperation(ctx, s.is.Key, func(is operation.Operation) ([]item.Write, error) {
		switch {
		case is.Bulk.Owner != s.owner:
			return nil, errLost
		case !same(is):
			return nil, nil
		}
		next := is
		change(&next)
		s.Notify.NoteEnd(ctx, is, &next)
		next.Bulk.LeaseUntil = s.now().Add(operation.Lease)
		return append([]item.Write{is.Become(next)}, with...), nil
	})
	if err == nil {
		s.is = after
		s.Notify.AnnounceEndsOrLater(ctx, s.Store, after)
	}
	return err
}

// release gives the lease up. The operation goes on after a wait, 0 for none.
func (s *session) release(ctx context.Context, wait time.Duration) error {
	return s.leave(ctx, func(next *operation.Operation) {
		if wait > 0 {
			next.Bulk.NextAt = s.now().Add(wait)
		}
	})
}

// giveUp gives the lease up after a step that failed, and says when to try once more.
func (s *session) giveUp(ctx context.Context, failed error) (wait time.Duration, more bool, err error) {
	s.Log.WarnContext(ctx, "a step of an operation failed, and is repeated",
		telemetry.Tenant, s.is.Tenant, "operation", s.is.ID, telemetry.Err, failed.Error())
	wait = min(time.Duration(s.is.Bulk.Tries+1)*5*time.Second, time.Minute)
	err = s.leave(ctx, func(next *operation.Operation) {
		next.Bulk.Tries++
		next.Bulk.NextAt = s.now().Add(wait)
	})
	if err != nil {
		return 0, false, errors.Join(failed, err)
	}
	return wait, true, nil
}

// leave gives the lease up. It does so also where the time of the request is up.
func (s *session) leave(ctx context.Context, change func(next *operation.Operation)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accept.SendTimeout)
	defer cancel()
	_, err := s.Store.UpdateOperation(ctx, s.is.Key, func(is operation.Operation) ([]item.Write, error) {
		if is.Bulk.Owner != s.owner {
			return nil, nil
		}
		next := is
		next.Bulk.Owner, next.Bulk.LeaseUntil, next.Bulk.NextAt = "", time.Time{}, time.Time{}
		change(&next)
		return []item.Write{is.Become(next)}, nil
	})
	if err != nil {
		return fmt.Errorf("leaving operation %s: %w", s.is.ID, err)
	}
	return nil
}
