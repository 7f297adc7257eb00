package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

const (
	// quicklyRetried is how often in a row a run that failed with an error that may go away is tried again in the next
	// pass.
	quicklyRetried = 3
	// longestWait doubles the wait after further tries that often at most: to eight hours.
	longestWait = 5
)

// Slice reconciles every run whose wake-up lies in a slice; only those that wake before that time, if it is not zero.
// Its next wake-up is written before it is reconciled: whatever the reconcile does, it keeps no later pass from the
// others. If a run fails with an error that may go away by itself, so does the slice; the others are reconciled all the
// same. A run that cannot be read is quarantined, and so is one that was not brought on for several wake-ups; each
// further one is twice as far away.
//
// due reconciles one run, and does what follows.
func (r *Controller) Slice(
	ctx context.Context, slice string, before time.Time, came *scan.Counter,
	due func(context.Context, run.Key) error,
) error {
	keeper := scan.Keeper{Index: r.Store, Clock: r.Clock, Meter: r.Meter, What: "run", Prefix: "run_"}
	return scan.Each(ctx, slice, func(cursor string) ([]store.DueRun, string, error) {
		return r.Store.DueRuns(ctx, store.DueQuery{Slice: slice, Before: before, Cursor: cursor})
	}, func(is store.DueRun) error {
		found := scan.Found{
			Entry: scan.Entry{Ref: is.Ref, Slice: slice, WakeAt: is.WakeAt}, Err: is.Err,
			Log: r.Log.With(telemetry.Tenant, is.Tenant, telemetry.RunID, is.ID),
		}
		return keeper.One(ctx, found, came, func(ctx context.Context) (string, error) {
			return r.wake(ctx, is, slice, found.Log, due)
		})
	})
}

// wake defers the wake-up of a run, reconciles it, and brings the wake-up back if that failed for the moment.
func (r *Controller) wake(
	ctx context.Context, is store.DueRun, slice string, log *slog.Logger, due func(context.Context, run.Key) error,
) (string, error) {
	now := r.Clock.Now()
	d, ok, err := r.Store.Defer(ctx, is.Ref, slice, is.WakeAt, now.Add(contract.RetryEvery))
	if err != nil || !ok {
		return "", err
	}
	if d.Tries > quicklyRetried {
		if err := r.quarantine(ctx, is, slice, d, now); err != nil {
			return "", err
		}
		log.ErrorContext(ctx, "run quarantined", "tries", d.Tries)
	}
	err = due(ctx, run.Key{Tenant: is.Tenant, ID: is.ID})
	switch {
	case err == nil:
		return "derived", nil
	case fault.Retryable(err) && d.Tries <= quicklyRetried && ctx.Err() == nil:
		return "", errors.Join(err, r.Store.Move(ctx, d, now))
	}
	return "", err
}

// quarantine lists a run that was not brought on for an operator, and moves its wake-up further away.
func (r *Controller) quarantine(
	ctx context.Context, due store.DueRun, slice string, d store.Deferred, now time.Time,
) error {
	if err := r.Store.Move(ctx, d, now.Add(contract.RetryEvery<<min(d.Tries-quicklyRetried, longestWait))); err != nil {
		return err
	}
	r.Meter.Count(telemetry.Quarantined, 1)
	reason := fmt.Sprintf("the run was not brought on at %d wake-ups in a row", d.Tries-1)
	return r.Store.Quarantine(ctx, due.Ref, slice, due.WakeAt, reason, now) // its wake-up has moved already
}
