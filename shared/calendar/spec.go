package calendar

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Spec is a calendar as a user writes it. Exactly one of Cron, Every, Dates and RRule is set.
// Absent fields are nil: an empty string is refused.
type Spec struct {
	// Cron is a cron expression; see the package for the dialect.
	Cron *string `json:"cron,omitempty"`
	// Every is a period of real time in whole seconds, "5m". It counts from StartAt or, without
	// one, from 1970-01-01T00:00:00Z.
	Every *string `json:"every,omitempty"`
	// Phase shifts Every by less than a period; absent means no shift.
	Phase *string `json:"phase,omitempty"`
	// Dates are RFC 3339 instants, in any order.
	Dates []string `json:"dates,omitempty"`
	// RRule is an RFC 5545 recurrence rule that begins at StartAt. Missing times come from there,
	// and are midnight without one.
	RRule *string `json:"rrule,omitempty"`
	// Timezone is an IANA name; absent means UTC.
	Timezone *string `json:"timezone,omitempty"`
	// StartAt and EndAt bound the nominal times, RFC 3339, end excluded; absent means no bound.
	StartAt *string `json:"start_at,omitempty"`
	EndAt   *string `json:"end_at,omitempty"`
	// MaxRuns is how often it may run in total; absent means no limit.
	MaxRuns *int `json:"max_runs,omitempty"`
	// Exclude names exclusions. When several exclude one time, any that drops it wins over those
	// that move it, and an earlier name over a later one.
	Exclude []string `json:"exclude,omitempty"`
	// MissingHour is "run_after" or "skip": what happens at a wall time that the clock skips.
	// Absent means run_after; a wildcard rule then makes up no run for it.
	MissingHour *string `json:"missing_hour,omitempty"`
	// RepeatedHour is "first", "last" or "both": at which of its two instants a repeated wall time
	// runs. Absent means first, and both for a wildcard rule.
	RepeatedHour *string `json:"repeated_hour,omitempty"`
	// Spread delays each run by less than this, evenly over schedules and times. It is less than
	// the shortest distance between two times and at most an hour. Absent means no delay.
	Spread *string `json:"spread,omitempty"`
}

// What MissingHour and RepeatedHour may say.
var (
	MissingHours  = []string{"run_after", "skip"}
	RepeatedHours = []string{"first", "last", "both"}
)

const everyAllowed = `a duration of whole seconds from "1s" to "36525d"`

// Parse returns the calendar of s, with the exclusions that it names taken from exclusions. A
// calendar that can never fire is refused; one whose times are all past is not, see
// [Calendar.Check]. The error is an [*Error].
func Parse(s Spec, exclusions Exclusions) (Calendar, error) {
	c, err := s.calendar(exclusions)
	if err != nil {
		return Calendar{}, err
	}
	return c, nil
}

func (s Spec) calendar(exclusions Exclusions) (Calendar, *Error) {
	var c Calendar
	err := s.onlyOne()
	if err != nil {
		return c, err
	}
	c.field = s.field()
	name := "UTC"
	if s.Timezone != nil {
		name = *s.Timezone
	}
	if c.zone, err = findZone("timezone", name); err != nil {
		return c, err
	}
	if note := zoneNote(name); note != "" {
		c.notes = append(c.notes, note)
	}
	if err = c.setWindow(s); err != nil {
		return c, err
	}
	if err = c.setSource(s); err != nil {
		return c, err
	}
	if s.MaxRuns != nil {
		if *s.MaxRuns < 1 || *s.MaxRuns > MaxRuns {
			return c, refuse("max_runs", CodeOutOfRange, fmt.Sprintf("1 to %d", MaxRuns), "%d is out of range",
				*s.MaxRuns)
		}
		c.maxRuns = *s.MaxRuns
	}
	if err = c.setExclusions(s, exclusions); err != nil {
		return c, err
	}
	if err = c.setSpread(s); err != nil {
		return c, err
	}
	if !c.ever() {
		return c, refuse(c.field, CodeNeverFires, "",
			"it never fires: no time is left inside the window and outside the exclusions and change-overs")
	}
	return c, c.checkGaps()
}

// ever reports whether there is any time at all, in the window or since 1970; before that if the window ends earlier.
func (c Calendar) ever() bool {
	from := c.start - 1
	if c.start == firstInstant*1000 && c.end > day*1000 {
		from = 0 // earlier local mean times differ by seconds
	}
	for ; from < c.end; from = horizon(from) + 1 {
		if _, ok := c.anchored(from).next(from); ok {
			return true
		}
	}
	return false
}

