package release

import (
	"context"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/fault"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Slice brings on every run whose wake-up lies in a slice, before that time if it is not zero. One that
// failed in a way that may go better next time fails the slice; the others are brought on all the same.
// What cannot be read is set aside for a while, and what cannot be brought on is put off.
func (r *Releaser) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	return scan.Each(ctx, slice, func(cursor string) ([]store.DueRun, string, error) {
		return r.Store.DueRuns(ctx, store.DueQuery{Slice: slice, Before: before, Cursor: cursor})
	}, func(due store.DueRun) error { return r.one(ctx, due, slice, came) })
}

func (r *Releaser) one(ctx context.Context, due store.DueRun, slice string, came *scan.Counter) error {
	err := due.Err
	if err == nil {
		err = fault.Guard(func() error { return r.Due(ctx, due.Tenant, due.ID) })
	}
	if err == nil {
		came.Add("derived")
		return nil
	}
	keeper := scan.Keeper{Index: r.Store, Clock: r.Clock, Meter: r.Meter, What: "run"}
	log := r.Log.With(telemetry.Tenant, due.Tenant, telemetry.RunID, due.ID)
	is, err := keeper.Keep(ctx, scan.Entry{Ref: due.Ref, Slice: slice, WakeAt: due.WakeAt}, err, log)
	if is != "" {
		came.Add("run_" + is)
	}
	return err
}
