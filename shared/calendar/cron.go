package calendar

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronField is one of the six fields of an expression. Its shape is checked before the library
// turns it into a bit mask, because the library reads "1,,2" as 1,2 and "*-5" as "*", and panics on
// "TZ=UTC".
type cronField struct {
	name     string
	low      int
	high     int
	isDay    bool // may be "?"
	names    map[string]int
	parser   cron.Parser
	mask     func(*cron.SpecSchedule) uint64
	examples string
}

var (
	secondField = cronField{name: "second", high: 59, parser: cron.NewParser(cron.Second), examples: "0-59",
		mask: func(s *cron.SpecSchedule) uint64 { return s.Second }}
	minuteField = cronField{name: "minute", high: 59, parser: cron.NewParser(cron.Minute), examples: "0-59",
		mask: func(s *cron.SpecSchedule) uint64 { return s.Minute }}
	hourField = cronField{name: "hour", high: 23, parser: cron.NewParser(cron.Hour), examples: "0-23",
		mask: func(s *cron.SpecSchedule) uint64 { return s.Hour }}
	domField = cronField{name: "day of month", low: 1, high: 31, isDay: true, parser: cron.NewParser(cron.Dom),
		examples: "1-31, ?",
		mask:     func(s *cron.SpecSchedule) uint64 { return s.Dom }}
	monthField = cronField{name: "month", low: 1, high: 12, names: months, parser: cron.NewParser(cron.Month),
		examples: "1-12, JAN-DEC",
		mask:     func(s *cron.SpecSchedule) uint64 { return s.Month }}
	dowField = cronField{name: "day of week", high: 7, isDay: true, names: weekdays, parser: cron.NewParser(cron.Dow),
		examples: "0-7, SUN-SAT, ?",
		mask:     func(s *cron.SpecSchedule) uint64 { return s.Dow }}

	months = map[string]int{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
		"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}

	descriptors = map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}

	everyPrefix  = regexp.MustCompile(`^(?i:@every) `)
	elementShape = regexp.MustCompile(
		`^(?:([*?])|([0-9]{1,4}|[A-Za-z]{3})(?:-([0-9]{1,4}|[A-Za-z]{3}))?)(?:/([0-9]{1,4}))?$`)
	fromEndShape = regexp.MustCompile(`^[Ll](?:-([0-9]{1,2}))?([Ww])?$`)
	nearestShape = regexp.MustCompile(`^([0-9]{1,2})[Ww]$`)
	lastShape    = regexp.MustCompile(`^([0-9]|[A-Za-z]{3})[Ll]$`)
	nthShape     = regexp.MustCompile(`^([0-9]|[A-Za-z]{3})#([0-9]{1,2})$`)
)

const cronAllowed = `five fields "minute hour day month weekday", six with seconds first, @daily and its like, ` +
	`or "@every 5m"`

// parsedCron is a cron expression: a rule of wall times, or a period.
type parsedCron struct {
	rule  *cronRule
	every time.Duration // not 0 for "@every"
	wild  bool          // follows real time through a clock change
	note  string        // a sentence about its days, empty when they are not easily misread
}

