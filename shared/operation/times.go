package operation

import (
	"time"

	"punctual/shared/calendar"
)

// step is the shortest distance of two instants that are stored.
const step = time.Millisecond

// Next returns the nominal times that a backfill decides about next, in its order, at most most of them. end says that
// there are no others.
func (o Operation) Next(cal calendar.Calendar, most int) (times []time.Time, end bool) {
	from, to := o.undecided()
	if o.Order == Newest {
		return lastBefore(cal, from, to, most)
	}
	return firstFrom(cal, from, to, most)
}

// Left returns how many nominal times a backfill has not decided about; more says that there are more than most.
func (o Operation) Left(cal calendar.Calendar, most int) (n int, more bool) {
	from, to := o.undecided()
	times, end := firstFrom(cal, from, to, most)
	return len(times), !end
}

// undecided is the stretch of times that a backfill has not decided about; to is not in it.
func (o Operation) undecided() (from, to time.Time) {
	switch {
	case o.Cursor.IsZero():
		return o.From, o.To
	case o.Order == Newest:
		return o.From, o.Cursor
	}
	return o.Cursor.Add(step), o.To
}

func firstFrom(cal calendar.Calendar, from, to time.Time, most int) (times []time.Time, end bool) {
	for at := from.Add(-step); ; {
		next, ok := cal.Next(at)
		if !ok || !next.NominalAt.Before(to) {
			return times, true
		}
		if len(times) == most {
			return times, false
		}
		at = next.NominalAt
		times = append(times, at)
	}
}

// lastBefore returns the last times before to, the last one first. A calendar only goes forward, so it is asked from
// ever earlier on, until it has enough times.
func lastBefore(cal calendar.Calendar, from, to time.Time, most int) (times []time.Time, end bool) {
	for width := time.Minute; ; width *= 4 {
		since := to.Add(-width)
		whole := !since.After(from)
		if whole {
			since = from
		}
		found := make([]time.Time, 0, most+1) // the last ones
		for at := since.Add(-step); ; {
			next, ok := cal.Next(at)
			if !ok || !next.NominalAt.Before(to) {
				break
			}
			if at = next.NominalAt; len(found) == cap(found) {
				found = append(found[:0], found[1:]...)
			}
			found = append(found, at)
		}
		if !whole && len(found) <= most {
			continue
		}
		for n := len(found) - 1; n >= 0 && len(times) < most; n-- {
			times = append(times, found[n])
		}
		return times, len(found) <= most
	}
}
