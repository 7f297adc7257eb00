package schedule

import (
	"strings"
	"testing"
	"time"

	"punctual/shared/job"
)

// minutely returns a schedule of every minute that was made an hour before midnight, and its job of midnight.
func minutely(t *testing.T, change ...func(*Schedule)) (Schedule, job.Row) {
	t.Helper()
	cron := "* * * * *"
	s := Schedule{Key: Key{"t", "s"}, CatchUp: DefaultCatchUp, Overlap: OverlapSkip}
	s.Spec.Cron = &cron
	for _, f := range change {
		f(&s)
	}
	s, _, err := Create(nil, s, midnight.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	cal, err := s.Calendar()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := cal.Next(midnight.Add(-time.Millisecond))
	r, _ := s.Job(o, 4, midnight.Add(-time.Minute))
	return s, r
}

var midnight = time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)

func TestLate_CountsOnlyOutagesAndBacklogs(t *testing.T) {
	t.Parallel()
	at := midnight.Add
	for name, c := range map[string]struct {
		change func(*Schedule, *job.Row)
		lifted job.Pauses
		now    time.Duration
		late   bool
	}{
		"a minute past due it is not late": {nil, nil, time.Minute, false},
		"after that it is":                 {nil, nil, time.Minute + time.Millisecond, true},
		"after moves that": {func(s *Schedule,
			r *job.Row) {
			r.Rule = "l,3600,300,100,allow"
		}, nil, 5 * time.Minute, false},
		"to later": {func(s *Schedule,
			r *job.Row) {
			r.Rule = "l,3600,300,100,allow"
		}, nil, 301 * time.Second, true},
		"an old row takes the schedule's own": {func(s *Schedule, r *job.Row) {
			r.Rule, s.CatchUp.After = "",
				time.Hour
		}, nil, time.Hour, false},
		"time parked does not count": {func(_ *Schedule, r *job.Row) { r.ReadyAt = at(time.Hour) },
			nil, 61 * time.Minute, false},
		"time after it does": {func(_ *Schedule, r *job.Row) { r.ReadyAt = at(time.Hour) },
			nil, 62 * time.Minute, true},
		"one that is parked is not late": {func(_ *Schedule, r *job.Row) { r.Parked = true }, nil,
			time.Hour, false},
		"a pause of the schedule does not count": {func(s *Schedule,
			_ *job.Row) {
			s.Held = &Stretch{From: at(time.Second), To: at(time.Hour)}
		}, nil, 61 * time.Minute, false},
		"a pause of its task does not count": {nil, job.Pauses{{Until: at(time.Hour)}}, 60*time.Minute +
			59*time.Second, false},
		"a pause that was over before due says nothing": {nil, job.Pauses{{Until: at(-time.Hour)}}, 2 * time.Minute,
			true},
		"what a person asked for is never late": {func(_ *Schedule, r *job.Row) {
			r.ScheduleID,
				r.ManualOf = "", "s"
		}, nil, time.Hour, false},
	} {
		s, r := minutely(t)
		if c.change != nil {
			c.change(&s, &r)
		}
		if got := s.For(r).Late(r, c.lifted, at(c.now)); got != c.late {
			t.Errorf("%s: %v", name, got)
		}
	}
}

//proof:of F72
func TestMissed_AppliesTheCatchUpOfTheJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy CatchUp
		after  time.Duration // of the start, past due
		code   string        // "": it may start
		asks   bool
	}{
		"none, in time": {CatchUp{Policy: CatchUpNone, Window: time.Hour, Cap: 1}, time.Minute, "",
			false},
		"none, late": {CatchUp{Policy: CatchUpNone, Window: time.Hour, Cap: 1}, 61 * time.Second,
			ReasonOutage, false},
		"last, late":              {DefaultCatchUp, 2 * time.Minute, "", true},
		"last, beyond the window": {DefaultCatchUp, 61 * time.Minute, ReasonOutage, true},
		"all, late": {CatchUp{Policy: CatchUpAll, Window: time.Hour, Cap: 100}, 50 * time.Minute,
			"", false},
		"all, beyond the window": {CatchUp{Policy: CatchUpAll, Window: time.Hour, Cap: 100}, 61 * time.Minute,
			ReasonOutage, false},
		"all, within the cap": {CatchUp{Policy: CatchUpAll, Window: time.Hour, Cap: 3}, 3*time.Minute +
			time.Second, "", false},
		"all, of which newer ones run": {CatchUp{Policy: CatchUpAll, Window: time.Hour, Cap: 3}, 4*time.Minute +
			time.Second, ReasonCap, false},
	} {
		s, r := minutely(t, func(s *Schedule) { s.CatchUp = c.policy })
		s.CatchUp = CatchUp{Policy: CatchUpNone} // an edit since then changes nothing
		now := midnight.Add(c.after)
		why, missed := s.For(r).Missed(r, nil, now)
		if missed != (c.code != "") || why.Code != c.code || s.For(r).Asks(r, nil, now) != c.asks {
			t.Errorf("%s: missed %v, %+v", name, missed, why)
		}
		if missed {
			row, _ := job.Skip(r, why, now)
			if outcome, reason, _ := OfJob(row); outcome != Missed || reason != c.code {
				t.Errorf("%s: the ledger says %s, %s", name, outcome, reason)
			}
		}
	}
}

