package rest

import (
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/text"
)

// Instant is a time in an answer: RFC 3339 in UTC with milliseconds.
type Instant struct{ time.Time }

// At returns a time for an answer.
func At(t time.Time) Instant { return Instant{t} }

// MarshalJSON writes the time.
func (i Instant) MarshalJSON() ([]byte, error) {
	return []byte(i.UTC().Format(`"` + text.InstantLayout + `"`)), nil
}

// Schema documents it.
func (Instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2027-03-28T01:00:00.000Z"}}
}

// InstantAllowed describes a time, for the "allowed" of a violation.
const InstantAllowed = "a time of RFC 3339 with its zone, such as 2027-03-28T01:00:00Z or 2027-03-28T03:00:00.250+02:00"

// InstantPattern is the form of a time in a request.
var InstantPattern = calendar.InstantPattern

// ParseInstant reads a time; false if it is none. Requests and calendars read times alike.
func ParseInstant(s string) (time.Time, bool) { return calendar.ParseInstant(s) }

// Instant reads a time.
func (r *Reader) Instant(v Value) (time.Time, bool) {
	s, ok := r.Text(v)
	if !ok {
		return time.Time{}, false
	}
	t, ok := ParseInstant(s)
	if !ok {
		r.Violation(v.Pointer, CodeInvalidValue, InstantAllowed, "this is not a time with a zone: %s",
			calendar.WhyNoInstant(s))
	}
	return t, ok
}

// YearsAhead is how many years ahead a time may be at most, with or without a 29 February.
const YearsAhead = int(contract.MaxAhead / (366 * 24 * time.Hour))

// Latest returns the last time that Ahead accepts.
func Latest(now time.Time) time.Time { return now.AddDate(YearsAhead, 0, 0) }

// Ahead reads a time from contract.PastAllowed before now to Latest.
func (r *Reader) Ahead(v Value, now time.Time) (time.Time, bool) {
	t, ok := r.Instant(v)
	if !ok {
		return t, false
	}
	switch {
	case t.After(Latest(now)):
		r.Violation(v.Pointer, CodeOutOfRange, fmt.Sprintf("at most %d years ahead", YearsAhead),
			"%s is more than %d years ahead", t.Format(text.InstantLayout), YearsAhead)
		return t, false
	case t.Before(now.Add(-contract.PastAllowed)):
		r.Violation(v.Pointer, CodeInThePast, "at most "+text.InUnits(contract.PastAllowed, time.Second, "s")+" ago",
			"%s is past; it is %s now", t.Format(text.InstantLayout), now.Format(text.InstantLayout))
		return t, false
	}
	return t, true
}
