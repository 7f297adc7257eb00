package store

import (
	"context"
	"math"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// RateLimit is how many requests a tenant may make: so many a second, and so many at once after a rest.
type RateLimit struct{ Rate, Burst int }

// each is what one request costs, in microseconds of rest.
func (a RateLimit) each() int64 { return int64(time.Second/time.Microsecond) / int64(a.Rate) }

func quotaRef(t tenant.ID, of string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "quota#" + string(t), SK: of}
}

// SchedulesQuota is where it is counted, as runs_a_minute, what a tenant's schedules take of its quota.
func SchedulesQuota(t tenant.ID) item.Ref { return quotaRef(t, "schedules") }

// UsedBySchedules implements ScheduleReader.
func (s *Store) UsedBySchedules(ctx context.Context, t tenant.ID) (int64, error) {
	i, err := s.table.Get(ctx, SchedulesQuota(t))
	return i.Int("runs_a_minute"), err
}

// UsedByRequests implements RateLimits.
func (s *Store) UsedByRequests(ctx context.Context, t tenant.ID, a RateLimit, now time.Time) (int64, error) {
	i, err := s.table.Get(ctx, quotaRef(t, "requests"))
	return max(0, (i.Int("rested_us")-now.UnixMicro()+a.each()-1)/a.each()), err
}

// TakeRequests implements RateLimits.
//
// One number keeps it: the time at which the tenant may make a full burst, in microseconds. A request moves it on by
// what it costs; there is room while it is no further ahead than a burst costs. That takes one write, which meets no
// conflict while the tenant is busy.
func (s *Store) TakeRequests(ctx context.Context, t tenant.ID, a RateLimit, n int, now time.Time) (wait time.Duration,
	err error) {
	cost := int64(n) * a.each()
	full := now.UnixMicro() + int64(a.Burst)*a.each()
	after, taken, err := s.moveRested(ctx, t, cost, full-cost, now)
	if err != nil || taken {
		return 0, err
	}
	return time.Duration(max(after+cost-full, a.each())) * time.Microsecond, nil
}

// Weight is how many requests more the jobs that a request or a release makes, and the bytes that it writes, weigh on
// the tenant's rate limit.
func Weight(jobs, bytes int) int {
	return jobs/contract.JobsOfOneRequest + bytes/contract.BytesOfOneRequest
}

// AnyDeficit is the most to DrawWeight for work that has been admitted already.
const AnyDeficit = math.MaxInt32

// DrawWeight implements RequestWeights.
func (s *Store) DrawWeight(
	ctx context.Context, t tenant.ID, a RateLimit, n, most int, now time.Time,
) (drawn bool, wait time.Duration, err error) {
	full := now.UnixMicro() + int64(a.Burst)*a.each()
	after, drawn, err := s.moveRested(ctx, t, int64(n)*a.each(), full+int64(most)*a.each(), now)
	if err != nil {
		return false, 0, err
	}
	if !drawn {
		return false, time.Duration(max(after-full-int64(most)*a.each(), a.each())) * time.Microsecond, nil
	}
	return true, time.Duration(max(0, after+a.each()-full)) * time.Microsecond, nil
}

// moveRested moves on by cost when a tenant will have rested, if that is at the latest at the time latest now; both are
// in microseconds. It returns the new time, or the old one if that is later.
func (s *Store) moveRested(
	ctx context.Context, t tenant.ID, cost, latest int64, now time.Time,
) (rested int64, moved bool, err error) {
	const tries = 3
	at := now.UnixMicro()
	w := item.Write{Ref: quotaRef(t, "requests")}
	for range tries {
		w.Name, w.Set, w.Add = WriteRequestsMore, nil, map[string]int64{"rested_us": cost}
		w.When = []item.All{{{Attr: "rested_us", Op: item.Ge, Value: at},
			{Attr: "rested_us", Op: item.Le, Value: latest}}}
		after, err := s.table.Write(ctx, w)
		refused := Refused(err)
		if refused == nil {
			return after.Int("rested_us"), err == nil, err
		}
		if rested := refused.Olds[0].Int("rested_us"); rested >= at {
			return rested, false, nil
		}
		if latest < at {
			return at, false, nil // more than a burst: never
		}
		w.Name, w.Set, w.Add = WriteRequestsFirst, map[string]any{"rested_us": at + cost}, nil
		w.When = []item.All{{{Attr: "rested_us", Op: item.Missing}}, {{Attr: "rested_us", Op: item.Lt, Value: at}}}
		if _, err = s.table.Write(ctx, w); Refused(err) == nil {
			return at + cost, err == nil, err
		}
	}
	return 0, false, fault.New(fault.Conflict, nil, "taking requests of tenant %s", t)
}
