package schedule

import (
	"slices"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Every write that raises the epoch is one transaction with the ledger's entries for the times that
// it leaves. Refused means that the epoch has changed: read the schedule and decide once more.

// write turns before into after if the epoch is still that of before.
func write(name string, before, after Schedule, more ...item.Cond) item.Write {
	set := map[string]any{"set_aside": nil} // of older versions
	var to space
	for _, a := range after.encode(&to) {
		switch {
		case slices.Contains(fixed, a.Name):
		case a.Absent():
			set[a.Name] = nil
		default:
			set[a.Name] = a.Value()
		}
	}
	when := append(item.All{{Attr: "epoch", Op: item.Eq, Value: before.Epoch}, before.atEvents()}, more...)
	return item.Write{Ref: before.Ref(), Name: name, When: []item.All{when}, Set: set}
}

// fixed are the attributes that an update leaves as they are.
var fixed = []string{contract.AttrPK, contract.AttrSK, "schema_v"}

var notDeleted = item.Cond{Attr: "deleted_at", Op: item.Missing}

// maxRaised bounds how many epochs back it is known when each began. A job that has waited through more of them is
// decided about by the newest.
const maxRaised = 32

// raise returns s with the next epoch.
func raise(s Schedule, now time.Time) Schedule {
	s.Epoch++
	s.Raised = append([]time.Time{now}, s.Raised[:min(len(s.Raised), maxRaised-1)]...)
	s.UpdatedAt, s.Failures, s.LastDead = now, 0, ""
	return s
}

// first sets Next to the first nominal time after at.
func (s *Schedule) first(cal calendar.Union, at time.Time) {
	o, _ := cal.Next(at)
	s.Next = o.NominalAt // zero when the calendar has ended
	s.Rules = calendar.Zones().Version
}

// Create makes a new schedule, or one with the name of a deleted one (old), whose epoch it
// continues; nil is none. The caller sets Key, Spec or Specs, Exclusions, Template, Overlap, CatchUp,
// PauseAfter and Shard of s, and Paused if it begins paused. The error is a *calendar.Error.
func Create(old *Schedule, s Schedule, now time.Time) (Schedule, item.Write, error) {
	s.Epoch, s.CreatedAt, s.UpdatedAt, s.Raised = 1, now, now, []time.Time{now}
	if old != nil {
		s.Events, s.Sequence = old.Events, old.Sequence
	}
	cal, err := s.Calendar()
	if err != nil {
		return s, item.Write{}, err
	}
	s.Seen = now
	s.first(cal, now)
	if p := s.Paused; p != nil {
		s.Paused = nil
		s.pause(*p, now)
		s.noteState(Schedule{}, now)
	}
	if old == nil {
		s.setWakeUp(now)
		return s, item.Write{Ref: s.Ref(), Name: WriteCreate, Put: s.Item(),
			When: []item.All{{{Attr: contract.AttrPK, Op: item.Missing}}}}, nil
	}
	s.Epoch = old.Epoch + 1
	s.setWakeUp(now)
	deleted := item.Cond{Attr: "deleted_at", Op: item.Exists}
	return s, write(WriteCreate, *old, s, deleted), nil
}

// Edit replaces what a user sets in a schedule: the same fields of edited count as for Create. Next
// becomes the first time after now, or an earlier one that both calendars have and that is still
// due, so that a job which waits for its share of the spread keeps its time. The pause becomes that of edited, in the
// same write. has says which of old.Leaves have jobs: those are not recorded; edited.Before is what OpenBefore names.
// The error is a *calendar.Error. The times that a pause holds are to be decided before (PlanHeld).
func Edit(old, edited Schedule, has map[time.Time]bool, now time.Time) (Schedule, []item.Write, error) {
	s := raise(old, now)
	s.Spec, s.Specs, s.Exclusions, s.Spent = edited.Spec, edited.Specs, edited.Exclusions, nil
	s.Template, s.Before = edited.Template, edited.Before
	s.Overlap, s.CatchUp, s.PauseAfter, s.EndedBy = edited.Overlap, edited.CatchUp, edited.PauseAfter, ""
	cal, err := s.Calendar()
	if err != nil {
		return s, nil, err
	}
	var left []Entry
	if oldCal, err := old.Coming(); err == nil { // a schedule that was quarantined has no times to record
		s.AdoptThrough = time.Time{}
		left = leave(old, oldCal, has, now, job.CodeEdited)
		s.first(cal, now)
		if o, ok := stillDue(oldCal, cal, now); ok {
			s.Next, s.AdoptThrough = o.NominalAt, now
		}
	} else {
		s.first(cal, now)
	}
	s.Seen, s.EditedAt, s.Held = now, now, nil
	if s.Paused != nil {
		s.Held = (&Stretch{From: now, Missed: s.Paused.Missed}).follow(old.Held, old.Next, now)
	}
	s.changePause(edited.Paused, now)
	s.noteLedger(left, now)
	s.noteState(old, now)
	s.setWakeUp(now)
	return s, append(with(write(WriteEdit, old, s, notDeleted), left), letGo(old, s, now)...), nil
}

// stillDue returns the first time up to now that both calendars have and that is due after now in
// both: its job may still be waiting.
func stillDue(old, edited calendar.Union, now time.Time) (calendar.Occurrence, bool) {
	at := now.Add(-calendar.MaxSpread)
	for range maxTimes {
		o, ok := edited.Next(at)
		if !ok || o.NominalAt.After(now) {
			return calendar.Occurrence{}, false
		}
		at = o.NominalAt
		if !o.DueAt.After(now) {
			continue
		}
		was, ok := old.Next(at.Add(-time.Millisecond))
		if ok && was.NominalAt.Equal(at) && was.DueAt.After(now) {
			return o, true
		}
	}
	return calendar.Occurrence{}, false
}

// PauseSchedule stops a schedule. Next goes back to the first time that is due after now: resuming decides about the
// times that fall due under the pause. Those due before wait, and run after it. p.Since and p.EffectiveAt are set here.
// Pausing a paused schedule replaces its pause but keeps Since.
func PauseSchedule(old Schedule, p Pause, now time.Time) (Schedule, item.Write) {
	s := raise(old, now)
	s.Failures = old.Failures
	s.pause(p, now)
	s.noteState(old, now)
	s.setWakeUp(now)
	return s, write(WritePause, old, s, notDeleted)
}

// ChangePause pauses or resumes a schedule if its pause is not that of wanted; no write if it is.
func ChangePause(old, wanted Schedule, now time.Time) (Schedule, []item.Write) {
	if old.Paused.same(wanted.Paused) {
		return old, nil
	}
	if wanted.Paused == nil {
		after, w := Resume(old, "", now)
		return after, []item.Write{w}
	}
	after, w := PauseSchedule(old, *wanted.Paused, now)
	return after, []item.Write{w}
}

// same reports whether another pause says the same; nil is none.
func (p *Pause) same(other *Pause) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Reason == other.Reason && p.By == other.By && p.Missed == other.Missed && p.Until.Equal(other.Until)
}

