package schedules

import (
	"punctual/functions/api/rest"
	"punctual/shared/item"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

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
