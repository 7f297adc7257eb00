package calendar

import (
	"strings"
	"testing"
	"time"
)

// hard returns calendars and instants that make Next expensive: everyday ones for comparison, then
// the worst of each kind.
func hard() []struct {
	name       string
	spec       Spec
	exclusions Exclusions
	after      string
} {
	weekdaysIn := func(zone string, days ...string) Exclusion { return Exclusion{Weekly: days, Timezone: &zone} }
	var almostAllYear []string
	for d := dayNumber(2000, 1, 1); d < dayNumber(2001, 1, 1); d++ {
		if _, month, dom := civil(d); month != 2 || dom != 29 {
			almostAllYear = append(almostAllYear, time.Unix(d*day, 0).UTC().Format("01-02"))
		}
	}
	var fence []Range
	for h := range MaxRanges {
		from := at("2027-01-01T00:59:00Z").Add(time.Duration(h) * time.Hour)
		fence = append(fence, Range{From: from.Format(time.RFC3339), To: from.Add(59 * time.Minute).
			Format(time.RFC3339)})
	}
	var tuesdays []Range
	for w := range MaxRanges {
		from := at("2027-01-05T15:00:00Z").AddDate(0, 0, 7*w)
		tuesdays = append(tuesdays, Range{From: from.Format(time.RFC3339), To: from.Add(9 * time.Hour).
			Format(time.RFC3339)})
	}
	var weekends []Range
	for w := range MaxRanges {
		from := at("2027-01-01T00:00:00Z").AddDate(0, 0, 7*w)
		weekends = append(weekends, Range{From: from.Format(time.RFC3339), To: from.AddDate(0, 0, 4).
			Format(time.RFC3339)})
	}
	// Weekdays are closed in ten zones and weekends by ranges: no day is open for years, so no run
	// can be moved.
	tenZones := Exclusions{"weekends": {Ranges: weekends, Move: new("previous")}}
	tenNames := []string{"weekends"}
	for i, zone := range []string{"Europe/Berlin", "America/New_York", "Asia/Tokyo", "Africa/Cairo",
		"Australia/Lord_Howe",
		"Pacific/Apia", "America/St_Johns", "Asia/Kathmandu", "Atlantic/Azores"} {
		e := weekdaysIn(zone, []string{"mon", "tue", "wed", "thu", "fri"}[i%5])
		e.Move = new("next")
		tenZones[zone] = e
		tenNames = append(tenNames, zone)
	}
	rule := func(text string) Spec {
		return Spec{RRule: &text, StartAt: new("2001-01-01T00:00:00Z"), Timezone: new("Europe/Berlin")}
	}
	return []struct {
		name       string
		spec       Spec
		exclusions Exclusions
		after      string
	}{
		{"EveryMinute", Spec{Cron: new("* * * * *"), Timezone: new("Europe/Berlin")}, nil, "2027-03-27T12:00:00Z"},
		{"Weekdays", Spec{Cron: new("0 9 * * 1-5"), Timezone: new("Europe/Berlin")}, nil, "2027-03-27T12:00:00Z"},
		{"WeekdaysButHolidays", Spec{Cron: new("0 9 * * 1-5"), Timezone: new("Europe/Berlin"), Exclude: []string{"de"}},
			holidays("next"), "2027-12-24T12:00:00Z"},
		{"LeapDayAcross2100", Spec{Cron: new("0 0 29 2 *")}, nil, "2096-03-01T00:00:00Z"},
		{"LeapDayOnAWeekday", Spec{Cron: new("0 0 29 2 */6"), Timezone: new("Europe/Berlin")}, nil,
			"2088-03-01T00:00:00Z"},
		{"AlwaysSwallowed", Spec{Cron: new("30 2 ? 3 0#2"), Timezone: new("America/New_York"),
			MissingHour: new("skip")}, nil, "2027-04-01T00:00:00Z"},
		{"AlmostAlwaysExcluded", Spec{Cron: new("0 9 * * 1,3,5"), Exclude: []string{"x"}},
			Exclusions{"x": {Yearly: almostAllYear, Weekly: []string{"sat", "sun", "tue", "thu", "wed", "fri"}}},
			"2072-03-01T00:00:00Z"},
		{"EverySecondOfTheLeapDay", Spec{Cron: new("* * * * * *"), Exclude: []string{"x"}},
			Exclusions{"x": {Yearly: almostAllYear}}, "2096-03-01T00:00:00Z"},
		{"ClosedInTurnByTwoZones", Spec{Cron: new("* * * * * *"), Exclude: []string{"a", "b", "c"}}, Exclusions{
			"a": weekdaysIn("Asia/Tokyo", "mon", "tue"), "b": weekdaysIn("UTC", "wed", "thu", "fri", "sat", "sun"),
			"c": {Ranges: tuesdays},
		}, "2027-01-01T00:00:00Z"},
		{"FencedEveryHour", Spec{Cron: new("59 */2 * * *"), Exclude: []string{"x"}},
			Exclusions{"x": {Ranges: fence, Move: new("next")}}, "2027-01-01T00:00:00Z"},
		{"HourlyMovedOutOfAMonth", Spec{Cron: new("0 */2 * * *"), Exclude: []string{"x"}},
			Exclusions{"x": {Ranges: []Range{{From: "2027-01-01", To: "2027-01-31"}}, Move: new("previous")}},
			"2026-12-31T22:30:00Z"},
		{"HourlyMovedOutOfYears", Spec{Cron: new("0 */2 * * *"), Exclude: []string{"x"}},
			Exclusions{"x": {Ranges: []Range{{From: "2027-01-01", To: "2057-01-31"}}, Move: new("next")}},
			"2026-12-31T23:30:00Z"},
		{"MovedByTenZones", Spec{Cron: new("0 */2 * * *"), Timezone: new("Europe/Berlin"), Exclude: tenNames}, tenZones,
			"2027-06-27T12:00:00Z"},
		{"RRuleLastWeekday", Spec{RRule: new("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=9"),
			Timezone: new("Europe/Berlin")}, nil, "2027-03-31T12:00:00Z"},
		{"RRuleLeapDayMonday", rule("FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=MO"), nil, "2073-01-01T00:00:00Z"},
		{"RRuleLeapDayMondayDaily", rule("FREQ=DAILY;BYMONTHDAY=29;BYMONTH=2;BYDAY=MO"), nil, "2072-03-01T00:00:00Z"},
		{"RRulePositionInLeapYears", rule("FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=MO;BYSETPOS=-1" +
			strings.Repeat(",2", 31)), nil, "2073-01-01T00:00:00Z"},
		{"RRuleWeekNumber53", rule("FREQ=YEARLY;BYWEEKNO=53;BYDAY=SA;BYMONTH=1;BYMONTHDAY=1"), nil,
			"2073-01-01T00:00:00Z"},
		{"RRuleSecondsThatHardlyMeet", rule("FREQ=SECONDLY;INTERVAL=7919;BYHOUR=0;BYMINUTE=0;BYSECOND=0,15,30,45"), nil,
			"2001-01-01T00:00:00Z"},
		{"RRuleSecondsOfLeapDays", rule("FREQ=SECONDLY;INTERVAL=59;BYMONTH=2;BYMONTHDAY=29;BYSECOND=0,7;BYMINUTE=0"),
			nil, "2096-03-01T00:00:00Z"},
	}
}

