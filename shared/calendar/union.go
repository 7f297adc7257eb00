package calendar

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"
)

// MaxCalendars is how many calendars one schedule may have.
const MaxCalendars = 10

// Union has the times of several calendars, each with its own zone, window, exclusions and spread. An instant that
// several of them name is one time: it has the zone and the flags of the first of them, and is due when the earliest
// of them has it due. The zero Union has no times. Like a Calendar it is an immutable value.
type Union struct {
	parts []Calendar
	path  string // of the whole in an [Error]; "" for a calendar that is no list
}

// Unite returns the union of calendars.
func Unite(parts ...Calendar) Union { return Union{parts: parts} }

// ParseAll returns the union of the calendars of a list, each as [Parse] reads it. Together they have at most MaxDates
// dates and name at most MaxExclude exclusions, so that a list is not much larger than one calendar may be. The error
// is an [*Error] that says which of them is refused.
func ParseAll(specs []Spec, exclusions Exclusions) (Union, error) {
	u, dates, names := Union{path: "/calendars"}, 0, map[string]bool{}
	if len(specs) == 0 || len(specs) > MaxCalendars {
		err := refuse("", CodeOutOfRange, fmt.Sprintf("1 to %d calendars", MaxCalendars), "there are %d", len(specs))
		err.path = u.path
		return Union{}, err
	}
	for n, s := range specs {
		c, err := s.calendar(exclusions)
		dates += len(s.Dates)
		for _, name := range s.Exclude {
			names[name] = true
		}
		switch {
		case err != nil:
		case dates > MaxDates:
			err = refuse("dates", CodeOutOfRange, fmt.Sprintf("%d instants in all calendars together", MaxDates),
				"up to here there are %d", dates)
		case len(names) > MaxExclude:
			err = refuse("exclude", CodeOutOfRange, fmt.Sprintf("%d names in all calendars together", MaxExclude),
				"up to here there are %d", len(names))
		}
		if err != nil {
			err.path = u.path + "/" + strconv.Itoa(n)
			return Union{}, err
		}
		u.parts = append(u.parts, c)
	}
	return u, nil
}

// For binds each calendar to a schedule; see [Calendar.For].
func (u Union) For(id string, createdAt time.Time) Union {
	parts := make([]Calendar, len(u.parts))
	for n, c := range u.parts {
		parts[n] = c.For(id, createdAt)
	}
	u.parts = parts
	return u
}

// Without returns the union without the calendars at those positions; positions beyond the list are none of them.
func (u Union) Without(positions []bool) Union {
	if !slices.Contains(positions, true) {
		return u
	}
	var parts []Calendar
	for n, c := range u.parts {
		if n >= len(positions) || !positions[n] {
			parts = append(parts, c)
		}
	}
	u.parts = parts
	return u
}

// Left returns the union with that many runs left of each calendar, by its position; 0 is none, and a negative number,
// or a position that is not in the list, is no bound besides the calendar's own.
func (u Union) Left(left []int64) Union {
	parts, spent := slices.Clone(u.parts), make([]bool, len(u.parts))
	for n := range min(len(parts), len(left)) {
		switch {
		case left[n] == 0:
			spent[n] = true
		case left[n] > 0:
			parts[n].maxRuns = int(left[n])
		}
	}
	u.parts = parts
	return u.Without(spent)
}

// Naming reports of each calendar, by its position, whether it has that nominal time.
func (u Union) Naming(nominal time.Time) []bool {
	names := make([]bool, len(u.parts))
	for n, c := range u.parts {
		o, ok := c.Next(nominal.Add(-time.Millisecond))
		names[n] = ok && o.NominalAt.Equal(nominal)
	}
	return names
}

// head is the next time of one calendar of a union.
type head struct {
	from Calendar
	at   Occurrence
	runs int // how many times of the calendar may follow
}

// advance moves the head on; false if its calendar has ended.
func (h *head) advance(after time.Time) (ok bool) {
	if h.runs == 0 {
		return false
	}
	h.runs--
	h.at, ok = h.from.Next(after)
	return ok
}

