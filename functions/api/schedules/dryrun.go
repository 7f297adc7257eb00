package schedules

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine/amend"
	"punctual/shared/document"
	"punctual/shared/schedule"
	"punctual/shared/text"
)

// scheduleDiff is how an edit would change the times of a schedule.
type scheduleDiff struct {
	Added   []occurrenceTime  `json:"added" doc:"Times that the schedule would gain; at most {=dry_run_listed}"`
	Lost    []occurrenceTime  `json:"lost" doc:"Times that the schedule would lose; at most {=dry_run_listed}"`
	Moved   []movedOccurrence `json:"moved" doc:"Times that would move; at most {=dry_run_listed}. Times of a local day count as moved if as many would be lost as added, and so does a time whose delay by the spread changes."`
	Through rest.Instant      `json:"through" doc:"End of the compared period: {=dry_run_days} days from now, or earlier if cut is true"`
	Changed []string          `json:"changed" doc:"JSON pointers of the fields that the edit changes, such as /calendar/cron; empty if it changes nothing. An empty string, the pointer to the whole, means that the schedule is new."`
	Paused  bool              `json:"paused" doc:"Whether the schedule would be paused: it runs at none of its times before it is resumed"`
	Cut     bool              `json:"cut" doc:"Whether there were too many times to compare {=dry_run_days} days, or to list all of them"`
}

type movedOccurrence struct {
	From rest.Instant `json:"from" doc:"Time at which the occurrence is due now"`
	To   rest.Instant `json:"to" doc:"Time at which the occurrence would be due"`
}

func viewDiff(t amend.Tried) scheduleDiff {
	d := scheduleDiff{Added: viewTimes(t.Times.Added), Lost: viewTimes(t.Times.Lost),
		Moved: make([]movedOccurrence, len(t.Times.Moved)), Through: rest.At(t.Times.Through), Changed: []string{""},
		Paused: t.After.Paused != nil, Cut: t.Times.Cut}
	for i, m := range t.Times.Moved {
		d.Moved[i] = movedOccurrence{rest.At(m.From), rest.At(m.To)}
	}
	if !t.New {
		d.Changed = changedParts(t.Old, t.After, t.At)
	}
	return d
}

// changedParts lists the fields that an edit changes, as JSON pointers in order.
func changedParts(was, is schedule.Schedule, now time.Time) []string {
	old, after, changed := viewSchedule(was, now), viewSchedule(is, now), []string{}
	part := func(name string, was, is any) {
		a, _ := document.Fields(text.MustJSON(was))
		b, _ := document.Fields(text.MustJSON(is))
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, field := range slices.Sorted(maps.Keys(names)) {
			if field != "payload_size" && !bytes.Equal(a[field], b[field]) {
				changed = append(changed, "/"+name+"/"+field)
			}
		}
	}
	part("calendar", old.Calendar, after.Calendar)
	if !bytes.Equal(text.MustJSON(old.Calendars), text.MustJSON(after.Calendars)) {
		changed = append(changed, "/calendars")
	}
	part("job", old.Job, after.Job)
	part("dag", old.Dag, after.Dag)
	if was.Template.PayloadHash != is.Template.PayloadHash || was.Template.Payload != is.Template.Payload {
		changed = append(changed, map[bool]string{true: "/dag/params", false: "/job/payload"}[after.Dag != nil])
	}
	if old.Overlap != after.Overlap {
		changed = append(changed, "/overlap")
	}
	part("catch_up", old.CatchUp, after.CatchUp)
	if old.PauseAfterFailures != after.PauseAfterFailures {
		changed = append(changed, "/pause_after_failures")
	}
	if !bytes.Equal(text.MustJSON(old.Paused), text.MustJSON(after.Paused)) {
		changed = append(changed, "/paused")
	}
	slices.Sort(changed)
	return changed
}
