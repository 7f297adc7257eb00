package ahead

import (
	"cmp"
	"slices"
	"time"
)

const (
	// Span is how far ahead a forecast may be asked for.
	Span = 7 * 24 * time.Hour
	// counted is how far ahead starts are counted: the last step of a forecast may reach a day beyond Span, and a kept
	// Load is older than the request.
	counted = Span + 24*time.Hour + 2*KeptFor
	// around is how many minutes on each side decide between minutes with the same load.
	around = 5
)

// Load has the number of starts that are expected in each minute.
type Load struct {
	from    time.Time // of the first minute
	minutes []int32
	cost    int // of its making, in times of calendars
}

func newLoad(now time.Time) *Load {
	return &Load{from: now.UTC().Truncate(time.Minute), minutes: make([]int32, int(counted/time.Minute))}
}

// add counts starts at an instant. What is outside of the minutes is left out.
func (l *Load) add(at time.Time, starts int32) {
	if n, ok := l.minute(at); ok {
		l.minutes[n] += starts
	}
}

// end is the instant at which the minutes end.
func (l *Load) end() time.Time { return l.from.Add(time.Duration(len(l.minutes)) * time.Minute) }

// minute is the position of an instant; false if it is outside of the minutes.
func (l *Load) minute(at time.Time) (int, bool) {
	if at.Before(l.from) || !at.Before(l.end()) {
		return 0, false
	}
	return int(at.Sub(l.from) / time.Minute), true
}

// Covers reports whether an instant is in the part of a forecast that is shown: in this minute or later, up to Span
// ahead.
func Covers(at, now time.Time) bool {
	return !at.Before(now.Truncate(time.Minute)) && !at.After(now.Add(Span))
}

// At returns the number of starts in the minute of an instant. It is false for an instant that is past, or more than
// Span ahead of now.
func (l *Load) At(at, now time.Time) (int, bool) {
	n, ok := l.minute(at)
	if !ok || !Covers(at, now) {
		return 0, false
	}
	return int(l.minutes[n]), true
}

// Starts returns the number of starts in each step of a range of whole steps. Minutes that are past have none.
func (l *Load) Starts(from, to time.Time, step time.Duration) []int {
	starts := make([]int, int(to.Sub(from)/step))
	for n, count := range l.minutes {
		at := l.from.Add(time.Duration(n) * time.Minute)
		if !at.Before(from) && at.Before(to) {
			starts[int(at.Sub(from)/step)] += int(count)
		}
	}
	return starts
}

// Calm is a minute and its load.
type Calm struct {
	At    time.Time
	Local time.Time // At in the time zone of the question
	Load  int
}

// TimeOfDay is a stretch of the local day in minutes of it. It ends before To, on the next day if To is not after From.
type TimeOfDay struct{ From, To int }

// contains reports whether a local time is in the stretch.
func (d TimeOfDay) contains(local time.Time) bool {
	minute := local.Hour()*60 + local.Minute()
	if d.From < d.To {
		return d.From <= minute && minute < d.To
	}
	return d.From <= minute || minute < d.To
}

// Calmest returns up to count of the minutes that begin in a stretch of the local day, from now until Span ahead, those
// with the fewest starts first. Of minutes with as many, that goes first which has fewer starts around it, and then the
// earlier one.
func (l *Load) Calmest(between TimeOfDay, zone *time.Location, now time.Time, count int) []Calm {
	type minute struct {
		Calm
		around int
	}
	var found []minute
	for n, load := range l.minutes {
		at := l.from.Add(time.Duration(n) * time.Minute)
		if at.Before(now) || at.After(now.Add(Span)) {
			continue
		}
		if local := at.In(zone); between.contains(local) {
			found = append(found, minute{Calm{at, local, int(load)}, l.around(n)})
		}
	}
	slices.SortFunc(found, func(a, b minute) int {
		return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(a.around, b.around), a.At.Compare(b.At))
	})
	calm := make([]Calm, min(count, len(found)))
	for n := range calm {
		calm[n] = found[n].Calm
	}
	return calm
}

// around is the number of starts in the minutes around one, itself included.
func (l *Load) around(n int) (sum int) {
	for _, count := range l.minutes[max(0, n-around):min(len(l.minutes), n+around+1)] {
		sum += int(count)
	}
	return sum
}
