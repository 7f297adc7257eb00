package ahead

import (
	"context"
	"time"

	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

const (
	// cheap is the cost, in times of calendars, up to which each request has its forecast made anew: a twentieth of a
	// second.
	cheap = 100_000
	// rowCost is the cost of a row in times of calendars.
	rowCost = 20
	// mostKept bounds the forecasts that are kept, 46 KB each.
	mostKept = 200
	// lateEvery is after how many times of calendars the clock is read.
	lateEvery = 64
)

// Forecaster makes forecasts. It is safe for concurrent use.
type Forecaster struct {
	process.Base
	Store Store

	kept *cache.Cache[tenant.ID, *Load]
}

// New returns a Forecaster.
func New(b process.Base, s Store) *Forecaster {
	b = b.WithDefaults()
	return &Forecaster{Base: b, Store: s,
		kept: cache.New[tenant.ID](cache.Options[*Load]{Age: KeptFor, Most: mostKept, Now: b.Clock.Now})}
}

// Load returns the expected starts of a tenant. It may be as old as KeptFor if it was expensive.
func (f *Forecaster) Load(ctx context.Context, t tenant.ID) (*Load, error) {
	l, err := f.kept.Get(ctx, t, func(ctx context.Context) (*Load, error) { return f.make(ctx, t) })
	if err == nil && l.cost <= cheap {
		f.kept.Drop(t)
	}
	return l, err
}

// make reads and counts.
func (f *Forecaster) make(ctx context.Context, t tenant.ID) (*Load, error) {
	now := f.Clock.Now().UTC().Truncate(time.Millisecond)
	l := newLoad(now)
	pauses, err := f.Store.Pauses(ctx, t)
	if err != nil {
		return nil, err
	}
	schedules, err := f.schedules(ctx, t)
	if err != nil {
		return nil, err
	}
	made, err := f.Store.RunsMade(ctx, schedules)
	if err != nil {
		return nil, err
	}
	w := waitingCounter{f.Base, f.Store, l, now}
	rows, err := w.count(ctx, t, pauses)
	if err != nil {
		return nil, err
	}
	l.cost = rows * rowCost
	if !f.countSchedules(ctx, schedules, made, l, pauses, now) {
		f.Log.WarnContext(ctx, "a forecast was ended before all times were counted", telemetry.Tenant, t)
	}
	return l, ctx.Err()
}

// schedules reads a tenant's schedules. One that cannot be read is left out.
func (f *Forecaster) schedules(ctx context.Context, t tenant.ID) (all []schedule.Schedule, err error) {
	for after, more := "", true; more; {
		var found []store.FoundSchedule
		if found, more, err = f.Store.Schedules(ctx, t, after, contract.ListMax); err != nil {
			return nil, err
		}
		for _, s := range found {
			if after = s.Name; s.Err == nil {
				all = append(all, s.Schedule)
			}
		}
	}
	return all, nil
}

// countSchedules adds the starts of schedules. Each has an equal share of the times that may be counted; what one
// leaves is for those after it.
func (f *Forecaster) countSchedules(
	ctx context.Context, schedules []schedule.Schedule, made [][]int64, l *Load, pauses job.Pauses, now time.Time,
) (whole bool) {
	began, asked, read := f.Clock.Now(), 0, 0
	isLate := false
	late := func() bool {
		if asked++; asked%lateEvery == 0 {
			isLate = isLate || ctx.Err() != nil || f.Clock.Now().Sub(began) >= MostTime
		}
		return isLate
	}
	for n, s := range schedules {
		c := counter{load: l, now: now, pauses: pauses, of: s, late: late,
			share: max(0, MostTimes-read) / (len(schedules) - n)}
		count, err := c.count(runsLeft(s, made[n]))
		if err != nil { // it cannot run either
			f.Log.WarnContext(ctx, "a schedule is not in the forecast", telemetry.Tenant, s.Tenant, "schedule", s.Name,
				telemetry.Err, err.Error())
		}
		read += count
	}
	l.cost += read
	return !isLate
}

// runsLeft returns how often each calendar of a schedule may still run; negative: as often as it has times.
func runsLeft(s schedule.Schedule, made []int64) []int64 {
	left := make([]int64, len(made))
	for n, most := range s.MaxRuns() {
		switch {
		case n < len(s.Spent) && s.Spent[n]:
		case most == 0:
			left[n] = -1
		default:
			left[n] = max(0, most-made[n])
		}
	}
	return left
}
