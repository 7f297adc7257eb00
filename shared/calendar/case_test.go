package calendar

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCalendar_NextReturns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		spec       Spec
		exclusions Exclusions
		after      string
		want       []string
	}{
		{
			//proof:of S01
			name: "the first instant after the gap for a daily run in a missing hour", // S01
			spec: Spec{Cron: new("0 2 * * *"), Timezone: new("America/Los_Angeles")}, after: "2025-03-08T12:00:00Z",
			want: []string{"2025-03-09T10:00:00Z", "2025-03-10T09:00:00Z"},
		}, {
			//proof:of S02
			name: "one run in a night with a repeated hour", // S02
			spec: Spec{Cron: new("30 1 * * *"), Timezone: new("America/New_York")}, after: "2025-11-01T12:00:00Z",
			want: []string{"2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"},
		}, {
			//proof:of S03
			name: "every thirty real minutes through a repeated hour", // S03
			spec: Spec{Cron: new("*/30 * * * *"), Timezone: new("Australia/Melbourne")}, after: "2024-04-06T15:20:00Z",
			want: []string{"2024-04-06T15:30:00Z", "2024-04-06T16:00:00Z", "2024-04-06T16:30:00Z",
				"2024-04-06T17:00:00Z"},
		}, {
			//proof:of S04
			name: "noon on a Friday without a midnight", // S04
			spec: Spec{Cron: new("0 12 * * 5"), Timezone: new("Africa/Cairo")}, after: "2025-04-20T00:00:00Z",
			want: []string{"2025-04-25T09:00:00Z"},
		}, {
			name: "noon on Saturdays only where a Sunday has no midnight",
			spec: Spec{Cron: new("0 12 * * 6"), Timezone: new("America/Santiago")}, after: "2026-09-05T00:00:00Z",
			want: []string{"2026-09-05T16:00:00Z", "2026-09-12T15:00:00Z"},
		}, {
			//proof:of S05
			name: "noon on the day of a half-hour change", // S05
			spec: Spec{Cron: new("0 12 * * *"), Timezone: new("Australia/Lord_Howe")}, after: "2025-10-03T12:00:00Z",
			want: []string{"2025-10-04T01:30:00Z", "2025-10-05T01:00:00Z", "2025-10-06T01:00:00Z"},
		}, {
			//proof:of S08
			name: "the 13th and every Friday, because the day fields are ORed", // S08
			spec: Spec{Cron: new("0 0 13 * 5")}, after: "2026-02-10T00:00:00Z",
			want: []string{"2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z", "2026-02-27T00:00:00Z",
				"2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"},
		}, {
			//proof:of S49
			name: "both Sundays around a day of 23 hours", // S49
			spec: Spec{Cron: new("0 12 * * 0"), Timezone: new("Europe/Berlin")}, after: "2022-03-24T11:00:00Z",
			want: []string{"2022-03-27T10:00:00Z", "2022-04-03T10:00:00Z"},
		}, {
			name:  "none for a swallowed time that is to be skipped",
			spec:  Spec{Cron: new("30 2 * * *"), Timezone: new("Europe/Berlin"), MissingHour: new("skip")},
			after: "2025-03-29T12:00:00Z",
			want:  []string{"2025-03-31T00:30:00Z"},
		}, {
			name:  "the last of two when asked so",
			spec:  Spec{Cron: new("30 1 * * *"), Timezone: new("America/New_York"), RepeatedHour: new("last")},
			after: "2025-11-01T12:00:00Z",
			want:  []string{"2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z"},
		}, {
			name:  "both of two when asked so",
			spec:  Spec{Cron: new("30 1 * * *"), Timezone: new("America/New_York"), RepeatedHour: new("both")},
			after: "2025-11-01T12:00:00Z",
			want:  []string{"2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z"},
		}, {
			name:  "first passes only, even of a wildcard, when asked so",
			spec:  Spec{Cron: new("*/30 * * * *"), Timezone: new("Australia/Melbourne"), RepeatedHour: new("first")},
			after: "2024-04-06T15:20:00Z",
			want:  []string{"2024-04-06T15:30:00Z", "2024-04-06T17:00:00Z"},
		}, {
			name:  "a run for a whole swallowed window of a wildcard, when asked so",
			spec:  Spec{Cron: new("*/15 2 * * *"), Timezone: new("America/New_York"), MissingHour: new("run_after")},
			after: "2026-03-07T12:00:00Z",
			want:  []string{"2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"},
		},

		{
			name: "the last day of each month",
			spec: Spec{Cron: new("0 9 L * ?")}, after: "2028-01-01T00:00:00Z",
			want: []string{"2028-01-31T09:00:00Z", "2028-02-29T09:00:00Z", "2028-03-31T09:00:00Z",
				"2028-04-30T09:00:00Z"},
		}, {
			name: "the third last day and the first",
			spec: Spec{Cron: new("0 9 1,L-2 * ?")}, after: "2027-01-15T00:00:00Z",
			want: []string{"2027-01-29T09:00:00Z", "2027-02-01T09:00:00Z", "2027-02-26T09:00:00Z",
				"2027-03-01T09:00:00Z"},
		}, {
			name: "the weekday nearest to the 15th: Thursday, the Monday after a Sunday, the Friday before a Saturday",
			spec: Spec{Cron: new("0 9 15W 7-9,5 ?")}, after: "2027-05-01T00:00:00Z",
			want: []string{"2027-05-14T09:00:00Z", "2027-07-15T09:00:00Z", "2027-08-16T09:00:00Z",
				"2027-09-15T09:00:00Z"},
		}, {
			name: "the weekday nearest to the 1st inside the month",
			spec: Spec{Cron: new("0 9 1W * ?")}, after: "2027-04-15T00:00:00Z",
			want: []string{"2027-05-03T09:00:00Z", "2027-06-01T09:00:00Z"},
		}, {
			name: "the weekday nearest to the 31st inside the month, in months that have one",
			spec: Spec{Cron: new("0 9 31W * ?")}, after: "2027-08-15T00:00:00Z",
			want: []string{"2027-08-31T09:00:00Z", "2027-10-29T09:00:00Z", "2027-12-31T09:00:00Z"},
		}, {
			name: "the last weekday of the month",
			spec: Spec{Cron: new("0 9 LW * ?")}, after: "2027-01-15T00:00:00Z",
			want: []string{"2027-01-29T09:00:00Z", "2027-02-26T09:00:00Z", "2027-03-31T09:00:00Z"},
		}, {
			name: "the second Friday and the last Monday, six fields",
			spec: Spec{Cron: new("0 0 9 ? * FRI#2,1L")}, after: "2027-01-01T00:00:00Z",
			want: []string{"2027-01-08T09:00:00Z", "2027-01-25T09:00:00Z", "2027-02-12T09:00:00Z",
				"2027-02-22T09:00:00Z"},
		}, {
			name: "a fifth Sunday where there is one, with 7 for Sunday",
			spec: Spec{Cron: new("0 9 ? * 7#5")}, after: "2027-01-01T00:00:00Z",
			want: []string{"2027-01-31T09:00:00Z", "2027-05-30T09:00:00Z"},
		},

		{
			name: "multiples of the period from 1970 on",
			spec: Spec{Every: new("90m")}, after: "2026-03-08T05:45:00Z",
			want: []string{"2026-03-08T06:00:00Z", "2026-03-08T07:30:00Z"},
		}, {
			name: "multiples of the period shifted by the phase",
			spec: Spec{Every: new("5m"), Phase: new("30s")}, after: "2026-03-08T05:45:30Z",
			want: []string{"2026-03-08T05:50:30Z", "2026-03-08T05:55:30Z"},
		}, {
			name:  "counted from the start, start included",
			spec:  Spec{Every: new("1d"), Phase: new("1h"), StartAt: new("2026-03-08T05:45:00.250Z")},
			after: "2020-01-01T00:00:00Z",
			want:  []string{"2026-03-08T06:45:00.25Z", "2026-03-09T06:45:00.25Z"},
		}, {
			name: "multiples of @every from start_at on",
			spec: Spec{Cron: new("@every 90m"), StartAt: new("2026-03-08T05:45:00Z"),
				EndAt: new("2026-03-08T08:45:00Z")}, after: "2026-03-08T05:00:00Z",
			want: []string{"2026-03-08T05:45:00Z", "2026-03-08T07:15:00Z"},
		}, {
			name: "dates in order, each once",
			spec: Spec{Dates: []string{"2027-05-01T08:00:00+02:00", "2027-01-01T00:00:00Z", "2027-05-01T06:00:00Z",
				"2027-03-01T00:00:00.125Z"}},
			after: "2027-01-01T00:00:00Z",
			want:  []string{"2027-03-01T00:00:00.125Z", "2027-05-01T06:00:00Z"},
		}, {
			name:  "inside the window, start included and end not",
			spec:  Spec{Cron: new("@daily"), StartAt: new("2027-01-02T00:00:00Z"), EndAt: new("2027-01-04T00:00:00Z")},
			after: "2026-01-01T00:00:00Z",
			want:  []string{"2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"},
		},

		{
			name:  "the last Friday of the month by RRULE, at its local hour",
			spec:  Spec{RRule: new("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9"), Timezone: new("Europe/Berlin")},
			after: "2027-03-01T00:00:00Z",
			want:  []string{"2027-03-26T08:00:00Z", "2027-04-30T07:00:00Z"},
		}, {
			name: "every other week from start_at, COUNT times",
			spec: Spec{RRule: new("RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=3;BYDAY=MO,WE"),
				StartAt: new("2027-03-24T09:30:00Z"), Timezone: new("Europe/Berlin")},
			after: "2027-01-01T00:00:00Z",
			want:  []string{"2027-03-24T09:30:00Z", "2027-04-05T08:30:00Z", "2027-04-07T08:30:00Z"},
		}, {
			name: "an RRULE up to and including its UNTIL day",
			spec: Spec{RRule: new("freq=daily;until=20270103")}, after: "2027-01-01T00:00:00Z",
			want: []string{"2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"},
		}, {
			name:  "RRULE until an instant, included",
			spec:  Spec{RRule: new("FREQ=DAILY;BYHOUR=12;UNTIL=20270102T110000Z"), Timezone: new("Europe/Berlin")},
			after: "2027-01-01T00:00:00Z",
			want:  []string{"2027-01-01T11:00:00Z", "2027-01-02T11:00:00Z"},
		}, {
			name:  "the first instant after the gap by RRULE too",
			spec:  Spec{RRule: new("FREQ=DAILY;BYHOUR=2;BYMINUTE=30"), Timezone: new("Europe/Berlin")},
			after: "2025-03-29T12:00:00Z",
			want:  []string{"2025-03-30T01:00:00Z", "2025-03-31T00:30:00Z"},
		}, {
			name: "both passes of a repeated hour for an hourly RRULE",
			spec: Spec{RRule: new("FREQ=HOURLY"), Timezone: new("Europe/Berlin")}, after: "2025-10-25T23:30:00Z",
			want: []string{"2025-10-26T00:00:00Z", "2025-10-26T01:00:00Z", "2025-10-26T02:00:00Z"},
		}, {
			name: "RRULE positions in the whole week, also in the week of start_at",
			spec: Spec{RRule: new("FREQ=WEEKLY;BYDAY=TH,SA;BYMINUTE=0,30;BYSETPOS=2,-1"),
				StartAt: new("2027-12-03T10:15:00Z")}, after: "2027-01-01T00:00:00Z",
			want: []string{"2027-12-04T10:30:00Z", "2027-12-09T10:30:00Z", "2027-12-11T10:30:00Z"},
		}, {
			name: "the union of weekdays with and without a number",
			spec: Spec{RRule: new("FREQ=MONTHLY;BYDAY=1MO,FR;BYMONTH=6")}, after: "2027-01-01T00:00:00Z",
			want: []string{"2027-06-04T00:00:00Z", "2027-06-07T00:00:00Z", "2027-06-11T00:00:00Z"},
		},

		{
			name:       "not on holidays, weekends and freezes",
			spec:       Spec{Cron: new("0 9 * * *"), Timezone: new("Europe/Berlin"), Exclude: []string{"de", "freeze"}},
			exclusions: holidays(""), after: "2027-12-22T12:00:00Z",
			want: []string{"2027-12-23T08:00:00Z", "2027-12-28T08:00:00Z", "2027-12-29T08:00:00Z",
				"2028-01-04T08:00:00Z"},
		}, {
			name:       "on the next open day instead",
			spec:       Spec{Cron: new("0 9 24,25 * ?"), Timezone: new("Europe/Berlin"), Exclude: []string{"de"}},
			exclusions: holidays("next"), after: "2027-11-30T12:00:00Z",
			want: []string{"2027-12-24T08:00:00Z", "2027-12-27T08:00:00Z", "2028-01-24T08:00:00Z",
				"2028-01-25T08:00:00Z"},
		}, {
			name:       "on the day before instead, which is asked about from after it",
			spec:       Spec{Cron: new("0 9 25 * ?"), Timezone: new("Europe/Berlin"), Exclude: []string{"de"}},
			exclusions: holidays("previous"), after: "2027-12-24T08:00:00Z",
			want: []string{"2028-01-25T08:00:00Z", "2028-02-25T08:00:00Z", "2028-03-24T08:00:00Z"},
		}, {
			name:       "at the first instant after the gap where a run is moved into one",
			spec:       Spec{Cron: new("30 2 27 3 ?"), Timezone: new("Europe/Berlin"), Exclude: []string{"x"}},
			exclusions: Exclusions{"x": {Dates: []string{"2027-03-27"}, Move: new("next")}},
			after:      "2027-01-01T00:00:00Z",
			want:       []string{"2027-03-28T01:00:00Z", "2028-03-27T00:30:00Z"},
		}, {
			name:       "by the days of the exclusion's zone, not the calendar's",
			spec:       Spec{Cron: new("0 20 * * *"), Timezone: new("America/New_York"), Exclude: []string{"x"}},
			exclusions: Exclusions{"x": {Dates: []string{"2027-12-25"}, Timezone: new("Europe/Berlin")}},
			after:      "2027-12-23T12:00:00Z",
			want:       []string{"2027-12-24T01:00:00Z", "2027-12-26T01:00:00Z"},
		}, {
			name:       "the runs of the last days of a long closed stretch, after it",
			spec:       Spec{Cron: new("0 0,12 * * *"), Exclude: []string{"x"}},
			exclusions: Exclusions{"x": {Ranges: []Range{{From: "2027-01-01", To: "2057-01-31"}}, Move: new("next")}},
			after:      "2026-12-31T23:30:00Z",
			want:       []string{"2057-02-01T00:00:00Z", "2057-02-01T12:00:00Z", "2057-02-02T00:00:00Z"},
		}, {
			name:       "not moved out of the window",
			spec:       Spec{Cron: new("0 9 * * 6"), EndAt: new("2027-01-11T00:00:00Z"), Exclude: []string{"x"}},
			exclusions: Exclusions{"x": {Weekly: []string{"sat", "Sun"}, Move: new("next")}},
			after:      "2027-01-01T12:00:00Z",
			want:       []string{"2027-01-04T09:00:00Z"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := mustParse(t, tt.spec, tt.exclusions)
			got := nominals(c.Preview(at(tt.after), len(tt.want)))
			requireTimes(t, got, tt.want)
		})
	}
}

