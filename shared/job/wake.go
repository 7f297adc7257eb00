package job

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/text"
)

// Verdict is what a worker may do with an attempt it has claimed.
type Verdict string

// The verdicts. Everything but Start lets the claim go and deletes the message.
const (
	Start Verdict = "start"
	Stale Verdict = "stale" // not this version or attempt any more, or over: nothing to say
	Defer Verdict = "look"  // it may not start now (paused, window passed, stop): have it re-evaluated
	Lost  Verdict = "lost"  // the attempt has failed: its worker ended, and the job says that this fails it
)

// HasStarted reports whether an attempt of the job has started, or may have, by the row and the claim that was read
// with it. Whatever depends on a job that has not started asks this: the row alone knows of a start only once a
// heartbeat or an outcome has been written to it. The zero Claim is an absent claim.
func HasStarted(r Row, c Claim) bool {
	switch {
	case r.Attempt > 1, !r.StartedAt.IsZero(), c.Begun > 0:
		return true
	case c.Attempt == r.Attempt && c.Outcome != nil:
		return !c.Outcome.StartedAt.IsZero() || len(c.Outcome.Lost) > 0
	}
	return len(c.Starts(r.Attempt, r.DueAt)) > 0
}

// LostFails reports whether the attempt of the row has failed because its worker ended: the claim, which no worker
// holds any more and which has no outcome, remembers a start, and the job says that a lost start fails the attempt.
func LostFails(r Row, c Claim) bool {
	return r.Retry.FailOnLost && c.Outcome == nil && len(c.Starts(r.Attempt, r.DueAt)) > 0
}

// MayStart evaluates a claimed attempt by the row: protocol, Worker step 3. before is what the claim knew of earlier
// starts of the attempt, which ended with their workers.
func MayStart(r Row, before Claim, version, attempt int64, paused bool, now time.Time) (Verdict, string) {
	switch {
	case !r.Status.Open():
		return Stale, "status is " + string(r.Status)
	case r.Version != version || r.Attempt != attempt:
		return Stale, "a newer version or attempt stands"
	case r.Stop != NoStop:
		return Defer, "stop " + string(r.Stop)
	case LostFails(r, before):
		return Lost, "its worker was lost"
	case paused, r.IsPaused():
		return Defer, "paused"
	}
	if code := r.WindowPassed(before, now); code != "" {
		return Defer, code
	}
	return Start, ""
}

// WindowPassed returns the code of the window that has passed, or "". start_within counts
// only while no attempt has started.
func (r Row) WindowPassed(c Claim, now time.Time) string {
	switch {
	case r.StartWithin > 0 && now.After(r.DueAt.Add(r.StartWithin)) && !HasStarted(r, c):
		return CodeStartWithin
	case !r.ExpiryAt.IsZero() && now.After(r.ExpiryAt):
		return CodeExpireAfter
	}
	return ""
}

// Deadline returns the first instant by which a job that waits must have started, or have ended; zero for none. It is
// by the row alone: a start that only the claim knows of makes start_within void.
func (r Row) Deadline() (at time.Time) {
	for _, d := range r.deadlines() {
		if !d.IsZero() && (at.IsZero() || d.Before(at)) {
			at = d
		}
	}
	return at
}

// deadlines are the instants of which Deadline is the first; a zero one is none.
func (r Row) deadlines() (list [2]time.Time) {
	list[0] = r.ExpiryAt
	if r.StartWithin > 0 && !HasStarted(r, Claim{}) {
		list[1] = r.DueAt.Add(r.StartWithin)
	}
	return list
}

// DeadlinePassed reports whether an open row has a deadline that has passed.
func (r Row) DeadlinePassed(now time.Time) bool {
	d := r.Deadline()
	return r.Status.Open() && !d.IsZero() && now.After(d)
}

// untilDeadline is a wake-up that is not later than the job's next deadline.
func (r Row) untilDeadline(at, now time.Time) time.Time {
	if d := r.Deadline(); !d.Before(now) && d.Before(at) {
		return d.Add(contract.AfterDue)
	}
	return at
}

// soonAfterDue bounds how long after its due time a deadline counts as soon: a later one is in the wake-up that the
// sweeper gives the job when it finds that it waits.
const soonAfterDue = contract.Grace + 2*time.Minute

