package store

import (
	"context"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// Schedule implements ScheduleReader.
func (s *Store) Schedule(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	i, err := s.table.Get(ctx, k.Ref())
	if err != nil {
		return schedule.Schedule{}, err
	}
	if i == nil {
		return schedule.Schedule{}, fault.New(fault.NotFound, nil, "reading schedule %q", k.Name)
	}
	return schedule.Parse(i)
}

// OldSchedule is the schedule that was in the way of write number n of a refused write; an
// absent one is a fault.NotFound.
func OldSchedule(r *item.Refused, n int) (schedule.Schedule, error) {
	if r.Olds[n] == nil {
		return schedule.Schedule{}, fault.New(fault.NotFound, nil, "reading a schedule")
	}
	return schedule.Parse(r.Olds[n])
}

// FoundSchedule is one of a page. One that cannot be read has an Err of kind
// fault.Undecodable; its Key is right if there is one.
type FoundSchedule struct {
	schedule.Schedule
	Err error
}

// Schedules implements ScheduleLists.
func (s *Store) Schedules(
	ctx context.Context, t tenant.ID, after string, limit int,
) (found []FoundSchedule, more bool, err error) {
	return byName(ctx, s.table, contract.Schedules, string(t), after, limit, func(i item.Item) (FoundSchedule, bool) {
		one, err := schedule.Parse(i)
		return FoundSchedule{one, err}, err != nil || !one.Deleted()
	})
}

// DueSchedule is one wake-up of a schedule in the due index. The index lags: the item decides.
// One whose key cannot be read has an Err of kind fault.Undecodable.
type DueSchedule struct {
	schedule.Key
	WakeAt time.Time
	Ref    item.Ref
	Err    error
}

// DueSchedules implements DueReader.
func (s *Store) DueSchedules(ctx context.Context, q DueQuery) (due []DueSchedule, next string, err error) {
	query := item.Query{Table: contract.Schedules, Index: contract.DueIndex, PK: q.Slice, Cursor: q.Cursor,
		Limit: q.Limit}
	if !q.Before.IsZero() {
		query.To = q.Before.UnixMilli()
	}
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, "", err
	}
	for _, i := range page.Items {
		k, err := schedule.KeyOf(i)
		due = append(due, DueSchedule{
			Key: k, WakeAt: i.Time(contract.AttrWakeAt), Err: err,
			Ref: item.Ref{Table: contract.Schedules, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrSK)},
		})
	}
	return due, page.Cursor, nil
}

// Recorded implements ScheduleLists.
func (s *Store) Recorded(
	ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
) (entries []schedule.Entry, next string, err error) {
	q := item.Query{Table: contract.Schedules, PK: k.LedgerKey(), Descending: descending, Limit: limit, Cursor: cursor,
		Consistent: true}
	if !from.IsZero() {
		q.From = job.GroupSort(from)
	}
	if !before.IsZero() {
		q.To = job.GroupSort(before)
	}
	page, err := s.table.Query(ctx, q)
	if err != nil {
		return nil, "", err
	}
	for _, i := range page.Items {
		e, err := schedule.ParseEntry(k, i)
		if err != nil {
			continue
		}
		entries = append(entries, e)
	}
	return entries, page.Cursor, nil
}

// GroupJob is one job of a schedule in the group index.
type GroupJob struct {
	job.Key
	NominalAt time.Time // of a manual run: when it was asked for
	Manual    bool      // a run that a caller asked for, at no nominal time
}

// JobsOf implements ScheduleLists.
func (s *Store) JobsOf(
	ctx context.Context, k schedule.Key, from, before time.Time, descending bool, limit int, cursor string,
) (jobs []GroupJob, next string, err error) {
	q := item.Query{Table: contract.Jobs, Index: contract.GroupIndex, PK: k.ID(), Descending: descending, Limit: limit,
		Cursor: cursor}
	if !from.IsZero() {
		q.From = job.GroupSort(from)
	}
	if !before.IsZero() {
		q.To = job.GroupSort(before)
	}
	page, err := s.table.Query(ctx, q)
	if err != nil {
		return nil, "", err
	}
	for _, i := range page.Items {
		key, err := job.KeyOf(i)
		at, err2 := time.Parse(time.RFC3339, i.Str(contract.AttrGroupSort))
		if err != nil || err2 != nil {
			continue
		}
		jobs = append(jobs, GroupJob{key, at, key.ID != k.JobID(at)})
	}
	return jobs, page.Cursor, nil
}

// HaveJobs implements ScheduleReader.
func (s *Store) HaveJobs(ctx context.Context, k schedule.Key, times []time.Time) (map[time.Time]bool, error) {
	has := map[time.Time]bool{}
	for lot := range slices.Chunk(times, ReadAtOnce) {
		refs := make([]item.Ref, len(lot))
		for n, at := range lot {
			refs[n] = job.Key{Tenant: k.Tenant, ID: k.JobID(at)}.Ref()
		}
		items, err := s.table.GetMany(ctx, refs)
		if err != nil {
			return nil, err
		}
		for n, i := range items {
			if i != nil {
				has[lot[n]] = true
			}
		}
	}
	return has, nil
}

// CaughtUp implements ScheduleReader.
func (s *Store) CaughtUp(ctx context.Context, k schedule.Key) (schedule.CaughtUp, error) {
	i, err := s.table.Get(ctx, k.CaughtUpRef())
	return schedule.ParseCaughtUp(i), err
}

// Slot implements ScheduleReader.
func (s *Store) Slot(ctx context.Context, k schedule.Key) (schedule.Slot, error) {
	i, err := s.table.Get(ctx, k.SlotRef())
	return schedule.ParseSlot(i), err
}

// RunsOf implements ScheduleReader.
func (s *Store) RunsOf(
	ctx context.Context, c schedule.Schedule, id job.ID,
) (counted bool, full []bool, err error) {
	most := c.MaxRuns()
	refs := []item.Ref{c.RunRef(id)}
	for n, m := range most {
		if m > 0 {
			refs = append(refs, c.RunsRef(n))
		}
	}
	items, err := s.table.GetMany(ctx, refs)
	if err != nil {
		return false, nil, err
	}
	full, counts := make([]bool, len(most)), items[1:]
	for n, m := range most {
		if m > 0 {
			full[n], counts = counts[0].Int("runs") >= m, counts[1:]
		}
	}
	return items[0] != nil, full, nil
}

// RunsMade implements ScheduleLists.
func (s *Store) RunsMade(ctx context.Context, schedules []schedule.Schedule) ([][]int64, error) {
	made := make([][]int64, len(schedules))
	var refs []item.Ref
	var to []*int64
	for i, c := range schedules {
		most := c.MaxRuns()
		made[i] = make([]int64, len(most))
		for n, m := range most {
			if m > 0 {
				refs, to = append(refs, c.RunsRef(n)), append(to, &made[i][n])
			}
		}
	}
	for lot := range slices.Chunk(refs, ReadAtOnce) {
		items, err := s.table.GetMany(ctx, lot)
		if err != nil {
			return nil, err
		}
		for n, i := range items {
			*to[n] = i.Int("runs")
		}
		to = to[len(lot):]
	}
	return made, nil
}

// WriteSchedule implements ScheduleWriter.
func (s *Store) WriteSchedule(ctx context.Context, w item.Write) (schedule.Schedule, error) {
	i, err := s.table.Write(ctx, w)
	if err != nil {
		return schedule.Schedule{}, err
	}
	return schedule.Parse(i)
}
