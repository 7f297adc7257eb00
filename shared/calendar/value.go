package calendar

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
)

var (
	dateShape     = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})`)
	secondShape   = regexp.MustCompile(`T[0-9]{2}:[0-9]{2}:60`)
	offsetTail    = regexp.MustCompile(`[+-][0-9]{2}:[0-9]{2}$`)
	timeOnlyShape = regexp.MustCompile(`T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$`)
)

// WhyNoInstant returns why a text is no RFC 3339 instant, as far as that can be said.
func WhyNoInstant(text string) string {
	m := dateShape.FindStringSubmatch(text)
	if m == nil {
		return "it does not begin with a date, as in 2027-12-24"
	}
	year, _ := strconv.Atoi(m[1])
	month, _ := strconv.Atoi(m[2])
	dom, _ := strconv.Atoi(m[3])
	switch {
	case month < 1 || month > 12:
		return "there is no month " + m[2]
	case month == 2 && dom == 29 && monthLen(year, month) == 28:
		return m[1] + " is no leap year and has no 29 February"
	case dom < 1 || dom > monthLen(year, month):
		return fmt.Sprintf("the month %s-%s has %d days", m[1], m[2], monthLen(year, month))
	case len(text) == len(m[0]):
		return "a time of day and a zone are missing"
	case secondShape.MatchString(text):
		return "a leap second is no time that every clock shows"
	case strings.HasSuffix(text, "z") || strings.Contains(text, "t"):
		return "T and Z are written in upper case"
	case timeOnlyShape.MatchString(text):
		return "its zone is missing: Z, or an offset such as +01:00"
	case offsetTail.MatchString(text) && InstantPattern.MatchString(text[:len(text)-6]+"Z"):
		return "its offset is beyond 23:59"
	}
	return "it is not written as in 2027-12-24T12:00:00Z"
}

// InstantPattern is RFC 3339 exactly; time.Parse accepts a little more.
var InstantPattern = regexp.MustCompile(
	`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?` +
		`(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// ParseInstant reads a time; false if it is none. It refuses leap seconds, years beyond 9999, offsets beyond 23:59 and
// times without a zone, because not everybody agrees when they are. It rounds up to a millisecond, because nothing may
// start before it is due.
func ParseInstant(s string) (time.Time, bool) {
	if !InstantPattern.MatchString(s) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, false
	}
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC(), true
}

// parseInstant parses an RFC 3339 instant, in milliseconds.
func parseInstant(field, text string) (int64, *Error) {
	const allowed = `an RFC 3339 instant from 1900 to 2399, such as "2027-12-24T12:00:00Z"`
	t, ok := ParseInstant(text)
	if !ok {
		return 0, refuse(field, CodeInvalidValue, allowed, "%s is no instant: %s", quoted(text), WhyNoInstant(text))
	}
	if t.Unix() < firstInstant || t.Unix() >= lastInstant {
		return 0, refuse(field, CodeOutOfRange, allowed, "%s is out of range", quoted(text))
	}
	return t.UnixMilli(), nil
}

var (
	durationShape = regexp.MustCompile(contract.DurationPattern)
	durationPart  = regexp.MustCompile(`(\d+)(ms|s|m|h|d)`)
)

// parseDuration parses a duration as the API writes it, "1h30m" or "2d". field and allowed are for
// the error.
func parseDuration(field, text, allowed string) (time.Duration, *Error) {
	if len(text) > 64 || !durationShape.MatchString(text) {
		return 0, refuse(field, CodeInvalidValue, allowed, "%s is no duration", quoted(text))
	}
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour}
	const most = 1 << 62
	var total time.Duration
	for _, m := range durationPart.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64((most-total)/unit[m[2]]) {
			return 0, refuse(field, CodeOutOfRange, allowed, "%s is too long", quoted(text))
		}
		total += time.Duration(n) * unit[m[2]]
	}
	return total, nil
}
