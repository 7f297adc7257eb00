package api

import (
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// weighed is how many times of a rule its weight is taken from: enough to see a whole minute of
// an every-second one, wherever in it the first lies. Of dates it is taken from all.
const weighed = 120

// weight is how many of so many times of a calendar fall into its busiest minute, at least 1.
func weight(c calendar.Calendar, after time.Time, looked int) int64 {
	times := c.Preview(after, looked)
	busiest, from := 1, 0
	for to, o := range times {
		for o.NominalAt.Sub(times[from].NominalAt) >= time.Minute {
			from++
		}
		busiest = max(busiest, to-from+1)
	}
	return int64(busiest)
}

// weightOf is what a schedule takes of its tenant's quota: the same whenever it is asked, so
// that what is given back is what was taken. Exclusions do not count: they may be replaced.
func weightOf(sched schedule.Schedule) int64 {
	if sched.Deleted() {
		return 0
	}
	sched.Spec.Exclude = nil
	c, err := sched.Calendar()
	if err != nil {
		return 1 // it cannot run, but is there
	}
	if sched.Spec.Dates != nil {
		return weight(c, time.Time{}, calendar.MaxDates)
	}
	return weight(c, sched.CreatedAt, weighed)
}

// takeQuota is the write that takes so much of a tenant's quota, in the transaction of what it
// is taken for; when there is not so much left the transaction fails with errQuota. Less than nothing gives back.
func (s *stage) takeQuota(t tenant.ID, amount int64) item.Write {
	w := item.Write{
		Ref:  item.Ref{Table: contract.Tasks, PK: "quota#" + string(t), SK: "schedules"},
		Name: "quota.take", Add: map[string]int64{"runs_a_minute": amount},
	}
	if amount > 0 {
		w.Else = s.errQuota(amount)
		left := int64(s.ScheduleQuota) - amount
		w.When = []item.All{{{Attr: "runs_a_minute", Op: item.Le, Value: left}}}
		if left >= 0 {
			w.When = append(w.When, item.All{{Attr: "runs_a_minute", Op: item.Missing}})
		}
	}
	return w
}

// errQuota carries no Retry-After: waiting frees nothing, only deleting does.
func (s *stage) errQuota(amount int64) error {
	return wire.NewProblem(wire.CodeRateLimited,
		"a tenant's schedules may run %d times a minute in all, each at its busiest and at least once; "+
			"there is not room for %d more: delete one, or let some run less often", s.ScheduleQuota, amount)
}
