package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
)

// TemplateOf returns the template of a valid job: the row as it would be accepted, without key and
// times, with its labels.
func TemplateOf(r job.Row, labels job.Labels) Template {
	return Template{Settings: r.Settings, DagRef: r.DagRef, Labels: labels}
}

// SetPayload decides where the template's payload is kept, by the row that it makes; nil is none.
// store.PutSchedulePayload then keeps it. A payload outside of the schedule's item is named by its
// content and by the epoch that is to be replaced. Only the write that replaces this epoch can have
// put it, so a process that replaces it later may delete it safely.
func (s *Schedule) SetPayload(payload []byte) {
	s.Template.Payload, s.Template.PayloadIn, s.Template.PayloadHash, s.Template.PayloadSize = "", job.InRow, "", 0
	if payload == nil {
		return
	}
	// The longest row of this schedule before its first run.
	at := time.Date(2399, 12, 31, 23, 59, 59, 999e6, time.UTC)
	wide := *s
	wide.Epoch = 1 << 40
	wide.Overlap, wide.CatchUp = OverlapCancelRunning, CatchUp{Policy: CatchUpAll, Window: MaxCatchUpWindow,
		After: MaxCatchUpAfter, Cap: MaxCatchUpCap}
	r, _ := wide.Job(calendar.Occurrence{NominalAt: at, DueAt: at}, 1<<16, at)
	p := job.PayloadStorage(&r, payload)
	s.Template.Payload, s.Template.PayloadIn, s.Template.PayloadSize = p.Inline, p.In, p.Size
	if p.In != job.InRow {
		sum := sha256.Sum256(payload)
		s.Template.PayloadHash = hex.EncodeToString(sum[:16]) + "-" + strconv.FormatInt(s.Epoch, 10)
	}
}

// Keep makes the template refer to the payload of old, a template of the same schedule, where both
// are kept in the same way. It does the same with equal literals and who declared them.
func (t *Template) Keep(old Template, payloadToo bool) {
	if payloadToo && t.PayloadIn == old.PayloadIn {
		t.PayloadHash = old.PayloadHash
	}
	if t.Literals.Same(old.Literals) {
		t.Literals = old.Literals
	}
}

// ReplacedKept is how long a replaced payload is kept: a promotion may still have read the schedule
// before.
const ReplacedKept = 24 * time.Hour

// Replaced reports whether old has a payload outside of its item that after does not have.
func Replaced(old, after Schedule) bool {
	return old.Template.PayloadHash != "" && (after.Deleted() || old.Template.PayloadHash != after.Template.PayloadHash)
}

// letGo deletes a replaced payload. One in a blob is not in the tables: store.ForgetReplaced
// deletes it after the write.
func letGo(old, after Schedule, now time.Time) []item.Write {
	if !Replaced(old, after) || old.Template.PayloadIn != job.InItem {
		return nil
	}
	return []item.Write{{
		Ref: old.PayloadHashRef(old.Template.PayloadHash), Name: WritePayloadReplaced,
		Set: map[string]any{contract.AttrExpiresAt: now.Add(ReplacedKept).Unix()},
	}}
}

// RunNow returns the job of a run that a person asked for: the template, due now, outside of the
// calendar. It has no nominal time and does not count for max_runs; it is only listed with the other runs. With obey
// it takes the slot as those do, by the schedule's overlap policy.
func (s Schedule) RunNow(id job.ID, obey bool, shards int, now time.Time) (r job.Row, send bool) {
	r, _ = s.Job(calendar.Occurrence{NominalAt: now, DueAt: now}, shards, now)
	r.ID, r.NominalAt, r.ScheduleID, r.Epoch, r.ManualOf = id, time.Time{}, "", 0, s.Name
	r.Rule, r.ReadyAt = "", time.Time{}
	if obey && s.Limited() {
		r.Rule = s.rule()
	}
	r.Shard = horizon.ShardOf(string(id), shards)
	send = job.Route(&r, now)
	return r, send
}

// MaxBackfills is how many jobs backfills can make of one nominal time.
const MaxBackfills = 64

// BackfillID returns the id of job n, from 0, that backfills make of a nominal time: the same for every backfill, so
// that two of them do not both make it.
func (k Key) BackfillID(nominal time.Time, n int) job.ID {
	return job.DeterministicID(nominal, "backfill", string(k.Tenant), k.Name, nominal.UTC().Format(time.RFC3339Nano),
		strconv.Itoa(n))
}

// Backfill returns the job with which an operation makes a nominal time that has passed: the template, due now. It is a
// RunNow in all but its id and its nominal time.
func (s Schedule) Backfill(by job.ID, nominal time.Time, n, shards int, now time.Time) (r job.Row, send bool) {
	r, send = s.RunNow(s.BackfillID(nominal, n), false, shards, now)
	r.NominalAt, r.Backfill = nominal, by
	return r, send
}
