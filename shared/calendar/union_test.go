package calendar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// someExclusions are what the random calendars exclude.
var someExclusions = Exclusions{
	"weekend": {Weekly: []string{"sat", "sun"}},
	"spring":  {Dates: []string{"2027-03-28", "2027-03-29"}, Timezone: new("UTC")},
	"moved":   {Weekly: []string{"sun"}, Move: new("next")},
	"noon":    {Ranges: []Range{{From: "2027-03-28T10:00:00Z", To: "2027-03-28T13:00:00Z"}}},
}

// anySpec returns a random calendar with times in the spring of 2027, close to those of others.
func anySpec(d *rand.Rand) Spec {
	pick := func(of ...string) *string { return &of[d.IntN(len(of))] }
	zone := pick("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
	s := Spec{Timezone: zone}
	switch d.IntN(4) {
	case 0, 1:
		s.Cron = pick("0 2 * * *", "30 2 * * *", "*/30 * * * *", "15 1-3 * * 1-5", "0 9 L * ?", "0 0 * * *")
		if d.IntN(4) == 0 {
			s.MissingHour = pick(MissingHours...)
		}
	case 2:
		s.Every = pick("30m", "6h", "45m")
		if d.IntN(2) == 0 {
			s.StartAt = pick("2027-03-27T00:00:00Z", "2027-03-28T00:30:00Z")
		}
	case 3:
		s.Timezone, s.Dates = nil, []string{"2027-03-28T01:00:00Z", "2027-03-28T02:30:00+02:00", "2027-04-02T00:00:00Z"}
	}
	if d.IntN(3) == 0 {
		s.EndAt = pick("2027-03-28T12:00:00Z", "2027-04-03T00:00:00Z")
	}
	if d.IntN(3) == 0 {
		s.Spread = pick("1m", "10m", "29m")
	}
	if d.IntN(3) == 0 && (s.Cron == nil || *s.Cron != "*/30 * * * *") {
		s.Exclude = []string{*pick("weekend", "spring", "noon")}
		if s.Cron != nil && d.IntN(2) == 0 {
			s.Exclude = []string{"moved"}
		}
	}
	return s
}

// mergedTimes returns the times of all calendars by their nominal times: each once, due at the earliest.
func mergedTimes(parts []Calendar, after time.Time, most int) []Occurrence {
	by := map[time.Time]Occurrence{}
	for _, c := range parts {
		for _, o := range c.Preview(after, most) {
			known, there := by[o.NominalAt]
			switch {
			case !there:
				by[o.NominalAt] = o
			case o.DueAt.Before(known.DueAt):
				known.DueAt = o.DueAt
				by[o.NominalAt] = known
			}
		}
	}
	var list []Occurrence
	for _, o := range by {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Occurrence) int { return a.NominalAt.Compare(b.NominalAt) })
	return list[:min(most, len(list))]
}

func TestUnion_HasTheMergedTimesOfItsCalendars(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 27, 20, 0, 0, 0, time.UTC)
	for seed := range uint64(400) {
		d := rand.New(rand.NewPCG(seed, 0))
		var specs []Spec
		var parts []Calendar
		for range 1 + d.IntN(MaxCalendars) {
			s := anySpec(d)
			c, err := Parse(s, someExclusions)
			if err != nil {
				continue // it has no time that is not excluded, say
			}
			specs, parts = append(specs, s), append(parts, c.For("s", at))
		}
		if len(parts) == 0 {
			continue
		}
		u, err := ParseAll(specs, someExclusions)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		u = u.For("s", at)
		after := at.Add(time.Duration(d.IntN(48*3600)) * time.Second)
		const most = 150
		want := mergedTimes(parts, after, most)
		if got := u.Preview(after, most); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Fatalf("seed %d: of %d calendars %v, want %v", seed, len(specs), got, want)
		}
		from := after
		for _, o := range want {
			got, ok := u.Next(from)
			if !ok || !reflect.DeepEqual(got, o) {
				t.Fatalf("seed %d: after %s comes %v, want %v", seed, from, got, o)
			}
			for n, named := range u.Naming(o.NominalAt) {
				own, ok := parts[n].Next(o.NominalAt.Add(-time.Millisecond))
				if named != (ok && own.NominalAt.Equal(o.NominalAt)) {
					t.Fatalf("seed %d: calendar %d names %s: %v", seed, n, o.NominalAt, named)
				}
			}
			from = o.NominalAt
		}
		requireSkips(t, seed, u, parts, after)
	}
}

