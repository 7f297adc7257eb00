package schedules

import (
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/calendar"
	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// weighed is how many times of a calendar are read for its weight. It is enough for one whole minute of an every-second
// calendar. For dates all times are read.
const weighed = 120

// weight returns how many of the next times fall into the busiest minute, at least 1.
func weight(c calendar.Calendar, after time.Time, sample int) int64 {
	times := c.Preview(after, sample)
	busiest, from := 1, 0
	for to, o := range times {
		for o.NominalAt.Sub(times[from].NominalAt) >= time.Minute {
			from++
		}
		busiest = max(busiest, to-from+1)
	}
	return int64(busiest)
}

// weightOf returns what a schedule takes from its tenant's quota. It is always the same, so that a delete gives back
// what was taken. Exclusions do not count, because they may be replaced.
func weightOf(sched schedule.Schedule) int64 {
	if sched.Deleted() {
		return 0
	}
	sched.Spec.Exclude = nil
	c, err := sched.Calendar()
	if err != nil {
		return 1 // it cannot run, but it exists
	}
	if sched.Spec.Dates != nil {
		return weight(c, time.Time{}, calendar.MaxDates)
	}
	return weight(c, sched.CreatedAt, weighed)
}

// takeQuota returns the write that takes an amount from a tenant's quota; a negative amount gives back. If not enough
// is left, the transaction fails with errQuota.
func (s *Handler) takeQuota(t tenant.ID, amount int64) item.Write {
	w := item.Write{
		Ref: store.SchedulesQuota(t), Name: "quota.take", Add: map[string]int64{"runs_a_minute": amount},
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

// errQuota has no Retry-After: waiting does not help, only deleting does.
func (s *Handler) errQuota(amount int64) error {
	return rest.NewProblem(rest.CodeRateLimited,
		"the schedules of a tenant may run %d times a minute in total, each counted at its busiest minute and at "+
			"least once; %d more exceed this: delete a schedule, or let some run less often", s.ScheduleQuota, amount)
}
