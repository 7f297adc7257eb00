package job

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
)

// Verdict is what a worker may do with an attempt it has claimed.
type Verdict string

// The verdicts. Everything but Start lets the claim go and deletes the message.
const (
	Start Verdict = "start"
	Stale Verdict = "stale" // not this version or attempt any more, or over: nothing to say
	Defer Verdict = "look"  // it may not start now (paused, window passed, stop): have it looked at
)

// MayStart judges a claimed attempt against the row: protocol, Worker step 3.
func MayStart(r Row, version, attempt int64, paused bool, now time.Time) (Verdict, string) {
	switch {
	case !r.Status.Open():
		return Stale, "status is " + string(r.Status)
	case r.Version != version || r.Attempt != attempt:
		return Stale, "a newer version or attempt stands"
	case r.Stop != NoStop:
		return Defer, "stop " + string(r.Stop)
	case paused:
		return Defer, "paused"
	}
	if code := r.WindowPassed(now); code != "" {
		return Defer, code
	}
	return Start, ""
}

// WindowPassed returns the code of the window that has passed, or "". start_within is asked
// only while no attempt has started yet.
func (r Row) WindowPassed(now time.Time) string {
	switch {
	case r.StartWithin > 0 && r.Attempt == 1 && r.StartedAt.IsZero() && now.After(r.DueAt.Add(r.StartWithin)):
		return CodeStartWithin
	case !r.ExpiryAt.IsZero() && now.After(r.ExpiryAt):
		return CodeExpireAfter
	}
	return ""
}

// MayBeUnfired reports whether the firing of a new job, which the process that accepted it sends because it is due
// now, may not have been sent: no worker has claimed it. It may be sent once more at any time, because a claim refuses
// the second one.
func MayBeUnfired(r Row, c Claim) bool {
	return r.Status == Scheduled && r.Version == 1 && r.Attempt == 1 && r.Stop == NoStop && !r.Near && !r.Parked &&
		c.Attempt != r.Attempt && horizon.LaneOf(r.CreatedAt, r.DueAt) == horizon.Now
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
	StepExpire       Step = "expire" // write stop=expire, then as StepFinishStop
	StepFire         Step = "fire"
	StepJudge        Step = "judge" // a BLOCKED job's parents are asked whether they have ended
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
		return StepJudge, ""
	case c.Attempt == r.Attempt && c.Outcome != nil:
		return StepRepeatReport, ""
	case c.Live(r.Attempt, now):
		return StepWaitForLease, ""
	case r.Stop != NoStop:
		return StepFinishStop, ""
	}
	if paused {
		return StepPark, ""
	}
	if window = r.WindowPassed(now); window != "" {
		return StepExpire, window
	}
	return StepFire, ""
}

// Postpone is how long the sweeper waits before it looks at a row again that it found n times
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
	case c.ClaimedAt.Before(r.DueAt):
		return r.DueAt // it is claimed a little before, and starts then
	}
	return c.ClaimedAt
}

// WaitingFor says what a job that is not running waits for, "" when it is or is over.
func WaitingFor(r Row, c Claim, paused bool, now time.Time) string {
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
		case r.Parked && !r.QueuedBehind || paused && !r.DueAt.After(now):
			return "pause"
		case r.QueuedBehind: // until the run before it is over no worker takes it
			return "worker"
		case r.Waiting != "":
			return r.Waiting
		}
		return "due"
	}
	return ""
}
