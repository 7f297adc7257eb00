package schedule

import (
	"cmp"
	"time"

	"punctual/shared/job"
)

// Standing is how a schedule stands to one of its jobs.
type Standing string

// The standings. Only with Current may the job start.
const (
	Current    Standing = "current"
	IsPaused   Standing = "paused"     // it waits; resuming decides about it
	IsDeleted  Standing = "deleted"    // it does not run any more
	Passed     Standing = "superseded" // of an older epoch, and promotion has passed its time
	ToBeJudged Standing = "to_adopt"   // of an older epoch, and promotion is still to come to its time
)

// Stands says how the schedule stands to a job of it: at attempt 1 it must be of this epoch; a
// later one only asks whether the schedule is paused or deleted. A pause lasts until the write
// that ends it, even when its until is over: that write decides what becomes of the job.
func (s Schedule) Stands(r job.Row) Standing {
	switch {
	case s.Deleted():
		return IsDeleted
	case s.Paused != nil:
		return IsPaused
	case r.Attempt > 1 || r.Epoch >= s.Epoch:
		return Current
	case s.Next.IsZero() || s.Next.After(r.NominalAt):
		return Passed
	}
	return ToBeJudged
}

// MayStart says whether the worker may start the attempt as far as the schedule goes.
func (s Schedule) MayStart(r job.Row) (bool, string) {
	standing := s.Stands(r)
	return standing == Current, "the schedule: " + string(standing)
}

// SkipReason is what a skipped job says of why it did not run. It passed under a pause when
// the pause's stretch holds its due time.
func (s Schedule) SkipReason(r job.Row) job.Reason {
	switch {
	case s.Deleted():
		return job.Reason{Code: job.CodeDeleted, Message: "the schedule was deleted"}
	case s.Held.holds(r.DueAt):
		return job.Reason{Code: job.CodePaused, Message: "it passed under a pause"}
	}
	return job.Reason{Code: job.CodeEdited, Message: "the schedule was changed before it started"}
}

// Drops says whether a pause that was lifted lets go of a job that it held. By missed "drop" it does
// of every job, by "last" of all but the last that fell due under it, by "all" of all but the newest
// CatchUp.Cap.
func (s Schedule) Drops(missed string, lifted time.Time, r job.Row) bool {
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
	for at := r.NominalAt; later < keep; later++ {
		o, ok := cal.Next(at)
		if !ok || o.DueAt.After(lifted) {
			return false
		}
		at = o.NominalAt
	}
	return true
}

// Over says that a pause's until has passed: then it is to be resumed.
func (p *Pause) Over(now time.Time) bool {
	return p != nil && !p.Until.IsZero() && !now.Before(p.Until)
}
