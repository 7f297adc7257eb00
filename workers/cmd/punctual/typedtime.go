package main

import (
	"fmt"
	"slices"
	"time"

	"punctual/shared/span"
)

// typedTime is a time as it is typed: a date with its zone, or a time of day, which is today's in the zone of this
// machine. Today is decided by the clock of the API, which a laptop may have set to another year.
type typedTime struct {
	typed string
	at    time.Time // zero for a time of day
	clock time.Time // the time of day
}

// UnmarshalText reads what is typed.
func (m *typedTime) UnmarshalText(typed []byte) error {
	text := string(typed)
	for _, form := range []string{"15:04", "15:04:05"} {
		if clock, err := time.Parse(form, text); err == nil {
			*m = typedTime{typed: text, clock: clock}
			return nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is neither a time of today, such as 11:26, nor a date with a zone, such as "+
			"2027-03-28T01:00:00Z or 2027-03-28T02:00:00+01:00", text)
	}
	*m = typedTime{typed: text, at: at}
	return nil
}

// on returns the time when now is the time in the zone of this machine; zero if none is typed.
func (m typedTime) on(now time.Time) (time.Time, error) {
	if m.typed == "" || !m.at.IsZero() {
		return m.at, nil
	}
	at := m.daysAfter(now, 0)
	wall := at.Format(time.TimeOnly)
	if wall != m.clock.Format(time.TimeOnly) {
		return at, usage{fmt.Errorf("%s: the clocks here skip this time today; write a date with a zone, such as %s",
			m.typed, at.Format(time.RFC3339))}
	}
	twice := slices.ContainsFunc([]time.Duration{time.Hour, -time.Hour, time.Hour / 2, -time.Hour / 2},
		func(change time.Duration) bool { return at.Add(change).Format(time.TimeOnly) == wall })
	if twice {
		return at, usage{fmt.Errorf("%s: the clocks here show this time twice today; write a date with a zone, "+
			"such as %s", m.typed, at.Format(time.RFC3339))}
	}
	return at, nil
}

func (m typedTime) daysAfter(now time.Time, days int) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, m.clock.Hour(), m.clock.Minute(), m.clock.Second(), 0,
		now.Location())
}

// comingOn is on for a time that must be to come. The API accepts or refuses past dates.
func (m typedTime) comingOn(now time.Time) (time.Time, error) {
	at, err := m.on(now)
	if err != nil || m.typed == "" || !m.at.IsZero() || at.After(now) {
		return at, err
	}
	return at, usage{fmt.Errorf("%s is today at %s, which has passed: it is %s; for tomorrow write %s", m.typed,
		at.Format(time.RFC3339), now.Format(time.TimeOnly), m.daysAfter(now, 1).Format(time.RFC3339))}
}

// length is a length of time as the API takes it: 90m or 2d.
type length time.Duration

// UnmarshalText reads what is typed.
func (l *length) UnmarshalText(typed []byte) error {
	is, err := span.Parse(string(typed))
	*l = length(is)
	return err
}

// here is the time by the API's clock, in the zone of this machine. Only a time of day needs to be asked for.
func (s *shell) here(m typedTime) time.Time {
	if m.typed == "" || !m.at.IsZero() {
		return time.Time{}
	}
	return s.now().Local()
}

// typed returns the time that an option names; zero if it is not given.
func (s *shell) typed(option string, m typedTime) (time.Time, error) {
	at, err := m.on(s.here(m))
	if err != nil {
		return at, usage{fmt.Errorf("%s %w", option, err)}
	}
	return at, nil
}

// coming returns the time that an option names, nil if it is not given.
func (s *shell) coming(option string, m typedTime) (*time.Time, error) {
	at, err := m.comingOn(s.here(m))
	if err != nil {
		return nil, usage{fmt.Errorf("%s %w", option, err)}
	}
	if at.IsZero() {
		return nil, nil
	}
	return &at, nil
}
