package operation

import (
	"time"

	"punctual/shared/calendar"
)

// step is the shortest distance of two instants that are stored.
const step = time.Millisecond

// Next returns the nominal times that a backfill decides about next, in its order, at most most of them. end says that
// there are no others.
func (o Operation) Next(cal calendar.Union, most int) (times []time.Time, end bool) {
	from, to := o.undecided()
	if o.Order == Newest {
		return lastBefore(cal, from, to, most)
	}
	return firstFrom(cal, from, to, most)
}

// Left returns how many nominal times a backfill has not decided about; more says that there are more than most.
func (o Operation) Left(cal calendar.Union, most int) (n int, more bool) {
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

func firstFrom(cal calendar.Union, from, to time.Time, most int) (times []time.Time, end bool) {
	for next := range cal.After(from.Add(-step)) {
		if !next.NominalAt.Before(to) {
			break
		}
		if len(times) == most {
			return times, false
		}
		times = append(times, next.NominalAt)
	}
	return times, true
}

// widest is the longest stretch that is searched before all of a range is: no length of time may overflow.
const widest = 100 * 366 * 24 * time.Hour

// lastBefore returns the last times before to, the last one first. A calendar only goes forward, so it is asked from
// ever earlier on, until it has enough times.
func lastBefore(cal calendar.Union, from, to time.Time, most int) (times []time.Time, end bool) {
	for width := time.Minute; ; width *= 4 {
		since := to.Add(-width)
		whole := width > widest || !since.After(from)
		if whole {
			since = from
		}
		found := make([]time.Time, 0, most+1) // the last ones
		for next := range cal.After(since.Add(-step)) {
			if !next.NominalAt.Before(to) {
				break
			}
			if len(found) == cap(found) {
				found = append(found[:0], found[1:]...)
			}
			found = append(found, next.NominalAt)
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