// field returns the name of the rule's field.
func (s Spec) field() string {
	switch {
	case s.Cron != nil:
		return "cron"
	case s.Every != nil:
		return "every"
	case s.RRule != nil:
		return "rrule"
	}
	return "dates"
}

func (s Spec) onlyOne() *Error {
	const rules = "one of cron, every, dates, rrule"
	var given []string
	for _, f := range []struct {
		name string
		is   bool
	}{{"cron", s.Cron != nil}, {"every", s.Every != nil}, {"dates", s.Dates != nil}, {"rrule", s.RRule != nil}} {
		if f.is {
			given = append(given, f.name)
		}
	}
	switch {
	case len(given) == 0:
		return refuse("cron", CodeMissingField, rules, "the calendar does not say when")
	case len(given) > 1:
		return refuse(given[1], CodeConflictingFields, rules, "%s and %s are both there", given[0], given[1])
	case s.Phase != nil && s.Every == nil:
		return refuse("phase", CodeConflictingFields, "every", "phase belongs to every, not to %s", given[0])
	}
	return nil
}

func (c *Calendar) setWindow(s Spec) (err *Error) {
	c.start, c.end = firstInstant*1000, lastInstant*1000
	if s.StartAt != nil {
		if c.start, err = parseInstant("start_at", *s.StartAt); err != nil {
			return err
		}
	}
	if s.EndAt != nil {
		if c.end, err = parseInstant("end_at", *s.EndAt); err != nil {
			return err
		}
		if c.end <= c.start {
			return refuse("end_at", CodeConflictingFields, "an instant after start_at",
				"the calendar ends before it begins")
		}
	}
	return nil
}

func (c *Calendar) setSource(s Spec) *Error {
	switch {
	case s.Cron != nil:
		parsed, err := parseCron(*s.Cron)
		if err != nil {
			return err
		}
		if parsed.every != 0 {
			c.source = every{
				period: parsed.every.Milliseconds(), anchor: c.start, begins: true,
				floating: s.StartAt == nil, elapsed: s.StartAt == nil,
			}
			return s.noChangeOver("@every")
		}
		if parsed.note != "" {
			c.notes = append(c.notes, parsed.note)
		}
		why := ""
		if parsed.wild {
			why = "second, minute or hour begins with *"
		}
		return c.setClock(s, parsed.rule, why)
	case s.RRule != nil:
		var begin *int64
		if s.StartAt != nil {
			begin = new(c.zone.wall(c.began()))
		}
		rule, until, err := parseRRule(*s.RRule, begin)
		if err != nil {
			return err
		}
		if until != 0 {
			c.end = min(c.end, until+1)
		}
		if rule.elapsed() {
			err = c.setElapsed(s, rule)
		} else {
			why := ""
			if rule.freq == hourly {
				why = "FREQ is HOURLY"
			}
			err = c.setClock(s, rule, why)
		}
		if err != nil {
			return err
		}
		return c.setCount(rule)
	case s.Every != nil:
		if err := c.setEvery(s); err != nil {
			return err
		}
		return s.noChangeOver("every")
	}
	if err := c.setDates(s); err != nil {
		return err
	}
	return s.noChangeOver("dates")
}

// began is the second at which an rrule begins: the first that is not before start_at, so that its first time is one
// of those that COUNT counts.
func (c *Calendar) began() int64 { return -floorDiv(-c.start, 1000) }

// setElapsed sets a rule of minutes or seconds.
func (c *Calendar) setElapsed(s Spec, rule *recurrence) *Error {
	if err := s.noChangeOver("an rrule of minutes or seconds"); err != nil {
		return err
	}
	began := c.began()
	if s.StartAt == nil { // without an interval any start gives the same times
		began = rule.begin
	}
	clock := wallClock{rule: rule, zone: c.zone, missing: missingIgnored, repeated: repeatedBoth, elapsed: true,
		began: began}
	clock.setReal()
	c.source = clock
	return nil
}

// setCount ends the calendar after the run that COUNT names. Runs are counted, not wall times: one that a clock change
// leaves out does not count, and one at both instants of a repeated hour counts twice.
func (c *Calendar) setCount(rule *recurrence) *Error {
	clock := c.source.(wallClock)
	at, steps := c.start-1, parseSteps
	for n := range rule.count {
		until := c.end - 1
		if n > 0 {
			until = min(until, horizon(at))
		}
		t, ok := clock.nextWithin(at, until, false, &steps)
		switch {
		case ok:
			at = t.at
		case n == 0 || until == c.end-1 && c.end < lastInstant*1000:
			return nil // it never fires, or ends before it has run so often
		default:
			return tooRare("the rule is too rare to count %d times", rule.count)
		}
	}
	if rule.count > 0 {
		c.end = min(c.end, at+1)
	}
	return nil
}

