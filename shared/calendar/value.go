package calendar

import (
	"regexp"
	"strconv"
	"time"

	"punctual/shared/contract"
)

// parseInstant reads an RFC 3339 instant, in milliseconds.
func parseInstant(field, text string) (int64, *Error) {
	const allowed = `an RFC 3339 instant from 1900 to 2399 with at most milliseconds, such as "2027-12-24T12:00:00Z"`
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err != nil { // stricter than time.Parse
		return 0, refuse(field, CodeInvalidValue, allowed, "%s is no instant", quoted(text))
	}
	if t.Unix() < firstInstant || t.Unix() >= lastInstant {
		return 0, refuse(field, CodeOutOfRange, allowed, "%s is out of range", quoted(text))
	}
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return 0, refuse(field, CodeInvalidValue, allowed, "%s is finer than a millisecond", quoted(text))
	}
	return t.UnixMilli(), nil
}

var (
	durationShape = regexp.MustCompile(contract.DurationPattern)
	durationPart  = regexp.MustCompile(`(\d+)(ms|s|m|h|d)`)
)

// parseDuration reads a duration as the API writes it, "1h30m" or "2d". Field
// and allowed are for the error.
func parseDuration(field, text, allowed string) (time.Duration, *Error) {
	if len(text) > 64 || !durationShape.MatchString(text) {
		return 0, refuse(field, CodeInvalidValue, allowed, "%s is no duration", quoted(text))
	}
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
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
