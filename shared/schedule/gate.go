package schedule

import (
	"cmp"
	"time"

	"punctual/shared/job"
)

// Validity is what a schedule means for one of its jobs.
type Validity string

// The validities. Only with Current may the job start.
const (
	Current     Validity = "current"
	IsPaused    Validity = "paused"     // it waits; resuming decides about it
	IsDeleted   Validity = "deleted"    // it does not run any more
	Passed      Validity = "superseded" // of an older epoch, and promotion has passed its time
	ToBeAdopted Validity = "to_adopt"   // of an older epoch, and promotion will come to its time
)

// ValidityOf returns what the schedule means for one of its jobs. A job that has not started (job.HasStarted) must be
// of this epoch, or due before a later one began; one that has only depends on whether the schedule is paused or
// deleted. A pause lasts until the write that ends it, even after its until: that write decides about the job.
func (s Schedule) ValidityOf(r job.Row, started bool) Validity {
	switch {
	case s.Deleted():
		return IsDeleted
	case s.Paused != nil:
		return IsPaused
	case started || r.Epoch >= s.Epoch || s.dueBefore(r):
		return Current
	case s.Next.IsZero() || s.Next.After(r.NominalAt):
		return Passed
	}
	return ToBeAdopted
}

// dueBefore reports whether a job of an older epoch was due before the epoch after its own began, and so runs by its
// own rule. Unknown, because many epochs have begun since, is no.
func (s Schedule) dueBefore(r job.Row) bool {
	n := s.Epoch - r.Epoch - 1
	return n >= 0 && n < int64(len(s.Raised)) && !r.DueAt.After(s.Raised[n])
}

// KeepsWaiting reports whether a job runs when the pause that holds it ends, whatever that decides: it was due before a
// change, and keeps its own rule.
func (s Schedule) KeepsWaiting(r job.Row) bool { return s.dueBefore(r) }

// MayStart reports whether the schedule allows the worker to start the attempt.
func (s Schedule) MayStart(r job.Row, started bool) (bool, string) {
	validity := s.ValidityOf(r, started)
	return validity == Current, "the schedule: " + string(validity)
}

// SkipReason returns why a skipped job did not run: "paused" when its due time is in the range of a
// pause.
func (s Schedule) SkipReason(r job.Row) job.Reason {
	switch {
	case s.Deleted():
		return job.Reason{Code: job.CodeDeleted, Message: "the schedule was deleted"}
	case s.Held.holds(r.DueAt):
		return job.Reason{Code: job.CodePaused, Message: "it passed under a pause"}
	}
	return job.Reason{Code: job.CodeEdited, Message: "the schedule was changed before it started"}
}

// Drops reports whether a lifted pause drops a job that it held. Missed "drop" drops every job,
// "last" all but the last that fell due under it, "all" all but the newest CatchUp.Cap, and "" those that the catch-up
// policy leaves out. last is the last due time that it held.
func (s Schedule) Drops(missed string, last time.Time, r job.Row) bool {
	if missed == "" {
		if last.Sub(r.DueAt) > s.CatchUp.Window {
			return true
		}
		missed = s.CatchUp.Policy.missed()
	}
	var keep int // of the newest
	switch missed {
	case MissedDrop:
		return true
	case MissedLast:
		keep = 1
	case MissedAll:
		keep = cmp.Or(s.CatchUp.Cap, DefaultCatchUp.Cap)
	default:
		return false
	}
	cal, err := s.Calendar()
	if err != nil {
		return false
	}
	later := 0 // times that fell due under the pause after this one
	for o := range cal.After(r.NominalAt) {
		if later == keep || o.NominalAt.After(last) {
			break
		}
		if !o.DueAt.After(last) { // calendars of a list have spreads of their own
			later++
		}
	}
	return later == keep
}

// missed returns the policy as a pause names it.
func (p Policy) missed() string {
	switch p {
	case CatchUpNone:
		return MissedDrop
	case CatchUpAll:
		return MissedAll
	}
	return MissedLast
}

// DroppedBy reports whether a job fell due under a pause of its task, or of everything, that has ended
// and drops it.
func (s Schedule) DroppedBy(p job.Pause, r job.Row) bool {
	last := p.LastHeld()
	return !r.DueAt.Before(p.Since) && !r.DueAt.After(last) && s.Drops(p.Missed, last, r)
}

// lastHeld is the last due time of a pause that ends now. What is due at its until is free, also
// when it is resumed later.
func (p *Pause) lastHeld(now time.Time) time.Time {
	if p.Over(now) {
		return p.Until.Add(-time.Millisecond)
	}
	return now
}

// Over reports whether a pause's until has passed: then the schedule is resumed.
func (p *Pause) Over(now time.Time) bool {
	return p != nil && !p.Until.IsZero() && !now.Before(p.Until)
}
