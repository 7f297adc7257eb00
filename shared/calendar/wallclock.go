package calendar

// wallRule is a set of wall times.
type wallRule interface {
	// next returns the first wall time of the set at or after from; false beyond until, or when no
	// steps are left.
	next(from, until int64, steps *int) (int64, bool)
}

type missingHour uint8

const (
	missingIgnored missingHour = iota // a skipped time does not exist
	missingRunAfter
	missingSkip
)

type repeatedHour uint8

const (
	repeatedBoth repeatedHour = iota
	repeatedFirst
	repeatedLast
)

// wallClock applies a rule of wall times to the real instants of a zone. It goes from one stretch
// of constant offset to the next, and inside a stretch each wall time is one instant.
type wallClock struct {
	rule     wallRule
	zone     *zone
	missing  missingHour
	repeated repeatedHour
	// elapsed: rule is a recurrence whose intervals are real time from began on.
	elapsed bool
	began   int64
}

// ruleUnder returns the rule while the zone has that offset.
func (c wallClock) ruleUnder(offset int64) wallRule {
	if c.elapsed {
		return c.rule.(*recurrence).under(offset, c.began)
	}
	return c.rule
}

func (c wallClock) next(after, until int64, skipped bool) (tick, bool) {
	z, steps := c.zone, maxSteps
	t, until := floorDiv(after, 1000)+1, floorDiv(until, 1000)
	i := z.find(t)
	for t <= until {
		start, end, offset := z.at[i], z.end(i), z.offset[i]
		if i > 0 && t <= start {
			t = start
			before := z.offset[i-1]
			if before < offset && (c.missing == missingRunAfter || c.missing == missingSkip && skipped) {
				if _, ok := c.rule.next(start+before, start+offset-1, &steps); ok {
					return c.gap(start, offset, &steps), true
				}
			}
		}
		from := t + offset
		if i > 0 && c.repeated == repeatedFirst {
			from = max(from, start+z.offset[i-1])
		}
		w, ok := c.ruleUnder(offset).next(from, until+2*day, &steps)
		if !ok {
			return tick{}, false
		}
		if w-offset < end && !(c.repeated == repeatedLast && i+1 < len(z.at) && w >= end+z.offset[i+1]) {
			return tick{at: (w - offset) * 1000}, w-offset <= until
		}
		if i+1 == len(z.at) {
			return tick{}, false
		}
		i++
		asked := t
		t = z.at[i]
		// Nothing from here to w matches, so years of stretches can be skipped; two days are more
		// than any offset. A change within them may repeat earlier wall times, so it is not
		// skipped.
		if near := w - 2*day; near > t && t-asked > 2*day {
			t, i = near, z.find(near)
		}
	}
	return tick{}, false
}

// gap returns the run at the first instant after a change that skipped a time. It is also an
// ordinary run when the rule matches that instant.
func (c wallClock) gap(start, offset int64, steps *int) tick {
	if w, ok := c.rule.next(start+offset, start+offset, steps); ok && w == start+offset {
		return tick{at: start * 1000}
	}
	return tick{at: start * 1000, missing: true, skip: c.missing == missingSkip}
}

// instant returns the instant of wall time w for a run that is moved there: one instant whatever
// the policy, and false if w is skipped.
func (c wallClock) instant(w int64) (int64, bool) {
	first, last, ok := c.zone.instants(w)
	if !ok && c.missing == missingSkip {
		return 0, false
	}
	if c.repeated == repeatedLast {
		return last, true
	}
	return first, true
}
