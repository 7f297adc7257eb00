package calendar

// wallRule is a set of wall times.
type wallRule interface {
	// next returns the first wall time of the set at or after from. It gives
	// up beyond until, or when steps has run out; that is false.
	next(from, until int64, steps *int) (int64, bool)
}

type missingHour uint8

const (
	missingIgnored missingHour = iota // a swallowed time is no time at all
	missingRunAfter
	missingSkip
)

type repeatedHour uint8

const (
	repeatedBoth repeatedHour = iota
	repeatedFirst
	repeatedLast
)

// wallClock lays a rule of wall times over the real instants of a zone. It
// goes from one stretch of constant offset to the next, so it never has to ask
// what a wall time means: inside a stretch there is one answer.
type wallClock struct {
	rule     wallRule
	zone     *zone
	missing  missingHour
	repeated repeatedHour
	// elapsed: rule is a recurrence whose intervals are real time from began on.
	elapsed bool
	began   int64
}

// ruleUnder is the rule as it stands while the zone's offset is that one.
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
		// Nothing from here to w matches, so whole years of stretches may be
		// passed; two days cover every offset there is. A change that is close
		// may show again what lies before here, and is not passed.
		if near := w - 2*day; near > t && t-asked > 2*day {
			t, i = near, z.find(near)
		}
	}
	return tick{}, false
}

// gap is the run at the first instant after a change that swallowed a time. It
// is a run of its own right too when the rule names that very instant.
func (c wallClock) gap(start, offset int64, steps *int) tick {
	if w, ok := c.rule.next(start+offset, start+offset, steps); ok && w == start+offset {
		return tick{at: start * 1000}
	}
	return tick{at: start * 1000, missing: true, skip: c.missing == missingSkip}
}

// place returns the instant of wall time w, for a run that is moved there; one
// run, whatever the policy, and false if it is to skip w.
func (c wallClock) place(w int64) (int64, bool) {
	first, last, ok := c.zone.instants(w)
	if !ok && c.missing == missingSkip {
		return 0, false
	}
	if c.repeated == repeatedLast {
		return last, true
	}
	return first, true
}
