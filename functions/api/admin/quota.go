package admin

import (
	"context"

	"punctual/shared/tenant"
)

type quotaView struct {
	Name  string `json:"name" enum:"schedule_runs,requests" doc:"Name of the quota. schedule_runs: runs a minute of all schedules, each counted at its busiest minute and at least once; requests: requests that can be made at once after a time without requests."`
	Used  int64  `json:"used" doc:"Used part of the limit; more than the limit after it was lowered. requests falls as time passes, and can count some before they are made; schedule_runs falls when a schedule is deleted or runs less often."`
	Limit int64  `json:"limit" doc:"Maximum, beyond which requests are answered 429"`
}

// quotas returns what a tenant has used of each of its quotas. A deployment without an allowance has none of requests.
func (s *Handler) quotas(ctx context.Context, t tenant.ID) ([]quotaView, error) {
	runs, err := s.Store.UsedBySchedules(ctx, t)
	if err != nil {
		return nil, err
	}
	all := []quotaView{{Name: "schedule_runs", Used: runs, Limit: int64(s.ScheduleQuota)}}
	if s.Allowance.Rate == 0 {
		return all, nil
	}
	requests, err := s.Store.UsedByRequests(ctx, t, s.Allowance, s.Now())
	if err != nil {
		return nil, err
	}
	return append(all, quotaView{Name: "requests", Used: requests, Limit: int64(s.Allowance.Burst)}), nil
}
