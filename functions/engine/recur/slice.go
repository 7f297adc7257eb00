package recur

import (
	"context"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// promotionTime is the time that a pass gives to one schedule: enough for several steps.
const promotionTime = 3 * stepTime

// Slice promotes every schedule whose wake-up lies in a slice or parking place; only those that wake before that time,
// if it is not zero. If a schedule fails with an error that may go away by itself, so does the slice; the others are
// promoted all the same. A schedule that cannot be read is quarantined, and one that cannot be promoted is deferred.
func (r *Recurrer) Slice(ctx context.Context, slice string, before time.Time, came *scan.Counter) error {
	keeper := scan.Keeper{Index: r.Store, Clock: r.Clock, Meter: r.Meter, What: "schedule", Prefix: "schedule_",
		Most: promotionTime}
	return scan.Each(ctx, slice, func(cursor string) ([]store.DueSchedule, string, error) {
		return r.Store.DueSchedules(ctx, store.DueQuery{Slice: slice, Before: before, Cursor: cursor})
	}, func(due store.DueSchedule) error {
		found := scan.Found{
			Entry: scan.Entry{Ref: due.Ref, Slice: slice, WakeAt: due.WakeAt}, Err: due.Err,
			Log: r.Log.With(telemetry.Tenant, due.Tenant, "schedule", due.Name),
		}
		return keeper.One(ctx, found, came, func(ctx context.Context) (string, error) {
			did, err := r.Promote(ctx, due.Key)
			if did == (Promoted{}) {
				return "", err
			}
			return "promoted", err
		})
	})
}
