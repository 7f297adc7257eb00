package release

import (
	"context"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Slice brings on every run whose wake-up lies in a slice, before that time if it is not zero. One that
// failed in a way that may go better next time fails the slice; the others are brought on all the same.
// What cannot be read is set aside for a while, and what cannot be brought on is put off.
func (r *Releaser) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	keeper := scan.Keeper{Index: r.Store, Clock: r.Clock, Meter: r.Meter, What: "run", Came: "run_"}
	return scan.Each(ctx, slice, func(cursor string) ([]store.DueRun, string, error) {
		return r.Store.DueRuns(ctx, store.DueQuery{Slice: slice, Before: before, Cursor: cursor})
	}, func(due store.DueRun) error {
		met := scan.Met{
			Entry: scan.Entry{Ref: due.Ref, Slice: slice, WakeAt: due.WakeAt}, Err: due.Err,
			Log: r.Log.With(telemetry.Tenant, due.Tenant, telemetry.RunID, due.ID),
		}
		return keeper.One(ctx, met, came, func() (string, error) {
			if err := r.Due(ctx, due.Tenant, due.ID); err != nil {
				return "", err
			}
			return "derived", nil
		})
	})
}
