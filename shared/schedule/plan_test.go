package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// made returns a schedule that was created at that time.
func made(t *testing.T, cron string, at time.Time, change ...func(*Schedule)) Schedule {
	t.Helper()
	s := Schedule{
		Key: Key{"acme", "s"}, Spec: calendar.Spec{Cron: &cron}, CatchUp: DefaultCatchUp,
		Template: Template{Settings: job.Settings{Task: "echo", Executor: "echo", Pool: "short", Priority: job.Normal,
			Timeout: time.Minute,
			Retry:   job.DefaultRetry}},
	}
	for _, f := range change {
		f(&s)
	}
	s, _, err := Create(nil, s, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// walk promotes s at now until nothing is left, and returns what ran and what was recorded.
func walk(t *testing.T, s Schedule, now time.Time) (after Schedule, ran []time.Time, entries []Entry) {
	t.Helper()
	cal, err := s.Calendar()
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		if n > 10_000 {
			t.Fatal("promotion does not come to an end")
		}
		p := s.PlanNext(cal, now, nil)
		if len(p.Make)+len(p.Ledger) > maxTimes+maxEntries || len(p.Ledger) > maxEntries {
			t.Fatalf("one step makes %d jobs and %d entries", len(p.Make), len(p.Ledger))
		}
		for _, o := range p.Make {
			ran = append(ran, o.NominalAt)
		}
		entries = append(entries, p.Ledger...)
		s, _ = Advance(s, p, now)
		if !p.More {
			return s, ran, entries
		}
	}
}

// account verifies that each of the calendar's times after from, up to and including to, appears
// exactly once.
func account(t *testing.T, s Schedule, from, to time.Time, ran []time.Time, entries []Entry) {
	t.Helper()
	cal, err := s.Calendar()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(ran, time.Time.Compare)
	counted := 0
	for at := from; ; {
		o, ok := cal.Next(at)
		if !ok || o.NominalAt.After(to) {
			break
		}
		at = o.NominalAt
		n := 0
		if i, ok := slices.BinarySearchFunc(ran, at, time.Time.Compare); ok {
			n++
			if i+1 < len(ran) && ran[i+1].Equal(at) {
				n++
			}
		}
		for _, e := range entries {
			if !at.Before(e.From) && !at.After(e.To) {
				n++
				counted++
			}
		}
		if n != 1 {
			t.Fatalf("%s is accounted for %d times", at, n)
		}
	}
	sum := 0
	for _, e := range entries {
		sum += e.Count
	}
	if sum != counted {
		t.Errorf("entries count %d times and cover %d", sum, counted)
	}
}

//proof:of 11 13
func TestPlan_MakesTheTimesInsideTheHorizon(t *testing.T) {
	t.Parallel()
	s := made(t, "* * * * *", noon)
	after, ran, entries := walk(t, s, noon)
	if len(ran) != 30 || len(entries) != 0 || !after.Next.Equal(noon.Add(31*time.Minute)) ||
		!after.WakeAt.Equal(after.Next) {
		t.Errorf("made %d, recorded %v, next %s, wake %s", len(ran), entries, after.Next, after.WakeAt)
	}
	// The next pass, a minute later, makes exactly the jobs of the minute that entered.
	_, ran, _ = walk(t, after, noon.Add(time.Minute))
	if len(ran) != 1 || !ran[0].Equal(noon.Add(31*time.Minute)) {
		t.Errorf("a minute later: %v", ran)
	}
	// A distant time is evaluated once a day all the same.
	if s := made(t, "0 0 1 1 *", noon); !s.WakeAt.Equal(noon.Add(ReviewEvery)) {
		t.Errorf("a yearly schedule wakes at %s", s.WakeAt)
	}
}

func TestPlan_CatchesUpByPolicy(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		cron   string
		c      CatchUp
		outage time.Duration
		late   int // missed runs that are caught up
		reason []string
	}{
		{
			"policy none records every missed time as an outage",
			"* * * * *",
			CatchUp{Policy: CatchUpNone, Window: time.Hour, Cap: 100},
			3 * time.Hour,
			0,
			[]string{ReasonOutage},
		},
		{"policy last runs the last missed time", "* * * * *", DefaultCatchUp, 3 * time.Hour, 1,
			[]string{ReasonOutage}},
		{"policy last runs nothing outside its window", "0 0 * * *", DefaultCatchUp, 36 * time.Hour, 0,
			[]string{ReasonOutage}},
		{"policy last after three days of every second", "* * * * * *", DefaultCatchUp, 72 * time.Hour, 1,
			[]string{ReasonOutage}},
		{
			"policy all runs what is inside its window",
			"* * * * *",
			CatchUp{Policy: CatchUpAll, Window: 10 * time.Minute, Cap: 100},
			3 * time.Hour,
			9,
			[]string{ReasonOutage},
		},
		{
			"policy all runs no more than its cap",
			"* * * * *",
			CatchUp{Policy: CatchUpAll, Window: 24 * time.Hour, Cap: 100},
			3 * time.Hour,
			100,
			[]string{ReasonCap},
		},
		{
			//proof:of S15
			"policy all after fourteen days",
			"* * * * *",
			CatchUp{Policy: CatchUpAll, Window: 24 * time.Hour, Cap: 100},
			14 * 24 * time.Hour,
			100,
			[]string{ReasonOutage, ReasonCap},
		},
		{
			"policy all of every second with a cap over one step",
			"* * * * * *",
			CatchUp{Policy: CatchUpAll, Window: time.Hour, Cap: 1000},
			3 * time.Hour,
			1000,
			[]string{ReasonOutage, ReasonCap},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := made(t, c.cron, noon, func(s *Schedule) { s.CatchUp = c.c })
			s, ran, before := walk(t, s, noon)
			next := s.Next
			now := next.Add(c.outage)
			after, later, entries := walk(t, s, now)
			late := 0
			for _, at := range later {
				if at.Before(now.Add(-contract.PastAllowed)) {
					late++
				}
			}
			if late != c.late {
				t.Errorf("%d missed times were made up for, want %d", late, c.late)
			}
			for _, e := range entries {
				if e.Outcome != Missed || !slices.Contains(c.reason, e.Reason) || e.Why == "" {
					t.Errorf("recorded %+v", e)
				}
			}
			if c.name != "policy last after three days of every second" { // 259,200 times are verified below by count
				account(t, s, noon, Bound(now).Add(-time.Millisecond), append(ran, later...),
					append(before, entries...))
			}
			if !after.Next.After(now) {
				t.Errorf("next is %s at %s", after.Next, now)
			}
		})
	}
}