func parseCron(text string) (parsedCron, *Error) {
	if len(text) > MaxCron {
		return parsedCron{}, refuse("cron", CodeOutOfRange, fmt.Sprintf("at most %d bytes", MaxCron),
			"the expression is too long")
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return parsedCron{}, refuse("cron", CodeInvalidValue, cronAllowed, "the expression is empty")
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return parsedCron{}, refuse("cron", CodeConflictingFields, "the field timezone",
			"the zone does not belong in the expression")
	case everyPrefix.MatchString(text):
		d, err := parseEvery("cron", strings.TrimSpace(text[len("@every "):]))
		return parsedCron{every: d}, err
	case strings.HasPrefix(text, "@"):
		long, ok := descriptors[strings.ToLower(text)]
		if !ok {
			return parsedCron{}, refuse("cron", CodeInvalidValue,
				"@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every", "%s is unknown",
				quoted(text))
		}
		text = long
	}
	if err := refuseEventBridge(text); err != nil {
		return parsedCron{}, err
	}
	fields := strings.Fields(text)
	withSeconds := len(fields) == 6
	switch len(fields) {
	case 5:
		fields = append([]string{"0"}, fields...)
	case 6:
	default:
		return parsedCron{}, refuse("cron", CodeInvalidValue, cronAllowed, "%s has %d fields", quoted(text),
			len(fields))
	}

	rule := &cronRule{}
	var err *Error
	set := func(f *cronField, text string) (m uint64) {
		if err == nil {
			m, err = f.parse(text)
		}
		return m
	}
	rule.time.second = set(&secondField, fields[0])
	rule.time.minute = set(&minuteField, fields[1])
	rule.time.hour = set(&hourField, fields[2])
	dom, dow := fields[3], fields[5]
	if err == nil {
		dom, dow, err = rule.days.takeSpecial(dom, dow)
	}
	if dom != "" {
		rule.days.dom = uint32(set(&domField, dom))
	}
	rule.days.months = uint32(set(&monthField, fields[4]))
	if dow != "" {
		rule.days.weekdays = uint32(set(&dowField, dow))
	}
	if err != nil {
		return parsedCron{}, err
	}
	rule.days.either = !starred(fields[3]) && !starred(fields[5])
	if !rule.days.ever() {
		return parsedCron{}, refuse("cron", CodeNeverFires, "a day that the months have",
			"no month named in %s has such a day: it never fires", quoted(text))
	}
	return parsedCron{
		rule: rule,
		wild: starred(fields[1]) || starred(fields[2]) || withSeconds && starred(fields[0]),
		note: rule.days.note(fields[3], fields[5]),
	}, nil
}

func starred(field string) bool { return field[0] == '*' || field[0] == '?' }

// note returns a sentence about which days match where both day fields name some; empty otherwise.
func (r *dayRule) note(dom, dow string) string {
	switch {
	case r.either:
		return "day of month and day of week are both restricted, so a day runs when either of them matches"
	case r.special || r.dom == allDates || r.weekdays == allWeekdays:
		return ""
	}
	field, text := "day of month", dom
	if !starred(dom) {
		field, text = "day of week", dow
	}
	return fmt.Sprintf("%s is %s, which begins with *, so a day runs when day of month and day of week both match; "+
		"with a range in place of * a day runs when either of them matches", field, quoted(text))
}

var (
	eventBridgeShape = regexp.MustCompile(`^(cron|rate|at)\((.*)\)$`)
	rateShape        = regexp.MustCompile(`^([0-9]{1,6}) +(minute|hour|day|week)s?$`)
	yearShape        = regexp.MustCompile(`^([*]|[0-9]{4}([-,/][0-9]{1,4})*)$`)
)

// refuseEventBridge recognises an expression of EventBridge and says how to write it here. There,
// six fields end with a year instead of beginning with seconds, weekdays count from Sunday = 1, and
// one of the day fields is always "?".
func refuseEventBridge(text string) *Error {
	inner := text
	if m := eventBridgeShape.FindStringSubmatch(text); m != nil {
		inner = strings.TrimSpace(m[2])
		switch m[1] {
		case "rate":
			allowed := `{"every":"5m"}`
			if r := rateShape.FindStringSubmatch(inner); r != nil {
				n, unit := r[1], r[2][:1]
				if unit == "w" {
					weeks, _ := strconv.Atoi(n)
					n, unit = strconv.Itoa(7*weeks), "d"
				}
				allowed = fmt.Sprintf(`{"every":%q}`, n+unit)
			}
			return refuse("cron", CodeInvalidValue, allowed, "%s is an expression of EventBridge; here a rate is every",
				quoted(text))
		case "at":
			return refuse("cron", CodeInvalidValue, `{"dates":["2027-12-24T12:00:00Z"]}, or a job with run_at`,
				"%s is an expression of EventBridge; here single times are dates", quoted(text))
		}
	}
	// Our third and fifth of six fields are hours and months, which are never "?".
	fields := strings.Fields(inner)
	if len(fields) != 6 || (fields[2] == "?") == (fields[4] == "?") || !yearShape.MatchString(fields[5]) {
		if inner == text {
			return nil
		}
		return refuse("cron", CodeInvalidValue, cronAllowed,
			"%s is an expression of EventBridge; here it has five fields and no cron()", quoted(text))
	}
	fields[4] = fromSunday(fields[4])
	allowed := fmt.Sprintf("%q", strings.Join(fields[:5], " "))
	if fields[5] != "*" {
		allowed += " with start_at and end_at for the years"
	}
	return refuse("cron", CodeInvalidValue, allowed,
		"%s is an expression of EventBridge, which ends with a year and numbers weekdays from 1; here a sixth field "+
			"comes first, for seconds, and Sunday is 0", quoted(text))
}

