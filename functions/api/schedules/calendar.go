package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/amend"
	"punctual/shared/calendar"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// Fields of a calendar. Package calendar checks what they say, so they are read as texts; the bounds are for the
// document.
var (
	cronRule = calendarText("cron", "Cron rule of five fields, or six with seconds first. It may use @daily and its "+
		"like, @every 5m, L, L-n, nW, LW, L-nW, nL and n#k; ranges may pass the end of a field (FRI-MON, 22-2). If "+
		"day of month and day of week are both restricted, a day runs when EITHER matches; a day field that begins "+
		"with * is no restriction, so with */2 in one of them BOTH must match. A calendar has exactly one of cron, "+
		"every, dates and rrule.",
		field.Formatted("cron", `\S`, calendar.MaxCron)).Example("0 9 * * 1-5")
	every = calendarLength("every", "Period of real time in whole seconds, counted from start_at, or else from "+
		"1970-01-01T00:00:00Z", time.Second, calendar.MaxEvery)
	phase = calendarLength("phase", "Shift of the times of every by less than a period", 0, calendar.MaxEvery)
	dates = calendarTexts("dates", "Nominal times of RFC 3339, in any order; fractions are rounded up to a "+
		"millisecond", 1, calendar.MaxDates, spec.InstantForm)
	rrule = calendarText("rrule", "Rule of RFC 5545 that begins at start_at. COUNT counts runs. The next time is at "+
		"most 60 years away.", field.Formatted("rrule", `[Ff][Rr][Ee][Qq]=`, calendar.MaxRRule)).
		Example("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9")
	timezone = calendarText("timezone", "Name of an IANA time zone; default: UTC", spec.ZoneForm).
			Example("Europe/Berlin")
	startAt = calendarText("start_at", "Time from which nominal times count, itself included", spec.InstantForm)
	endAt   = calendarText("end_at", "Time from which nominal times no longer count", spec.InstantForm)
	maxRuns = field.Whole("max_runs", "Maximum number of runs in total; of a calendar in a list, of the runs at its "+
		"own times; default: no limit", 1, calendar.MaxRuns)
	exclude = calendarTexts("exclude", "Names of exclusions. An exclusion that drops a time wins over one that moves "+
		"it, and an earlier name over a later one.", 0, calendar.MaxExclude, spec.NameForm)
	missingHour = calendarText("missing_hour", "Treatment of a wall time that a change of the clock skips: run_after "+
		"(default) runs once, at the first instant after the gap; skip does not run. A rule whose second, minute or "+
		"hour begins with * follows real time, and the times that it loses are listed as skipped.",
		field.OneOf(calendar.MissingHours))
	repeatedHour = calendarText("repeated_hour", "Instant at which a repeated wall time runs: first (default), last "+
		"or both. A rule whose second, minute or hour begins with * runs at both.", field.OneOf(calendar.RepeatedHours))
	spread = calendarLength("spread", "Maximum delay of each run, less than the period. Delays are evenly spread over "+
		"schedules and times, and always the same for one time; both the nominal time and the due time are shown",
		time.Millisecond, calendar.MaxSpread)

	// CalendarRequest is replaced in the document by one schema for each form; see calendars.
	calendarRequest = field.NewObject("CalendarRequest", "Calendar: the nominal times of a "+
		"schedule", cronRule, every, phase, dates, rrule, timezone, startAt, endAt, maxRuns, exclude, missingHour,
		repeatedHour, spread)
)

// calendarText is a field that package calendar reads.
func calendarText(name, about string, bound field.Bound) field.Field[*string] {
	return field.Text(name, about, bound, func(r *rest.Reader, v rest.Value) (*string, bool) {
		s, _ := r.Text(v)
		return &s, true
	})
}

// calendarLength is a field with a duration that package calendar reads.
func calendarLength(name, about string, least, most time.Duration) field.Field[*string] {
	return field.Text(name, about, field.Lasting(least, most), func(r *rest.Reader, v rest.Value) (*string, bool) {
		if r.BareSeconds(v) {
			return nil, false
		}
		s, _ := r.Text(v)
		return &s, true
	})
}

// calendarTexts is a list of texts that package calendar reads.
func calendarTexts(name, about string, least, most int, each field.Bound) field.Field[[]string] {
	return field.List(name, about, least, most, field.Text("", "", each, func(r *rest.Reader, v rest.Value) (string,
		bool) {
		s, _ := r.Text(v)
		return s, true
	}))
}

// calendarForm is one way to write a calendar, with the name of its schema.
type calendarForm struct {
	schema string
	own    []string // fields that not every form has; the first one is required and selects the form
}

