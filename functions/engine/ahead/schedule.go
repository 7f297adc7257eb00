package ahead

import (
	"time"

	"punctual/shared/calendar"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/span"
)

// counter counts the times of one schedule.
type counter struct {
	load   *Load
	now    time.Time
	pauses job.Pauses
	of     schedule.Schedule
	share  int         // of the times that may be counted one by one
	late   func() bool // whether the time for counting is up

	read   int             // times
	hour   time.Time       // of the newest nominal time
	starts []time.Duration // due times of that hour, from its beginning
}

// count adds the starts of a schedule with that many runs left of each calendar; see calendar.Union.Left. It returns
// how many times it has read.
func (c *counter) count(left []int64) (read int, err error) {
	if c.of.Deleted() || c.of.RunsLeft() == 0 || c.of.Paused != nil && c.of.Paused.Until.IsZero() {
		return 0, nil
	}
	times, err := c.of.Calendar()
	if err != nil {
		return 0, err
	}
	if back := longestSpread(c.of); back > 0 { // the runs of these times have been made, so none is left to count
		for o := range times.After(c.now.Add(-back)) {
			if o.NominalAt.After(c.now) || c.late() {
				break
			}
			c.read++
			c.add(o.DueAt)
		}
	}
	times = times.Left(left)
	for after, more := c.now, true; more; {
		after, more = c.walk(times, after)
	}
	return c.read, nil
}

// longestSpread is the longest time by which a time of a schedule may be due after its nominal time.
func longestSpread(of schedule.Schedule) (most time.Duration) {
	for _, spec := range of.Calendars() {
		if spec.Spread == nil {
			continue
		}
		if d, err := span.Parse(*spec.Spread); err == nil {
			most = max(most, d)
		}
	}
	return most
}

// walk counts the times after an instant. Once the schedule has had its share, an hour with a time counts like the hour
// before it, and the walk is to continue after that hour.
func (c *counter) walk(times calendar.Union, after time.Time) (next time.Time, more bool) {
	for o := range times.AfterRuns(after) {
		c.read++
		if !o.NominalAt.Before(c.load.end()) || c.late() {
			return next, false
		}
		if hour := o.NominalAt.Truncate(time.Hour); !hour.Equal(c.hour) {
			if c.read > c.share && c.hour.After(c.now) { // that hour was counted from its beginning
				for _, due := range c.starts {
					c.add(hour.Add(due))
				}
				return hour.Add(time.Hour - time.Millisecond), true
			}
			c.hour, c.starts = hour, c.starts[:0]
		}
		c.starts = append(c.starts, o.DueAt.Sub(c.hour))
		c.add(o.DueAt)
	}
	return next, false
}

// add counts a time unless a pause will hold it. What falls due under a pause is left out: which of it runs at the end
// of the pause is not foreseen.
func (c *counter) add(due time.Time) {
	if p := c.of.Paused; due.Before(c.now) || p != nil && !p.Over(due) {
		return
	}
	if _, held := c.pauses.Hold(c.of.Template.Task, due); !held {
		c.load.add(due, 1)
	}
}