// changePause makes the pause that of wanted; nil is none.
func (s *Schedule) changePause(wanted *Pause, now time.Time) {
	switch {
	case s.Paused.same(wanted):
	case wanted == nil:
		s.resume("", now)
	default:
		s.pause(*wanted, now)
	}
}

// pause makes p the pause, and moves Next to the first time that it holds.
func (s *Schedule) pause(p Pause, now time.Time) {
	p.Since, p.EffectiveAt = now, now.Add(contract.EffectiveAfter)
	if s.Paused != nil {
		p.Since = s.Paused.Since
		s.Paused = &p
		if s.Held != nil {
			held := *s.Held
			held.Missed = p.Missed
			s.Held = &held
		}
		return
	}
	s.Paused = &p
	at := now
	if slices.ContainsFunc(s.Calendars(), func(c calendar.Spec) bool { return c.Spread != nil }) {
		at = at.Add(-calendar.MaxSpread)
	}
	if at.Before(s.CreatedAt) {
		at = s.CreatedAt
	}
	if at.Before(s.EditedAt) { // the edit left those behind, except for jobs that still wait
		s.AdoptThrough = s.EditedAt
	}
	if decided := s.decidedUnderPause(); decided.After(at) && decided.After(s.AdoptThrough) {
		s.AdoptThrough = decided
	}
	held := &Stretch{From: now.Add(time.Millisecond), Missed: p.Missed}
	s.Held = held.follow(s.Held, s.Next, now)
	// A schedule that has reached max_runs has no more times.
	cal, err := s.Coming()
	if err != nil || s.EndedBy != "" {
		return
	}
	read := 0
	for o := range cal.After(at) {
		if read++; read > maxTimes+int(calendar.MaxSpread/time.Second) ||
			!s.Next.IsZero() && !o.NominalAt.Before(s.Next) {
			return
		}
		if o.DueAt.After(now) {
			s.Next = o.NominalAt
			return
		}
	}
}

