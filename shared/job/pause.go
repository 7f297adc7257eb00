package job

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/text"
)

// OwnPause holds one job back until it is resumed. The zero OwnPause holds nothing.
type OwnPause struct {
	Reason string    `json:"r,omitempty"`
	By     string    `json:"b,omitempty"`
	Since  time.Time `json:"s"`
}

// encode is the stored form of the pause, "" for none.
func (p *OwnPause) encode() string {
	if p.Since.IsZero() {
		return ""
	}
	return string(text.MustJSON(p))
}

// decode reads what encode wrote.
func (p *OwnPause) decode(s string) error {
	*p = OwnPause{}
	if s == "" {
		return nil
	}
	return text.Read([]byte(s), p)
}

// IsPaused reports whether the job itself is paused. A pause of its task, its schedule, its run or of everything is not
// meant. An ended job may have been paused when it ended; nothing reads that any more.
func (r Row) IsPaused() bool { return !r.Paused.Since.IsZero() }

// pausedAsRead refuses a write whose wake-up goes by a pause that was put or lifted since the row was read.
func pausedAsRead(r Row) item.Cond {
	if r.IsPaused() {
		return item.Cond{Attr: "paused", Op: item.Exists}
	}
	return item.Cond{Attr: "paused", Op: item.Missing}
}

// firstPausedWake is the wake-up of a job that is paused at now. If a deadline has passed, the sweeper is to see that.
func (r Row) firstPausedWake(now time.Time) time.Time {
	if d := r.Deadline(); !d.IsZero() && d.Before(now) {
		return now
	}
	return r.pausedWake(now)
}

// pausedWake is the wake-up of a paused job: its next deadline, and never at or before its due time, at which its slice
// would fire it. The job of a schedule has others: the schedule may give it up.
func (r Row) pausedWake(now time.Time) time.Time {
	at := r.DueAt.Add(parkedFor)
	if r.ScheduleID != "" {
		at = now
		if r.DueAt.After(now) {
			at = r.DueAt
		}
		at = at.Add(Postpone(r.Postponed))
	}
	for _, d := range r.deadlines() {
		if d.Before(now) { // there is none, or a start that only the claim knows of has made it void
			continue
		}
		if d.Before(r.DueAt) {
			d = r.DueAt
		}
		if by := d.Add(contract.AfterDue); by.Before(at) {
			at = by
		}
	}
	return at
}

// PauseRow holds a job back that no attempt is running. Of a SCHEDULED job the write goes in one transaction with a
// Fence of the attempt, by the claim c as it was read; a BLOCKED one needs none, because no firing exists. The version
// grows, so firings that are on their way are stale.
func PauseRow(r Row, c Claim, p OwnPause, now time.Time) (Row, item.Write) {
	after := r
	after.Paused = p
	after.Version++
	if r.Status == Blocked {
		return after, change(WritePauseBlocked, r, after, from(WritePauseBlocked, atVersion(r.Version)))
	}
	Route(&after, now)
	if LostFails(r, c) { // the attempt has failed, which no pause holds up
		after.WakeAt = now
	}
	return after, change(WritePause, r, after,
		from(WritePause, atVersion(r.Version), atAttempt(r.Attempt), stopIs(NoStop)))
}

// ResumeRow lets a paused job go on. Time under the pause does not make a schedule's job late. send says whether the
// writer must send the firing itself.
func ResumeRow(r Row, now time.Time) (after Row, w item.Write, send bool) {
	after = r
	after.Paused = OwnPause{}
	after.Version++
	if r.Status == Blocked {
		return after, change(WriteResumeBlocked, r, after, from(WriteResumeBlocked, atVersion(r.Version))), false
	}
	if !r.DueAt.After(now) {
		after.ReadyAt = now
	}
	send = Route(&after, now)
	return after, change(WriteResume, r, after,
		from(WriteResume, atVersion(r.Version), atAttempt(r.Attempt), stopIs(NoStop))), send
}

// KeepPaused gives a paused job whose wake-up has come, and about which there is nothing to do, its next one.
func KeepPaused(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.Near, after.Parked, after.QueuedBehind, after.WaitsLimit = false, false, false, 0
	after.WakeAt, after.Postponed = r.pausedWake(now), r.Postponed+1
	return after, change(WriteKeepPaused, r, after,
		from(WriteKeepPaused, atVersion(r.Version), pausedAsRead(r), wakeAsRead(r)))
}
