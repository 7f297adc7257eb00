package schedules

import (
	"context"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/calendar"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// scheduleDiff is how an edit would change the times of a schedule.
type scheduleDiff struct {
	Added   []occurrenceTime  `json:"added" doc:"Times that the schedule would gain; at most {=dry_run_listed}"`
	Lost    []occurrenceTime  `json:"lost" doc:"Times that the schedule would lose; at most {=dry_run_listed}"`
	Moved   []movedOccurrence `json:"moved" doc:"Times that would move; at most {=dry_run_listed}. Times of a local day count as moved if as many would be lost as added, and so does a time whose delay by the spread changes."`
	Through rest.Instant      `json:"through" doc:"End of the compared period: {=dry_run_days} days from now, or earlier if cut is true"`
	Changed []string          `json:"changed" doc:"JSON pointers of the fields that the edit changes, such as /calendar/cron; empty if it changes nothing. An empty string, the pointer to the whole, means that the schedule is new."`
	Cut     bool              `json:"cut" doc:"Whether there were too many times to compare {=dry_run_days} days, or to list all of them"`
}

type movedOccurrence struct {
	From rest.Instant `json:"from" doc:"Time at which the occurrence is due now"`
	To   rest.Instant `json:"to" doc:"Time at which the occurrence would be due"`
}

// dryRun checks a change as if it were made, and compares the coming times of the schedule before and after it. It
// returns the errors that the change would give, including that of the tenant's quota.
func (s *Handler) dryRun(
	ctx context.Context, who tenant.Identity, k schedule.Key, old *schedule.Schedule, c scheduleChange, now time.Time,
) (scheduleDiff, error) {
	after, _, err := s.plan(ctx, who, k, old, c, now)
	if err != nil {
		return scheduleDiff{}, err
	}
	next, err := after.Calendar()
	if err != nil {
		return scheduleDiff{}, calendarProblem(err)
	}
	before, runs, takes, changed := next, 0, after.Weight(), []string{""} // a new schedule had no times
	if old != nil && !old.Deleted() {
		takes -= old.Weight()
		changed = changedParts(*old, after, now)
		if c, err := old.Calendar(); err == nil {
			before, runs = c, old.RunsLeft()
		}
	}
	if takes > 0 {
		used, err := s.Store.UsedBySchedules(ctx, after.Tenant)
		if err != nil {
			return scheduleDiff{}, err
		}
		if used+takes > int64(s.ScheduleQuota) {
			return scheduleDiff{}, s.errQuota(takes)
		}
	}
	d := calendar.Compare(before, next, runs, after.RunsLeft(), now)
	diff := scheduleDiff{Added: viewTimes(d.Added), Lost: viewTimes(d.Lost), Moved: make([]movedOccurrence, len(d.Moved)),
		Through: rest.At(d.Through), Changed: changed, Cut: d.Cut}
	for i, m := range d.Moved {
		diff.Moved[i] = movedOccurrence{rest.At(m.From), rest.At(m.To)}
	}
	return diff, nil
}
