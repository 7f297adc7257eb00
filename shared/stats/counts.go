package stats

import (
	"slices"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Counts are how many jobs, or attempts, something has happened to.
type Counts struct {
	Created        int64
	Started        int64 // attempts, and starts of an attempt whose worker was lost
	Succeeded      int64
	FailedAttempts int64
	Dead           int64
	Expired        int64
	Skipped        int64
	Lateness       Histogram // of those that started
}

// Add adds other counts.
func (c *Counts) Add(more Counts) {
	c.Created += more.Created
	c.Started += more.Started
	c.Succeeded += more.Succeeded
	c.FailedAttempts += more.FailedAttempts
	c.Dead += more.Dead
	c.Expired += more.Expired
	c.Skipped += more.Skipped
	c.Lateness.add(more.Lateness)
}

// Series is whose counts they are.
type Series struct {
	Tenant tenant.ID
	Task   string // "" for all tasks of the tenant
}

// Sum is what has been counted, by series and minute. The zero Sum is empty.
type Sum map[Series]map[time.Time]Counts

// Count counts what a change of a row says, where the row is that of a job. before is nil if there was none; now is
// the time of what has none of its own.
func (s *Sum) Count(before *job.Row, after job.Row, now time.Time) {
	if !after.Kind().IsJob() {
		return
	}
	at := func(when time.Time, c Counts) { s.count(after, when, c) }
	started := func(when time.Time, latenessMS int64) {
		at(when, Counts{Started: 1, Lateness: Histogram{bucketOf(latenessMS): 1}})
	}
	var was job.Row
	if before == nil {
		at(after.CreatedAt, Counts{Created: 1})
	} else {
		was = *before
	}
	// A start shows when the attempt has ended, or, of one that takes long, at its first heartbeat.
	if !after.StartedAt.IsZero() && !after.StartedAt.Equal(was.StartedAt) {
		started(after.StartedAt, after.LatenessMS)
	}
	for _, a := range after.AttemptsSince(was) {
		if !a.StartedAt.IsZero() && !a.StartedAt.Equal(was.StartedAt) && !a.StartedAt.Equal(after.StartedAt) {
			started(a.StartedAt, a.LatenessMS)
		}
		switch {
		case a.Outcome != string(job.OutcomeFailed):
		case a.FinishedAt.IsZero(): // it never started
			at(now, Counts{FailedAttempts: 1})
		default:
			at(a.FinishedAt, Counts{FailedAttempts: 1})
		}
	}
	if after.Status.Final() && !was.Status.Final() {
		at(after.FinishedAt, final(after.Status))
	}
}

func final(status job.Status) (c Counts) {
	switch status {
	case job.Succeeded:
		c.Succeeded = 1
	case job.Dead:
		c.Dead = 1
	case job.Expired:
		c.Expired = 1
	case job.Skipped:
		c.Skipped = 1
	}
	return c
}

// count adds to the series of the task and to that of the tenant, where a delivery of an event is none of its jobs.
func (s *Sum) count(r job.Row, when time.Time, c Counts) {
	minute := when.Truncate(time.Minute)
	s.Add(Series{r.Tenant, r.Task}, minute, c)
	if r.ShownIn("") {
		s.Add(Series{r.Tenant, ""}, minute, c)
	}
}

// Add adds counts of a minute to a series.
func (s *Sum) Add(series Series, minute time.Time, c Counts) {
	if *s == nil {
		*s = Sum{}
	}
	minutes := (*s)[series]
	if minutes == nil {
		minutes = map[time.Time]Counts{}
		(*s)[series] = minutes
	}
	all := minutes[minute]
	all.Add(c)
	minutes[minute] = all
}

// counted are the attributes of a row of which one differs after each change that counts.
var counted = []string{"status", "started_at", "attempts"}

// Change counts what a record of the table's stream says. A row that cannot be read counts nothing.
func (s *Sum) Change(c item.Change, now time.Time) {
	before, after, ok := Rows(c)
	switch {
	case !ok:
	case c.Old == nil:
		s.Count(nil, after, now)
	default:
		s.Count(&before, after, now)
	}
}

// Rows returns the row before a change that may count something, and the one after it; the zero Row before if there
// was none. It is false for other changes, and for rows that cannot be read.
func Rows(c item.Change) (before, after job.Row, ok bool) {
	if c.New == nil || job.IsGone(c.New) {
		return before, after, false
	}
	if c.Old != nil && !slices.ContainsFunc(counted, func(name string) bool { return c.Old[name] != c.New[name] }) {
		return before, after, false
	}
	after, err := job.ParseRow(c.New)
	if err == nil && c.Old != nil {
		before, err = job.ParseRow(c.Old)
	}
	return before, after, err == nil
}
