package calendar

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Exclusion is a named set of days and ranges without runs, as a user wrote it: holidays, weekends,
// freeze windows.
type Exclusion struct {
	// Dates are whole days, "2027-12-25".
	Dates []string `json:"dates,omitempty"`
	// Ranges are ranges of whole days, both included, or of instants, the end excluded.
	Ranges []Range `json:"ranges,omitempty"`
	// Yearly are days of every year, "12-25"; "02-29" only where it exists.
	Yearly []string `json:"yearly,omitempty"`
	// Weekly are weekdays, "sat".
	Weekly []string `json:"weekly,omitempty"`
	// Timezone is the zone of these days; absent means the zone of the calendar that names the
	// exclusion.
	Timezone *string `json:"timezone,omitempty"`
	// Move says what happens to an excluded run: "drop" (when absent), or the
	// same time of day on the "next" or "previous" day that is open.
	Move *string `json:"move,omitempty"`
}

// Range is a range of an [Exclusion]. From and To are both dates or both RFC 3339 instants.
type Range struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Exclusions holds the exclusions that a calendar may name, by name.
type Exclusions map[string]Exclusion

// Check returns an [*Error] if no calendar can use e.
func (e Exclusion) Check() error {
	utc, _ := findZone("timezone", "UTC")
	if _, err := e.compile("", utc); err != nil {
		return err
	}
	return nil
}

// closure is an Exclusion prepared for lookups.
type closure struct {
	name string
	move int8 // 0 drops, +1 and -1 move
	days closedDays
	span []span // sorted, without overlaps
}

// span is a range of milliseconds or of days, end excluded.
type span struct{ from, to int64 }

// closedDays holds the whole days of one zone without runs.
type closedDays struct {
	zone   *zone
	weekly uint32     // bits 0 (Sunday) to 6
	yearly [13]uint32 // per month, bits 1 to 31
	list   []span     // in days
}

func (c *closedDays) empty() bool {
	return c.weekly == 0 && c.yearly == [13]uint32{} && len(c.list) == 0
}

func (c *closedDays) on(d int64) bool {
	if c.weekly>>weekday(d)&1 == 1 {
		return true
	}
	if _, ok := within(c.list, d); ok {
		return true
	}
	if c.yearly == [13]uint32{} {
		return false
	}
	_, month, dom := civil(d)
	return c.yearly[month]>>dom&1 == 1
}

// run returns the first open day beyond d, in the direction of step, or a day at least most days
// away.
func (c *closedDays) run(d, step, most int64) int64 {
	for from := d; max(d-from, from-d) < most && c.on(d); {
		if s, ok := within(c.list, d); ok {
			d = s.to
			if step < 0 {
				d = s.from - 1
			}
			continue
		}
		d += step
	}
	return d
}

// within returns the span that contains x.
func within(spans []span, x int64) (span, bool) {
	i, found := slices.BinarySearchFunc(spans, x, func(s span, x int64) int { return cmp.Compare(s.from, x) })
	if !found {
		i--
	}
	if i < 0 || x >= spans[i].to {
		return span{}, false
	}
	return spans[i], true
}

// merged sorts spans and joins those that touch.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// closures holds all exclusions of one calendar: separately, to know which one applies, and merged,
// to skip a closed range in one step.
type closures struct {
	sets     []closure
	days     []closedDays // one per zone
	span     []span
	moves    bool
	backward bool // one of them moves runs to an earlier day
}

func newClosures(sets []closure) *closures {
	c := &closures{sets: sets}
	for _, set := range sets {
		c.moves = c.moves || set.move != 0
		c.backward = c.backward || set.move < 0
		c.span = append(c.span, set.span...)
		if set.days.empty() {
			continue
		}
		i := slices.IndexFunc(c.days, func(d closedDays) bool { return d.zone == set.days.zone })
		if i < 0 {
			i = len(c.days)
			c.days = append(c.days, closedDays{zone: set.days.zone})
		}
		c.days[i].weekly |= set.days.weekly
		for m := range set.days.yearly {
			c.days[i].yearly[m] |= set.days.yearly[m]
		}
		c.days[i].list = append(c.days[i].list, set.days.list...)
	}
	c.span = merged(c.span)
	for i := range c.days {
		c.days[i].list = merged(c.days[i].list)
	}
	return c
}

// Weekdays are the names of the days of the week, in any case of letters.
var Weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

var weekdays = func() map[string]int {
	numbers := map[string]int{}
	for i, name := range Weekdays {
		numbers[name] = i
	}
	return numbers
}()

var yearlyDate = regexp.MustCompile(`^(\d\d)-(\d\d)$`)