func holidays(move string) Exclusions {
	de := Exclusion{Yearly: []string{"12-25", "12-26", "01-01"}, Weekly: []string{"sat", "sun"},
		Timezone: new("Europe/Berlin")}
	if move != "" {
		de.Move = &move
	}
	return Exclusions{
		"de": de,
		"freeze": {
			Dates: []string{"2027-12-24"},
			Ranges: []Range{{From: "2027-12-30", To: "2028-01-02"}, {From: "2028-01-03T07:59:59Z",
				To: "2028-01-03T08:00:01Z"}, {From: "2027-12-27", To: "2027-12-27"}},
		},
	}
}

func TestCalendar_Ends(t *testing.T) {
	t.Parallel()
	for _, s := range []Spec{
		{Cron: new("@daily"), EndAt: new("2027-01-04T00:00:00Z")},
		{Dates: []string{"2027-01-03T00:00:00Z"}},
		{RRule: new("FREQ=DAILY;UNTIL=20270103T000000Z")},
		{RRule: new("FREQ=DAILY;COUNT=3"), StartAt: new("2027-01-01T00:00:00Z")},
		{Every: new("1d"), EndAt: new("2027-01-03T00:00:00.001Z")},
	} {
		c := mustParse(t, s, nil)
		list := c.Preview(at("2027-01-02T00:00:00Z"), 5)
		requireTimes(t, nominals(list), []string{"2027-01-03T00:00:00Z"})
		if o, ok := c.Next(at("2027-01-03T00:00:00Z")); ok {
			t.Errorf("%s: %s after the end", s.field(), o.NominalAt)
		}
		if err := c.Check(at("2027-01-02T00:00:00Z")); err != nil {
			t.Error(err)
		}
		var refused *Error
		if err := c.Check(at("2027-01-03T00:00:00Z")); !errors.As(err, &refused) || refused.Field != s.field() ||
			refused.Code != CodeNeverFires {
			t.Errorf("%s: Check says %v", s.field(), err)
		}
	}
}