// decidedUnderPause returns up to where promotion has decided about the times of the last pause,
// which has ended; zero if there was none. Times that did not run then do not run under the next
// pause.
func (s Schedule) decidedUnderPause() time.Time {
	if s.Held == nil || s.Held.To.IsZero() {
		return time.Time{}
	}
	if !s.Next.IsZero() && !s.Next.After(s.Held.To) {
		return s.Next.Add(-time.Millisecond)
	}
	return s.Held.To
}

// Resume ends a pause. Next stays where the pause left it: promotion decides about the times since,
// by the pause's policy or else by the catch-up policy. missed, if not "", replaces the pause's
// policy.
func Resume(old Schedule, missed string, now time.Time) (Schedule, item.Write) {
	s := raise(old, now)
	s.resume(missed, now)
	s.setWakeUp(now)
	return s, write(WriteResume, old, s, notDeleted, item.Cond{Attr: "paused", Op: item.Exists})
}

// resume removes the pause, and ends its range.
func (s *Schedule) resume(missed string, now time.Time) {
	last := s.Paused.lastHeld(now)
	s.Paused = nil
	if s.Held == nil {
		return
	}
	held := *s.Held
	held.To = last
	if missed != "" {
		held.Missed = missed
	}
	s.Held = &held
}

// Delete ends a schedule for good; its name keeps the epoch. has says which of old.Leaves have
// jobs: those are not recorded.
func Delete(old Schedule, has map[time.Time]bool, now time.Time) (Schedule, []item.Write) {
	s := raise(old, now)
	var left []Entry
	if cal, err := old.Coming(); err == nil {
		left = leave(old, cal, has, now, job.CodeDeleted)
	}
	s.DeletedAt, s.Next, s.Paused, s.Held, s.AdoptThrough = now, time.Time{}, nil, nil, time.Time{}
	s.noteLedger(left, now)
	s.setWakeUp(now)
	return s, append(with(write(WriteDelete, old, s, notDeleted), left), letGo(old, s, now)...)
}

// with adds entries of the ledger to a write.
func with(w item.Write, entries []Entry) []item.Write {
	writes := []item.Write{w}
	for _, e := range entries {
		writes = append(writes, e.Put())
	}
	return writes
}

// Unchanged reports whether an edit would change nothing: then nothing is written, and the epoch
// stays.
func Unchanged(old, edited Schedule) bool {
	same := old
	same.Spec, same.Specs, same.Exclusions = edited.Spec, edited.Specs, edited.Exclusions
	same.Template = edited.Template
	same.Overlap, same.CatchUp, same.PauseAfter = edited.Overlap, edited.CatchUp, edited.PauseAfter
	return old.Item().Str("body") == same.Item().Str("body")
}

// Advance applies a plan to the schedule and records what the plan says: protocol, `next=:n AND
// epoch=:e`. Refused means that another process has written it, or that the epoch has changed.
func Advance(s Schedule, p Plan, now time.Time) (Schedule, []item.Write) {
	after := s
	after.Next, after.Seen, after.Rules = p.Next, p.Seen, calendar.Zones().Version
	if p.Next.IsZero() || p.Next.After(after.AdoptThrough) {
		after.AdoptThrough = time.Time{}
	}
	after.noteLedger(p.Ledger, now)
	after.noteState(s, now)
	after.setWakeUp(now)
	return after, with(progress(WriteAdvance, s, after), p.Ledger)
}

// progress writes what promotion changes, if next, epoch and events are as they were read.
func progress(name string, before, after Schedule) item.Write {
	is := after.Item()
	set := map[string]any{}
	for _, attr := range []string{"next", "seen", "fresh", "rules", contract.AttrWakeSlice, contract.AttrWakeAt,
		"parked", "held", "ended_by", "spent", "events", "event_seq"} {
		set[attr] = is[attr]
	}
	return item.Write{Ref: before.Ref(), Name: name, Set: set, When: []item.All{append(before.asRead(), notDeleted)}}
}