// checkGaps refuses a rule that waits longer for a time than a search looks ahead: it would end there without a word.
// Only an interval makes such rules. One search for each year finds them, since a year with a time is passed at once.
func (c *Calendar) checkGaps() *Error {
	clock, _ := c.source.(wallClock)
	rule, ok := clock.rule.(*recurrence)
	if !ok || rule.interval == 1 {
		return nil
	}
	const year = 366 * day * 1000
	steps := parseSteps
	for at := c.start - 1; ; {
		until := at + (HorizonYears-1)*year
		t, ok := clock.nextWithin(at, min(until, c.end-1), false, &steps)
		switch {
		case !ok && (until < c.end-1 || steps <= 0):
			return tooRare("the rule goes for more than %d years without a time", HorizonYears-1)
		case !ok:
			return nil
		}
		of, _, _ := civil(c.zone.day(floorDiv(t.at, 1000)))
		at = max(t.at, c.zone.dayStart(dayNumber(of+1, 1, 1))*1000-1)
	}
}

func tooRare(format string, args ...any) *Error {
	return refuse("rrule", CodeOutOfRange, "a shorter INTERVAL, a smaller COUNT, or UNTIL", format, args...)
}

// setClock sets a rule of wall times. wild says why the rule follows real time; it is empty for one that does not.
func (c *Calendar) setClock(s Spec, rule wallRule, wild string) *Error {
	clock := wallClock{rule: rule, zone: c.zone, missing: missingRunAfter, repeated: repeatedFirst}
	if wild != "" {
		clock.missing, clock.repeated = missingIgnored, repeatedBoth
		clock.setReal()
		if s.MissingHour == nil && s.RepeatedHour == nil && (clock.loses || clock.doubles) {
			c.notes = append(
				c.notes,
				wild+", so the rule follows real time through a change of the clock: a time in the "+
					"hour that the clock skips does not run, and one in the hour that it repeats runs twice; "+
					"missing_hour and "+
					"repeated_hour change that",
			)
		}
	}
	if s.MissingHour != nil {
		missing, ok := map[string]missingHour{MissingHours[0]: missingRunAfter,
			MissingHours[1]: missingSkip}[*s.MissingHour]
		if !ok {
			return refuse("missing_hour", CodeInvalidValue, "run_after, skip", "%s is no policy",
				quoted(*s.MissingHour))
		}
		clock.missing = missing
	}
	if s.RepeatedHour != nil {
		repeated, ok := map[string]repeatedHour{
			RepeatedHours[0]: repeatedFirst, RepeatedHours[1]: repeatedLast, RepeatedHours[2]: repeatedBoth,
		}[*s.RepeatedHour]
		if !ok {
			return refuse("repeated_hour", CodeInvalidValue, "first, last, both", "%s is no policy",
				quoted(*s.RepeatedHour))
		}
		clock.repeated = repeated
	}
	c.source = clock
	return nil
}

// noChangeOver refuses policies for clock changes where times are instants.
func (s Spec) noChangeOver(what string) *Error {
	for _, f := range []struct {
		name  string
		value *string
	}{{"missing_hour", s.MissingHour}, {"repeated_hour", s.RepeatedHour}} {
		if f.value != nil {
			return refuse(f.name, CodeConflictingFields, "cron and rrule",
				"%s means real instants, which no clock change touches", what)
		}
	}
	return nil
}

func (c *Calendar) setEvery(s Spec) *Error {
	period, err := parseDuration("every", *s.Every, everyAllowed)
	if err != nil {
		return err
	}
	if err := checkEvery("every", *s.Every, everyAllowed, period); err != nil {
		return err
	}
	if s.Timezone != nil && period%(24*time.Hour) == 0 && c.zone.keepsChanging() {
		c.notes = append(
			c.notes,
			"every counts real time: where the clock of the zone changes, the local time of day moves; "+
				"cron with a fixed hour keeps it",
		)
	}
	e := every{period: period.Milliseconds()}
	if s.StartAt != nil {
		e.anchor, e.begins = c.start, true
	}
	if s.Phase != nil {
		const allowed = "whole seconds, less than every"
		phase, err := parseDuration("phase", *s.Phase, allowed)
		if err != nil {
			return err
		}
		if phase >= period {
			return refuse("phase", CodeOutOfRange, allowed, "%s is not shorter than every", quoted(*s.Phase))
		}
		if phase%time.Second != 0 {
			return refuse("phase", CodeInvalidValue, allowed, "%s is not a whole number of seconds", quoted(*s.Phase))
		}
		e.anchor += phase.Milliseconds()
	}
	c.source = e
	return nil
}