func TestCalendar_NextAcceptsAnyInstant(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Spec{Cron: new("0 0 29 2 *"), Timezone: new("Europe/Berlin")}, nil)
	for after, want := range map[time.Time]string{
		{}:                                      "1904-02-28T23:00:00Z",
		time.Unix(-1<<62, 0):                    "1904-02-28T23:00:00Z",
		at("2396-02-28T22:59:59Z").Add(1e9 - 1): "2396-02-28T23:00:00Z",
		at("2396-02-28T23:00:00Z"):              "",
		time.Unix(1<<62, 0):                     "",
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC): "",
	} {
		got := ""
		if o, ok := c.Next(after); ok {
			got = o.NominalAt.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("next after %s is %q, want %q", after, got, want)
		}
	}
	if _, ok := (Calendar{}).Next(at("2027-01-01T00:00:00Z")); ok {
		t.Error("the zero calendar has a time")
	}
}

func TestCalendar_CountsAnIntervalFromItsSchedule(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Spec{Cron: new("@every 90m")}, nil)
	requireTimes(t, nominals(c.Preview(at("2026-03-08T05:45:00Z"), 2)), []string{"2026-03-08T07:15:00Z",
		"2026-03-08T08:45:00Z"})
	bound := c.For("s", at("2026-03-08T05:00:00Z"))
	requireTimes(t, nominals(bound.Preview(at("2026-03-08T05:45:00Z"), 2)), []string{"2026-03-08T06:30:00Z",
		"2026-03-08T08:00:00Z"})
	requireTimes(t, nominals(bound.Preview(at("2020-01-01T00:00:00Z"), 1)), []string{"2026-03-08T06:30:00Z"})
	requireTimes(t, nominals(bound.For("s", at("2026-03-08T05:01:00Z")).Preview(at("2026-03-08T05:45:00Z"), 1)),
		[]string{"2026-03-08T06:30:00Z"})
}

