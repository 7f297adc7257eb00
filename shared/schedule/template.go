package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/horizon"
	"punctual/shared/job"
)

// TemplateOf is the template that a judged job describes: the row as it would be accepted,
// without key and times. tags is the JSON of the tags' item, "" for none.
func TemplateOf(r job.Row, tags string) Template {
	return Template{
		Task: r.Task, Executor: r.Executor, Pool: r.Pool, Priority: r.Priority, Timeout: r.Timeout,
		StartWithin: r.StartWithin, ExpireAfter: r.ExpireAfter, Retry: r.Retry, Tags: tags,
	}
}

// SetPayload decides where the template's payload is kept, by the row that it makes; nil is
// none. store.PutSchedulePayload then keeps it.
func (s *Schedule) SetPayload(payload []byte) {
	s.Template.Payload, s.Template.PayloadIn, s.Template.PayloadHash, s.Template.PayloadSize = "", job.InRow, "", 0
	if payload == nil {
		return
	}
	// The longest that a row of this schedule can be before it has run.
	at := time.Date(2399, 12, 31, 23, 59, 59, 999e6, time.UTC)
	wide := *s
	wide.Epoch = 1 << 40
	r, _ := wide.Job(calendar.Occurrence{NominalAt: at, DueAt: at}, 1<<16, at)
	p := job.PlacePayload(r, payload)
	s.Template.Payload, s.Template.PayloadIn, s.Template.PayloadSize = p.Inline, p.In, p.Size
	if p.In != job.InRow {
		sum := sha256.Sum256(payload)
		s.Template.PayloadHash = hex.EncodeToString(sum[:16])
	}
}

// RunNow is the job of a run that somebody asked for: the template, due now, beside the
// calendar. It belongs to no nominal time, takes no slot and does not count among the runs; it
// is only listed with them.
func (s Schedule) RunNow(id job.ID, shards int, now time.Time) (r job.Row, send bool) {
	r, _ = s.Job(calendar.Occurrence{NominalAt: now, DueAt: now}, shards, now)
	r.ID, r.NominalAt, r.ScheduleID, r.Epoch, r.ManualOf = id, time.Time{}, "", 0, s.Name
	r.Shard = horizon.ShardOf(string(id), shards)
	send = job.Place(&r, now)
	return r, send
}