// hasSoonDeadline reports whether the row's deadline may pass before the sweeper finds that the job waits.
func (r Row) hasSoonDeadline() bool {
	d := r.Deadline()
	return !d.IsZero() && d.Sub(r.DueAt) <= soonAfterDue
}

// Unfired reports whether a job with a deadline soon after due looks as if its firing was lost, as the sweeper sees any
// other: its wake-up, which was to be that of the deadline, has come a grace after it was due.
func (r Row) Unfired(now time.Time) bool {
	return r.Status.Open() && !r.Parked && r.hasSoonDeadline() && r.WakeAt.Equal(r.DueAt.Add(contract.Grace)) &&
		!r.WakeAt.After(now)
}

// parkedFor is how far ahead the wake-up of a parked job without a deadline lies: so of a parking place only those
// come first whose deadlines have passed.
const parkedFor = 100 * 365 * 24 * time.Hour

// parkedWake is the wake-up of a parked row: its deadline. Where it has none the order is that of the due times.
func (r Row) parkedWake(now time.Time) time.Time {
	d := r.Deadline()
	switch {
	case d.IsZero():
		return r.DueAt.Add(parkedFor)
	case d.Before(now):
		return now
	}
	return d.Add(contract.AfterDue)
}

// WakesByDeadline reports whether the wake-up of a parked job is its deadline: such jobs lie first in a parking place.
func WakesByDeadline(dueAt, wakeAt time.Time) bool { return !wakeAt.Equal(dueAt.Add(parkedFor)) }

// MayHaveDeadline reports whether an entry of the due index may be one of a job whose deadline wakes it, or is to: its
// wake-up is neither its due time nor just after. Whether it is, the row says.
func MayHaveDeadline(dueAt, wakeAt time.Time) bool {
	return wakeAt.Before(dueAt) || wakeAt.After(dueAt.Add(contract.AfterDue))
}

// MayBeUnfired reports whether the firing of a new job, which the process that accepted it sends because it is due
// now, may not have been sent: no worker has claimed it. It may be sent once more at any time, because a claim refuses
// the second one.
func MayBeUnfired(r Row, c Claim) bool {
	return r.Status == Scheduled && r.Version == 1 && r.Attempt == 1 && r.Stop == NoStop && !r.Near && !r.Parked &&
		c.Attempt != r.Attempt && horizon.LaneOf(r.CreatedAt, r.DueAt) == horizon.Now
}

// MayBeResumedUnfired reports whether the firing of a job that was resumed a moment ago may not have been sent, as
// MayBeUnfired does for a new one.
func MayBeResumedUnfired(r Row, c Claim, now time.Time) bool {
	return r.Status == Scheduled && r.Stop == NoStop && !r.Near && !r.Parked && !c.Live(r.Attempt, now) &&
		!r.ReadyAt.IsZero() && now.Sub(r.ReadyAt) < contract.Grace && horizon.LaneOf(now, r.DueAt) == horizon.Now
}

// Step is what a wake-up calls for.
type Step string

// The steps, in the order in which they are asked.
const (
	StepNothing      Step = "nothing"       // a stale index entry, or a job that has no wake-up any more
	StepEffects      Step = "pay_owed"      // a final row has pending effects
	StepRepeatReport Step = "repeat_report" // an outcome was recorded and never settled
	StepWaitForLease Step = "wait_for_lease"
	StepFinishStop   Step = "finish_stop" // fence, then the stop's final status
	StepPark         Step = "park"
	StepExpire       Step = "expire"      // write stop=expire, then as StepFinishStop
	StepRecordLost   Step = "record_lost" // record that the attempt failed with its worker, then as StepRepeatReport
	StepFire         Step = "fire"
	StepEvaluate     Step = "judge" // a BLOCKED job's parents are asked whether they have ended
)

// Wake says what a wake-up calls for, deciding again from facts: protocol, "Wake-ups and lanes".
// The window code is set with StepExpire.
func Wake(r Row, c Claim, paused bool, now time.Time) (step Step, window string) {
	switch {
	case r.WakeAt.IsZero():
		return StepNothing, ""
	case r.WakeAt.After(now) && !r.Parked:
		return StepNothing, ""
	case r.Status.Final():
		return StepEffects, ""
	case r.Status == Blocked:
		return StepEvaluate, ""
	case c.Attempt == r.Attempt && c.Outcome != nil:
		return StepRepeatReport, ""
	case c.Live(r.Attempt, now):
		return StepWaitForLease, ""
	case r.Stop != NoStop:
		return StepFinishStop, ""
	case LostFails(r, c):
		return StepRecordLost, ""
	}
	if window = r.WindowPassed(c, now); window != "" { // no pause holds that up
		return StepExpire, window
	}
	if paused {
		return StepPark, ""
	}
	return StepFire, ""
}

