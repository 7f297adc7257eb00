package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// calendarRequest documents a calendar. Its field names are the only ones allowed.
type calendarRequest struct {
	Cron         string        `json:"cron,omitempty" doc:"Five fields, or six with seconds first; @daily and its like, @every 5m; L, L-n, nW, LW, L-nW, nL, n#k; ranges may pass the end of a field (FRI-MON, 22-2). If day of month and day of week are both restricted, a day runs when EITHER matches; a day field that begins with * is no restriction, so beside */2 BOTH match. One of cron, every, dates and rrule is there" example:"0 9 * * 1-5"`
	Every        wire.Duration `json:"every,omitempty" doc:"A period of real time of whole seconds; counted from start_at, without one from 1970-01-01T00:00:00Z"`
	Phase        wire.Duration `json:"phase,omitempty" doc:"Shifts every by less than a period"`
	Dates        []string      `json:"dates,omitempty" doc:"Times of RFC 3339, in any order; fractions are rounded up to a millisecond"`
	RRule        string        `json:"rrule,omitempty" doc:"Rule of RFC 5545, beginning at start_at. COUNT counts runs. The next time is at most 60 years away" example:"FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9"`
	Timezone     string        `json:"timezone,omitempty" doc:"An IANA name; default UTC" example:"Europe/Berlin"`
	StartAt      string        `json:"start_at,omitempty" format:"date-time" doc:"The first nominal time that counts, itself included"`
	EndAt        string        `json:"end_at,omitempty" format:"date-time" doc:"Nominal times from here on do not count"`
	MaxRuns      int           `json:"max_runs,omitempty" doc:"How often it may run in all; default: no limit"`
	Exclude      []string      `json:"exclude,omitempty" doc:"Names of exclusions. One that drops a time wins over one that moves it, and an earlier name over a later"`
	MissingHour  string        `json:"missing_hour,omitempty" doc:"What becomes of a wall time that a change of the clock swallows. Default run_after: once, at the first instant after the gap; a rule whose second, minute or hour begins with * follows real time, and what it loses is listed as skipped"`
	RepeatedHour string        `json:"repeated_hour,omitempty" doc:"At which of its two instants a repeated wall time runs. Default first; a rule whose second, minute or hour begins with * runs at both"`
	Spread       wire.Duration `json:"spread,omitempty" doc:"Delays each run by less than this, evenly over schedules and times, always the same for one; less than the period. Both times are shown"`
}

var calendarFields = wire.NamesOf[calendarRequest]()

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

// spec reads a calendar as it is written. Package calendar checks its meaning.
func (r *reader) spec(v wire.Value) (calendar.Spec, bool) {
	before := len(r.Wrong)
	r.NoSecrets(v, nil) // before a mistake can repeat a value
	f := r.Object(v.Node, v.Pointer, calendarFields)
	text := func(name string) *string {
		at, ok := f[name]
		if !ok {
			return nil
		}
		s, _ := r.Text(at)
		return &s
	}
	length := func(name string) *string {
		if at, ok := f[name]; ok && r.BareSeconds(at) {
			return nil
		}
		return text(name)
	}
	texts := func(name string, most int) []string {
		at, ok := f[name]
		if !ok {
			return nil
		}
		list := []string{} // an empty list is not the same as none
		for _, each := range r.List(at, most) {
			s, _ := r.Text(each)
			list = append(list, s)
		}
		return list
	}
	s := calendar.Spec{
		Cron: text("cron"), Every: length("every"), Phase: length("phase"), Dates: texts("dates", calendar.MaxDates),
		RRule:    text("rrule"),
		Timezone: text("timezone"), StartAt: text("start_at"), EndAt: text("end_at"),
		Exclude:     texts("exclude", calendar.MaxExclude),
		MissingHour: text("missing_hour"), RepeatedHour: text("repeated_hour"), Spread: length("spread"),
	}
	if at, ok := f["max_runs"]; ok {
		n, _ := r.Whole(at, 1, calendar.MaxRuns)
		s.MaxRuns = &n
	}
	return s, f != nil && len(r.Wrong) == before
}

// readCalendar reads a calendar with the exclusions that it names. Mistakes go to r, and then it is false; the error is
// for a failed look-up.
func (s *stage) readCalendar(ctx context.Context, r *reader, v wire.Value, t tenant.ID) (planned, bool, error) {
	p := planned{}
	var ok bool
	if p.spec, ok = r.spec(v); !ok {
		return p, false, nil
	}
	found, err := s.Store.ExclusionsNamed(ctx, t, exclusionNames(p.spec))
	if err != nil {
		return p, false, err
	}
	for _, e := range found {
		if p.exclusions == nil {
			p.exclusions = calendar.Exclusions{}
		}
		p.exclusions[e.Name] = e.Exclusion
		p.asRead = append(p.asRead, e.Is(t))
	}
	p.calendar, err = calendar.Parse(p.spec, p.exclusions)
	return p, r.refused(v.Pointer, err), nil
}

// planned is a calendar after reading.
type planned struct {
	spec       calendar.Spec
	exclusions calendar.Exclusions
	asRead     []item.Write // conditions that the exclusions have not changed
	calendar   calendar.Calendar
}

// exclusionNames returns the names to look up, each once; texts that are no names are left out.
func exclusionNames(s calendar.Spec) []string {
	names := slices.Clone(s.Exclude)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names),
		func(name string) bool { return !wire.IsName(name) })
}

// refused reports what package calendar refuses at this pointer; true if err is nil.
func (r *reader) refused(pointer string, err error) bool {
	var e *calendar.Error
	if !errors.As(err, &e) {
		return true
	}
	r.Mistake(pointer+"/"+e.Field, e.Code, e.Allowed, "%s", e.Detail)
	return false
}

// firing reports a calendar that has no coming time; true if it has one.
func (r *reader) firing(pointer string, c calendar.Calendar, now time.Time) bool {
	return r.refused(pointer, c.Check(now))
}
