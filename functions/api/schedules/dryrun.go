package schedules

import (
	"context"
	"slices"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/calendar"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// Limits of a dry run.
const (
	DryRunAhead  = 30 * 24 * time.Hour
	DryRunListed = 1000  // of each list
	dryRunTimes  = 10000 // of each calendar; an every-second one has millions in 30 days
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
	before, runs, takes, changed := next, 0, weightOf(after), []string{""} // a new schedule had no times
	if old != nil && !old.Deleted() {
		takes -= weightOf(*old)
		changed = changedParts(*old, after, now)
		if c, err := old.Calendar(); err == nil {
			before, runs = c, most(*old)
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
	d := compare(before, next, runs, most(after), now)
	d.Changed = changed
	return d, nil
}

// timesAhead returns the next times of a calendar, up to dryRunAhead after now and at most that many.
func timesAhead(c calendar.Calendar, now time.Time, most int) (times []calendar.Occurrence, through time.Time) {
	through = now.Add(DryRunAhead)
	if most == 0 {
		return nil, through
	}
	for at := now; len(times) < most; {
		o, ok := c.Next(at)
		if !ok || o.NominalAt.After(through) {
			return times, through
		}
		times, at = append(times, o), o.NominalAt
	}
	return times, times[len(times)-1].NominalAt
}

// compare returns what changes when after replaces before. Each list ends with the runs that its schedule may still
// make.
func compare(before, after calendar.Calendar, runsBefore, runsAfter int, now time.Time) scheduleDiff {
	old, oldThrough := timesAhead(before, now, min(runsBefore, dryRunTimes))
	edited, newThrough := timesAhead(after, now, min(runsAfter, dryRunTimes))
	end := now.Add(DryRunAhead)
	if len(old) == dryRunTimes && oldThrough.Before(end) {
		end = oldThrough
	}
	if len(edited) == dryRunTimes && newThrough.Before(end) {
		end = newThrough
	}
	d := scheduleDiff{Added: []occurrenceTime{}, Lost: []occurrenceTime{}, Moved: []movedOccurrence{},
		Through: rest.At(end), Cut: end.Before(now.Add(DryRunAhead))}
	d.fill(only(old, end), only(edited, end))
	return d
}

func only(times []calendar.Occurrence, end time.Time) []calendar.Occurrence {
	n, _ := slices.BinarySearchFunc(times, end, func(o calendar.Occurrence, end time.Time) int {
		if o.NominalAt.After(end) {
			return 1
		}
		return -1
	})
	return times[:n]
}

// fill compares two sorted lists. A time that only one of them has is lost or added, day by day.
func (d *scheduleDiff) fill(old, edited []calendar.Occurrence) {
	lost, added := map[string][]calendar.Occurrence{}, map[string][]calendar.Occurrence{}
	var days []string
	note := func(to map[string][]calendar.Occurrence, o calendar.Occurrence) {
		day := o.Local[:len(time.DateOnly)]
		if len(lost[day])+len(added[day]) == 0 {
			days = append(days, day)
		}
		to[day] = append(to[day], o)
	}
	for len(old) > 0 || len(edited) > 0 {
		switch {
		case len(edited) == 0 || len(old) > 0 && old[0].NominalAt.Before(edited[0].NominalAt):
			note(lost, old[0])
			old = old[1:]
		case len(old) == 0 || edited[0].NominalAt.Before(old[0].NominalAt):
			note(added, edited[0])
			edited = edited[1:]
		default:
			if !old[0].DueAt.Equal(edited[0].DueAt) {
				d.move(old[0], edited[0])
			}
			old, edited = old[1:], edited[1:]
		}
	}
	for _, day := range days {
		if len(lost[day]) == len(added[day]) {
			for i := range lost[day] {
				d.move(lost[day][i], added[day][i])
			}
			continue
		}
		d.Lost, d.Cut = addListed(d.Lost, lost[day], d.Cut)
		d.Added, d.Cut = addListed(d.Added, added[day], d.Cut)
	}
}

func (d *scheduleDiff) move(from, to calendar.Occurrence) {
	if len(d.Moved) == DryRunListed {
		d.Cut = true
		return
	}
	d.Moved = append(d.Moved, movedOccurrence{rest.At(from.DueAt), rest.At(to.DueAt)})
}

// addListed adds times to a list up to dryRunListed, and reports whether it left any out.
func addListed(list []occurrenceTime, times []calendar.Occurrence, cut bool) ([]occurrenceTime, bool) {
	free := DryRunListed - len(list)
	if len(times) > free {
		times, cut = times[:free], true
	}
	return append(list, viewTimes(times)...), cut
}
