package schedule

import (
	"fmt"
	"slices"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/job"
)

const (
	// maxTimes bounds the nominal times of one decision.
	maxTimes = 2000
	// maxEntries bounds the ledger entries of one decision: they share a transaction.
	maxEntries = 90
)

// Plan is one step of promotion: what to make jobs of, what to record, and the schedule's next
// time. The jobs are put first, then Advance is written.
type Plan struct {
	Make   []calendar.Occurrence // oldest first; put, or adopted from an older epoch
	Ledger []Entry               // recorded in the transaction that advances
	Passed []time.Time           // the times of Ledger, oldest first, without those that the calendar skips
	Next   time.Time             // zero: the calendar has ended
	Seen   time.Time
	More   bool // there is more to do: plan once more after Advance
}

// PlanNext plans the next step of promotion at now. cal is s.Coming(). The schedule is active:
// neither paused nor deleted nor held. has says which times have jobs already: those are not
// recorded. It may be nil, and matters only where a plan has Passed some.
func (s Schedule) PlanNext(cal calendar.Union, now time.Time, has map[time.Time]bool) Plan {
	return s.planUntil(cal, Bound(now), now, has)
}

// PlanHeld plans the next step by which the times up to now are decided while a pause holds the schedule: as if the
// pause ended now. It comes before an edit, so that the edit does not decide about them.
func (s Schedule) PlanHeld(cal calendar.Union, now time.Time, has map[time.Time]bool) Plan {
	return s.planUntil(cal, now.Add(time.Millisecond), now, has)
}

// HoldsTimes reports whether a pause, of the schedule or of its task, holds times up to now that are not decided.
func (s Schedule) HoldsTimes(now time.Time) bool {
	held := s.Paused != nil || s.Parked
	return held && !s.Deleted() && !s.Next.IsZero() && !s.Next.After(now)
}

// planUntil plans a step that ends before the bound.
func (s Schedule) planUntil(cal calendar.Union, bound, now time.Time, has map[time.Time]bool) Plan {
	r := recorder{of: s, cal: cal, now: now}
	p := Plan{Next: s.Next, Seen: s.Seen}
	list, next, whole := s.upcoming(cal, bound, now)
	list, next, whole = s.decideTimes(&r, &p, list, next, whole, has, now)
	p.Next, p.More = next, !whole
	s.leftOut(&r, &p, cal, list, now)
	s.moved(&r, now)
	p.Ledger = r.entries
	return p
}

// renewed reports whether Next was computed by older zone rules than those in use. Rules that are newer than those in
// use are another process's, which has been renewed before this one: it computes Next again after this one.
func (s Schedule) renewed() bool { return s.Rules != "" && s.Rules < calendar.Zones().Version }

// start returns where the nominal times begin that are not promoted. Under newer zone rules that is now: what lies
// before was promoted by the rules of its time.
func (s Schedule) start(now time.Time) time.Time {
	at := s.Next.Add(-time.Millisecond)
	if s.renewed() && now.Before(at) {
		return now
	}
	return at
}

// moved records that the next time, as older zone rules had it, is none any more.
func (s Schedule) moved(r *recorder, now time.Time) {
	if !s.renewed() || !s.Next.After(now) {
		return
	}
	at := func(e Entry) bool { return e.From.Equal(s.Next) }
	if o, ok := r.cal.Next(s.Next.Add(-time.Millisecond)); ok && o.NominalAt.Equal(s.Next) ||
		slices.ContainsFunc(r.entries, at) {
		return
	}
	then := "there is no next time"
	if o, ok := r.cal.Next(now); ok {
		then = "the next time is " + o.Local
	}
	r.add(s.Next, Superseded, ReasonZoneRules, fmt.Sprintf("the time zone rules %s replace %s, and by them %s",
		calendar.Zones().Version, s.Rules, then), false)
}

// upcoming returns the nominal times before the bound, at most maxTimes; next is the time after
// them, zero for none. whole says that these are all.
func (s Schedule) upcoming(cal calendar.Union, bound, now time.Time) (list []calendar.Occurrence, next time.Time,
	whole bool) {
	if s.Next.IsZero() {
		return nil, time.Time{}, true
	}
	for o := range cal.After(s.start(now)) {
		if !o.NominalAt.Before(bound) {
			return list, o.NominalAt, true
		}
		list = append(list, o)
		if len(list) > maxTimes+s.CatchUp.Cap || len(list) > maxTimes && !s.missed(o, now) {
			return list, time.Time{}, false // only missed times depend on what follows them
		}
	}
	return list, time.Time{}, true
}

// missed reports whether a time did not run when it was due: no promotion made it a job in time, or
// it fell due under a pause, however short.
func (s Schedule) missed(o calendar.Occurrence, now time.Time) bool {
	return now.Sub(o.DueAt) > s.CatchUp.after() || s.Held.holds(o.DueAt) && !o.DueAt.After(now)
}

// decideTimes decides about the times, as many as one step may, and returns the first that is left as the
// next time.
func (s Schedule) decideTimes(r *recorder, p *Plan, list []calendar.Occurrence, next time.Time, whole bool,
	has map[time.Time]bool, now time.Time) (decided []calendar.Occurrence, then time.Time, all bool) {
	runs := s.kept(list, now)
	before := false // whether the previous time was recorded
	for n, o := range list {
		if n == maxTimes || len(r.entries) >= maxEntries {
			return list[:n], o.NominalAt, false
		}
		if runs[n] {
			p.Make = append(p.Make, o)
		}
		if runs[n] || has[o.NominalAt] || !o.NominalAt.After(s.AdoptThrough) {
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

// policyFor returns the policy for a missed time: that of the pause it fell due under, or the
// catch-up policy.
func (s Schedule) policyFor(o calendar.Occurrence) (c CatchUp, paused bool) {
	c = s.CatchUp
	missed, held := s.Held.policyAt(o.DueAt, c.Policy)
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

// forever is a window that includes every time.
const forever = 1 << 62

// kept returns which of the times run. Missed ones are counted from the newest: where the list was
// cut, more than one step decides follow.
func (s Schedule) kept(list []calendar.Occurrence, now time.Time) []bool {
	runs := make([]bool, len(list))
	later := map[bool]int{} // missed times that follow, by whether a pause held them
	for n := len(list) - 1; n >= 0; n-- {
		o := list[n]
		if !s.missed(o, now) {
			runs[n] = true
			continue
		}
		c, paused := s.policyFor(o)
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

// given returns why a missed time does not run.
func (s Schedule) given(o calendar.Occurrence, now time.Time) (outcome, reason, why string) {
	c, paused := s.policyFor(o)
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

// leftOut records what the calendar itself skipped up to the end of this step, but not after now:
// an edit may change it.
func (s Schedule) leftOut(r *recorder, p *Plan, cal calendar.Union, decided []calendar.Occurrence, now time.Time) {
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
	if !cal.LeavesOut() {
		p.Seen = to
		return
	}
	free := maxEntries - len(r.entries)
	if free <= 0 {
		p.More = true
		return
	}
	skips, through := cal.Skipped(s.Seen, to, maxTimes)
	own := recorder{of: r.of, cal: cal, now: now}
	own.skips(skips)
	if len(own.entries) > free {
		own.entries = own.entries[:free]
		through = own.entries[free-1].To
	}
	r.entries = append(r.entries, own.entries...)
	p.Seen = through
	if through.Before(to) {
		p.More = true
	}
}
