package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/item"
	"punctual/shared/job"
)

// listed returns a schedule with a list of calendars that was created at that time.
func listed(t *testing.T, at time.Time, specs ...calendar.Spec) Schedule {
	t.Helper()
	return made(t, "", at, func(s *Schedule) { s.Spec, s.Specs = calendar.Spec{}, specs })
}

func TestSchedule_OfOneCalendarIsStoredAsBefore(t *testing.T) {
	t.Parallel()
	s := made(t, "0 * * * *", noon)
	body := s.Item().Str("body")
	if want := `{"calendar":{"cron":"0 * * * *"},"job":{`; body[:len(want)] != want {
		t.Errorf("it is stored as %s", body)
	}
	if _, ok := s.Item()["spent"]; ok {
		t.Error("it has an attribute that only a list has")
	}
}

func TestSchedule_OfAListIsReadAsWritten(t *testing.T) {
	t.Parallel()
	s := listed(t, noon, calendar.Spec{Cron: new("0 * * * *"), MaxRuns: new(3)}, calendar.Spec{Every: new("1d")})
	s.Spent = []bool{true, false, false, false, false, false, false, false, false, false}
	read, err := Parse(s.Item())
	if err != nil || fmt.Sprint(read.Item()) != fmt.Sprint(s.Item()) || len(read.Specs) != 2 ||
		!slices.Equal(read.Spent, s.Spent) {
		t.Errorf("%+v, %v", read, err)
	}
	bad := s.Item()
	bad["spent"] = "11"
	if _, err := Parse(bad); err == nil {
		t.Error("a calendar that cannot be there is read")
	}
}

// Promotion of a list makes each time of the union once, whatever policies say and however long no process promoted.
func TestPlan_AccountsForEachTimeOfAListOnce(t *testing.T) {
	t.Parallel()
	crons := []string{"*/7 * * * *", "0 * * * *", "30 2 * * *", "*/30 1-4 * * *", "0 2 * * 1-5", "15,45 * * * *"}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York"}
	for seed := range uint64(60) {
		d := rand.New(rand.NewPCG(seed, 1))
		at := time.Date(2027, 3, 27, 20, 0, 0, 0, time.UTC)
		var specs []calendar.Spec
		for range 1 + d.IntN(5) {
			spec := calendar.Spec{Cron: &crons[d.IntN(len(crons))], Timezone: &zones[d.IntN(len(zones))]}
			if d.IntN(3) == 0 {
				spec.Exclude = []string{"sunday"}
			}
			specs = append(specs, spec)
		}
		s := made(t, "", at, func(s *Schedule) {
			s.Spec, s.Specs = calendar.Spec{}, specs
			s.Exclusions = calendar.Exclusions{"sunday": {Weekly: []string{"sun"}}}
			s.CatchUp = CatchUp{Policy: Policies[d.IntN(len(Policies))], Window: 3 * time.Hour, Cap: 3}
		})
		var ran []time.Time
		var entries []Entry
		now := at
		for range 4 {
			now = now.Add(time.Duration(d.IntN(12*60)) * time.Minute)
			after, more, records := walk(t, s, now)
			s, ran, entries = after, append(ran, more...), append(entries, records...)
		}
		skips := 0
		entries = slices.DeleteFunc(entries, func(e Entry) bool {
			skip := e.Reason == calendar.SkipExcluded || e.Reason == calendar.SkipMissingHour
			if skip {
				skips += e.Count
			}
			return skip
		})
		account(t, s, at, now, ran, entries)
		cal, err := s.Calendar()
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := cal.Skipped(at, now, 1<<20); skips != len(want) {
			t.Errorf("seed %d: %d times are recorded as skipped, want %d", seed, skips, len(want))
		}
	}
}

func TestDrops_CountsTimesOfAllCalendars(t *testing.T) {
	t.Parallel()
	s := listed(t, noon, calendar.Spec{Cron: new("0 * * * *"), Spread: new("59m")},
		calendar.Spec{Cron: new("30 * * * *")})
	last := noon.Add(4 * time.Hour)
	cal, _ := s.Calendar()
	var kept []string
	for o := range cal.After(noon) {
		if o.NominalAt.After(last) {
			break
		}
		r := job.Row{NominalAt: o.NominalAt, DueAt: o.DueAt}
		if !s.Drops(MissedLast, last, r) && !o.DueAt.After(last) {
			kept = append(kept, o.NominalAt.Format("15:04"))
		}
	}
	if fmt.Sprint(kept) != "[15:30]" {
		t.Errorf("of the times under the pause run %v", kept)
	}
}

