package calendar

import (
	"fmt"
	"time"
)

// Skip is a nominal time without a run, and why.
type Skip struct {
	NominalAt time.Time
	Local     string
	// Reason is "excluded" or "missing_hour".
	Reason string
	// Exclusion is the name of the exclusion; empty for missing_hour.
	Exclusion string
	// Why is a sentence for the user.
	Why string
}

// Reasons of a [Skip].
const (
	SkipExcluded    = "excluded"
	SkipMissingHour = "missing_hour"
)

// LeavesOut reports whether there may be times that the calendar itself skips: where it names exclusions, or where a
// change of the clock takes times from it.
func (c Calendar) LeavesOut() bool {
	clock, ok := c.source.(wallClock)
	return c.closed != nil || ok && (clock.missing == missingSkip || clock.missing == missingIgnored && clock.loses)
}

// Skipped returns the nominal times after after, up to and including until, without a run; a time
// that an exclusion moved is not among them. It looks at no more than limit nominal times, with or
// without a run, and returns how far it came: until, or the instant to continue from.
func (c Calendar) Skipped(after, until time.Time, limit int) (skips []Skip, through time.Time) {
	from, ok := c.clamp(after)
	if !ok || !until.After(after) {
		return nil, until
	}
	c = c.anchored(from)
	last := horizon(from)
	if before, ok := c.clamp(until); ok {
		last = min(last, before)
	}
	for range limit {
		t, ok := c.plain(from, last, true)
		if !ok || t.at > last {
			return skips, until
		}
		from = t.at
		if s, ok := c.skip(t); ok {
			skips = append(skips, s)
		}
	}
	return skips, time.UnixMilli(from).UTC()
}

func (c Calendar) skip(t tick) (Skip, bool) {
	s := Skip{NominalAt: time.UnixMilli(t.at).UTC(), Local: c.local(t.at)}
	if t.skip {
		s.Reason = SkipMissingHour
		s.Why = fmt.Sprintf("the clock in %s jumped over this time and missing_hour is skip", c.zone.loc)
		if clock, ok := c.source.(wallClock); ok && clock.missing == missingIgnored {
			s.Why = fmt.Sprintf("the clock in %s jumped over this time, and the rule follows real time; "+
				"with missing_hour run_after it runs once after the jump", c.zone.loc)
			if clock.elapsed { // which takes no missing_hour
				s.Why = fmt.Sprintf("the clock in %s jumped over this time", c.zone.loc)
			}
		}
		return s, true
	}
	if c.closed == nil {
		return s, false
	}
	search := c.closed.search()
	why := search.rule(t.at)
	if why == nil {
		return s, false
	}
	s.Reason, s.Exclusion = SkipExcluded, why.name
	if why.move == 0 {
		s.Why = fmt.Sprintf("excluded by %q", why.name)
		return s, true
	}
	if _, ok := c.shift(t, why.move, search); ok {
		return s, false
	}
	s.Why = fmt.Sprintf("excluded by %q, and no day it could move to is open within %d days and inside the window",
		why.name, MaxMoveDays)
	return s, true
}