// Postpone is how long the sweeper waits before it reads a row once more that it found n times
// in a row: 3, 6, 12 … minutes.
func Postpone(n int64) time.Duration {
	d := contract.Grace
	for range min(n, 10) {
		d *= 2
	}
	return min(d, contract.MaxPostpone)
}

// ReadStatus is the status that a reader sees: row and claim together. QUEUED and a short
// job's RUNNING exist only here.
func ReadStatus(r Row, c Claim, now time.Time) Status {
	if !r.Status.Open() {
		return r.Status
	}
	switch {
	case r.IsPaused() && r.Status == Scheduled: // a worker that holds it has received an old firing, and releases it
		return Scheduled
	case c.Live(r.Attempt, now) && now.Add(contract.HoldUntil).After(r.DueAt):
		return Running
	case r.Status == Running:
		return Running
	case !r.DueAt.After(now) && !r.Parked:
		return Queued
	}
	return Scheduled
}

// Owned reports whether a worker holds the row's attempt and may have started it, so that the claim knows more of it
// than the row, which hears of a start at the first heartbeat.
func Owned(r Row, c Claim, now time.Time) bool {
	return ReadStatus(r, c, now) == Running && c.Live(r.Attempt, now)
}

// StartedAt is when the newest attempt that started did: of one that runs by its claim, to the time between the claim
// and the start, until the first heartbeat or the end says it exactly. Zero: none started.
func StartedAt(r Row, c Claim, now time.Time) time.Time {
	switch {
	case r.Status == Running || !Owned(r, c, now):
		return r.StartedAt
	case c.Outcome != nil && !c.Outcome.StartedAt.IsZero():
		return c.Outcome.StartedAt
	case r.DueAt.After(now): // the worker holds it until then
		return r.StartedAt
	case c.ClaimedAt.Before(r.DueAt):
		return r.DueAt // it is claimed a little before, and starts then
	}
	return c.ClaimedAt
}

// WaitingFor says what a job that is not running waits for, "" when it is or has ended.
func WaitingFor(r Row, c Claim, paused bool, now time.Time) string {
	if r.IsPaused() && (r.Status == Blocked || r.Status == Scheduled) {
		return "pause"
	}
	switch ReadStatus(r, c, now) {
	case Blocked:
		return "parents"
	case Queued:
		switch {
		case paused:
			return "pause"
		case c.WaitsFor(r.Attempt) == WaitsForHandler:
			return "handler"
		}
		return "worker"
	case Scheduled:
		switch {
		case r.Parked && !r.QueuedBehind && r.WaitsLimit == 0 || paused && !r.DueAt.After(now):
			return "pause"
		case r.Parked && r.WaitsLimit > 0:
			return WaitsForLimit
		case r.QueuedBehind: // until the run before it has ended no worker takes it
			return "worker"
		case r.Waiting != "":
			return r.Waiting
		}
		return "due"
	}
	return ""
}

// WaitsForLimit is what a job waits for that one of its limits of work holds.
const WaitsForLimit = "limit"

// NoHandler is why a job waits whose task no worker has known so far.
var NoHandler = "no worker that has seen the job has a handler for task %s; it waits for one until " +
	text.SpelledTime(contract.UnknownTaskFor, time.Hour, "an hour", "hours") + " after it was due"

// WaitsForEarlier is why a job waits whose schedule lets no two runs overlap.
const WaitsForEarlier = "an earlier run of the schedule has not ended; the job waits for its end"

// StartsSoon reports whether a worker may have the  Only then does its claim matter.
func StartsSoon(r Row, now time.Time) bool {
	return r.Status.Open() && !r.DueAt.After(now.Add(contract.HoldUntil))
}

// MayBeSuperseded reports whether the schedule decides if this job still runs.
func MayBeSuperseded(r Row) bool {
	return r.ScheduleID != "" && r.Status == Scheduled && r.Attempt == 1 && r.Stop == NoStop
}