func TestPlan_RecordsNoTimeWithAJob(t *testing.T) {
	t.Parallel()
	s, _, _ := walk(t, made(t, "* * * * *", noon), noon)
	cal, _ := s.Calendar()
	has := map[time.Time]bool{s.Next: true, s.Next.Add(5 * time.Minute): true}
	p := s.PlanNext(cal, s.Next.Add(time.Hour), has)
	if len(p.Ledger) != 2 || !p.Ledger[0].From.Equal(s.Next.Add(time.Minute)) || p.Ledger[0].Count != 4 ||
		!p.Ledger[1].From.Equal(s.Next.Add(6*time.Minute)) {
		t.Errorf("recorded %+v", p.Ledger)
	}
}

func TestPause_DecidesAboutTheTimesThatPassed(t *testing.T) {
	t.Parallel()
	for missed, late := range map[string]int{MissedDrop: 0, MissedLast: 1, MissedAll: 100, "": 1} {
		t.Run("a pause with missed "+missed, func(t *testing.T) {
			t.Parallel()
			s, first, _ := walk(t, made(t, "* * * * *", noon), noon)
			at := noon.Add(10*time.Minute + 20*time.Second)
			s, _ = PauseSchedule(s, Pause{Missed: missed}, at)
			if s.Epoch != 2 || !s.Next.Equal(noon.Add(11*time.Minute)) || !s.WakeAt.IsZero() ||
				!s.Paused.EffectiveAt.Equal(at.Add(2*time.Second)) {
				t.Fatalf("paused: %+v", s)
			}
			end := at.Add(5 * time.Hour)
			s, _ = Resume(s, "", end)
			if s.Epoch != 3 || s.Paused != nil || !s.WakeAt.Equal(end) {
				t.Fatalf("resumed: %+v", s)
			}
			_, later, entries := walk(t, s, end)
			made := 0
			for _, at := range later {
				if !at.After(end) {
					made++
				}
			}
			if made != late {
				t.Errorf("%d of what passed under the pause runs, want %d", made, late)
			}
			for _, e := range entries {
				if e.Outcome != Skipped {
					t.Errorf("recorded %+v", e)
				}
			}
			var before []time.Time // what ran before the pause, without what is decided once more
			for _, at := range first {
				if at.Before(noon.Add(11 * time.Minute)) {
					before = append(before, at)
				}
			}
			account(t, s, noon, Bound(end).Add(-time.Millisecond), append(before, later...), entries)
		})
	}
}