//proof:of 14
func TestCalendar_DerivesSpreadFromIdentity(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Spec{Cron: new("*/10 * * * *"), Spread: new("5m")}, nil)
	after := at("2027-01-01T00:00:00Z")
	a, repeat, b := c.For("a", after).Preview(after, 1000), c.For("a", after).Preview(after, 1000),
		c.For("b", after).Preview(after, 1000)
	var sum time.Duration
	same := 0
	for i := range a {
		late := a[i].DueAt.Sub(a[i].NominalAt)
		if late < 0 || late >= 5*time.Minute {
			t.Fatalf("%s is due %s late", a[i].NominalAt, late)
		}
		if !a[i].DueAt.Equal(repeat[i].DueAt) {
			t.Fatal("the same time of the same schedule is due at another time")
		}
		if a[i].DueAt.Equal(b[i].DueAt) {
			same++
		}
		sum += late
	}
	if mean := sum / 1000; mean < 135*time.Second || mean > 165*time.Second {
		t.Errorf("mean %s is not the middle of the spread", mean)
	}
	if same > 5 {
		t.Errorf("two schedules meet at %d of 1000 times", same)
	}
	plain := mustParse(t, Spec{Cron: new("*/10 * * * *")}, nil)
	if o, _ := plain.Next(after); !o.DueAt.Equal(o.NominalAt) {
		t.Error("due differs from nominal without a spread")
	}
}

