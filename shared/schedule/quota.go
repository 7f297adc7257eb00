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
func busiest(c calendar.Calendar, after time.Time, sample int) int64 {
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

// Weight returns what a schedule takes from its tenant's quota. It is always the same, so that a delete gives back
// what was taken. Exclusions do not count, because they may be replaced.
func (s Schedule) Weight() int64 {
	if s.Deleted() {
		return 0
	}
	s.Spec.Exclude = nil
	c, err := s.Calendar()
	if err != nil {
		return 1 // it cannot run, but it exists
	}
	if s.Spec.Dates != nil {
		return busiest(c, time.Time{}, calendar.MaxDates)
	}
	return busiest(c, s.CreatedAt, weighed)
}

// RunsLeft returns how often a schedule may still run, at most.
func (s Schedule) RunsLeft() int {
	switch n := s.MaxRuns(); {
	case s.EndedBy != "":
		return 0
	case n > 0 && n < math.MaxInt:
		return int(n)
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