func TestEdit_AccountsForEachTime(t *testing.T) {
	t.Parallel()
	s, _, _ := walk(t, made(t, "0 10 * * *", noon), noon)
	now := time.Date(2027, 3, 2, 9, 45, 0, 0, time.UTC)
	s, first, _ := walk(t, s, now)
	if len(first) != 1 {
		t.Fatalf("promoted %v", first)
	}
	edit := func(cron string, zone string, now time.Time) {
		t.Helper()
		edited := s
		edited.Spec = calendar.Spec{Cron: &cron}
		if zone != "" {
			edited.Spec.Timezone = &zone
		}
		var writes []item.Write
		var err error
		if s, writes, err = Edit(s, edited, nil, now); err != nil || len(writes) != 1 {
			t.Fatalf("%v, %d writes", err, len(writes))
		}
	}
	edit("0 15 * * *", "", now)
	edit("0 15 * * *", "Asia/Tokyo", now.Add(time.Minute))
	edit("0 16 * * *", "", now.Add(14*time.Minute+59*time.Second))
	if s.Epoch != 4 || !s.Next.Equal(time.Date(2027, 3, 2, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("epoch %d, next %s", s.Epoch, s.Next)
	}
	old := job.Row{Key: job.Key{Tenant: "acme"}, Status: job.Scheduled, Attempt: 1,
		ScheduleRef: job.ScheduleRef{Epoch: 1, ScheduleID: "s"}, NominalAt: first[0],
		DueAt: first[0]}
	if got := s.ValidityOf(old, false); got != Passed {
		t.Errorf("the job of the old time is %s", got)
	}
	if r := s.SkipReason(old); r.Code != job.CodeEdited {
		t.Errorf("its reason is %v", r)
	}
	old.Attempt = 2
	if got := s.ValidityOf(old, true); got != Current {
		t.Errorf("one that waits for its retry is %s", got)
	}
	// After an outage, an edit records what was not promoted.
	late := time.Date(2027, 3, 5, 17, 0, 0, 0, time.UTC)
	edited := s
	cron := "0 18 * * *"
	edited.Spec = calendar.Spec{Cron: &cron}
	_, writes, err := Edit(s, edited, nil, late)
	if err != nil || len(writes) != 2 {
		t.Fatalf("%v, %d writes", err, len(writes))
	}
	if e, err := ParseEntry(s.Key, writes[1].Put); err != nil || e.Count != 4 || e.Outcome != Superseded ||
		e.Reason != job.CodeEdited || e.Epoch != 4 {
		t.Errorf("recorded %+v, %v", e, err)
	}
}

func TestEdit_RecordsNoTimeWithAJob(t *testing.T) {
	t.Parallel()
	after := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	s := made(t, "* * * * *", noon)
	now := after(6).Add(time.Second)
	if got := s.Leaves(now); len(got) != 6 || !got[0].Equal(after(1)) || !got[5].Equal(after(6)) {
		t.Errorf("it leaves %v", got)
	}
	has := map[time.Time]bool{after(1): true, after(4): true}
	edited := s
	edited.Overlap = OverlapSkip
	_, byEdit, err := Edit(s, edited, has, now)
	if err != nil {
		t.Fatal(err)
	}
	_, byDelete := Delete(s, has, now)
	for how, writes := range map[string][]item.Write{"edited": byEdit, "deleted": byDelete} {
		var got []string
		for _, w := range writes[1:] {
			e, err := ParseEntry(s.Key, w.Put)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(e.From.Minute(), "-", e.To.Minute(), " ", e.Count))
		}
		if fmt.Sprint(got) != "[2-3 2 5-6 2]" {
			t.Errorf("%s: recorded %v", how, got)
		}
	}
	// More than one decision covers, all of the first with jobs: the times after them are recorded.
	now = after(maxTimes + 5)
	has = map[time.Time]bool{}
	for _, at := range s.Leaves(now) {
		has[at] = true
	}
	if _, writes := Delete(s, has, now); len(has) != maxTimes || len(writes) != 2 {
		t.Errorf("%d asked about, %d writes", len(has), len(writes))
	} else if e, err := ParseEntry(s.Key, writes[1].Put); err != nil || !e.From.Equal(after(maxTimes+1)) ||
		!e.To.Equal(now) || e.Count != 0 {
		t.Errorf("recorded %+v, %v", e, err)
	}
	if got := (Schedule{Key: s.Key}).Leaves(now); got != nil {
		t.Errorf("one without a calendar leaves %v", got)
	}
}

