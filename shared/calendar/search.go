package calendar

import (
	"cmp"
	"slices"
)

// search looks up times in closures for one answer. It caches the last closed range, since most
// lookups are in the same one, and counts the lookups that are left. It is for one goroutine.
type search struct {
	*closures
	checks   int
	known    span           // closed all through
	shutDays map[int64]span // by time of day in milliseconds: days on which that time is closed
}

func (c *closures) search() *search { return &search{closures: c, checks: maxChecks} }

// closed reports whether t is excluded.
func (s *search) closed(t int64) bool {
	if s.known.from <= t && t < s.known.to {
		return true
	}
	s.checks -= 1 + len(s.days)
	if _, ok := within(s.span, t); ok {
		return true
	}
	for i := range s.days {
		if s.days[i].on(s.days[i].zone.day(floorDiv(t, 1000))) {
			return true
		}
	}
	return false
}

// shut notes that a time of day is closed on day d.
func (s *search) shut(time, d int64) {
	days, ok := s.shutDays[time]
	switch {
	case ok && d == days.to:
		days.to++
	case ok && d == days.from-1:
		days.from--
	case ok && days.from <= d && d < days.to:
		return
	default:
		days = span{d, d + 1}
	}
	if s.shutDays == nil {
		s.shutDays = map[int64]span{}
	}
	s.shutDays[time] = days
}

// end returns the first open instant at or after t. It stops at until, or when no checks are left,
// even in a closed range.
func (s *search) end(t, until int64) int64 {
	from := t
	if s.known.from <= t && t < s.known.to {
		from, t = s.known.from, s.known.to
	}
	for found := true; found && t < until && s.checks > 0; s.checks -= 2 * (1 + len(s.days)) {
		found = false
		if in, ok := within(s.span, t); ok {
			t, found = in.to, true
		}
		for i := range s.days {
			z := s.days[i].zone
			if d := z.day(floorDiv(t, 1000)); s.days[i].on(d) {
				t, found = max(t+1, z.dayStart(s.days[i].run(d, 1, (until-t)/(day*1000)+2))*1000), true
			}
		}
	}
	if t > from {
		s.known = span{from, t}
	}
	return t
}

// begin returns the start of the closed range around t, or an instant inside it that is before
// since or where no checks were left.
func (s *search) begin(t, since int64) int64 {
	to := t
	if s.known.from < t && t <= s.known.to {
		t, to = s.known.from, s.known.to
	}
	for found := true; found && t > since && s.checks > 0; s.checks -= 2 * (1 + len(s.days)) {
		found = false
		if in, ok := within(s.span, t-1); ok {
			t, found = in.from, true
		}
		for i := range s.days {
			z := s.days[i].zone
			d := z.day(floorDiv(t-1, 1000))
			if !s.days[i].on(d) {
				continue
			}
			if from := z.dayStart(s.days[i].run(d, -1, (t-since)/(day*1000)+2)+1) * 1000; from < t {
				t, found = from, true
			}
		}
	}
	if t < to {
		s.known = span{t, to}
	}
	return t
}

// open reports whether all of day d of zone z is open.
func (s *search) open(z *zone, d int64) bool {
	from, to := z.dayStart(d)*1000, z.dayStart(d+1)*1000
	if s.known.from < to && from < s.known.to {
		return false
	}
	s.checks -= 2 * (1 + len(s.days))
	i, _ := slices.BinarySearchFunc(s.span, to, func(s span, x int64) int { return cmp.Compare(s.from, x) })
	if i > 0 && s.span[i-1].to > from {
		return false
	}
	for i := range s.days {
		theirs := s.days[i].zone
		for d := theirs.day(from / 1000); d <= theirs.day((to-1)/1000); d++ {
			if s.days[i].on(d) {
				return false
			}
		}
	}
	return true
}

// rule returns the exclusion that decides about t: the first that drops, otherwise the first that
// is named; nil if there is none.
func (s *search) rule(t int64) (first *closure) {
	s.checks -= len(s.sets)
	for i := range s.sets {
		set := &s.sets[i]
		_, in := within(set.span, t)
		if !in && (set.days.empty() || !set.days.on(set.days.zone.day(floorDiv(t, 1000)))) {
			continue
		}
		if set.move == 0 {
			return set
		}
		if first == nil {
			first = set
		}
	}
	return first
}
