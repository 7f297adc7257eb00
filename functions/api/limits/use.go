package limits

import (
	"context"
	"slices"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// users names the tasks, schedules and dags of a tenant that use a limit. Of a dag its newest version counts, and the
// versions that schedules name.
func (s *Handler) users(ctx context.Context, t tenant.ID, name string) (users []string, err error) {
	if users, err = s.tasks(ctx, t, name); err != nil {
		return nil, err
	}
	pinned := map[string][]int64{}
	_, schedules, err := s.Read.Selected(ctx, t, func(of schedule.Schedule) bool {
		if v := of.Template.DagVersion; v > 0 {
			pinned[of.Template.Dag] = append(pinned[of.Template.Dag], v)
		}
		return names(of.Template.Limits.List(), name)
	})
	if err != nil {
		return nil, err
	}
	for _, of := range schedules {
		users = append(users, "schedule "+of)
	}
	dags, err := s.dags(ctx, t, name, pinned)
	return append(users, dags...), err
}

func names(list []job.LimitKey, name string) bool {
	return slices.ContainsFunc(list, func(l job.LimitKey) bool { return l.Name == name })
}

func (s *Handler) tasks(ctx context.Context, t tenant.ID, name string) (users []string, err error) {
	for after, more := "", true; more; {
		var page []job.Task
		if page, more, err = s.Store.Tasks(ctx, t, after, contract.ListMax); err != nil {
			return nil, err
		}
		for _, task := range page {
			if after = task.Name; names(task.Limits.List(), name) {
				users = append(users, "task "+task.Name)
			}
		}
		more = more && len(page) > 0
	}
	return users, nil
}

func (s *Handler) dags(
	ctx context.Context, t tenant.ID, name string, pinned map[string][]int64,
) (users []string, err error) {
	for after, more := "", true; more; {
		page, next, err := s.Store.Dags(ctx, t, after, contract.ListMax)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			uses, err := s.dagUses(ctx, t, d.Name, append([]int64{0}, pinned[d.Name]...), name)
			if err != nil {
				return nil, err
			}
			if after = d.Name; uses {
				users = append(users, "dag "+d.Name)
			}
		}
		more = next && len(page) > 0
	}
	return users, nil
}

// dagUses reports whether one of the versions of a dag uses a limit; 0 is the newest.
func (s *Handler) dagUses(
	ctx context.Context, t tenant.ID, dag string, versions []int64, name string,
) (bool, error) {
	slices.Sort(versions)
	for _, v := range slices.Compact(versions) {
		_, g, err := s.Dag(ctx, t, dag, v)
		if rest.IsNotFound(err) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return false, err
		}
		for _, n := range g.Nodes {
			if n.Limits != nil && names(*n.Limits, name) {
				return true, nil
			}
		}
	}
	return false, nil
}
