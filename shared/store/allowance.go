package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// Allowance is how many requests a tenant may make: so many a second, and so many at once after a rest.
type Allowance struct{ Rate, Burst int }

// each is what one request costs, in microseconds of rest.
func (a Allowance) each() int64 { return int64(time.Second/time.Microsecond) / int64(a.Rate) }

func quotaRef(t tenant.ID, of string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "quota#" + string(t), SK: of}
}

// SchedulesQuota is where it is counted, as runs_a_minute, what a tenant's schedules take of its quota.
func SchedulesQuota(t tenant.ID) item.Ref { return quotaRef(t, "schedules") }

// UsedBySchedules reads how many runs a minute a tenant's schedules take of its quota.
func (s *Store) UsedBySchedules(ctx context.Context, t tenant.ID) (int64, error) {
	i, err := s.table.Get(ctx, SchedulesQuota(t))
	return i.Int("runs_a_minute"), err
}

// UsedByRequests reads how many requests a tenant has taken of its burst and not yet rested from.
func (s *Store) UsedByRequests(ctx context.Context, t tenant.ID, a Allowance, now time.Time) (int64, error) {
	i, err := s.table.Get(ctx, quotaRef(t, "requests"))
	return max(0, (i.Int("rested_us")-now.UnixMicro()+a.each()-1)/a.each()), err
}

// TakeRequests takes n requests from what a tenant may make now, all or none. wait is how long it is
// until there are so many; 0 says that they were taken.
//
// One number keeps it: the time at which the tenant will have rested fully, in microseconds. A request
// moves it on by what it costs; there is room while it is no further ahead than a burst costs. That
// takes one write, which meets no conflict while the tenant is busy.
func (s *Store) TakeRequests(ctx context.Context, t tenant.ID, a Allowance, n int, now time.Time) (wait time.Duration,
	err error) {
	const tries = 3
	each := a.each()
	cost, at := int64(n)*each, now.UnixMicro()
	room := at + int64(a.Burst)*each - cost // the last time that leaves room
	w := item.Write{Ref: quotaRef(t, "requests")}
	for range tries {
		w.Name, w.Set, w.Add = "requests.more", nil, map[string]int64{"rested_us": cost}
		w.When = []item.All{{{Attr: "rested_us", Op: item.Ge, Value: at},
			{Attr: "rested_us", Op: item.Le, Value: room}}}
		err := s.Put(ctx, w)
		refused := Refused(err)
		if refused == nil {
			return 0, err
		}
		if rested := refused.Olds[0].Int("rested_us"); rested >= at {
			return time.Duration(max(rested-room, each)) * time.Microsecond, nil
		}
		if room < at {
			return time.Duration(at-room) * time.Microsecond, nil // more than a burst: never
		}
		w.Name, w.Set, w.Add = "requests.first", map[string]any{"rested_us": at + cost}, nil
		w.When = []item.All{{{Attr: "rested_us", Op: item.Missing}}, {{Attr: "rested_us", Op: item.Lt, Value: at}}}
		if err = s.Put(ctx, w); Refused(err) == nil {
			return 0, err
		}
	}
	return 0, fault.New(fault.Conflict, nil, "taking requests of tenant %s", t)
}