func TestEdit_KeepsTheJobThatWaitsForItsSpread(t *testing.T) {
	t.Parallel()
	spread := "5m"
	s := made(t, "0 * * * *", noon, func(s *Schedule) { s.Spec.Spread = &spread })
	s, _, _ = walk(t, s, noon.Add(40*time.Minute))
	cal, _ := s.Calendar()
	o, _ := cal.Next(noon)
	now := o.NominalAt.Add(o.DueAt.Sub(o.NominalAt) / 2)
	edited := s
	edited.Template.Priority = job.High
	s, _, err := Edit(s, edited, nil, now)
	if err != nil || !s.Next.Equal(o.NominalAt) || !s.AdoptThrough.Equal(now) {
		t.Fatalf("next %s, adopted through %s, %v", s.Next, s.AdoptThrough, err)
	}
	s, ran, _ := walk(t, s, now)
	if len(ran) != 1 || !ran[0].Equal(o.NominalAt) || !s.AdoptThrough.IsZero() {
		t.Errorf("ran %v, adopted through %s", ran, s.AdoptThrough)
	}
	// A calendar without that time drops it.
	cron := "30 * * * *"
	edited.Spec.Cron = &cron
	if s, _, _ = Edit(s, edited, nil, now); !s.Next.Equal(noon.Add(90 * time.Minute)) {
		t.Errorf("next is %s", s.Next)
	}
}

func TestPlan_RecordsWhatTheCalendarSkips(t *testing.T) {
	t.Parallel()
	weekly := []string{"sat", "sun"}
	s := made(t, "*/30 * * * *", noon, func(s *Schedule) {
		s.Spec.Exclude, s.Exclusions = []string{"weekend"}, calendar.Exclusions{"weekend": {Weekly: weekly}}
	})
	var ran []time.Time
	var entries []Entry
	now := noon
	for ; now.Before(noon.Add(8 * 24 * time.Hour)); now = now.Add(time.Minute) {
		if s.WakeAt.After(Bound(now)) {
			continue
		}
		var more []time.Time
		var recorded []Entry
		s, more, recorded = walk(t, s, now)
		ran, entries = append(ran, more...), append(entries, recorded...)
		for _, e := range recorded {
			if e.To.After(now) {
				t.Fatalf("recorded ahead of %s: %+v", now, e)
			}
			if e.Outcome != Skipped || e.Reason != calendar.SkipExcluded {
				t.Errorf("recorded %+v", e)
			}
		}
	}
	sum := 0
	for _, e := range entries {
		sum += e.Count
	}
	if sum != 2*48 || len(entries) > 10 {
		t.Errorf("%d excluded times in %d entries", sum, len(entries))
	}
	account(t, s, noon, now.Add(-time.Minute), ran, nil)
}

