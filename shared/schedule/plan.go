package schedule

import (
	"fmt"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/job"
)

const (
	// maxLooks bounds the nominal times that one decision is about.
	maxLooks = 2000
	// maxEntries bounds the ledger entries of one decision: they share a transaction.
	maxEntries = 90
)

// Plan is one step of promotion: what to make jobs of, what to record, and where that leaves
// the schedule. Jobs come first, then Advance.
type Plan struct {
	Make   []calendar.Occurrence // oldest first; put, or adopted from an older epoch
	Ledger []Entry               // recorded in the transaction that advances
	Passed []time.Time           // what Ledger speaks of, oldest first, but for what the calendar leaves out
	Next   time.Time             // zero: the calendar has come to its end
	Seen   time.Time
	More   bool // the step saw less than there is: plan again after Advance
}

// mayLeaveOut says whether the calendar can leave out times of its own.
func mayLeaveOut(s calendar.Spec) bool {
	return len(s.Exclude) > 0 || s.MissingHour != nil && *s.MissingHour == "skip"
}

// PlanNext plans the next step of promotion at now. cal is s.Calendar(). The schedule is
// active: neither paused nor deleted nor held. has, if not nil, says of which times there are
// jobs already: those are not recorded. It is worth asking only where a plan has Passed some.
func (s Schedule) PlanNext(cal calendar.Calendar, now time.Time, has map[time.Time]bool) Plan {
	r := recorder{of: s, cal: cal, now: now}
	p := Plan{Next: s.Next, Seen: s.Seen}
	list, next, whole := s.upcoming(cal, now)
	list, next, whole = s.judge(&r, &p, list, next, whole, has, now)
	p.Next, p.More = next, !whole
	s.leftOut(&r, &p, cal, list, now)
	p.Ledger = r.entries
	return p
}

// start is where the nominal times begin that are not promoted. Where the zone's rules have
// changed since the next time was derived, it is derived anew.
func (s Schedule) start() time.Time {
	at := s.Next.Add(-time.Millisecond)
	if s.Rules != "" && s.Rules != calendar.ZoneRules && !s.Seen.IsZero() && s.Seen.Before(at) {
		at = s.Seen
	}
	return at
}

// upcoming lists the nominal times before the bound, as many as may be looked at; next is the
// one that follows them, zero for none. whole says that they are all.
func (s Schedule) upcoming(cal calendar.Calendar, now time.Time) (list []calendar.Occurrence, next time.Time,
	whole bool) {
	if s.Next.IsZero() {
		return nil, time.Time{}, true
	}
	bound, at := Bound(now), s.start()
	for range maxLooks + s.CatchUp.Cap + 1 {
		o, ok := cal.Next(at)
		if !ok {
			return list, time.Time{}, true
		}
		if !o.NominalAt.Before(bound) {
			return list, o.NominalAt, true
		}
		list, at = append(list, o), o.NominalAt
		if len(list) > maxLooks && !s.missed(o, now) {
			break // only what was missed is decided by what follows it
		}
	}
	return list, time.Time{}, false
}

// missed says that the time did not run when it was due: nobody came in time to make a job of it,
// or it fell due under a pause, however short that was.
func (s Schedule) missed(o calendar.Occurrence, now time.Time) bool {
	return o.DueAt.Before(now.Add(-contract.PastAllowed)) || s.Held.holds(o.DueAt) && !o.DueAt.After(now)
}

