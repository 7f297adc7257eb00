package calendar

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/teambition/rrule-go"
)

const (
	rruleAllowed = `an RFC 5545 rule such as "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9"`
	allDay       = uint64(1)<<60 - 1
	allHours     = uint64(1)<<24 - 1
)

// rruleParts is the syntax of every property; the library tolerates meaningless signs, spaces and
// numbers.
var rruleParts = map[string]*regexp.Regexp{
	"FREQ":     regexp.MustCompile(`^[A-Z]+$`),
	"INTERVAL": regexp.MustCompile(`^[0-9]{1,9}$`),
	"COUNT":    regexp.MustCompile(`^[0-9]{1,9}$`),
	"UNTIL":    regexp.MustCompile(`^[0-9]{8}(T[0-9]{6}Z?)?$`),
	"WKST":     regexp.MustCompile(`^(MO|TU|WE|TH|FR|SA|SU)$`),
	"BYDAY": regexp.MustCompile(
		`^([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU)(,([+-]?[1-9][0-9]?)?(MO|TU|WE|TH|FR|SA|SU))*$`),
	"BYMONTH":    regexp.MustCompile(`^[0-9]{1,2}(,[0-9]{1,2})*$`),
	"BYHOUR":     regexp.MustCompile(`^[0-9]{1,2}(,[0-9]{1,2})*$`),
	"BYMINUTE":   regexp.MustCompile(`^[0-9]{1,2}(,[0-9]{1,2})*$`),
	"BYSECOND":   regexp.MustCompile(`^[0-9]{1,2}(,[0-9]{1,2})*$`),
	"BYMONTHDAY": regexp.MustCompile(`^[+-]?[0-9]{1,2}(,[+-]?[0-9]{1,2})*$`),
	"BYYEARDAY":  regexp.MustCompile(`^[+-]?[0-9]{1,3}(,[+-]?[0-9]{1,3})*$`),
	"BYWEEKNO":   regexp.MustCompile(`^[+-]?[0-9]{1,2}(,[+-]?[0-9]{1,2})*$`),
	"BYSETPOS":   regexp.MustCompile(`^[+-]?[0-9]{1,5}(,[+-]?[0-9]{1,5})*$`),
}

// longest is the largest INTERVAL of the frequencies for which MaxInterval is longer than intervalYears.
var longest = map[frequency]int{yearly: intervalYears, monthly: 12 * intervalYears, weekly: 52 * intervalYears}

// parseRRule parses an RRULE. begin is the wall time of start_at, nil without one. The returned
// instant is that of an UNTIL in UTC, in milliseconds and included; 0 without one.
func parseRRule(text string, begin *int64) (*recurrence, int64, *Error) {
	bad := func(code, format string, args ...any) *Error {
		return refuse("rrule", code, rruleAllowed, format, args...)
	}
	if len(text) > MaxRRule {
		return nil, 0, refuse("rrule", CodeOutOfRange, fmt.Sprintf("at most %d bytes", MaxRRule),
			"the rule is too long")
	}
	rule := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(text)), "RRULE:")
	if strings.Contains(rule, "DTSTART") || strings.Contains(rule, "TZID") {
		return nil, 0, refuse("rrule", CodeConflictingFields, "start_at and timezone",
			"a rule begins at start_at in timezone; leave DTSTART and TZID out")
	}
	seen := map[string]string{}
	for part := range strings.SplitSeq(rule, ";") {
		name, value, _ := strings.Cut(part, "=")
		shape, known := rruleParts[name]
		if !known {
			return nil, 0, bad(CodeInvalidValue, "%s is no part of a rule", quoted(part))
		}
		if _, twice := seen[name]; twice {
			return nil, 0, bad(CodeInvalidValue, "%s is there twice", name)
		}
		if !shape.MatchString(value) {
			return nil, 0, bad(CodeInvalidValue, "%s has the wrong form", quoted(part))
		}
		seen[name] = value
	}
	option, err := rrule.StrToROption(rule)
	if err == nil {
		_, err = rrule.NewRRule(*option) // checks the ranges of the BY parts
	}
	if err != nil {
		return nil, 0, bad(CodeInvalidValue, "%s", err)
	}
	r := &recurrence{freq: frequency(option.Freq), interval: 1, end: lastInstant, wkst: fromMonday(option.Wkst)}
	if refused := r.setDays(option, begin); refused != nil {
		return nil, 0, refused
	}
	r.setTime(option, begin)
	if r.freq >= hourly && len(r.positions) > 0 {
		if r.pick(); len(r.picked) == 0 {
			return nil, 0, refuse("rrule", CodeNeverFires, "positions that there are",
				"BYSETPOS names no time of an hour, minute or second: it never fires")
		}
	}

	if _, ok := seen["INTERVAL"]; ok {
		most := cmp.Or(longest[r.freq], MaxInterval)
		if option.Interval < 1 || option.Interval > most {
			return nil, 0, refuse("rrule", CodeOutOfRange, fmt.Sprintf("1 to %d", most), "INTERVAL %d is out of range",
				option.Interval)
		}
		r.interval = int64(option.Interval)
	}
	_, counted := seen["COUNT"]
	if begin == nil && (counted || r.interval > 1) {
		return nil, 0, refuse("start_at", CodeMissingField, "an RFC 3339 instant",
			"a rule with COUNT or INTERVAL has to say where it begins")
	}
	r.begin = firstInstant
	if begin != nil {
		r.begin = *begin
	}
	r.anchor = r.begin

	var untilAt int64
	if until := seen["UNTIL"]; until != "" {
		if counted {
			return nil, 0, refuse("rrule", CodeConflictingFields, "one of them", "COUNT and UNTIL exclude one another")
		}
		switch wall := option.Until.Unix(); {
		case strings.HasSuffix(until, "Z"):
			untilAt = wall * 1000
		case len(until) == len("20060102"):
			r.end = wall + day - 1
		default:
			r.end = wall
		}
	}
	if counted {
		if option.Count < 1 || option.Count > MaxCount {
			return nil, 0, refuse("rrule", CodeOutOfRange, fmt.Sprintf("1 to %d; max_runs goes further", MaxCount),
				"COUNT %d is out of range", option.Count)
		}
		r.count = option.Count // the calendar counts, since the number of wall times depends on the zone
	}
	return r, untilAt, nil
}