func TestOccurrence_CarriesFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec  Spec
		after string
		local string
		flags []string
	}{
		{Spec{Cron: new("30 2 * * *"), Timezone: new("Europe/Berlin")}, "2027-03-27T12:00:00Z",
			"2027-03-28T03:00:00+02:00", []string{FlagChangeOverDay, FlagMissingHour}},
		{Spec{Cron: new("30 2,3 * * *"), Timezone: new("Europe/Berlin")}, "2027-03-28T01:00:00Z",
			"2027-03-28T03:30:00+02:00", []string{FlagChangeOverDay}},
		{Spec{Cron: new("0,30 2,3 * * *"), Timezone: new("Europe/Berlin")}, "2027-03-27T12:00:00Z",
			"2027-03-28T03:00:00+02:00", []string{FlagChangeOverDay}},
		{Spec{Cron: new("30 2 * * *"), Timezone: new("Europe/Berlin")}, "2027-10-30T12:00:00Z",
			"2027-10-31T02:30:00+02:00", []string{FlagChangeOverDay, FlagRepeatedHour}},
		{Spec{Cron: new("30 * * * *"), Timezone: new("Europe/Berlin")}, "2027-10-31T01:00:00Z",
			"2027-10-31T02:30:00+01:00", []string{FlagChangeOverDay, FlagRepeatedHour}},
		{Spec{Cron: new("30 0 * * *"), Timezone: new("Europe/Berlin")}, "2027-10-31T12:00:00Z",
			"2027-11-01T00:30:00+01:00", nil},
		{Spec{Cron: new("30 23 * * *"), Timezone: new("Africa/Cairo")}, "2027-04-29T12:00:00Z",
			"2027-04-29T23:30:00+02:00", nil},
		{Spec{Cron: new("30 23 * * *"), Timezone: new("Africa/Cairo")}, "2027-04-30T12:00:00Z",
			"2027-04-30T23:30:00+03:00", []string{FlagChangeOverDay}},
		{Spec{Dates: []string{"2027-01-01T12:00:00.050Z"}, Timezone: new("Asia/Kathmandu")}, "2027-01-01T00:00:00Z",
			"2027-01-01T17:45:00.05+05:45", nil},
		{Spec{Cron: new("0 9 1 1 ?"), Exclude: []string{"next"}}, "2027-01-01T00:00:00Z", "2027-01-04T09:00:00Z",
			[]string{FlagMovedLater}},
		{Spec{Cron: new("0 9 1 1 ?"), Exclude: []string{"previous"}}, "2026-12-15T00:00:00Z", "2026-12-31T09:00:00Z",
			[]string{FlagMovedEarlier}},
		{Spec{Cron: new("0 9 1,4 1 ?"), Exclude: []string{"next"}}, "2027-01-01T00:00:00Z", "2027-01-04T09:00:00Z",
			nil},
	} {
		c := mustParse(t, tt.spec, Exclusions{
			"next":     {Yearly: []string{"01-01"}, Weekly: []string{"sat", "sun"}, Move: new("next")},
			"previous": {Yearly: []string{"01-01"}, Weekly: []string{"sat", "sun"}, Move: new("previous")},
		})
		o, ok := c.Next(at(tt.after))
		if !ok || o.Local != tt.local || !slices.Equal(o.Flags, tt.flags) {
			t.Errorf("after %s: %v %q %q, want %q %q", tt.after, ok, o.Local, o.Flags, tt.local, tt.flags)
		}
		if !o.NominalAt.Equal(at(o.Local)) {
			t.Errorf("local %s is not nominal %s", o.Local, o.NominalAt)
		}
	}
}