// judge decides about each of the times, as many as one step may, and returns those it did
// not come to as the next time.
func (s Schedule) judge(r *recorder, p *Plan, list []calendar.Occurrence, next time.Time, whole bool,
	has map[time.Time]bool, now time.Time) (decided []calendar.Occurrence, then time.Time, all bool) {
	runs := s.kept(list, now)
	before := false // whether the time before was recorded
	for n, o := range list {
		if n == maxLooks || len(r.entries) >= maxEntries {
			return list[:n], o.NominalAt, false
		}
		if runs[n] {
			p.Make = append(p.Make, o)
		}
		if runs[n] || has[o.NominalAt] || !o.NominalAt.After(s.Fresh) {
			before = false
			continue
		}
		joined := before && r.neighbours(list[n-1].NominalAt, o.NominalAt)
		before = true
		outcome, reason, why := s.given(o, now)
		r.add(o.NominalAt, outcome, reason, why, joined)
		p.Passed = append(p.Passed, o.NominalAt)
	}
	return list, next, whole
}

// word is what decides about a missed time: the pause it fell due under, or the catch-up.
func (s Schedule) word(o calendar.Occurrence) (c CatchUp, paused bool) {
	c = s.CatchUp
	missed, held := s.Held.word(o.DueAt)
	if !held {
		return c, false
	}
	switch missed {
	case MissedDrop:
		return CatchUp{Policy: CatchUpNone}, true
	case MissedLast:
		return CatchUp{Policy: CatchUpLast, Window: forever}, true
	case MissedAll:
		return CatchUp{Policy: CatchUpAll, Window: forever, Cap: c.Cap}, true
	}
	return c, true
}

// forever is a window that everything is inside of.
const forever = 1 << 62

// kept says which of the times run. Those missed are looked at from the newest: where the list
// was cut there are enough of them behind what one step decides.
func (s Schedule) kept(list []calendar.Occurrence, now time.Time) []bool {
	runs := make([]bool, len(list))
	later := map[bool]int{} // missed times that follow, by whether a pause held them
	for n := len(list) - 1; n >= 0; n-- {
		o := list[n]
		if !s.missed(o, now) {
			runs[n] = true
			continue
		}
		c, paused := s.word(o)
		inside := now.Sub(o.DueAt) <= c.Window
		switch c.Policy {
		case CatchUpLast:
			runs[n] = inside && later[paused] == 0
		case CatchUpAll:
			runs[n] = inside && later[paused] < c.Cap
		}
		later[paused]++
	}
	return runs
}

// given says why a missed time does not run.
func (s Schedule) given(o calendar.Occurrence, now time.Time) (outcome, reason, why string) {
	c, paused := s.word(o)
	capped := c.Policy == CatchUpAll && now.Sub(o.DueAt) <= c.Window
	switch {
	case paused && capped:
		return Skipped, ReasonCap, fmt.Sprintf("it passed under a pause, of which the newest %d run", c.Cap)
	case paused:
		return Skipped, job.CodePaused, "it passed under a pause"
	case capped:
		return Missed, ReasonCap,
			fmt.Sprintf("nobody was there to make a job of it in time; of those missed the newest %d run", c.Cap)
	}
	return Missed, ReasonOutage, lateBy(c.Policy, c)
}

// leftOut records what the calendar itself left out up to where this step has come, but not
// ahead of now: an edit may still come.
func (s Schedule) leftOut(r *recorder, p *Plan, cal calendar.Calendar, decided []calendar.Occurrence, now time.Time) {
	to := now
	if p.More {
		to = s.Next.Add(-time.Millisecond)
		if len(decided) > 0 {
			to = decided[len(decided)-1].NominalAt
		}
		if to.After(now) {
			to = now
		}
	}
	if !to.After(s.Seen) {
		return
	}
	if !mayLeaveOut(s.Spec) {
		p.Seen = to
		return
	}
	room := maxEntries - len(r.entries)
	if room <= 0 {
		p.More = true
		return
	}
	skips, through := cal.Skipped(s.Seen, to, maxLooks)
	own := recorder{of: r.of, cal: cal, now: now}
	own.skips(skips)
	if len(own.entries) > room {
		own.entries = own.entries[:room]
		through = own.entries[room-1].To
	}
	r.entries = append(r.entries, own.entries...)
	p.Seen = through
	if through.Before(to) {
		p.More = true
	}
}
