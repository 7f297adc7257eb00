package calendar

import (
	"hash/fnv"
	"math/bits"
	"time"
)

// Calendar says when. It is an immutable value; the zero Calendar has no times.
type Calendar struct {
	source source
	zone   *zone
	start  int64 // the window in milliseconds, end not included
	end    int64
	closed *closures // nil when nothing is excluded
	spread int64     // in milliseconds
	id     string    // what the spread is derived from

	field   string // of the rule in its Spec, for Check
	maxRuns int
	notes   []string
}

// Occurrence is one time of a calendar.
type Occurrence struct {
	// NominalAt is what the calendar says; it identifies the occurrence.
	NominalAt time.Time
	// DueAt is when it is to run: NominalAt and its share of the spread.
	DueAt time.Time
	// Local is NominalAt on the calendar's own clock, as RFC 3339.
	Local string
	// Flags are the Flag constants that are true of it, nil when it is an
	// ordinary time.
	Flags []string
}

// Flags of an [Occurrence].
const (
	FlagChangeOverDay = "change_over_day" // this local day misses or repeats a stretch of the clock
	FlagMissingHour   = "missing_hour"    // runs for a wall time that a change swallowed
	FlagRepeatedHour  = "repeated_hour"   // the clock shows this wall time twice
	FlagMovedLater    = "moved_later"     // from a day that an exclusion closed
	FlagMovedEarlier  = "moved_earlier"   // likewise
)

// For binds c to a schedule: the spread is derived from its id, and an "@every"
// without start_at is counted from createdAt. Where it is not bound, "@every"
// is counted from the time that Next or Preview is given.
func (c Calendar) For(id string, createdAt time.Time) Calendar {
	c.id = id
	return c.anchored(createdAt.UnixMilli())
}

func (c Calendar) anchored(at int64) Calendar {
	if e, ok := c.source.(every); ok && e.floating {
		e.floating, e.anchor = false, at
		c.source = e
	}
	return c
}

// Next returns the first occurrence whose nominal time is strictly after after.
// False says that there is none within [HorizonYears]. Runs already made are
// not known here: MaxRuns is for the caller to apply.
func (c Calendar) Next(after time.Time) (Occurrence, bool) {
	from, ok := c.clamp(after)
	if !ok {
		return Occurrence{}, false
	}
	t, ok := c.anchored(from).next(from)
	if !ok {
		return Occurrence{}, false
	}
	return c.occurrence(t), true
}

// Preview returns up to count occurrences strictly after after, fewer when the
// calendar ends. A count over MaxPreview is taken as MaxPreview.
func (c Calendar) Preview(after time.Time, count int) []Occurrence {
	from, ok := c.clamp(after)
	if !ok {
		return nil
	}
	c = c.anchored(from)
	var list []Occurrence
	for range min(count, MaxPreview) {
		t, ok := c.next(from)
		if !ok {
			break
		}
		list = append(list, c.occurrence(t))
		from = t.at
	}
	return list
}

// Check refuses a calendar that has no time left after now. Parse cannot say
// so: it knows no now. The error is an [*Error].
func (c Calendar) Check(now time.Time) error {
	if _, ok := c.Next(now); ok {
		return nil
	}
	return refuse(c.field, CodeNeverFires, "", "the calendar has no time after %s", now.UTC().Format(time.RFC3339))
}

// MaxRuns is how often the calendar may run in all; 0 is without limit.
func (c Calendar) MaxRuns() int { return c.maxRuns }

// Notes are sentences about what is easily misread in this calendar.
func (c Calendar) Notes() []string { return c.notes }

// clamp brings after into the years that calendars know, in milliseconds.
func (c Calendar) clamp(after time.Time) (int64, bool) {
	if c.source == nil || after.Unix() >= lastInstant {
		return 0, false
	}
	if after.Unix() < firstInstant {
		return firstInstant*1000 - 1, true
	}
	return after.UnixMilli(), true
}

func horizon(after int64) int64 {
	const year = 366 * day * 1000
	return min(after+HorizonYears*year, lastInstant*1000-1)
}

// next applies the exclusions.
func (c Calendar) next(after int64) (tick, bool) {
	until := horizon(max(after, c.start))
	if c.closed == nil {
		return c.plain(after, until, false)
	}
	if c.closed.moves {
		return c.nextMoved(after, until)
	}
	for look := c.closed.search(); look.checks > 0; {
		t, ok := c.plain(after, until, false)
		if !ok || !look.closed(t.at) {
			return t, ok
		}
		after = max(t.at, look.end(t.at, until)-1)
	}
	return tick{}, false
}

// plain applies the window.
func (c Calendar) plain(after, until int64, skipped bool) (tick, bool) {
	t, ok := c.source.next(max(after, c.start-1), min(until, c.end-1), skipped)
	return t, ok && t.at < c.end
}

func (c Calendar) occurrence(t tick) Occurrence {
	o := Occurrence{
		NominalAt: time.UnixMilli(t.at).UTC(),
		DueAt:     time.UnixMilli(t.at + c.share(t.at)).UTC(),
		Local:     c.local(t.at),
	}
	s := floorDiv(t.at, 1000)
	if c.zone.changes(s) {
		o.Flags = append(o.Flags, FlagChangeOverDay)
	}
	if t.missing {
		o.Flags = append(o.Flags, FlagMissingHour)
	}
	if c.zone.repeats(s) {
		o.Flags = append(o.Flags, FlagRepeatedHour)
	}
	switch {
	case t.moved > 0:
		o.Flags = append(o.Flags, FlagMovedLater)
	case t.moved < 0:
		o.Flags = append(o.Flags, FlagMovedEarlier)
	}
	return o
}

func (c Calendar) local(at int64) string {
	return time.UnixMilli(at).In(c.zone.loc).Format("2006-01-02T15:04:05.999Z07:00")
}

// share is the part of the spread that falls to one nominal time: the same for
// ever, and as good as even over ids and times.
func (c Calendar) share(at int64) int64 {
	if c.spread == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.id)) // never fails
	x := h.Sum64() ^ uint64(at)
	// FNV leaves neighbours close together; this is splitmix64's last step.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	high, _ := bits.Mul64(x, uint64(c.spread))
	return int64(high)
}