var calendarForms = []calendarForm{
	{"CronCalendarRequest", []string{"cron", "missing_hour", "repeated_hour"}},
	{"EveryCalendarRequest", []string{"every", "phase"}},
	{"DatesCalendarRequest", []string{"dates"}},
	{"RRuleCalendarRequest", []string{"rrule", "missing_hour", "repeated_hour"}},
}

// others returns the fields that belong only to other forms.
func (f calendarForm) others() []string {
	var names []string
	for _, form := range calendarForms {
		for _, name := range form.own {
			if !slices.Contains(f.own, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// readSpec reads a calendar as it is written. Package calendar checks its meaning.
func readSpec(r *rest.Reader, v rest.Value) (calendar.Spec, bool) {
	before := len(r.Wrong)
	r.NoSecrets(v, nil) // before an error can repeat a value
	f := calendarRequest.Read(r, v)
	var s calendar.Spec
	for _, text := range []struct {
		field field.Field[*string]
		to    **string
	}{
		{cronRule, &s.Cron}, {every, &s.Every}, {phase, &s.Phase}, {rrule, &s.RRule}, {timezone, &s.Timezone},
		{startAt, &s.StartAt}, {endAt, &s.EndAt}, {missingHour, &s.MissingHour}, {repeatedHour, &s.RepeatedHour},
		{spread, &s.Spread},
	} {
		text.field.Into(r, f, text.to)
	}
	if dates.Into(r, f, &s.Dates) && s.Dates == nil {
		s.Dates = []string{} // an empty list is not the same as none
	}
	if exclude.Into(r, f, &s.Exclude) && s.Exclude == nil {
		s.Exclude = []string{}
	}
	maxRuns.Pointer(r, f, &s.MaxRuns)
	return s, f != nil && len(r.Wrong) == before
}

// hasCalendar reports whether a request has a calendar or a list of calendars.
func hasCalendar(f rest.Fields) bool {
	return spec.HasAny(f, []string{calendarField.Name(), calendarsField.Name()})
}

// readCalendars reads the calendar of a request, or its list of calendars, with the exclusions that they name.
// Violations go to r, and then it is false; the error is for a failed look-up.
func (s *Handler) readCalendars(
	ctx context.Context, r *rest.Reader, f rest.Fields, t tenant.ID,
) (p amend.Planned, fine bool, err error) {
	list, several := f[calendarsField.Name()]
	one, single := f[calendarField.Name()]
	var ok bool
	switch {
	case several && single:
		r.Violation(list.Pointer, rest.CodeConflictingFields, "calendar or calendars",
			"calendar and calendars exclude each other")
		return p, false, nil
	case several:
		p.Specs, ok = readSpecs(r, list)
	default:
		p.Spec, ok = readSpec(r, one)
	}
	if !ok {
		return p, false, nil
	}
	found, err := s.Store.ExclusionsNamed(ctx, t, exclusionNames(append(p.Specs, p.Spec)))
	if err != nil {
		return p, false, err
	}
	for _, e := range found {
		if p.Exclusions == nil {
			p.Exclusions = calendar.Exclusions{}
		}
		p.Exclusions[e.Name] = e.Exclusion
		p.AsRead = append(p.AsRead, e.Is(t))
	}
	p.Calendar, err = schedule.ParseCalendars(p.Spec, p.Specs, p.Exclusions)
	return p, admitted(r, err), nil
}

// readSpecs reads a list of calendars as they are written.
func readSpecs(r *rest.Reader, v rest.Value) (list []calendar.Spec, ok bool) {
	before := len(r.Wrong)
	for _, element := range r.List(v, calendar.MaxCalendars) {
		s, _ := readSpec(r, element)
		list = append(list, s)
	}
	if len(list) == 0 && len(r.Wrong) == before {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("1 to %d calendars", calendar.MaxCalendars),
			"the list is empty")
	}
	return list, len(r.Wrong) == before
}

// exclusionNames returns the names to look up, each once; texts that are no names are left out.
func exclusionNames(specs []calendar.Spec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Exclude...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names),
		func(name string) bool { return !rest.IsName(name) })
}

// admitted reports an error of package calendar about the calendars of a schedule; true if err is nil.
func admitted(r *rest.Reader, err error) bool {
	var e *calendar.Error
	return !errors.As(err, &e) || refusedAt(r, e.Pointer(), e)
}

// refusedAt reports an error of package calendar at that pointer, and returns false.
func refusedAt(r *rest.Reader, pointer string, e *calendar.Error) bool {
	r.Violation(pointer, e.Code, e.Allowed, "%s", e.Detail)
	return false
}