var weekdayNumber = regexp.MustCompile(`(^|[,-])([1-7])`)

// fromSunday converts EventBridge's weekdays to cron's: Sunday is 0 instead of 1.
func fromSunday(dow string) string {
	return weekdayNumber.ReplaceAllStringFunc(dow, func(s string) string {
		return s[:len(s)-1] + string(s[len(s)-1]-1)
	})
}

// parse returns the mask of a field.
func (f *cronField) parse(text string) (uint64, *Error) {
	bad := func(code, format string, args ...any) (uint64, *Error) {
		return 0, refuse("cron", code, f.examples+", lists, ranges and steps", f.name+": "+format, args...)
	}
	var plain []string
	for element := range strings.SplitSeq(text, ",") {
		m := elementShape.FindStringSubmatch(element)
		if m == nil || m[1] == "?" && !f.isDay {
			return bad(CodeInvalidValue, "%s is not understood", quoted(element))
		}
		first, last := f.low, f.high
		if m[1] == "" {
			var ok bool
			if first, ok = f.value(m[2]); !ok {
				return bad(CodeInvalidValue, "%s is not a name", quoted(m[2]))
			}
			if m[4] == "" {
				last = first
			}
			if m[3] != "" {
				if last, ok = f.value(m[3]); !ok {
					return bad(CodeInvalidValue, "%s is not a name", quoted(m[3]))
				}
			}
		}
		if first < f.low || max(first, last) > f.high {
			return bad(CodeOutOfRange, "%s is out of range", quoted(element))
		}
		step := 1
		if m[4] != "" {
			if step, _ = strconv.Atoi(m[4]); step == 0 {
				return bad(CodeOutOfRange, "a step of 0 never moves on")
			}
			if step > f.high-f.low {
				return 0, refuse("cron", CodeOutOfRange, f.stepAllowed(step),
					"%s: a step of %d is larger than the field, so that it would only match %d", f.name, step, first)
			}
		}
		if m[1] == "" && (first > last || last > f.lastValue()) {
			plain = append(plain, f.around(first, last, step)...)
			continue
		}
		plain = append(plain, element)
	}
	schedule, err := f.parser.Parse(strings.Join(plain, ","))
	if err != nil {
		return bad(CodeInvalidValue, "%s", err)
	}
	const star = 1 << 63 // the library's own mark
	return f.mask(schedule.(*cron.SpecSchedule)) &^ star, nil
}

// lastValue returns the last value before the field starts over: Saturday for weekdays, whose 7 is 0.
func (f *cronField) lastValue() int {
	if f == &dowField {
		return 6
	}
	return f.high
}

// around returns the values of a range that passes the end of the field, as FRI-MON and 22-2, or that ends with
// Sunday as 7. The library takes neither.
func (f *cronField) around(first, last, step int) (values []string) {
	size := f.lastValue() - f.low + 1
	if first > f.lastValue() { // a range that begins with Sunday as 7
		first -= size
		if last > f.lastValue() {
			last -= size
		}
	}
	if last < first {
		last += size
	}
	for v := first; v <= last; v += step {
		values = append(values, strconv.Itoa(f.low+(v-f.low)%size))
	}
	return values
}

// stepAllowed returns how to write a step that is larger than its field.
func (f *cronField) stepAllowed(step int) string {
	allowed := fmt.Sprintf("a step of 1 to %d", f.high-f.low)
	if unit := map[string]string{"second": "s", "minute": "m", "hour": "h"}[f.name]; unit != "" {
		allowed += fmt.Sprintf(`; {"every":"%d%s"} in place of cron runs every %d%s`, step, unit, step, unit)
	}
	return allowed
}

func (f *cronField) value(text string) (int, bool) {
	if v, ok := f.names[strings.ToLower(text)]; ok {
		return v, true
	}
	v, err := strconv.Atoi(text)
	return v, err == nil
}