//proof:of S08
func TestCalendar_NotesThatDayFieldsAreORed(t *testing.T) {
	t.Parallel()
	if notes := mustParse(t, Spec{Cron: new("0 0 13 * 5")}, nil).Notes(); len(notes) != 1 {
		t.Errorf("notes %q", notes)
	}
	if notes := mustParse(t, Spec{Cron: new("0 0 13 * *")}, nil).Notes(); notes != nil {
		t.Errorf("notes %q", notes)
	}
}

func TestCalendar_SkippedReturnsReasons(t *testing.T) {
	t.Parallel()
	exclusions := Exclusions{
		"weekend": {Weekly: []string{"sat", "sun"}},
		"moved":   {Dates: []string{"2027-03-26"}, Move: new("previous")},
		"stuck":   {Ranges: []Range{{From: "2027-03-29", To: "2027-06-29"}}, Move: new("next")},
	}
	c := mustParse(t, Spec{
		Cron: new("30 2 * * *"), Timezone: new("Europe/Berlin"), MissingHour: new("skip"),
		Exclude: []string{"moved", "weekend", "stuck"},
	}, exclusions)
	skips, through := c.Skipped(at("2027-03-25T12:00:00Z"), at("2027-03-30T00:30:00Z"), 100)
	var got []string
	for _, s := range skips {
		got = append(got, s.Local+" "+s.Reason+" "+s.Exclusion)
		if s.Why == "" || !s.NominalAt.Equal(at(s.Local)) {
			t.Errorf("%+v", s)
		}
	}
	requireTimes(t, got, []string{
		"2027-03-27T02:30:00+01:00 excluded weekend",
		"2027-03-28T03:00:00+02:00 missing_hour ",
		"2027-03-29T02:30:00+02:00 excluded stuck",
		"2027-03-30T02:30:00+02:00 excluded stuck",
	})
	if !through.Equal(at("2027-03-30T00:30:00Z")) {
		t.Errorf("came through to %s", through)
	}

	every := mustParse(t, Spec{Cron: new("* * * * * *"), Exclude: []string{"weekend"}}, exclusions)
	skips, through = every.Skipped(at("2027-03-26T23:59:55Z"), at("2027-03-29T00:00:00Z"), 10)
	if len(skips) != 6 || !through.Equal(at("2027-03-27T00:00:05Z")) {
		t.Errorf("%d skips through %s", len(skips), through)
	}
	skips, through = every.Skipped(through, through, 10)
	if skips != nil || !through.Equal(at("2027-03-27T00:00:05Z")) {
		t.Errorf("an empty stretch has %d skips through %s", len(skips), through)
	}
}

func TestSpec_KeepsTheJSONOfTheAPI(t *testing.T) {
	t.Parallel()
	const text = `{"cron":"0 9 * * 1-5","timezone":"Europe/Berlin","start_at":"2027-01-01T00:00:00.000Z",` +
		`"end_at":"2028-01-01T00:00:00.000Z",` +
		`"max_runs":7,"exclude":["de"],"missing_hour":"skip","repeated_hour":"last","spread":"5m"}`
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var s Spec
	if err := decoder.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(s); err != nil || string(got) != text {
		t.Errorf("%v\n got %s\nwant %s", err, got, text)
	}
	c := mustParse(t, s, holidays(""))
	if c.MaxRuns() != 7 {
		t.Errorf("max runs %d", c.MaxRuns())
	}
	requireTimes(t, nominals(c.Preview(at("2026-01-01T00:00:00Z"), 2)), []string{"2027-01-04T08:00:00Z",
		"2027-01-05T08:00:00Z"})
}
