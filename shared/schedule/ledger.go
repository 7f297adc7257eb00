package schedule

import (
	"fmt"
	"strconv"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Outcomes of an occurrence.
const (
	Ran        = "ran"
	Pending    = "pending" // not over yet: due later, running, waiting for a retry, or paused
	Skipped    = "skipped"
	Missed     = "missed"
	Superseded = "superseded"
)

// Reasons that only the ledger gives; the others are codes of job and calendar.
const (
	ReasonOutage = "outage"       // no promotion made it a job in time
	ReasonCap    = "catch_up_cap" // more were missed than the cap allows to catch up
	// ReasonZoneRules: newer rules of the time zone have moved the time.
	ReasonZoneRules = "zone_rules"
)

// Entry records the nominal times of a range that did not become jobs. For a time in it that has a
// job the job counts.
type Entry struct {
	Key
	Epoch    int64
	From, To time.Time // the first and the last nominal time, both included
	Count    int       // of nominal times; 0 when there were too many to count
	Outcome  string
	Reason   string
	Why      string
	At       time.Time // recorded at
}

// LedgerKept is how long entries are kept: as long as finished jobs.
const LedgerKept = contract.FinishedKept

// LedgerKey returns the partition of a schedule's ledger.
func (k Key) LedgerKey() string { return "ledger#" + k.ID() }

// Sort returns the entry's sort key: its first time, then its epoch.
func (e Entry) Sort() string {
	return job.GroupSort(e.From) + "#" + strconv.FormatInt(e.Epoch, 10)
}

// Put writes the entry. The same entry always gives the same item.
func (e Entry) Put() item.Write {
	i := item.Item{
		contract.AttrPK: e.LedgerKey(), contract.AttrSK: e.Sort(), "epoch": e.Epoch, "from": e.From.UnixMilli(),
		"to":    e.To.UnixMilli(),
		"count": int64(e.Count), "outcome": e.Outcome, "reason": e.Reason, "why": e.Why, "at": e.At.UnixMilli(),
		contract.AttrExpiresAt: e.At.Add(LedgerKept).Unix(),
	}
	return item.Write{Ref: item.Ref{Table: contract.Schedules, PK: e.LedgerKey(), SK: e.Sort()},
		Name: "record", Put: i}
}

// ParseEntry decodes an item of Put.
func ParseEntry(k Key, i item.Item) (Entry, error) {
	e := Entry{
		Key: k, Epoch: i.Int("epoch"), From: i.Time("from"), To: i.Time("to"), Count: int(i.Int("count")),
		Outcome: i.Str("outcome"), Reason: i.Str("reason"), Why: i.Str("why"), At: i.Time("at"),
	}
	if e.From.IsZero() || e.To.Before(e.From) || e.Outcome == "" {
		return e, fault.New(fault.Undecodable, nil, "reading the ledger of schedule %q", k.Name)
	}
	return e, nil
}

// recorder collects entries and joins adjacent ones of one kind.
type recorder struct {
	of      Schedule
	cal     calendar.Union
	now     time.Time
	entries []Entry
}

// neighbours reports whether the calendar skips nothing between two of its times, of which b
// follows a.
func (r *recorder) neighbours(a, b time.Time) bool {
	if !r.cal.LeavesOut() {
		return true
	}
	skips, _ := r.cal.Skipped(a, b, 1)
	return len(skips) == 0
}

// add records one time. joined says that no time is between it and the one added before.
func (r *recorder) add(at time.Time, outcome, reason, why string, joined bool) {
	if n := len(r.entries); n > 0 && joined {
		last := &r.entries[n-1]
		if last.Outcome == outcome && last.Reason == reason && last.Why == why {
			last.To = at
			last.Count++
			return
		}
	}
	r.entries = append(r.entries, Entry{
		Key: r.of.Key, Epoch: r.of.Epoch, From: at, To: at, Count: 1, Outcome: outcome, Reason: reason, Why: why,
		At: r.now,
	})
}

// skips records the times that the calendar itself skips.
func (r *recorder) skips(skips []calendar.Skip) {
	for n, s := range skips {
		joined := false
		if n > 0 { // a run between two skips separates them
			o, ok := r.cal.Next(skips[n-1].NominalAt)
			joined = !ok || !o.NominalAt.Before(s.NominalAt)
		}
		r.add(s.NominalAt, Skipped, s.Reason, s.Why, joined)
	}
}

// LeftOut returns what the calendar has skipped up to now and the ledger does not hold yet, oldest
// first and bounded: promotion records it up to a day later.
func (s Schedule) LeftOut(now time.Time) []Entry {
	if s.Deleted() || !s.Seen.Before(now) {
		return nil
	}
	cal, err := s.Coming()
	if err != nil || !cal.LeavesOut() { // a schedule that cannot be read has no times
		return nil
	}
	r := recorder{of: s, cal: cal, now: now}
	skips, _ := cal.Skipped(s.Seen, now, maxTimes)
	r.skips(skips)
	return r.entries
}

// Leaves returns the nominal times up to now that an edit or a delete would leave without
// promotion, oldest first, as many as one decision covers. Some may have jobs: made by a step that
// did not get to advance the schedule, or before a pause set it back.
func (s Schedule) Leaves(now time.Time) []time.Time {
	cal, err := s.Coming()
	if err != nil || s.Next.IsZero() {
		return nil
	}
	var list []time.Time
	for o := range cal.After(s.Next.Add(-time.Millisecond)) {
		if len(list) == maxTimes || o.NominalAt.After(now) {
			break
		}
		list = append(list, o.NominalAt)
	}
	return list
}

// leave returns the ledger's entries for the times up to now that an epoch leaves without a job;
// has says which have one. It reads a bounded number of them and records the rest as one entry
// without a count.
func leave(s Schedule, cal calendar.Union, has map[time.Time]bool, now time.Time, reason string) []Entry {
	r := recorder{of: s, cal: cal, now: now}
	if cal.LeavesOut() && s.Seen.Before(now) {
		skips, _ := cal.Skipped(s.Seen, now, maxTimes)
		r.skips(skips)
		r.entries = r.entries[:min(len(r.entries), maxEntries/2)]
	}
	if s.Next.IsZero() {
		return r.entries
	}
	why := "the schedule was edited before a job was made of it"
	switch {
	case reason == job.CodeDeleted:
		why = "the schedule was deleted before a job was made of it"
	case s.Paused != nil:
		why = "the schedule was edited while it was paused"
	}
	first, before := len(r.entries), false // whether the previous time was recorded
	at, n := s.Next.Add(-time.Millisecond), -1
	for o := range cal.After(at) {
		if n++; o.NominalAt.After(now) {
			return r.entries
		}
		if n == maxTimes || len(r.entries) == maxEntries {
			if len(r.entries) == first {
				r.add(o.NominalAt, Superseded, reason, why, false)
			}
			r.entries[len(r.entries)-1].To, r.entries[len(r.entries)-1].Count = now, 0
			return r.entries
		}
		known := has[o.NominalAt] || !o.NominalAt.After(s.AdoptThrough)
		if !known {
			r.add(o.NominalAt, Superseded, reason, why, before && r.neighbours(at, o.NominalAt))
		}
		before, at = !known, o.NominalAt
	}
	return r.entries
}

// OfJob returns the outcome of an occurrence with a job, and the reason if it did not run.
func OfJob(r job.Row) (outcome, reason, why string) {
	if r.StartsRun() && !r.StartedAt.IsZero() {
		return ofRun(r)
	}
	switch r.Status {
	case job.Succeeded:
		return Ran, "", ""
	case job.Dead:
		return Ran, r.Reason.Code, "it ran and failed for good: " + r.Reason.Message
	case job.Cancelled:
		if !r.StartedAt.IsZero() {
			return Ran, r.Reason.Code, "it ran and was cancelled"
		}
		switch r.Reason.Code {
		case job.CodeDeleted, job.CodeOverlap:
			return Skipped, r.Reason.Code, r.Reason.Message
		}
		return Skipped, job.CodeCancelled, "the job was cancelled before it started"
	case job.Expired:
		if r.Reason.Code == job.CodeExpireAfter && !r.StartedAt.IsZero() {
			return Ran, r.Reason.Code, r.Reason.Message
		}
		return Missed, r.Reason.Code, r.Reason.Message
	case job.Skipped:
		switch r.Reason.Code {
		case job.CodeEdited, job.CodeDeleted, job.CodeSuperseded:
			return Superseded, r.Reason.Code, r.Reason.Message
		case ReasonOutage, ReasonCap:
			return Missed, r.Reason.Code, r.Reason.Message
		}
		return Skipped, r.Reason.Code, r.Reason.Message
	}
	return Pending, "", ""
}

// ofRun returns the outcome of a run that was started: how it ends is said by its status.
func ofRun(r job.Row) (outcome, reason, why string) {
	switch r.Status {
	case job.Dead:
		return Ran, r.Reason.Code, "it ran and failed: " + r.Reason.Message
	case job.Cancelled:
		return Ran, r.Reason.Code, "it ran and was cancelled"
	}
	return Ran, "", ""
}

// lateBy returns how late a time was dropped.
func lateBy(policy Policy, c CatchUp) string {
	switch policy {
	case CatchUpNone:
		return "nobody was there to make a job of it in time, and catch_up is none"
	case CatchUpLast:
		return fmt.Sprintf(
			"nobody was there to make a job of it in time; catch_up runs only the last missed time of the past %s",
			c.Window)
	}
	return fmt.Sprintf("nobody was there to make a job of it in time, and it is older than the catch_up window of %s",
		c.Window)
}

// PendingOf returns why a job has not ended. A job of an older epoch that has not started, and that the newer epoch did
// not keep, will not run any more.
func PendingOf(of Schedule, r job.Row, c job.Claim) (outcome, reason, why string) {
	if r.ManualOf != "" && r.QueuedBehind {
		return Pending, job.CodeOverlap, job.WaitsForEarlier
	}
	if r.ManualOf != "" {
		return Pending, "", ""
	}
	started := job.HasStarted(r, c)
	stale := r.Epoch < of.Epoch && !started && r.Status == job.Scheduled
	state := of.ValidityOf(r, started)
	switch {
	case stale && state == IsDeleted:
		return Superseded, job.CodeDeleted, "the schedule was deleted before it started"
	case state == IsPaused && r.Status != job.Running && of.KeepsWaiting(r):
		return Pending, job.CodePaused,
			"the schedule is paused; this time, which was due before a change, runs when the schedule is resumed"
	case state == IsPaused && r.Status != job.Running:
		return Pending, job.CodePaused,
			"the schedule is paused; whether this time runs is decided when the schedule is resumed"
	case stale && state == Passed && of.SkipReason(r).Code == job.CodePaused:
		return Skipped, job.CodePaused, of.SkipReason(r).Message
	case stale && (state == Passed || of.Held == nil):
		return Superseded, job.CodeEdited, "the schedule was edited before it started"
	case r.QueuedBehind:
		return Pending, job.CodeOverlap, job.WaitsForEarlier
	}
	return Pending, "", ""
}

// EndOf returns the row as it will end, if the schedule no longer has the job's time and no worker runs it. It is
// false if the job will run.
func EndOf(r job.Row, c job.Claim, of *Schedule, now time.Time) (job.Row, bool) {
	if of == nil || !job.MayBeSuperseded(r) || c.Live(r.Attempt, now) || job.HasStarted(r, c) {
		return r, false
	}
	switch of.ValidityOf(r, false) {
	case IsDeleted, Passed:
	default:
		return r, false
	}
	r.Status, r.Reason, r.FinishedAt = job.Skipped, of.SkipReason(r), of.UpdatedAt
	if of.Deleted() {
		r.FinishedAt = of.DeletedAt
	}
	return r, true
}