func TestPlan_ComputesTheNextTimeAnewUnderNewZoneRules(t *testing.T) {
	t.Parallel()
	zone := "America/Vancouver"
	for name, tt := range map[string]struct {
		by   time.Duration // how far the older rules had the next time from where it is
		now  time.Duration // after noon
		want int           // runs until a day later
	}{
		"an hour later":   {time.Hour, 20 * time.Hour, 1},
		"an hour earlier": {-time.Hour, 20 * time.Hour, 1},
		"where it is":     {0, 20 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := walk(t, made(t, "0 9 * * *", noon, func(s *Schedule) { s.Spec.Timezone = &zone }), noon)
			right := s.Next
			s.Rules, s.Next = "1999a", right.Add(tt.by)
			s, _, entries := walk(t, s, right.Add(-4*time.Hour))
			if !s.Next.Equal(right) || s.Rules != calendar.Zones().Version {
				t.Errorf("next is %s by %s, want %s", s.Next, s.Rules, right)
			}
			switch {
			case tt.by == 0 && len(entries) > 0:
				t.Errorf("the ledger has %+v", entries)
			case tt.by != 0 && (len(entries) != 1 || !entries[0].From.Equal(right.Add(tt.by)) ||
				entries[0].Outcome != Superseded || entries[0].Reason != ReasonZoneRules ||
				!strings.Contains(entries[0].Why, calendar.Zones().Version+" replace 1999a")):
				t.Errorf("the ledger has %+v", entries)
			}
			_, ran, _ := walk(t, s, right.Add(-10*time.Minute))
			if len(ran) != 1 || !ran[0].Equal(right) {
				t.Errorf("ran %v, want %s", ran, right)
			}
		})
	}
}

func TestPlan_DoesNotRunAgainWhatOlderZoneRulesHadEarlier(t *testing.T) {
	t.Parallel()
	zone := "America/Vancouver"
	s, _, _ := walk(t, made(t, "0 9 * * *", noon, func(s *Schedule) {
		s.Spec.Timezone = &zone
		s.CatchUp = CatchUp{Policy: CatchUpAll, Window: 24 * time.Hour, Cap: 10}
	}), noon)
	// By older rules it ran an hour before its time today, and would run so tomorrow.
	today := s.Next
	s.Rules, s.Seen, s.Next = "1999a", today.Add(-time.Hour), today.Add(23*time.Hour)
	s, ran, entries := walk(t, s, today.Add(12*time.Hour))
	if len(ran) != 0 || len(entries) != 1 || entries[0].Reason != ReasonZoneRules ||
		!s.Next.Equal(today.Add(24*time.Hour)) {
		t.Errorf("ran %v, next %s, ledger %+v", ran, s.Next, entries)
	}
	// Newer rules than those in use are another process's: they are left as they are.
	s.Rules, s.Next = "9999z", s.Next.Add(-time.Hour)
	if at := s.start(today.Add(12 * time.Hour)); !at.Equal(s.Next.Add(-time.Millisecond)) {
		t.Errorf("starts at %s", at)
	}
}

func TestSchedule_WakesUpBeforeATimeThatZoneRulesMayMove(t *testing.T) {
	t.Parallel()
	zone, utc := "Europe/Berlin", "UTC"
	for name, tt := range map[string]struct {
		cron   string
		zone   *string
		now    time.Time
		before time.Duration
	}{
		"in a zone":                {"0 3 * * *", &zone, noon, ReviewBefore},
		"in a zone, at the review": {"0 3 * * *", &zone, time.Date(2027, 3, 1, 22, 40, 0, 0, time.UTC), 0},
		"in UTC":                   {"0 3 * * *", &utc, noon, 0},
		"without a zone":           {"0 3 * * *", nil, noon, 0},
		"often":                    {"0 * * * *", &zone, noon, 0},
	} {
		s := made(t, tt.cron, tt.now, func(s *Schedule) { s.Spec.Timezone = tt.zone })
		if want := s.Next.Add(-tt.before); !s.WakeAt.Equal(want) {
			t.Errorf("%s: wakes up at %s, want %s", name, s.WakeAt, want)
		}
	}
}