// asRead are the conditions that next, epoch and events are as they were read.
func (s Schedule) asRead() item.All {
	next := item.Cond{Attr: "next", Op: item.Missing}
	if !s.Next.IsZero() {
		next = item.Cond{Attr: "next", Op: item.Eq, Value: s.Next.UnixMilli()}
	}
	return item.All{{Attr: "epoch", Op: item.Eq, Value: s.Epoch}, next, s.atEvents()}
}

// Hold notes that a pause of the schedule's task, or of everything, stops its promotion; the
// wake-up moves to where lifting that pause finds it. Next stays.
func Hold(s Schedule, p job.Pause, now time.Time) (Schedule, item.Write) {
	after := s
	if after.Held == nil || !after.Held.To.IsZero() {
		after.Held = (&Stretch{From: p.Since, Missed: p.Missed}).follow(s.Held, s.Next, now)
	}
	after.WakeAt, after.Parked = now, true
	return after, progress(WriteHold, s, after)
}

// Release notes that such a pause does not hold it any more. lifted are those that have ended; with none of them,
// it ends now.
func Release(s Schedule, lifted job.Pauses, now time.Time) (Schedule, item.Write) {
	after := s
	if after.Held != nil && after.Held.To.IsZero() {
		held := *after.Held
		for _, p := range lifted {
			if last := p.LastHeld(); last.After(held.To) && !last.Before(held.From) && !last.After(now) {
				held.To = last
			}
		}
		if held.To.IsZero() {
			held.To = now
		}
		after.Held = &held
	}
	after.setWakeUp(now)
	return after, progress(WriteRelease, s, after)
}

// End removes the next time of a schedule that has reached max_runs.
func End(s Schedule, reason string, now time.Time) (Schedule, item.Write) {
	after := s
	after.Next, after.EndedBy, after.Held = time.Time{}, reason, nil
	after.noteState(s, now)
	after.setWakeUp(now)
	return after, progress(WriteEnd, s, after)
}

// NewlySpent reports whether calendars have reached their max_runs of which that is not noted yet.
func (s Schedule) NewlySpent(full []bool) bool {
	for n, is := range full {
		if is && (n >= len(s.Spent) || !s.Spent[n]) {
			return true
		}
	}
	return false
}

// Spend notes which calendars of a list have reached their max_runs: their times are none any more from Next on. If
// those that are left have no time, none is left; if all have reached it, the schedule has ended.
func Spend(s Schedule, full []bool, now time.Time) (Schedule, item.Write, error) {
	if !slices.Contains(full[:len(s.Calendars())], false) {
		after, w := End(s, job.CodeMaxRuns, now)
		return after, w, nil
	}
	after := s
	after.Spent = full
	cal, err := after.Coming()
	if err != nil {
		return s, item.Write{}, err
	}
	o, _ := cal.Next(s.Next.Add(-time.Millisecond))
	after.Next = o.NominalAt // zero for none
	after.noteState(s, now)
	after.setWakeUp(now)
	return after, progress(WriteSpend, s, after), nil
}

// Is returns the check, in a skip's transaction, that the schedule is as it was read.
func Is(s Schedule) item.Write {
	return item.Write{
		Ref: s.Ref(), Name: WriteCheck, Check: true,
		When: []item.All{{{Attr: "epoch", Op: item.Eq, Value: s.Epoch}}},
	}
}

// CountDead counts a job that died, once. Refused means that it was counted already, or that the
// epoch has changed: then it does not count.
func CountDead(s Schedule, id job.ID) item.Write {
	return item.Write{
		Ref: s.Ref(), Name: WriteCountDead, Set: map[string]any{"last_dead": string(id)},
		Add: map[string]int64{"failures": 1},
		When: []item.All{{{Attr: "epoch", Op: item.Eq, Value: s.Epoch}, notDeleted, {Attr: "last_dead", Op: item.Ne,
			Value: string(id)}}},
	}
}

// ForgetDead resets the count of failures in a row: a job has succeeded.
func ForgetDead(s Schedule) item.Write {
	return item.Write{
		Ref: s.Ref(), Name: WriteForgetDead, Set: map[string]any{"last_dead": nil, "failures": nil},
		When: []item.All{{{Attr: "epoch", Op: item.Eq, Value: s.Epoch}, {Attr: "failures", Op: item.Exists}}},
	}
}