func TestCaughtUp_MissesTheOtherLateOnesThatWereDue(t *testing.T) {
	t.Parallel()
	_, r := minutely(t)
	for name, c := range map[string]struct {
		seen CaughtUp
		want bool
	}{
		"none has started yet":            {CaughtUp{}, false},
		"another has, after it was due":   {CaughtUp{midnight.Add(time.Second), "x"}, true},
		"another has, before it was due":  {CaughtUp{midnight.Add(-time.Second), "x"}, false},
		"it is the one that has":          {CaughtUp{midnight.Add(time.Second), r.ID}, false},
		"another has, when it became due": {CaughtUp{midnight, "x"}, true},
	} {
		if got := c.seen.Decides(r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A job keeps its rule in less than 48 bytes, whatever that says.
func TestFor_ReadsTheRuleThatAJobKeeps(t *testing.T) {
	t.Parallel()
	for _, c := range []CatchUp{DefaultCatchUp, {CatchUpAll, MaxCatchUpWindow, MaxCatchUpCap, MaxCatchUpAfter},
		{CatchUpNone, time.Second, 1, 2 * time.Minute}} {
		for _, o := range Overlaps {
			s := Schedule{CatchUp: c, Overlap: o}
			r := job.Row{ScheduleRef: job.ScheduleRef{Rule: s.rule()}}
			got := Schedule{}.For(r)
			got.CatchUp.After = max(got.CatchUp.After, 0)
			if got.Overlap != o || got.CatchUp.Policy != c.Policy || got.CatchUp.Window != c.Window ||
				got.CatchUp.Cap != c.Cap || got.CatchUp.after() != c.after() || len(r.Rule) > 44 {
				t.Errorf("%q is read as %+v, %s", r.Rule, got.CatchUp, got.Overlap)
			}
		}
	}
	own := Schedule{CatchUp: DefaultCatchUp, Overlap: OverlapSkip}
	unread := job.Row{ScheduleRef: job.ScheduleRef{Rule: "?"}}
	if got := own.For(unread); got.Overlap != OverlapSkip || got.CatchUp != DefaultCatchUp {
		t.Errorf("an unreadable rule is read as %+v", got)
	}
}

//proof:of F73
func TestValidity_DecidesNothingThatWasDueBefore(t *testing.T) {
	t.Parallel()
	sec := func(n int) time.Time { return midnight.Add(time.Duration(n) * time.Second) }
	edit := func(s Schedule, at time.Time) Schedule {
		after, _, err := Edit(s, s, nil, at)
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	s, r := minutely(t)
	s.Next = sec(600)
	for name, c := range map[string]struct {
		s    Schedule
		want Validity
	}{
		"an edit after it was due":             {edit(s, sec(2)), Current},
		"an edit at its due time":              {edit(s, sec(0)), Current},
		"an edit before it was due":            {edit(s, sec(-1)), Passed},
		"an edit before, and another after it": {edit(edit(s, sec(-1)), sec(2)), Passed},
		"two edits after it":                   {edit(edit(s, sec(2)), sec(3)), Current},
	} {
		c.s.Next = sec(600)
		if got := c.s.ValidityOf(r, false); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	paused, _ := PauseSchedule(s, Pause{Missed: MissedDrop}, sec(2))
	if got := paused.ValidityOf(r, false); got != IsPaused {
		t.Errorf("while paused: %s", got)
	}
	resumed, _ := Resume(paused, "", sec(500))
	if got := resumed.ValidityOf(r, false); got != Current || resumed.Held.holds(r.DueAt) {
		t.Errorf("after the pause: %s", got)
	}
	if !resumed.Held.holds(sec(60)) {
		t.Error("a time under the pause is not held by it")
	}
	deleted, _ := Delete(s, nil, sec(2))
	repeated, _, err := Create(&deleted, s, sec(3))
	if err != nil || deleted.ValidityOf(r, false) != IsDeleted || repeated.ValidityOf(r, false) == Current {
		t.Errorf("deleted it is %s, made anew %s, %v", deleted.ValidityOf(r, false), repeated.ValidityOf(r, false), err)
	}
	for range 40 {
		s = edit(s, sec(9))
	}
	read, err := Parse(s.Item())
	if err != nil || len(read.Raised) != maxRaised || !read.Raised[0].Equal(sec(9)) {
		t.Errorf("read %d raises, %v", len(read.Raised), err)
	}
	if n := len(s.Item().Str("raised")); n > 500 || strings.HasSuffix(s.Item().Str("raised"), ",") {
		t.Errorf("they take %d bytes", n)
	}
}