func TestCountRun_CountsForEachCalendarThatHasTheTime(t *testing.T) {
	t.Parallel()
	s := listed(t, noon, calendar.Spec{Cron: new("0 * * * *"), MaxRuns: new(2)},
		calendar.Spec{Cron: new("0 15 * * *"), MaxRuns: new(1)}, calendar.Spec{Cron: new("30 * * * *")})
	counts := func(at time.Time, full ...bool) (list []int) {
		for n, w := range s.CountRun(job.Row{Key: job.Key{ID: "A"}, NominalAt: at}, full) {
			for position := range s.Specs {
				if n > 0 && w.Ref == s.RunsRef(position) {
					list = append(list, position)
				}
			}
		}
		return list
	}
	three, one := noon.Add(3*time.Hour), noon.Add(time.Hour)
	half, never := noon.Add(30*time.Minute), noon.Add(time.Minute)
	for name, c := range map[string]struct {
		at      time.Time
		full    []bool
		counted []int
		may     bool
	}{
		"of two":                       {three, []bool{false, false, false}, []int{0, 1}, true},
		"of two, the first full":       {three, []bool{true, false, false}, []int{1}, true},
		"of two, both full":            {three, []bool{true, true, false}, nil, false},
		"of one":                       {one, []bool{false, true, false}, []int{0}, true},
		"of one that is full":          {one, []bool{true, false, false}, nil, false},
		"of one that has no max_runs":  {half, []bool{true, true, false}, nil, true},
		"of none, from before an edit": {never, []bool{true, true, false}, nil, true},
	} {
		if got := counts(c.at, c.full...); !slices.Equal(got, c.counted) || s.MayRun(c.at, c.full) != c.may {
			t.Errorf("a time %s counts for %v, may run %v", name, got, s.MayRun(c.at, c.full))
		}
	}
	writes := s.CountRun(job.Row{Key: job.Key{ID: "A"}, NominalAt: three}, make([]bool, 3))
	refused := &item.Refused{Olds: map[int]item.Item{2: {"runs": int64(1)}}}
	if full := s.FullBy(make([]bool, 3), writes, refused); !slices.Equal(full, []bool{false, true, false}) {
		t.Errorf("full are %v", full)
	}
}

func TestSpend_LeavesTheTimesOfTheOtherCalendars(t *testing.T) {
	t.Parallel()
	hourly, daily := calendar.Spec{Cron: new("0 * * * *"), MaxRuns: new(1)}, calendar.Spec{Cron: new("30 9 * * *")}
	s := listed(t, noon, hourly, daily)
	after, _, err := Spend(s, []bool{true, false}, noon)
	if err != nil || !after.Next.Equal(time.Date(2027, 3, 2, 9, 30, 0, 0, time.UTC)) || after.EndedBy != "" {
		t.Errorf("next is %s, ended by %q, %v", after.Next, after.EndedBy, err)
	}
	if after.NewlySpent([]bool{true, false}) || !after.NewlySpent([]bool{true, true}) {
		t.Error("what is spent is not noted")
	}
	all, _, err := Spend(after, []bool{true, true}, noon)
	if err != nil || !all.Next.IsZero() || all.EndedBy != job.CodeMaxRuns {
		t.Errorf("next is %s, ended by %q, %v", all.Next, all.EndedBy, err)
	}
	edited, _, err := Edit(after, s, nil, noon)
	if err != nil || edited.Spent != nil || !edited.Next.Equal(noon.Add(time.Hour)) {
		t.Errorf("after an edit next is %s, spent %v, %v", edited.Next, edited.Spent, err)
	}
	ended := listed(t, noon, hourly, calendar.Spec{Dates: []string{"2027-03-01T12:30:00Z"}})
	if ended, _, err = Spend(ended, []bool{true, false}, noon.Add(time.Hour)); err != nil || ended.EndedBy != "" {
		t.Errorf("ended by %q, %v", ended.EndedBy, err)
	}
}

func TestQuota_AddsTheCalendarsOfAList(t *testing.T) {
	t.Parallel()
	s := listed(t, noon, calendar.Spec{Cron: new("*/5 * * * * *")}, calendar.Spec{Cron: new("0 10 * * *")},
		calendar.Spec{Dates: []string{"2027-03-02T00:00:00Z", "2027-03-02T00:00:30Z"}})
	if n := s.Weight(); n != 12+1+2 {
		t.Errorf("it weighs %d", n)
	}
}