func (e Exclusion) compile(name string, z *zone) (closure, *Error) {
	c := closure{name: name}
	if e.Timezone != nil {
		var err *Error
		if z, err = findZone("timezone", *e.Timezone); err != nil {
			return c, err
		}
	}
	c.days.zone = z
	if e.Move != nil {
		move, ok := map[string]int8{"drop": 0, "next": 1, "previous": -1}[*e.Move]
		if !ok {
			return c, refuse("move", CodeInvalidValue, "drop, next, previous", "%s is not a way to move a run",
				quoted(*e.Move))
		}
		c.move = move
	}
	if len(e.Dates)+len(e.Ranges)+len(e.Yearly)+len(e.Weekly) == 0 {
		return c, refuse("dates", CodeMissingField, "dates, ranges, yearly, weekly",
			"an exclusion excludes something: name at least one day")
	}
	if len(e.Dates) > MaxDates {
		return c, refuse("dates", CodeOutOfRange, fmt.Sprintf("at most %d", MaxDates), "%d dates are too many",
			len(e.Dates))
	}
	if len(e.Ranges) > MaxRanges {
		return c, refuse("ranges", CodeOutOfRange, fmt.Sprintf("at most %d", MaxRanges), "%d ranges are too many",
			len(e.Ranges))
	}
	if len(e.Yearly) > 366 {
		return c, refuse("yearly", CodeOutOfRange, "at most 366", "%d days are too many", len(e.Yearly))
	}
	for i, text := range e.Dates {
		d, err := parseDate(fmt.Sprintf("dates/%d", i), text)
		if err != nil {
			return c, err
		}
		c.days.list = append(c.days.list, span{d, d + 1})
	}
	for i, r := range e.Ranges {
		if err := c.addRange(fmt.Sprintf("ranges/%d", i), r); err != nil {
			return c, err
		}
	}
	for i, text := range e.Yearly {
		m := yearlyDate.FindStringSubmatch(text)
		month, dom := 0, 0
		if m != nil {
			month, _ = strconv.Atoi(m[1])
			dom, _ = strconv.Atoi(m[2])
		}
		if month < 1 || month > 12 || dom < 1 || dom > monthLen(2000, month) {
			return c, refuse(fmt.Sprintf("yearly/%d", i), CodeInvalidValue, `MM-DD, such as "12-25"`,
				"%s is no day of the year", quoted(text))
		}
		c.days.yearly[month] |= 1 << dom
	}
	for i, text := range e.Weekly {
		wd, ok := weekdays[strings.ToLower(text)]
		if !ok {
			return c, refuse(fmt.Sprintf("weekly/%d", i), CodeInvalidValue, "mon, tue, wed, thu, fri, sat, sun",
				"%s is no weekday", quoted(text))
		}
		c.days.weekly |= 1 << wd
	}
	if c.days.weekly == 0x7f {
		return c, refuse("weekly", CodeNeverFires, "at most six weekdays",
			"all seven weekdays are excluded: nothing could ever run")
	}
	c.days.list, c.span = merged(c.days.list), merged(c.span)
	return c, nil
}

func (c *closure) addRange(field string, r Range) *Error {
	const allowed = `two dates ("2027-12-24") or two RFC 3339 instants ("2027-12-24T12:00:00Z")`
	if (len(r.From) == len(time.DateOnly)) != (len(r.To) == len(time.DateOnly)) {
		return refuse(field, CodeInvalidValue, allowed, "from and to are of different kinds")
	}
	if len(r.From) == len(time.DateOnly) {
		from, err := parseDate(field+"/from", r.From)
		if err != nil {
			return err
		}
		to, err := parseDate(field+"/to", r.To)
		if err != nil {
			return err
		}
		if to < from {
			return refuse(field, CodeConflictingFields, "", "the range ends before it begins")
		}
		c.days.list = append(c.days.list, span{from, to + 1})
		return nil
	}
	from, err := parseInstant(field+"/from", r.From)
	if err != nil {
		return err
	}
	to, err := parseInstant(field+"/to", r.To)
	if err != nil {
		return err
	}
	if to <= from {
		return refuse(field, CodeConflictingFields, "", "the range ends before it begins")
	}
	c.span = append(c.span, span{from, to})
	return nil
}

func parseDate(field, text string) (int64, *Error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < 1900 || t.Year() > 2399 {
		return 0, refuse(field, CodeInvalidValue, `YYYY-MM-DD from 1900 to 2399, such as "2027-12-25"`, "%s is no date",
			quoted(text))
	}
	return floorDiv(t.Unix(), day), nil
}
