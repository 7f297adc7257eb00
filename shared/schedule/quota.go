package schedule

import (
	"maps"
	"math"
	"time"

	"punctual/shared/calendar"
)

// weighed is how many times of a calendar are read for its weight. It is enough for one whole minute of an every-second
// calendar. For dates all times are read.
const weighed = 120

// busiest returns how many of the next times fall into the busiest minute, at least 1.
func busiest(c calendar.Union, after time.Time, sample int) int64 {
	times := c.Preview(after, sample)
	most, from := 1, 0
	for to, o := range times {
		for o.NominalAt.Sub(times[from].NominalAt) >= time.Minute {
			from++
		}
		most = max(most, to-from+1)
	}
	return int64(most)
}

// Weight returns what a schedule takes from its tenant's quota: the sum of its calendars. It is always the same, so
// that a delete gives back what was taken. Exclusions do not count, because they may be replaced.
func (s Schedule) Weight() (sum int64) {
	if s.Deleted() {
		return 0
	}
	for _, spec := range s.Calendars() {
		spec.Exclude = nil
		one := s
		one.Spec, one.Specs = spec, nil
		c, err := one.Calendar()
		switch {
		case err != nil:
			sum++ // it cannot run, but it exists
		case spec.Dates != nil:
			sum += busiest(c, time.Time{}, calendar.MaxDates)
		default:
			sum += busiest(c, s.CreatedAt, weighed)
		}
	}
	return sum
}

// RunsLeft returns how often a schedule may still run, at most: not at all once it has ended. How often each calendar
// may run is known to the calendars.
func (s Schedule) RunsLeft() int {
	if s.EndedBy != "" {
		return 0
	}
	return math.MaxInt
}

// WithExclusion returns the schedule with its copy of an exclusion replaced.
func (s Schedule) WithExclusion(name string, e calendar.Exclusion) Schedule {
	s.Exclusions = maps.Clone(s.Exclusions)
	if s.Exclusions == nil {
		s.Exclusions = calendar.Exclusions{}
	}
	s.Exclusions[name] = e
	return s
}
