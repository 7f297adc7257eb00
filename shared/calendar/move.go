package calendar

// nextMoved is next for a calendar with an exclusion that moves runs. A run after after may come
// from an excluded time before it or well after it, so all times within reach are compared and the
// earliest is returned. No move crosses a day that is wholly open, so such a day ends the search.
func (c Calendar) nextMoved(after, until int64) (tick, bool) {
	z, search := c.zone, c.closed.search()
	from := z.day(floorDiv(after, 1000)) - 1
	for n := 0; n < MaxMoveDays && !search.open(z, from); n++ {
		from--
	}
	var best tick
	found := false
	searched := int64(0) // days up to here do not end the search
	for at := z.dayStart(from)*1000 - 1; search.checks > 0; {
		t, ok := c.plain(at, until, false)
		if !ok {
			break
		}
		if found && t.at == best.at && search.rule(t.at) == nil {
			best = t // it would run then anyway
		}
		if found && t.at >= best.at {
			if !c.closed.backward {
				break
			}
			d := z.day(floorDiv(t.at, 1000))
			for searched <= d && searched-z.day(floorDiv(best.at, 1000)) <= MaxMoveDays && !search.open(z, searched) {
				searched++
			}
			if searched <= d {
				break
			}
		}
		at = t.at
		why := search.rule(t.at)
		if why != nil && why.move == 0 {
			continue
		}
		if why != nil {
			if t, ok = c.shift(t, why.move, search); !ok {
				at = max(at, c.stranded(at, until, search))
				continue
			}
		}
		if t.at > after && (!found || t.at < best.at) {
			best, found = t, true
			searched = z.day(floorDiv(best.at, 1000)) + 1
		}
	}
	return best, found
}

// stranded returns an instant up to which no run of the closed range around t can move to an open
// day. t itself cannot; but the first days may still move back, and the last ones forward.
func (c Calendar) stranded(t, until int64, search *search) int64 {
	if c.closed.backward && t-search.begin(t, t-reach) < reach {
		return t
	}
	return search.end(t, until) - reach
}

// reach is longer than any move, in milliseconds.
const reach = (MaxMoveDays + 2) * day * 1000

// shift moves t to the same time of day on the nearest day that is open at that time, at most
// MaxMoveDays away and inside the calendar's window.
func (c Calendar) shift(t tick, direction int8, search *search) (tick, bool) {
	second, ms := floorDiv(t.at, 1000), t.at-floorDiv(t.at, 1000)*1000
	wall := c.zone.wall(second)
	home := floorDiv(wall, day)
	time := (wall-home*day)*1000 + ms
	step := int64(direction)
	search.shut(time, home)
	for d := home + step; d-home <= MaxMoveDays && home-d <= MaxMoveDays && search.checks > 0; d += step {
		if days := search.shutDays[time]; days.from <= d && d < days.to {
			d = days.to - 1
			if step < 0 {
				d = days.from
			}
			continue
		}
		at, ok := c.instant(wall + (d-home)*day)
		if at = at*1000 + ms; ok && !search.closed(at) {
			return tick{at: at, moved: direction}, at >= c.start && at < c.end
		}
		search.shut(time, d)
	}
	return tick{}, false
}

// instant returns the instant of a wall time under the calendar's policy for clock changes.
func (c Calendar) instant(wall int64) (int64, bool) {
	if clock, ok := c.source.(wallClock); ok {
		return clock.instant(wall)
	}
	first, _, _ := c.zone.instants(wall)
	return first, true
}
