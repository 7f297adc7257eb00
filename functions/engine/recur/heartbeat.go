package recur

import (
	"context"
	"fmt"
	"slices"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// heartbeatWithin is how late a heartbeat may start. One that comes later proves nothing about its minute.
const heartbeatWithin = 2 * time.Minute

// heartbeatTimeout bounds a heartbeat's only attempt, which does nothing.
const heartbeatTimeout = 10 * time.Second

// Heartbeats makes a schedule of each priority of these pools, which runs an empty job each minute, and deletes those
// of the other pools. Heartbeat jobs take the way of every scheduled job, from the promotion to the settlement, so
// their absence shows a fault wherever it is. It writes only what differs from that, so it may be repeated.
func (r *Recurrer) Heartbeats(ctx context.Context, pools []string) error {
	for _, pool := range contract.Pools {
		for _, priority := range contract.Priorities {
			wanted := r.heartbeat(pool, job.Priority(priority))
			if err := r.keepHeartbeat(ctx, wanted, slices.Contains(pools, pool)); err != nil {
				return fmt.Errorf("keeping the schedule %q: %w", wanted.Name, err)
			}
		}
	}
	return nil
}

// heartbeat returns the schedule of the heartbeats of one queue.
func (r *Recurrer) heartbeat(pool string, priority job.Priority) schedule.Schedule {
	every := "1m"
	k := schedule.Key{Tenant: tenant.System, Name: job.HeartbeatName(pool, priority)}
	return schedule.Schedule{
		Key: k, Shard: horizon.ShardOf(k.ID(), r.Shards), Spec: calendar.Spec{Every: &every},
		Overlap: schedule.OverlapAllow,
		CatchUp: schedule.CatchUp{Policy: schedule.CatchUpNone, Window: schedule.DefaultCatchUp.Window,
			Cap: schedule.DefaultCatchUp.Cap},
		Template: schedule.Template{Settings: job.Settings{
			Task: job.ExecutorEcho, Executor: job.ExecutorEcho, Pool: pool,
			Priority: priority, Timeout: heartbeatTimeout, StartWithin: heartbeatWithin,
			Retry: job.RetryPolicy{MaxAttempts: 1, Factor: 1},
		}},
	}
}

// keepHeartbeat creates a schedule that is wanted and absent, and deletes one that is there and not wanted.
func (r *Recurrer) keepHeartbeat(ctx context.Context, wanted schedule.Schedule, on bool) error {
	now := r.Clock.Now().UTC().Truncate(time.Millisecond)
	_, err := r.Store.UpdateSchedule(ctx, wanted.Key, func(old *schedule.Schedule) ([]item.Write, error) {
		exists := old != nil && !old.Deleted()
		switch {
		case on && !exists:
			_, w, err := schedule.Create(old, wanted, now)
			return []item.Write{w}, err
		case !on && exists:
			_, writes := schedule.Delete(*old, nil, now)
			return writes, nil
		}
		return nil, nil
	})
	if store.Refused(err) != nil { // another process has just done it
		return nil
	}
	return err
}