// walk yields the times strictly after after, in their order. Bounded, no calendar has more of them than its MaxRuns.
func (u Union) walk(after time.Time, bounded bool) iter.Seq[Occurrence] {
	return func(yield func(Occurrence) bool) {
		var heads []head // in the order of the calendars
		for _, c := range u.parts {
			from, ok := c.clamp(after)
			if !ok {
				continue
			}
			h := head{from: c.anchored(from), runs: math.MaxInt}
			if most := c.MaxRuns(); bounded && most > 0 {
				h.runs = most
			}
			if h.advance(after) {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			o := first(heads)
			if !yield(o) {
				return
			}
			kept := heads[:0]
			for _, h := range heads {
				if !h.at.NominalAt.Equal(o.NominalAt) || h.advance(o.NominalAt) {
					kept = append(kept, h)
				}
			}
			heads = kept
		}
	}
}

// first returns the earliest time of the heads, of which there is one at least.
func first(heads []head) Occurrence {
	o := heads[0].at
	for _, h := range heads[1:] {
		switch {
		case h.at.NominalAt.Before(o.NominalAt):
			o = h.at
		case h.at.NominalAt.Equal(o.NominalAt) && h.at.DueAt.Before(o.DueAt):
			o.DueAt = h.at.DueAt
		}
	}
	return o
}

// After yields the times strictly after after, in their order, without end if no calendar has one. It does not know
// past runs: the caller applies MaxRuns.
func (u Union) After(after time.Time) iter.Seq[Occurrence] { return u.walk(after, false) }

// AfterRuns is After with no more times of a calendar than its MaxRuns, as if none of them had run.
func (u Union) AfterRuns(after time.Time) iter.Seq[Occurrence] { return u.walk(after, true) }

// Next returns the first time of After; false if there is none.
func (u Union) Next(after time.Time) (Occurrence, bool) {
	if len(u.parts) == 1 {
		return u.parts[0].Next(after)
	}
	for o := range u.After(after) {
		return o, true
	}
	return Occurrence{}, false
}

// Preview returns up to count times of After, at most MaxPreview.
func (u Union) Preview(after time.Time, count int) []Occurrence {
	return take(u.After(after), min(count, MaxPreview))
}

// PreviewRuns is Preview for a schedule that has not run: no calendar has more times than its MaxRuns.
func (u Union) PreviewRuns(after time.Time, count int) []Occurrence {
	return take(u.walk(after, true), min(count, MaxPreview))
}

func take(times iter.Seq[Occurrence], count int) (list []Occurrence) {
	if count <= 0 {
		return nil
	}
	for o := range times {
		if list = append(list, o); len(list) == count {
			break
		}
	}
	return list
}

// Check returns an [*Error] if no calendar has a time after now.
func (u Union) Check(now time.Time) error {
	if u.path == "" && len(u.parts) == 1 {
		return u.parts[0].Check(now)
	}
	if _, ok := u.Next(now); ok {
		return nil
	}
	err := refuse("", CodeNeverFires, "", "no calendar has a time after %s", now.UTC().Format(time.RFC3339))
	err.path = u.path
	return err
}

// Notes returns sentences about what is easily misread in the calendars. Those of a list say which one they are about.
func (u Union) Notes() (notes []string) {
	for n, c := range u.parts {
		for _, note := range c.Notes() {
			if u.path != "" {
				note = fmt.Sprintf("%s/%d: %s", u.path, n, note)
			}
			notes = append(notes, note)
		}
	}
	return notes
}

// LeavesOut reports whether there may be times that one of the calendars itself skips.
func (u Union) LeavesOut() bool { return slices.ContainsFunc(u.parts, Calendar.LeavesOut) }

// Skipped is [Calendar.Skipped] for a union: a time that one calendar skips and another one has is none of them. It
// looks at no more than limit nominal times of each calendar.
func (u Union) Skipped(after, until time.Time, limit int) (skips []Skip, through time.Time) {
	if len(u.parts) == 1 {
		return u.parts[0].Skipped(after, until, limit)
	}
	through = until
	for _, c := range u.parts {
		own, to := c.Skipped(after, until, limit)
		skips = append(skips, own...)
		if to.Before(through) {
			through = to
		}
	}
	skips = slices.DeleteFunc(skips, func(s Skip) bool { return s.NominalAt.After(through) })
	slices.SortStableFunc(skips, func(a, b Skip) int { return a.NominalAt.Compare(b.NominalAt) })
	skips = slices.CompactFunc(skips, func(a, b Skip) bool { return a.NominalAt.Equal(b.NominalAt) })
	if len(skips) == 0 {
		return nil, through
	}
	next, stop := iter.Pull(u.After(skips[0].NominalAt.Add(-time.Millisecond)))
	defer stop()
	o, ok := next()
	return slices.DeleteFunc(skips, func(s Skip) bool {
		for ok && o.NominalAt.Before(s.NominalAt) {
			o, ok = next()
		}
		return ok && o.NominalAt.Equal(s.NominalAt)
	}), through
}
