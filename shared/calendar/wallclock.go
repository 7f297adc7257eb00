package calendar

import "math"

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

	// Of a rule that follows real time; setReal computes them.
	everyHour bool // it names each hour of the day alike
	loses     bool // there are times that a jump of the clock takes from it
	doubles   bool // there are times that it has twice where the clock goes back
}

// ruleUnder returns the rule while the zone has that offset.
func (c wallClock) ruleUnder(offset int64) wallRule {
	if c.elapsed {
		return c.rule.(*recurrence).under(offset, c.began)
	}
	return c.rule
}

func (c wallClock) next(after, until int64, skipped bool) (tick, bool) {
	steps := maxSteps
	return c.nextWithin(after, until, skipped, &steps)
}

// nextWithin is next with the steps that are left for searches of the rule.
func (c wallClock) nextWithin(after, until int64, skipped bool, steps *int) (tick, bool) {
	z := c.zone
	t, until := floorDiv(after, 1000)+1, floorDiv(until, 1000)
	i := z.find(t)
	for t <= until {
		start, end, offset := z.at[i], z.end(i), z.offset[i]
		leftOut := int64(math.MaxInt64)
		if i > 0 && skipped && c.missing == missingIgnored && t < start+offset-z.offset[i-1] {
			if at := c.leftOut(i, steps); at >= t { // one for each gap
				leftOut = at
			}
		}
		if i > 0 && t <= start {
			t = start
			before := z.offset[i-1]
			if before < offset && (c.missing == missingRunAfter || c.missing == missingSkip && skipped) {
				if _, ok := c.rule.next(start+before, start+offset-1, steps); ok {
					return c.gap(start, offset, steps), true
				}
			}
		}
		from := t + offset
		if i > 0 && c.repeated == repeatedFirst {
			from = max(from, start+z.offset[i-1])
		}
		w, ok := c.ruleUnder(offset).next(from, until+2*day, steps)
		if leftOut <= until && (!ok || leftOut < w-offset) {
			return tick{at: leftOut * 1000, missing: true, skip: true}, true
		}
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

// leftOut returns the first instant at which the clock would have shown a time of the rule, had it not jumped at the
// beginning of stretch i, and at which it shows none; math.MaxInt64 if there is none. A rule that follows real time
// makes up no run for it. Most such rules have none: for */15 in every hour, 03:15 takes the place of 02:15.
func (c wallClock) leftOut(i int, steps *int) int64 {
	start, before, offset := c.zone.at[i], c.zone.offset[i-1], c.zone.offset[i]
	if c.everyHour && offset-before == 3600 && (start+before)%3600 == 0 {
		return math.MaxInt64 // the next hour takes the place of the one that is gone
	}
	gone, shown := c.ruleUnder(before), c.ruleUnder(offset)
	for w := start + before; ; w = (floorDiv(w, 60) + 1) * 60 { // the seconds of a minute are shown or gone together
		var ok bool
		if w, ok = gone.next(w, start+offset-1, steps); !ok {
			return math.MaxInt64
		}
		now := w - before + offset
		if other, ok := shown.next(now, now, steps); !ok || other != now {
			return w - before
		}
	}
}

// setReal computes what the zone's coming changes do to a rule that follows real time. One that names every hour has as
// many times on each side of a change.
func (c *wallClock) setReal() {
	switch rule := c.rule.(type) {
	case *cronRule:
		c.everyHour = rule.time.hour == allHours
	case *recurrence:
		c.everyHour = rule.time.hour == allHours && (rule.freq > hourly || rule.interval == 1)
	}
	const (
		coming  = 4_000_000_000 // in 2096: the rules of a zone that changes its clock today have no end
		changes = 40            // 20 years
	)
	for i := len(c.zone.at) - 1; i > max(0, len(c.zone.at)-changes) && c.zone.at[i] > coming; i-- {
		steps, start, before, offset := maxSteps, c.zone.at[i], c.zone.offset[i-1], c.zone.offset[i]
		c.loses = c.loses || before < offset && c.leftOut(i, &steps) != math.MaxInt64
		for w := start + offset; w < start+before && !c.doubles && !c.everyHour; w = (floorDiv(w, 60) + 1) * 60 {
			var ok bool
			if w, ok = c.rule.next(w, start+before-1, &steps); !ok {
				break
			}
			other := w - offset + before // what the clock would show without the change
			at, ok := c.rule.next(other, other, &steps)
			c.doubles = !ok || at != other
		}
	}
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