// requireSkips verifies that a union skips what one of its calendars skips and none of them has.
func requireSkips(t *testing.T, seed uint64, u Union, parts []Calendar, after time.Time) {
	t.Helper()
	until := after.Add(72 * time.Hour)
	runs, want := map[time.Time]bool{}, map[time.Time]bool{}
	for _, c := range parts {
		for _, o := range c.Preview(after, MaxPreview) {
			runs[o.NominalAt] = true
		}
		skips, through := c.Skipped(after, until, 10_000)
		if !through.Equal(until) {
			t.Fatalf("seed %d: the skips of a calendar end at %s", seed, through)
		}
		for _, s := range skips {
			want[s.NominalAt] = true
		}
	}
	for at := range want {
		if runs[at] {
			delete(want, at)
		}
	}
	for _, limit := range []int{3, 10_000} {
		got, from := map[time.Time]bool{}, after
		for steps := 0; from.Before(until); steps++ {
			skips, through := u.Skipped(from, until, limit)
			for _, s := range skips {
				if got[s.NominalAt] || !s.NominalAt.After(from) || s.NominalAt.After(through) {
					t.Fatalf("seed %d: %s is skipped between %s and %s", seed, s.NominalAt, from, through)
				}
				got[s.NominalAt] = true
			}
			if !through.After(from) || steps > 10_000 {
				t.Fatalf("seed %d: no step from %s", seed, from)
			}
			from = through
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, limit %d: skipped %v, want %v", seed, limit, got, want)
		}
	}
}

func TestUnion_NamesAnInstantOnce(t *testing.T) {
	t.Parallel()
	berlin, tokyo := cronIn(t, "0 9 * * *", "Europe/Berlin"), cronIn(t, "0 17 * * *", "Asia/Tokyo")
	u := Unite(berlin, tokyo)
	times := u.Preview(march, 3)
	if len(times) != 3 || times[0].Local != "2027-03-02T09:00:00+01:00" || times[1].NominalAt.Sub(times[0].NominalAt) !=
		24*time.Hour {
		t.Errorf("the times are %v", times)
	}
	summer := u.Preview(time.Date(2027, 3, 28, 0, 0, 0, 0, time.UTC), 2) // now Berlin is an hour earlier
	if len(summer) != 2 || summer[0].Local != "2027-03-28T09:00:00+02:00" || summer[1].Local !=
		"2027-03-28T17:00:00+09:00" {
		t.Errorf("the times are %v", summer)
	}
	if got := fmt.Sprint(u.Naming(times[0].NominalAt), u.Naming(summer[0].NominalAt), u.Naming(march)); got !=
		"[true true] [true false] [false false]" {
		t.Errorf("they name %s", got)
	}
}

func TestUnion_RunsNoCalendarMoreOftenThanItMay(t *testing.T) {
	t.Parallel()
	two, three := cronIn(t, "0 9 * * *", "UTC"), cronIn(t, "0 9,21 * * *", "UTC")
	two.maxRuns, three.maxRuns = 2, 3
	var got []string
	for _, o := range Unite(two, three).PreviewRuns(march, 9) {
		got = append(got, o.NominalAt.Format("02 15"))
	}
	if want := []string{"01 21", "02 09", "02 21", "03 09"}; !slices.Equal(got, want) {
		t.Errorf("it runs at %v, want %v", got, want)
	}
	if n := len(Unite(two, three).Preview(march, 9)); n != 9 {
		t.Errorf("there are %d times", n)
	}
	if rest := Unite(two, three).Without([]bool{false, true}).Preview(march, 2); rest[0].NominalAt.Hour() != 9 ||
		rest[1].NominalAt.Hour() != 9 {
		t.Errorf("without the second it runs at %v", rest)
	}
}

func TestUnion_HasTimesWhileOneOfItsCalendarsHas(t *testing.T) {
	t.Parallel()
	past, daily := "2027-02-01T00:00:00Z", "0 9 * * *"
	u, err := ParseAll([]Spec{{Dates: []string{past}}, {Cron: &daily}}, nil)
	if err != nil || u.Check(march) != nil {
		t.Errorf("%v, %v", err, u.Check(march))
	}
	ended, err := ParseAll([]Spec{{Dates: []string{past}}, {Dates: []string{past}}}, nil)
	var bad *Error
	if err != nil || !errors.As(ended.Check(march), &bad) || bad.Pointer() != "/calendars" ||
		bad.Code != CodeNeverFires {
		t.Errorf("%v, %v", err, ended.Check(march))
	}
	if _, ok := (Union{}).Next(march); ok || (Union{}).Check(march) == nil {
		t.Error("an empty union has times")
	}
}

