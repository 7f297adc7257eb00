package job

import (
	"encoding/json"
	"time"

	"punctual/shared/contract"
	"punctual/shared/message"
)

// DeadLetterOf is the dead letter of a DEAD row with these labels, stamped for this very send.
func DeadLetterOf(r Row, l Labels, sentAt time.Time) message.DeadLetter {
	return message.DeadLetter{
		V: message.V, Tenant: string(r.Tenant), JobID: string(r.ID), Task: r.Task, DeadAt: r.DeadAt,
		SentAt: sentAt.UTC(), Code: r.Reason.Code, Message: r.Reason.Message, Attempts: r.Attempt,
		RedriveOf: string(r.RedriveOf), Metadata: json.RawMessage(l.Metadata), RunID: r.RunID, Node: r.Node,
	}
}

// CameBack says whether a letter that was received is one that an operator redrove: a redrive
// enqueues it anew, long after the send that its body is stamped with, or names the queue it
// came from. A flag on the row could not say, since letters are sent more than once.
func CameBack(l message.DeadLetter, d message.Delivery) bool {
	return d.Source != "" || d.SentAt.Sub(l.SentAt) > contract.DeadLetterCameBackAfter
}
