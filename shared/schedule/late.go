package schedule

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// A job keeps the rule under which it was made: overlap and catch-up. So an edit decides nothing about a time that was
// due before it.

// after returns how long after its due time a first attempt may start without being late.
func (c CatchUp) after() time.Duration { return cmp.Or(c.After, DefaultAfter) }

// letters are the policies as a row keeps them.
var letters = map[Policy]string{CatchUpNone: "n", CatchUpLast: "l", CatchUpAll: "a"}

// rule encodes what a job keeps of its schedule: policy, window and after in seconds, cap, overlap.
func (s Schedule) rule() string {
	c := s.CatchUp
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	return strings.Join([]string{letters[c.Policy], num(int64(c.Window / time.Second)),
		num(int64(c.after() / time.Second)), num(int64(c.Cap)), string(s.Overlap)}, ",")
}

// For returns the schedule with the rule that a job keeps. Jobs of an older version of Punctual keep none: the
// schedule's own counts.
func (s Schedule) For(r job.Row) Schedule {
	part := strings.Split(r.Rule, ",")
	if len(part) != 5 {
		return s
	}
	for policy, letter := range letters {
		if letter == part[0] {
			s.CatchUp.Policy = policy
		}
	}
	num := func(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
	s.CatchUp.Window = time.Duration(num(part[1])) * time.Second
	s.CatchUp.After = time.Duration(num(part[2])) * time.Second
	s.CatchUp.Cap = int(num(part[3]))
	s.Overlap = Overlap(part[4])
	return s
}

// countsFrom returns from when the wait of a job counts: its due time, or the end of what held it since. lifted are the
// pauses of its task, or of everything, that have ended.
func (s Schedule) countsFrom(r job.Row, lifted job.Pauses) time.Time {
	from := r.DueAt
	later := func(at time.Time) {
		if at.After(from) {
			from = at
		}
	}
	later(r.ReadyAt)
	for held := s.Held; held != nil; held = held.Before {
		later(held.To)
	}
	for _, p := range lifted {
		later(p.LastHeld())
	}
	return from
}

// Late reports whether a job that has not started is late: its start is so long past its due time that the catch-up
// policy decides. s is the schedule For the job. What a person asked for is never late.
func (s Schedule) Late(r job.Row, lifted job.Pauses, now time.Time) bool {
	return r.ScheduleID != "" && !r.Parked && now.Sub(s.countsFrom(r, lifted)) > s.CatchUp.after()
}

// Missed reports why a late job does not start, as far as no other job decides; ok is false if it may. With policy
// "last" the caller must then win [Schedule.CatchUpLast].
func (s Schedule) Missed(r job.Row, lifted job.Pauses, now time.Time) (why job.Reason, ok bool) {
	if !s.Late(r, lifted, now) {
		return job.Reason{}, false
	}
	c := s.CatchUp
	inside := now.Sub(s.countsFrom(r, lifted)) <= c.Window
	switch {
	case c.Policy == CatchUpNone:
		return s.lateReason(ReasonOutage, "and catch_up is none"), true
	case !inside:
		return s.lateReason(ReasonOutage, fmt.Sprintf("and the catch_up window of %s has passed", c.Window)), true
	case c.Policy == CatchUpAll && s.lateAfter(r, now) >= c.Cap:
		return s.lateReason(ReasonCap, fmt.Sprintf("and of those that are late the newest %d run", c.Cap)), true
	}
	return job.Reason{}, false
}

func (s Schedule) lateReason(code, why string) job.Reason {
	return job.Reason{Code: code,
		Message: fmt.Sprintf("it had not started %s after it was due, %s", s.CatchUp.after(), why)}
}

// lateAfter counts the times after that of a job which are late as well, up to the cap. It is 0 where the calendar has
// changed since the job was made.
func (s Schedule) lateAfter(r job.Row, now time.Time) (n int) {
	cal, err := s.Calendar()
	if err != nil || s.EditedAt.After(r.CreatedAt) {
		return 0
	}
	for o := range cal.After(r.NominalAt) {
		if n == s.CatchUp.Cap || now.Sub(o.NominalAt) <= s.CatchUp.after() {
			break
		}
		if now.Sub(o.DueAt) > s.CatchUp.after() { // calendars of a list have spreads of their own
			n++
		}
	}
	return n
}

// CaughtUp says which late job of a schedule started last under catch-up "last", and up to which due time the other
// late ones are missed.
type CaughtUp struct {
	Through time.Time // zero: none has yet
	By      job.ID
}

// CaughtUpRef returns the key of CaughtUp, in the claims table: workers write only claims.
func (k Key) CaughtUpRef() item.Ref { return item.Ref{Table: contract.Claims, PK: "late#" + k.ID()} }

// ParseCaughtUp decodes an item of CatchUpLast; nil is the zero one.
func ParseCaughtUp(i item.Item) CaughtUp {
	return CaughtUp{Through: i.Time("through"), By: job.ID(i.Str("by"))}
}

// Asks reports whether a late job needs CatchUpLast before it starts, by the rule that it keeps.
func (s Schedule) Asks(r job.Row, lifted job.Pauses, now time.Time) bool {
	return s.CatchUp.Policy == CatchUpLast && s.Late(r, lifted, now)
}

// Decides reports whether another job has decided about a late one: then it is missed.
func (c CaughtUp) Decides(r job.Row) bool { return c.By != r.ID && !r.DueAt.After(c.Through) }

// MissedForAnother is why a late job does not start under catch-up "last".
func (s Schedule) MissedForAnother(c CaughtUp) job.Reason {
	return s.lateReason(
		ReasonOutage,
		fmt.Sprintf("and of those that are late catch_up starts only one, which was %s", c.By),
	)
}

// CatchUpLast lets a late job start under catch-up "last": the other late ones that are due by now are missed. Refused
// means that another job has done the same since: read it and decide once more.
func (k Key) CatchUpLast(r job.Row, seen CaughtUp, now time.Time) item.Write {
	is := item.Cond{Attr: "through", Op: item.Missing}
	if !seen.Through.IsZero() {
		is = item.Cond{Attr: "through", Op: item.Eq, Value: seen.Through.UnixMilli()}
	}
	return item.Write{
		Ref: k.CaughtUpRef(), Name: WriteLateStart, When: []item.All{{is}},
		Set: map[string]any{"through": now.UnixMilli(), "by": string(r.ID),
			contract.AttrExpiresAt: now.Add(contract.ClaimKept + MaxCatchUpWindow).Unix()},
	}
}