func fromMonday(w rrule.Weekday) int { return (w.Day() + 1) % 7 }

// setDays sets the parts about days. Missing ones come from start_at, as in RFC 5545.
func (r *recurrence) setDays(o *rrule.ROption, begin *int64) *Error {
	conflict := func(format string, args ...any) *Error {
		return refuse("rrule", CodeConflictingFields, rruleAllowed, format, args...)
	}
	r.months = uint32(mask(o.Bymonth))
	for _, d := range o.Bymonthday {
		switch {
		case d > 0:
			r.monthDays |= 1 << d
		case d < 0:
			r.fromEnd |= 1 << -d
		}
	}
	for _, w := range o.Byweekday {
		if w.N() == 0 {
			r.weekdays |= 1 << fromMonday(w)
			continue
		}
		r.nth = append(r.nth, nthWeekday{fromMonday(w), w.N()})
	}
	r.nthOfYear = r.freq == yearly && r.months == 0
	r.yearDays, r.weekNos, r.positions = o.Byyearday, o.Byweekno, o.Bysetpos

	for _, list := range [][]int{o.Bymonth, o.Bymonthday, o.Byyearday, o.Byweekno, o.Bysetpos} {
		if slices.Contains(list, 0) {
			return refuse("rrule", CodeOutOfRange, rruleAllowed, "0 counts nothing: positions begin at 1 or -1")
		}
	}
	switch {
	case len(r.nth) > 0 && r.freq > monthly:
		return conflict("a numbered weekday needs FREQ=MONTHLY or YEARLY")
	case len(r.nth) > 0 && len(r.weekNos) > 0:
		return conflict("a numbered weekday and BYWEEKNO exclude one another")
	case len(r.weekNos) > 0 && r.freq != yearly:
		return conflict("BYWEEKNO needs FREQ=YEARLY")
	case len(r.yearDays) > 0 && r.freq >= monthly && r.freq <= daily:
		return conflict("BYYEARDAY needs FREQ=YEARLY, or one below DAILY")
	case r.monthDays|r.fromEnd != 0 && r.freq == weekly:
		return conflict("BYMONTHDAY and FREQ=WEEKLY exclude one another")
	case len(r.positions) > MaxSetPos:
		return refuse("rrule", CodeOutOfRange, fmt.Sprintf("at most %d", MaxSetPos), "BYSETPOS has %d entries",
			len(r.positions))
	}

	if r.freq >= daily || r.monthDays|r.fromEnd|r.weekdays != 0 || len(r.nth)+len(r.yearDays)+len(r.weekNos) > 0 {
		return nil
	}
	if begin == nil {
		return refuse("start_at", CodeMissingField, "an RFC 3339 instant",
			"the rule names no day, so it has to say where it begins")
	}
	d := floorDiv(*begin, day)
	_, month, dom := civil(d)
	switch r.freq {
	case weekly:
		r.weekdays = 1 << weekday(d)
	case yearly:
		if r.months == 0 {
			r.months = 1 << month
		}
		r.monthDays = 1 << dom
	case monthly:
		r.monthDays = 1 << dom
	}
	return nil
}

// setTime sets the parts about the time of day. Missing ones come from start_at, and are 0 without
// one.
func (r *recurrence) setTime(o *rrule.ROption, begin *int64) {
	at := 0
	if begin != nil {
		at = int(*begin - floorDiv(*begin, day)*day)
	}
	part := func(list []int, below frequency, fixed int, all uint64) uint64 {
		switch {
		case len(list) > 0:
			return mask(list)
		case r.freq >= below:
			return all
		}
		return 1 << fixed
	}
	r.time = timeOfDay{
		hour:   part(o.Byhour, hourly, at/3600, allHours),
		minute: part(o.Byminute, minutely, at/60%60, allDay),
		second: part(o.Bysecond, secondly, at%60, allDay),
	}
}

func mask(list []int) (set uint64) {
	for _, n := range list {
		set |= 1 << n
	}
	return set
}