func (c *Calendar) setDates(s Spec) *Error {
	if len(s.Dates) == 0 || len(s.Dates) > MaxDates {
		return refuse("dates", CodeOutOfRange, fmt.Sprintf("1 to %d instants", MaxDates), "there are %d", len(s.Dates))
	}
	list := make(dates, 0, len(s.Dates))
	for i, text := range s.Dates {
		at, err := parseInstant(fmt.Sprintf("dates/%d", i), text)
		if err != nil {
			return err
		}
		list = append(list, at)
	}
	slices.Sort(list)
	c.source = slices.Compact(list)
	return nil
}

func (c *Calendar) setExclusions(s Spec, exclusions Exclusions) *Error {
	if len(s.Exclude) == 0 {
		return nil
	}
	if len(s.Exclude) > MaxExclude {
		return refuse("exclude", CodeOutOfRange, fmt.Sprintf("at most %d names", MaxExclude), "%d are too many",
			len(s.Exclude))
	}
	var sets []closure
	for i, name := range s.Exclude {
		field := fmt.Sprintf("exclude/%d", i)
		e, ok := exclusions[name]
		if !ok {
			return refuse(field, CodeInvalidValue, "the name of an exclusion", "there is no exclusion %s", quoted(name))
		}
		if slices.Contains(s.Exclude[:i], name) {
			return refuse(field, CodeInvalidValue, "each name once", "%s is there twice", quoted(name))
		}
		set, err := e.compile(name, c.zone)
		if err != nil {
			return refuse(field, err.Code, err.Allowed, "exclusion %s: %s: %s", quoted(name), err.Field, err.Detail)
		}
		sets = append(sets, set)
	}
	c.closed = newClosures(sets)
	if c.closed.moves && c.often() {
		return refuse("exclude", CodeConflictingFields,
			fmt.Sprintf("a calendar of at most %d times a day, or an exclusion that drops", MaxMovedPerDay),
			"one of the exclusions moves runs to another day, and there are too many of them a day to move")
	}
	return nil
}

// often reports whether the calendar may run more than MaxMovedPerDay times a day.
func (c *Calendar) often() bool {
	switch src := c.source.(type) {
	case every:
		return src.period < day*1000/MaxMovedPerDay
	case wallClock:
		switch rule := src.rule.(type) {
		case *cronRule:
			return rule.time.count() > MaxMovedPerDay
		case *recurrence:
			return rule.often(MaxMovedPerDay)
		}
	}
	return false // there are few dates
}

func (c *Calendar) setSpread(s Spec) *Error {
	if s.Spread == nil {
		return nil
	}
	allowed := fmt.Sprintf("more than 0, at most %dh and less than the distance between two times", MaxSpread/time.Hour)
	spread, err := parseDuration("spread", *s.Spread, allowed)
	if err != nil {
		return err
	}
	if spread <= 0 || spread > MaxSpread {
		return refuse("spread", CodeOutOfRange, allowed, "%s is out of range", quoted(*s.Spread))
	}
	if closest := c.closest(); spread.Milliseconds() >= closest {
		return refuse("spread", CodeOutOfRange, allowed,
			"%s is not less than %s, the shortest distance between two times",
			quoted(*s.Spread), time.Duration(closest)*time.Millisecond)
	}
	c.spread = spread.Milliseconds()
	return nil
}

// closest returns the shortest distance in milliseconds between two times of the rule, ignoring
// clock changes and moves.
func (c *Calendar) closest() int64 {
	best := int64(MaxEvery / time.Millisecond)
	switch src := c.source.(type) {
	case every:
		return src.period
	case dates:
		for i := 1; i < len(src); i++ {
			best = min(best, src[i]-src[i-1])
		}
	case wallClock:
		switch rule := src.rule.(type) {
		case *cronRule:
			return int64(rule.time.closest()) * 1000
		case *recurrence:
			return rule.closest() * 1000
		}
	}
	return best
}

// closest returns the shortest distance in seconds that the parts of the rule allow.
func (r *recurrence) closest() int64 {
	switch r.freq {
	case secondly:
		return r.interval
	case minutely:
		if bits.OnesCount64(r.time.second) == 1 {
			return r.interval * 60
		}
	case hourly:
		if bits.OnesCount64(r.time.second)*bits.OnesCount64(r.time.minute) == 1 {
			return r.interval * 3600
		}
	}
	return int64(r.time.closest())
}
