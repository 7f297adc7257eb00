package calendar

import (
	"hash/fnv"
	"math/bits"
	"time"
)

// Calendar says when something runs. It is an immutable value; the zero Calendar has no times.
type Calendar struct {
	source source
	zone   *zone
	start  int64 // the window in milliseconds, end excluded
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
	// DueAt is when it shall run: NominalAt plus its share of the spread.
	DueAt time.Time
	// Local is NominalAt in the calendar's zone, as RFC 3339.
	Local string
	// Flags holds the Flag constants that apply, nil for an ordinary time.
	Flags []string
}

// Flags of an [Occurrence].
const (
	FlagChangeOverDay = "change_over_day" // the clock changes on this local day
	FlagMissingHour   = "missing_hour"    // it runs for a wall time that the clock skipped
	FlagRepeatedHour  = "repeated_hour"   // the clock shows this wall time twice
	FlagMovedLater    = "moved_later"     // from a day that an exclusion closed
	FlagMovedEarlier  = "moved_earlier"   // likewise
)

// For binds c to a schedule: the spread is derived from its id, and an "@every" without start_at
// counts from createdAt. An unbound "@every" counts from the time that Next or Preview gets.
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

// Next returns the first occurrence whose nominal time is strictly after after; false if there is
// none within [HorizonYears]. It does not know past runs: the caller applies MaxRuns.
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

// Check returns an [*Error] for a calendar without a time after now. Parse cannot: it has no now.
func (c Calendar) Check(now time.Time) error {
	if _, ok := c.Next(now); ok {
		return nil
	}
	return refuse(c.field, CodeNeverFires, "", "the calendar has no time after %s", now.UTC().Format(time.RFC3339))
}

// MaxRuns returns how often the calendar may run in total; 0 means no limit.
func (c Calendar) MaxRuns() int { return c.maxRuns }

// Notes returns sentences about what is easily misread in this calendar.
func (c Calendar) Notes() []string { return c.notes }

// clamp moves after into the years that calendars cover, in milliseconds.
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

// next returns the first tick after after with exclusions applied.
func (c Calendar) next(after int64) (tick, bool) {
	until := horizon(max(after, c.start))
	if c.closed == nil {
		return c.plain(after, until, false)
	}
	if c.closed.moves {
		return c.nextMoved(after, until)
	}
	for search := c.closed.search(); search.checks > 0; {
		t, ok := c.plain(after, until, false)
		if !ok || !search.closed(t.at) {
			return t, ok
		}
		after = max(t.at, search.end(t.at, until)-1)
	}
	return tick{}, false
}

// plain returns the first tick after after inside the window, without exclusions.
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

// share returns the part of the spread for one nominal time: always the same, and evenly
// distributed over ids and times.
func (c Calendar) share(at int64) int64 {
	if c.spread == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.id)) // never fails
	x := h.Sum64() ^ uint64(at)
	// FNV gives neighbours similar values; the last step of splitmix64 separates them.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	high, _ := bits.Mul64(x, uint64(c.spread))
	return int64(high)
}
