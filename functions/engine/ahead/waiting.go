package ahead

import (
	"context"
	"slices"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// waiting is a job and when it is expected to start.
type waiting struct {
	job.Row
	at time.Time
}

// waitingCounter counts the jobs of a tenant that wait.
type waitingCounter struct {
	process.Base
	store Store
	load  *Load
	now   time.Time
}

// count adds the starts of the tenant's jobs that wait, among its newest. It returns how many it has read.
func (c waitingCounter) count(ctx context.Context, t tenant.ID, pauses job.Pauses) (read int, err error) {
	began, now := c.Clock.Now(), c.now
	var due []waiting // may be running already, which only the claim knows
	for r, err := range c.store.Newest(ctx, t, "", job.NewID(now.Add(time.Millisecond), [10]byte{}), MostRows) {
		if err != nil && fault.KindOf(err) != fault.Undecodable { // one that cannot be read is left out
			return read, err
		}
		read++
		if at, waits := startsAt(r, pauses, now); err == nil && waits {
			if job.StartsSoon(r, now) && len(due) < MostClaims {
				due = append(due, waiting{r, at})
			} else {
				c.load.add(at, 1)
			}
		}
		if read == MostRows || c.Clock.Now().Sub(began) >= MostTime {
			break
		}
	}
	return read, c.countDue(ctx, due)
}

// countDue adds those jobs that no worker runs.
func (c waitingCounter) countDue(ctx context.Context, due []waiting) error {
	for lot := range slices.Chunk(due, store.ReadAtOnce) {
		keys := make([]job.Key, len(lot))
		for n, w := range lot {
			keys[n] = w.Key
		}
		claims, err := c.store.Claims(ctx, keys)
		if err != nil {
			return err
		}
		for n, w := range lot {
			if job.ReadStatus(w.Row, claims[n], c.now) != job.Running {
				c.load.add(w.at, 1)
			}
		}
	}
	return nil
}

// startsAt returns when a job is expected to start; false if it is not, or counts with its schedule. What a pause holds
// starts when the pause ends.
func startsAt(r job.Row, pauses job.Pauses, now time.Time) (at time.Time, starts bool) {
	if r.Status != job.Scheduled || r.Stop != job.NoStop || r.IsPaused() || countsWithSchedule(r, now) {
		return at, false
	}
	if at = r.DueAt; at.Before(now) {
		at = now
	}
	for { // each turn ends one of the pauses
		p, held := pauses.Hold(r.Task, at)
		switch {
		case !held:
			return at, true
		case p.Until.IsZero():
			return at, false
		}
		at = p.Until
	}
}

// countsWithSchedule reports whether a job is at a time of its schedule that is counted by the calendar.
func countsWithSchedule(r job.Row, now time.Time) bool {
	of := schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID}
	return r.ScheduleID != "" && r.Attempt == 1 && r.DueAt.After(now) && r.ID == of.JobID(r.NominalAt)
}
