package api

import (
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/span"
)

// instant is a time in an answer: RFC 3339 in UTC with milliseconds, always.
type instant struct{ time.Time }

const instantLayout = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON writes the instant.
func (i instant) MarshalJSON() ([]byte, error) {
	return []byte(i.UTC().Format(`"` + instantLayout + `"`)), nil
}

// Schema documents it.
func (instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2027-03-28T01:00:00.000Z"}}
}

// duration is a length of time in a body.
type duration string

// Schema documents it.
func (duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: contract.DurationPattern, Description: span.Allowed, Examples: []any{"1h30m"}}
}

// anything is any JSON value.
type anything struct{}

// Schema documents it.
func (anything) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// instantAllowed says what an instant is, for an error's "allowed".
const instantAllowed = "a time of RFC 3339 with its zone, such as 2027-03-28T01:00:00Z or 2027-03-28T03:00:00.250+02:00"

// Go's own reading of RFC 3339 is a little wider than the standard's: this is the form exactly.
var instantPattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`)

// parseInstant reads a time. The second of a leap second, years beyond 9999 and times without a
// zone are no instants that everybody agrees on, and refused. What is finer than a millisecond is rounded
// up: nothing may start before it is due.
func parseInstant(s string) (time.Time, bool) {
	if !instantPattern.MatchString(s) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, false
	}
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC(), true
}

// instant reads a time.
func (r *reader) instant(v value) (time.Time, bool) {
	s, ok := r.text(v)
	if !ok {
		return time.Time{}, false
	}
	t, ok := parseInstant(s)
	if !ok {
		r.mistake(v.pointer, codeInvalidValue, instantAllowed, "this is not a time with a zone: %s", calendar.WhyNoInstant(s))
	}
	return t, ok
}

// ahead reads a time at most two years ahead, and not long past.
func (r *reader) ahead(v value, now time.Time) (time.Time, bool) {
	t, ok := r.instant(v)
	if !ok {
		return t, false
	}
	latest := now.AddDate(2, 0, 0)
	switch {
	case t.After(latest):
		r.mistake(v.pointer, codeOutOfRange, "at most 2 years ahead", "%s is more than 2 years ahead", t.Format(instantLayout))
		return t, false
	case t.Before(now.Add(-contract.PastAllowed)):
		r.mistake(v.pointer, codeInThePast, "at most 60s ago", "%s is past; it is %s now", t.Format(instantLayout), now.Format(instantLayout))
		return t, false
	}
	return t, true
}
