package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Type is what has happened.
type Type string

// The types.
const (
	JobSucceeded     Type = "job.succeeded"
	JobFailedAttempt Type = "job.failed_attempt"
	JobDead          Type = "job.dead"
	JobExpired       Type = "job.expired"
	JobCancelled     Type = "job.cancelled"
	JobSkipped       Type = "job.skipped"
	RunSucceeded     Type = "run.succeeded"
	RunFailed        Type = "run.failed"
	RunHeld          Type = "run.held"
	RunCancelled     Type = "run.cancelled"
	ScheduleMissed   Type = "schedule.missed"
	ScheduleSkipped  Type = "schedule.skipped"
	SchedulePaused   Type = "schedule.paused"
	ScheduleEnded    Type = "schedule.ended"
	OperationEnded   Type = "operation.ended"
	WebhookDisabled  Type = "webhook.disabled"
	WebhookTest      Type = "webhook.test" // asked for, and delivered only there
)

// Types lists those that a webhook can ask for.
var Types = []Type{
	JobSucceeded, JobFailedAttempt, JobDead, JobExpired, JobCancelled, JobSkipped, RunSucceeded, RunFailed, RunHeld,
	RunCancelled, ScheduleMissed, ScheduleSkipped, SchedulePaused, ScheduleEnded, OperationEnded, WebhookDisabled,
}

// Groups lists the patterns that mean several types.
var Groups = []string{"job.*", "run.*", "schedule.*", "operation.*"}

// Event is something that has happened, which webhooks may ask for.
type Event struct {
	Tenant   tenant.ID
	ID       string // the same however often it is found
	Type     Type
	Subject  string // "job/ID", "run/ID", "schedule/NAME", "operation/ID", "webhook/NAME"
	At       time.Time
	Sequence int64 // grows with the events of a subject
	// Facts are what filters go by; "" is what the event does not have.
	Task, Schedule, Dag string

	// Job is the job that it is about, as it was then; nil for another event.
	Job *job.Row

	failed *attempt          // of a job.failed_attempt
	data   any               // of an event that is about no job
	tags   map[string]string // of an event that is about no job
}

// prefix begins the type that is sent.
const prefix = "punctual."

// cloudEvent is an event in the JSON format of CloudEvents 1.0. Its seven attributes are all that is needed of the
// specification, and encoding/json writes them.
type cloudEvent struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Subject     string `json:"subject"`
	Time        string `json:"time"`
	ContentType string `json:"datacontenttype"`
	Data        any    `json:"data"`
}

// Body is what is sent for an event. l are the labels of its job.
func (e Event) Body(l job.Labels) []byte {
	data := e.data
	if e.Job != nil {
		data = e.jobData(l)
	}
	return text.MustJSON(cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: "/punctual/" + string(e.Tenant), Type: prefix + string(e.Type),
		Subject: e.Subject, Time: e.At.UTC().Format(text.InstantLayout), ContentType: "application/json",
		Data: data,
	})
}

// idOf is the id of an event: a hash of what makes it that event.
func idOf(t tenant.ID, what Type, subject string, sequence int64) string {
	h := sha256.New()
	for _, part := range []string{string(t), string(what), subject, strconv.FormatInt(sequence, 10)} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // never fails
	}
	return "evt_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// newEvent is an event without its data.
func newEvent(t tenant.ID, what Type, subject string, at time.Time, sequence int64) Event {
	return Event{Tenant: t, ID: idOf(t, what, subject, sequence), Type: what, Subject: subject, At: at,
		Sequence: sequence}
}

// webhookData is the data of an event about a webhook.
type webhookData struct {
	Name     string     `json:"name"`
	URL      string     `json:"url"`
	Reason   job.Reason `json:"status_reason,omitzero"`
	Sequence int64      `json:"sequence"`
}

// OfDisabled is the event that a webhook was disabled, in that version of it.
func OfDisabled(t tenant.ID, name, url string, version int64, why job.Reason, at time.Time) Event {
	e := newEvent(t, WebhookDisabled, "webhook/"+name, at, version)
	e.data = webhookData{name, url, why, version}
	return e
}

// OfTest is the event that a test of a webhook sends, under an id that the caller made.
func OfTest(t tenant.ID, name, url string, id job.ID, at time.Time) Event {
	e := newEvent(t, WebhookTest, "webhook/"+name, at, at.UnixMilli())
	e.ID = "evt_" + string(id)
	e.data = webhookData{Name: name, URL: url, Sequence: e.Sequence}
	return e
}