// takeSpecial removes L, W and # from the day fields and returns the rest, which may be empty.
func (r *dayRule) takeSpecial(dom, dow string) (restDom, restDow string, err *Error) {
	var plainDom, plainDow []string
	for element := range strings.SplitSeq(dom, ",") {
		taken, err := r.takeSpecialDate(element)
		if err != nil {
			return "", "", err
		}
		if !taken {
			plainDom = append(plainDom, element)
		} else if dow != "?" && dow != "*" {
			return "", "", refuse("cron", CodeInvalidValue, `"*" or "?" as the day of week, as in "0 9 L * *"`,
				"%s in the day of month needs %s in the day of week", quoted(element), `"*"`)
		}
	}
	for element := range strings.SplitSeq(dow, ",") {
		taken, err := r.takeSpecialWeekday(element)
		if err != nil {
			return "", "", err
		}
		if !taken {
			plainDow = append(plainDow, element)
		} else if dom != "?" && dom != "*" {
			return "", "", refuse("cron", CodeInvalidValue, `"*" or "?" as the day of month, as in "0 9 * * FRI#2"`,
				"%s in the day of week needs %s in the day of month", quoted(element), `"*"`)
		}
	}
	return strings.Join(plainDom, ","), strings.Join(plainDow, ","), nil
}

func (r *dayRule) takeSpecialDate(element string) (bool, *Error) {
	bad := func(allowed string) (bool, *Error) {
		return false, refuse("cron", CodeOutOfRange, allowed, "day of month: %s is out of range", quoted(element))
	}
	if m := fromEndShape.FindStringSubmatch(element); m != nil {
		n, _ := strconv.Atoi("0" + m[1])
		if n > 30 {
			return bad("L, L-1 to L-30, also with W")
		}
		if m[2] == "" {
			r.fromEnd |= 1 << n
		} else {
			r.nearestFromEnd |= 1 << n
		}
		r.special = true
		return true, nil
	}
	if m := nearestShape.FindStringSubmatch(element); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n < 1 || n > 31 {
			return bad("1W to 31W")
		}
		r.nearest |= 1 << n
		r.special = true
		return true, nil
	}
	return false, nil
}

func (r *dayRule) takeSpecialWeekday(element string) (bool, *Error) {
	m, n := lastShape.FindStringSubmatch(element), 0
	if m == nil {
		if m = nthShape.FindStringSubmatch(element); m == nil {
			return false, nil
		}
		if n, _ = strconv.Atoi(m[2]); n < 1 || n > 5 {
			return false, refuse("cron", CodeOutOfRange, "#1 to #5, or L for the last",
				"day of week: %s is out of range", quoted(element))
		}
	}
	wd, ok := dowField.value(m[1])
	if !ok || wd > 7 {
		return false, refuse("cron", CodeInvalidValue, dowField.examples, "day of week: %s is not a weekday",
			quoted(m[1]))
	}
	r.nth[wd%7] |= 1 << n
	r.special = true
	return true, nil
}

// ever reports whether any month has a matching day. All combinations of dates and weekdays occur
// within 400 years.
func (r *dayRule) ever() bool {
	begin := dayNumber(2000, 1, 1)
	_, ok := r.next(begin, begin+400*366)
	return ok
}

var everyShape = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)

// parseEvery parses the duration of "@every", in the library's notation.
func parseEvery(field, text string) (time.Duration, *Error) {
	allowed := fmt.Sprintf("whole seconds from %s to %dd", MinEvery, MaxEvery/(24*time.Hour))
	if !everyShape.MatchString(text) {
		return 0, refuse(field, CodeInvalidValue, allowed+`, such as "@every 1h30m"`, "%s is no positive duration",
			quoted(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, refuse(field, CodeOutOfRange, allowed, "%s is out of range", quoted(text))
	}
	return d, checkEvery(field, text, allowed, d)
}

func checkEvery(field, text, allowed string, d time.Duration) *Error {
	if d < MinEvery || d > MaxEvery {
		return refuse(field, CodeOutOfRange, allowed, "%s is out of range", quoted(text))
	}
	if d%time.Second != 0 {
		return refuse(field, CodeInvalidValue, allowed, "%s is not a whole number of seconds", quoted(text))
	}
	return nil
}