func TestUnion_SaysWhichCalendarIsWrongOrNoted(t *testing.T) {
	t.Parallel()
	good, bad, both := "0 9 * * *", "0 99 * * *", "0 14 1-31/14 * 3"
	_, err := ParseAll([]Spec{{Cron: &good}, {Cron: &bad}}, nil)
	var wrong *Error
	if !errors.As(err, &wrong) || wrong.Pointer() != "/calendars/1/cron" {
		t.Errorf("%v", err)
	}
	_, err = Parse(Spec{Cron: &bad}, nil)
	if !errors.As(err, &wrong) || wrong.Pointer() != "/calendar/cron" {
		t.Errorf("%v", err)
	}
	u, err := ParseAll([]Spec{{Cron: &good}, {Cron: &both}}, nil)
	if notes := u.Notes(); err != nil || len(notes) != 1 || notes[0][:len("/calendars/1: ")] != "/calendars/1: " {
		t.Errorf("%v, %v", notes, err)
	}
}

func TestParseAll_BoundsAListAsOneCalendar(t *testing.T) {
	t.Parallel()
	daily, dates := "0 9 * * *", slices.Repeat([]string{"2027-12-01T00:00:00Z"}, MaxDates/2)
	exclusions := Exclusions{}
	named := func(from, to int) (names []string) {
		for n := range to - from {
			name := fmt.Sprintf("x%d", from+n)
			exclusions[name] = Exclusion{Dates: []string{"2027-12-25"}}
			names = append(names, name)
		}
		return names
	}
	for name, c := range map[string]struct {
		specs []Spec
		want  string
	}{
		"none":                 {nil, "/calendars"},
		"eleven":               {slices.Repeat([]Spec{{Cron: &daily}}, MaxCalendars+1), "/calendars"},
		"ten":                  {slices.Repeat([]Spec{{Cron: &daily}}, MaxCalendars), ""},
		"as many dates as one": {[]Spec{{Dates: dates}, {Dates: dates}}, ""},
		"more dates than one":  {[]Spec{{Dates: dates}, {Dates: dates}, {Dates: dates[:1]}}, "/calendars/2/dates"},
		"as many names as one": {[]Spec{{Cron: &daily, Exclude: named(0, 6)}, {Cron: &daily, Exclude: named(2, 10)}},
			""},
		"more names than one": {[]Spec{{Cron: &daily, Exclude: named(0, 6)}, {Cron: &daily, Exclude: named(6, 11)}},
			"/calendars/1/exclude"},
	} {
		_, err := ParseAll(c.specs, exclusions)
		var bad *Error
		if got := errors.As(err, &bad); got != (c.want != "") || got && (bad.Pointer() != c.want || bad.Code !=
			CodeOutOfRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnion_RunsWhatIsLeftOfEachCalendar(t *testing.T) {
	t.Parallel()
	u, err := ParseAll([]Spec{{Cron: new("0 * * * *"), MaxRuns: new(5)}, {Cron: new("10 * * * *")},
		{Cron: new("20 * * * *"), MaxRuns: new(2)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := at("2027-03-01T00:05:00Z")
	for want, left := range map[string][]int64{
		"10 20 00 10 20 00 10 00": nil,
		"10 20 00 10 20 10 10 10": {1, -1, 2},
		"10 20 10 10 10 10 10 10": {0, -1, 1},
		"10 20 00 10 00 10 10 10": {2, -1, 1},
		"00 00":                   {2, 0, 0},
	} {
		var got []string
		for o := range u.Left(left).AfterRuns(after) {
			if got = append(got, o.NominalAt.Format("04")); len(got) == 8 {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with %v left: %v, want %s", left, got, want)
		}
	}
}

func TestLocation_KnowsTheZonesOfCalendars(t *testing.T) {
	t.Parallel()
	zone, err := Location("Europe/Berlin")
	if err != nil || at("2027-03-28T01:00:00Z").In(zone).Format("15:04") != "03:00" {
		t.Errorf("Berlin: %v, %v", zone, err)
	}
	for _, name := range []string{"", "Local", "europe/berlin", "../UTC"} {
		wrong := new(Error)
		if _, err := Location(name); !errors.As(err, &wrong) || wrong.Code != CodeInvalidValue {
			t.Errorf("%q: %v", name, err)
		}
	}
}