func BenchmarkNext(b *testing.B) {
	for _, h := range hard() {
		b.Run(h.name, func(b *testing.B) {
			c := mustParse(b, h.spec, h.exclusions)
			after := at(h.after)
			b.ReportAllocs()
			for b.Loop() {
				c.Next(after)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, h := range hard() {
		b.Run(h.name, func(b *testing.B) {
			for b.Loop() {
				mustParse(b, h.spec, h.exclusions)
			}
		})
	}
}

// BenchmarkWorstNext names the calendar whose next time takes longest, and fails if that is more
// than a millisecond. It takes the best of many tries, since the machine does other things as well.
// On any machine the work is bounded: see maxChecks.
func BenchmarkWorstNext(b *testing.B) {
	worst, worstName := time.Duration(0), ""
	for _, h := range hard() {
		c := mustParse(b, h.spec, h.exclusions)
		best := time.Hour
		for range 30 {
			began := time.Now()
			c.Next(at(h.after))
			best = min(best, time.Since(began))
		}
		if best > limitPerNext {
			b.Errorf("%s takes %s", h.name, best)
		}
		if best > worst {
			worst, worstName = best, h.name
		}
	}
	b.ReportMetric(float64(worst.Microseconds()), "µs-at-worst")
	b.ReportMetric(0, "ns/op")
	b.Logf("the worst is %s with %s", worstName, worst)
}
