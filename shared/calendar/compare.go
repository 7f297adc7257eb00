package calendar

import (
	"slices"
	"time"
)

// Limits of a comparison.
const (
	ComparedAhead  = 30 * 24 * time.Hour
	ComparedListed = 1000  // of each list
	comparedTimes  = 10000 // of each calendar; an every-second one has millions in 30 days
)

// Difference is how one calendar differs from another in its coming times.
type Difference struct {
	Added, Lost []Occurrence // at most ComparedListed each
	Moved       []Move       // times of a local day, if as many are lost as added, and times whose spread changes
	Through     time.Time    // end of the compared period
	Cut         bool         // there were too many times to compare all of ComparedAhead, or to list all of them
}

// Move is an occurrence that is due at another time.
type Move struct{ From, To time.Time }

// timesAhead returns the next times of a union, up to ComparedAhead after now and at most that many.
func timesAhead(u Union, now time.Time, most int) (times []Occurrence, through time.Time) {
	through = now.Add(ComparedAhead)
	if most == 0 {
		return nil, through
	}
	for o := range u.walk(now, true) {
		if o.NominalAt.After(through) {
			return times, through
		}
		if times = append(times, o); len(times) == most {
			return times, o.NominalAt
		}
	}
	return times, through
}

// Compare returns what changes when after replaces before. Each list ends with the runs that its schedule may still
// make, and no calendar has more of them than its MaxRuns.
func Compare(before, after Union, runsBefore, runsAfter int, now time.Time) Difference {
	old, oldThrough := timesAhead(before, now, min(runsBefore, comparedTimes))
	edited, newThrough := timesAhead(after, now, min(runsAfter, comparedTimes))
	end := now.Add(ComparedAhead)
	if len(old) == comparedTimes && oldThrough.Before(end) {
		end = oldThrough
	}
	if len(edited) == comparedTimes && newThrough.Before(end) {
		end = newThrough
	}
	d := Difference{Through: end, Cut: end.Before(now.Add(ComparedAhead))}
	d.fill(only(old, end), only(edited, end))
	return d
}

func only(times []Occurrence, end time.Time) []Occurrence {
	n, _ := slices.BinarySearchFunc(times, end, func(o Occurrence, end time.Time) int {
		if o.NominalAt.After(end) {
			return 1
		}
		return -1
	})
	return times[:n]
}

// fill compares two sorted lists. A time that only one of them has is lost or added, day by day.
func (d *Difference) fill(old, edited []Occurrence) {
	lost, added := map[string][]Occurrence{}, map[string][]Occurrence{}
	var days []string
	note := func(to map[string][]Occurrence, o Occurrence) {
		day := o.Local[:len(time.DateOnly)]
		if len(lost[day])+len(added[day]) == 0 {
			days = append(days, day)
		}
		to[day] = append(to[day], o)
	}
	for len(old) > 0 || len(edited) > 0 {
		switch {
		case len(edited) == 0 || len(old) > 0 && old[0].NominalAt.Before(edited[0].NominalAt):
			note(lost, old[0])
			old = old[1:]
		case len(old) == 0 || edited[0].NominalAt.Before(old[0].NominalAt):
			note(added, edited[0])
			edited = edited[1:]
		default:
			if !old[0].DueAt.Equal(edited[0].DueAt) {
				d.move(old[0], edited[0])
			}
			old, edited = old[1:], edited[1:]
		}
	}
	for _, day := range days {
		if len(lost[day]) == len(added[day]) {
			for i := range lost[day] {
				d.move(lost[day][i], added[day][i])
			}
			continue
		}
		d.Lost, d.Cut = addListed(d.Lost, lost[day], d.Cut)
		d.Added, d.Cut = addListed(d.Added, added[day], d.Cut)
	}
}

func (d *Difference) move(from, to Occurrence) {
	if len(d.Moved) == ComparedListed {
		d.Cut = true
		return
	}
	d.Moved = append(d.Moved, Move{from.DueAt, to.DueAt})
}

// addListed adds times to a list up to ComparedListed, and reports whether it left any out.
func addListed(list []Occurrence, times []Occurrence, cut bool) ([]Occurrence, bool) {
	free := ComparedListed - len(list)
	if len(times) > free {
		times, cut = times[:free], true
	}
	return append(list, times...), cut
}
