package calendar

// nextMoved is next for a calendar that has an exclusion which moves runs. A
// run after the asked time may come from an excluded time before it, or from
// one well after, so it looks at all times within reach and takes the earliest.
// No move passes a day that is wholly open, and such days end the search.
func (c Calendar) nextMoved(after, until int64) (tick, bool) {
	z, checks := c.zone, maxChecks
	from := z.day(floorDiv(after, 1000)) - 1
	for n := 0; n < MaxMoveDays && !c.closed.open(z, from, &checks); n++ {
		from--
	}
	var best tick
	found := false
	looked := int64(0) // days up to here have been seen not to end the search
	for at := z.dayStart(from)*1000 - 1; checks > 0; {
		t, ok := c.plain(at, until, false)
		if !ok {
			break
		}
		if found && t.at == best.at && c.closed.rule(t.at, &checks) == nil {
			best = t // it would run then anyway
		}
		if found && t.at >= best.at {
			if !c.closed.backward {
				break
			}
			d := z.day(floorDiv(t.at, 1000))
			for looked <= d && looked-z.day(floorDiv(best.at, 1000)) <= MaxMoveDays && !c.closed.open(z, looked, &checks) {
				looked++
			}
			if looked <= d {
				break
			}
		}
		at = t.at
		why := c.closed.rule(t.at, &checks)
		if why != nil && why.move == 0 {
			continue
		}
		if why != nil {
			if t, ok = c.shift(t, why.move, &checks); !ok {
				at = max(at, c.stranded(at, until, &checks))
				continue
			}
		}
		if t.at > after && (!found || t.at < best.at) {
			best, found = t, true
			looked = z.day(floorDiv(best.at, 1000)) + 1
		}
	}
	return best, found
}

// stranded returns an instant up to which no run of the closed stretch around t
// reaches an open day, t itself having failed to: the first days may still move
// back, the last ones forward.
func (c Calendar) stranded(t, until int64, checks *int) int64 {
	if c.closed.backward && t-c.closed.begin(t, t-reach, checks) < reach {
		return t
	}
	return c.closed.end(t, until, checks) - reach
}

// reach covers every move there is, in milliseconds.
const reach = (MaxMoveDays + 2) * day * 1000

// shift moves t to the same time of day on the nearest day that is open at
// that time, at most MaxMoveDays away and inside the calendar's window.
func (c Calendar) shift(t tick, direction int8, checks *int) (tick, bool) {
	wall := c.zone.wall(floorDiv(t.at, 1000))
	home := floorDiv(wall, day)
	k := int64(1)
	if direction > 0 {
		k = max(k, c.zone.day(floorDiv(c.closed.end(t.at, t.at+reach, checks), 1000))-home)
	} else {
		k = max(k, home-c.zone.day(floorDiv(c.closed.begin(t.at, t.at-reach, checks)-1, 1000)))
	}
	for ; k <= MaxMoveDays && *checks > 0; k++ {
		at, ok := c.place(wall + int64(direction)*k*day)
		if !ok {
			continue
		}
		at = at*1000 + t.at - floorDiv(t.at, 1000)*1000
		if c.closed.closed(at, checks) {
			continue
		}
		return tick{at: at, moved: direction}, at >= c.start && at < c.end
	}
	return tick{}, false
}

// place is the instant of a wall time under the calendar's change-over policy.
func (c Calendar) place(wall int64) (int64, bool) {
	if clock, ok := c.source.(wallClock); ok {
		return clock.place(wall)
	}
	first, _, _ := c.zone.instants(wall)
	return first, true
}
