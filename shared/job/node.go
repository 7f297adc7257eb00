package job

import (
	"encoding/json"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// Forced is how an operator ended a node of a run.
type Forced string

// The ways; NotForced is the absent attribute.
const (
	NotForced       Forced = ""
	ForcedComplete  Forced = "complete"
	ForcedSkip      Forced = "skip"       // its children run as if it had succeeded
	ForcedSkipBelow Forced = "skip_below" // its children treat it as skipped
)

// Status is the status that such a node ends with.
func (f Forced) Status() Status {
	if f == ForcedComplete {
		return Succeeded
	}
	return Skipped
}

// Unfinished reports whether there is such a row, which the zero Row says there is not, and it has not ended.
func (r Row) Unfinished() bool { return r.Status != "" && !r.Status.Final() }

// AcceptEnded puts the row of a node that ends without having run; it must not exist. The status is a
// final one, and the reason says why.
func AcceptEnded(r Row, s Status, why Reason, now time.Time) (Row, item.Write) {
	r.Reason = why
	finish(&r, s, now)
	return r, item.Write{Ref: r.Ref(), Name: WriteAcceptEnded, Put: r.Item(), When: isNew}
}

// AcceptMapped puts the row of a mapped node, which waits for its items; it must not exist. It has no
// wake-up: its items and its run bring it on.
func AcceptMapped(r Row) (Row, item.Write) {
	r.Status, r.WakeAt, r.Near = Blocked, time.Time{}, false
	return r, item.Write{Ref: r.Ref(), Name: WriteAcceptMapped, Put: r.Item(), When: isNew}
}

var isNew = []item.All{{{Attr: contract.AttrJobID, Op: item.Missing}}}

// CheckNotEnded holds while a mapped node is BLOCKED, with a row or without; it goes in one transaction with what
// the process that ends the node has to find.
func CheckNotEnded(node Key) item.Write {
	return item.Write{Ref: node.Ref(), Name: WriteCheckNotEnded, Check: true, When: []item.All{
		isNew[0], {{Attr: "status", Op: item.Eq, Value: string(Blocked)}},
	}}
}

// CloseMapped ends a mapped node all of whose items have ended.
func CloseMapped(r Row, s Status, why Reason, now time.Time) (Row, item.Write) {
	after := r
	after.Reason = why
	finish(&after, s, now)
	return after, change(WriteCloseMapped, r, after, from(WriteCloseMapped, followedAsRead(r)))
}

// Force ends a node that waits as an operator wants it. It goes in one transaction with a Fence of the
// attempt and a write of the run. The result, at most contract.MaxInlineResult bytes, is in the row.
func Force(r Row, f Forced, why Reason, now time.Time) (Row, item.Write) {
	after := r
	after.Forced, after.Reason = f, why
	finish(&after, f.Status(), now)
	return after, change(WriteForce, r, after,
		from(WriteForce, atAttempt(r.Attempt), stopIs(NoStop), followedAsRead(r)))
}

// SetResult gives a row that is about to end its result. What does not fit is to be put as an attachment first.
func (r *Row) SetResult(result json.RawMessage) []item.Write {
	return storeResult(r, Outcome{Result: result})
}

// NotifyDone notes that the children of a node know how it ended.
func NotifyDone(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.PendingEffects = NoPendingEffects
	if r.PendingEffects.DeadLetter() {
		after.PendingEffects = PendingDeadLetter
	}
	settleWake(&after, now)
	return after, change(WriteNotify, r, after, from(WriteNotify, pendingIs(r.PendingEffects)))
}

// ParseNode decodes the row of a node. Of one that is forgotten it gives the status with which it ended,
// and nothing else.
func ParseNode(k Key, i item.Item) (Row, error) {
	if !IsGone(i) {
		return ParseRow(i)
	}
	r := Row{Key: k, Status: Status(i.Str("ended")), NodeRef: NodeRef{Forced: Forced(i.Str("forced"))}}
	if !r.Status.Final() {
		r.Status = Cancelled // nothing says how it ended: it counts as failed
	}
	return r, nil
}