//proof:of S07
func TestPlan_LeavesNoWakeUpAfterTheEnd(t *testing.T) {
	t.Parallel()
	end := noon.Add(2 * time.Minute).Format(time.RFC3339)
	s := made(t, "* * * * *", noon, func(s *Schedule) { s.Spec.EndAt = &end })
	s, ran, _ := walk(t, s, noon)
	if len(ran) != 1 || !s.Next.IsZero() || !s.WakeAt.IsZero() {
		t.Errorf("ran %v, next %s, wake %s", ran, s.Next, s.WakeAt)
	}
}

//proof:of S42
func TestKey_GivesANominalTimeTheSameJobUnderEveryEpoch(t *testing.T) {
	t.Parallel()
	s := made(t, "* * * * *", noon)
	o := calendar.Occurrence{NominalAt: noon.Add(time.Hour), DueAt: noon.Add(time.Hour)}
	a, _ := s.Job(o, 4, noon)
	s.Epoch++
	b, _ := s.Job(o, 4, noon)
	if a.ID != b.ID || a.Epoch == b.Epoch || !a.ID.At().Equal(o.NominalAt) {
		t.Errorf("%s and %s", a.ID, b.ID)
	}
	other := s
	other.Name = "t"
	if c, _ := other.Job(o, 4, noon); c.ID == a.ID {
		t.Error("two schedules share a job")
	}
	if i := a.Item(); i.Str(contract.AttrGroup) != "acme#s" ||
		i.Str(contract.AttrGroupSort) != "2027-03-01T13:00:00.000Z" {
		t.Errorf("group %v %v", i[contract.AttrGroup], i[contract.AttrGroupSort])
	}
	if a.Size() > contract.MaxRow {
		t.Errorf("%d bytes", a.Size())
	}
}

//proof:of 57
func TestOfJob_ReturnsTheOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status job.Status
		code   string
		begun  bool
		want   string
	}{
		{job.Scheduled, "", false, Pending}, {job.Running, "", true, Pending}, {job.Succeeded, "", true, Ran},
		{job.Dead, "x", true, Ran},
		{job.Skipped, job.CodeOverlap, false, Skipped}, {job.Skipped, job.CodePaused, false, Skipped},
		{job.Skipped, job.CodeEdited, false, Superseded},
		{job.Skipped, job.CodeDeleted, false, Superseded}, {job.Expired, job.CodeStartWithin, false, Missed},
		{job.Cancelled, job.CodeCancelled, false, Skipped},
		{job.Cancelled, job.CodeCancelled, true, Ran}, {job.Expired, job.CodeExpireAfter, true, Ran},
	} {
		r := job.Row{Status: c.status, Reason: job.Reason{Code: c.code}}
		if c.begun {
			r.StartedAt = noon
		}
		if got, _, _ := OfJob(r); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.status, c.code, got, c.want)
		}
	}
}

func ExampleEntry_Sort() {
	fmt.Println(Entry{From: noon, Epoch: 7}.Sort())
	// Output: 2027-03-01T12:00:00.000Z#7
}

func TestPlan_RecordsTheTimesThatAJumpOfTheClockTakesFromARuleInRealTime(t *testing.T) {
	t.Parallel()
	zone, before := "Europe/Berlin", time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC)
	s := made(t, "*/15 2 * * *", before, func(s *Schedule) { s.Spec.Timezone = &zone })
	if left := s.LeftOut(before.Add(24 * time.Hour)); len(left) != 1 || left[0].Reason != calendar.SkipMissingHour {
		t.Errorf("left out before promotion: %+v", left)
	}
	for now := before; now.Before(before.Add(48 * time.Hour)); now = now.Add(10 * time.Minute) {
		var ran []time.Time
		var entries []Entry
		s, ran, entries = walk(t, s, now)
		for _, e := range entries {
			if want := time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC); !e.From.Equal(want) || e.Outcome != Skipped ||
				e.Reason != calendar.SkipMissingHour {
				t.Errorf("entry %+v", e)
			}
		}
		if len(ran) > 0 && ran[0].Day() == 28 {
			t.Errorf("ran %v", ran)
		}
		if len(entries) > 0 {
			return
		}
	}
	t.Error("nothing is recorded")
}
