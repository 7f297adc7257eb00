package job

import "slices"

// Status is the state of a job. QUEUED and a short job's RUNNING are never stored: see [View].
type Status string

// The statuses.
const (
	Blocked   Status = "BLOCKED"   // waits for its parents
	Scheduled Status = "SCHEDULED" // waits for its due time, or for a retry's (attempt > 1)
	Queued    Status = "QUEUED"    // due and not yet claimed; read, never stored
	Running   Status = "RUNNING"   // an attempt is under way
	Succeeded Status = "SUCCEEDED"
	Dead      Status = "DEAD" // failed for good; a redrive makes a new job of it
	Cancelled Status = "CANCELLED"
	Skipped   Status = "SKIPPED" // its schedule or run went on without it
	Expired   Status = "EXPIRED" // its window passed before it could start
)

// Statuses lists them all in the order of a job's life.
var Statuses = []Status{Blocked, Scheduled, Queued, Running, Succeeded, Dead, Cancelled, Skipped, Expired}

// Final says that nothing can change the status any more.
func (s Status) Final() bool {
	return slices.Contains([]Status{Succeeded, Dead, Cancelled, Skipped, Expired}, s)
}

// Open says that an attempt may run: the protocol's OPEN.
func (s Status) Open() bool { return s == Scheduled || s == Running }

// Stop is an intent on the row that must become a final status.
type Stop string

// The stops; NoStop is the absent attribute.
const (
	NoStop     Stop = ""
	StopCancel Stop = "cancel"
	StopExpire Stop = "expire"
)

// Final is the status that the stop becomes.
func (s Stop) Final() Status {
	if s == StopExpire {
		return Expired
	}
	return Cancelled
}

// PendingEffects is what a final row still has to do; its wake-up goes only when it has no pending effects.
type PendingEffects string

// The effects that can be pending, and both.
const (
	NoPendingEffects  PendingEffects = ""
	PendingDeadLetter PendingEffects = "letter"
	PendingChildren   PendingEffects = "children"
	PendingBoth       PendingEffects = "letter,children"
)

// DeadLetter reports whether the dead letter is still to be sent.
func (o PendingEffects) DeadLetter() bool { return o == PendingDeadLetter || o == PendingBoth }

// Children says whether the children still have to be notified.
func (o PendingEffects) Children() bool { return o == PendingChildren || o == PendingBoth }

// WithoutDeadLetter is what is left once the letter is delivered.
func (o PendingEffects) WithoutDeadLetter() PendingEffects {
	if o.Children() {
		return PendingChildren
	}
	return NoPendingEffects
}

// Priority orders the queues of a pool; the lower the earlier.
type Priority string

// The priorities, in strict order.
const (
	Critical Priority = "critical"
	High     Priority = "high"
	Normal   Priority = "normal"
	Low      Priority = "low"
)

// Codes of status_reason and of failed attempts that the system itself gives.
const (
	CodeTimeout           = "timeout"            // the attempt reached its timeout; retried
	CodeHandler           = "handler_failed"     // the handler returned an error; retried
	CodePermanent         = "permanent_failure"  // the handler said that again does not help
	CodePanic             = "handler_panicked"   // retried
	CodePoison            = "poison"             // too many workers died over this attempt
	CodeWorkerLost        = "worker_lost"        // the worker ended while it ran the attempt
	CodeUnknownTask       = "unknown_task"       // no worker knows the task, an hour after due
	CodeUnreadablePayload = "unreadable_payload" // the payload does not fit the handler's type
	CodeExpiredRetrying   = "expired_while_retrying"
	CodeCancelled         = "cancelled"
	CodeStartWithin       = "start_within"
	CodeExpireAfter       = "expire_after"
	CodeResultTooLarge    = "result_too_large" // larger than is kept, and something needs the value
	CodeResultLost        = "result_lost"      // the result could not be stored, and something needs the value
	CodeTargetRefused     = "target_refused"
)
