package event

import (
	"time"

	"punctual/shared/job"
	"punctual/shared/operation"
)

// operationData is the view of an operation as it was when it ended, by the names of the API's view.
type operationData struct {
	OperationID  job.ID           `json:"operation_id"`
	Action       operation.Action `json:"action"`
	Status       operation.Status `json:"status"`
	StatusReason *job.Reason      `json:"status_reason,omitempty"`
	Matched      int              `json:"matched"`
	Done         int              `json:"done"`
	Skipped      int              `json:"skipped"`
	Failed       int              `json:"failed"`
	Schedule     string           `json:"schedule,omitempty"`
	From         instant          `json:"from,omitzero"`
	To           instant          `json:"to,omitzero"`
	CreatedAt    instant          `json:"created_at"`
	EndedAt      instant          `json:"ended_at"`
	By           string           `json:"by,omitempty"`
	Reason       string           `json:"reason,omitempty"`
	Sequence     int64            `json:"sequence"`
}

// OfOperation is the event of an end of an operation, which has another one if its canary is overruled.
func OfOperation(o operation.Operation, end operation.Ending) Event {
	at := time.UnixMilli(end.At).UTC()
	e := newEvent(o.Tenant, OperationEnded, "operation/"+string(o.ID), at, end.At)
	e.Schedule = o.Schedule
	d := operationData{
		OperationID: o.ID, Action: o.Action, Status: end.Status, Matched: end.Matched, Done: end.Done,
		Skipped: end.Skipped, Failed: end.Failed, Schedule: o.Schedule, From: instant{o.From}, To: instant{o.To},
		CreatedAt: instant{o.CreatedAt}, EndedAt: instant{at}, By: o.By, Reason: o.Reason, Sequence: end.At,
	}
	if end.Why.Code != "" {
		d.StatusReason = &end.Why
	}
	e.data = d
	return e
}
