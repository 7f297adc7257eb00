package release

import (
	"context"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Slice derives every run whose wake-up lies in a slice; only those that wake before that time, if it is not zero. If a
// run fails with an error that may go away by itself, so does the slice; the others are derived all the same. A run
// that cannot be read is set aside, and one that cannot be derived is put off.
func (r *Releaser) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	keeper := scan.Keeper{Index: r.Store, Clock: r.Clock, Meter: r.Meter, What: "run", Prefix: "run_"}
	return scan.Each(ctx, slice, func(cursor string) ([]store.DueRun, string, error) {
		return r.Store.DueRuns(ctx, store.DueQuery{Slice: slice, Before: before, Cursor: cursor})
	}, func(due store.DueRun) error {
		found := scan.Found{
			Entry: scan.Entry{Ref: due.Ref, Slice: slice, WakeAt: due.WakeAt}, Err: due.Err,
			Log: r.Log.With(telemetry.Tenant, due.Tenant, telemetry.RunID, due.ID),
		}
		return keeper.One(ctx, found, came, func() (string, error) {
			if err := r.Due(ctx, due.Tenant, due.ID); err != nil {
				return "", err
			}
			return "derived", nil
		})
	})
}
