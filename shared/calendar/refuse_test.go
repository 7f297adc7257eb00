package calendar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

//proof:of S07 S09 F24
func TestParse_RefusesByFieldAndCode(t *testing.T) {
	t.Parallel()
	weekend := Exclusions{
		"weekend": {Weekly: []string{"sat", "sun"}}, "week": {Weekly: []string{"mon", "tue", "wed", "thu", "fri"}},
		"next": {Weekly: []string{"sat", "sun"}, Move: new("next")}, "broken": {Dates: []string{"2027-02-29"}},
		"easterly": {Weekly: []string{"mon", "tue", "wed", "thu", "fri"}, Timezone: new("Asia/Tokyo")},
	}
	cron := func(text string) Spec { return Spec{Cron: &text} }
	rule := func(text string) Spec { return Spec{RRule: &text} }
	started := func(text string) Spec { return Spec{RRule: &text, StartAt: new("2027-01-01T00:00:00Z")} }
	var allMinutes []string
	for m := range 60 {
		allMinutes = append(allMinutes, fmt.Sprint(m))
	}
	for _, tt := range []struct {
		spec        Spec
		field, code string
	}{
		{Spec{}, "cron", CodeMissingField},
		{Spec{Cron: new("@daily"), Every: new("5m")}, "every", CodeConflictingFields},
		{Spec{Cron: new("@daily"), Dates: []string{}}, "dates", CodeConflictingFields},
		{Spec{Every: new(""), RRule: new("FREQ=DAILY")}, "rrule", CodeConflictingFields},
		{Spec{Cron: new("@daily"), Phase: new("5m")}, "phase", CodeConflictingFields},

		{cron(""), "cron", CodeInvalidValue},
		{cron("   "), "cron", CodeInvalidValue},
		{cron("TZ=UTC"), "cron", CodeConflictingFields},
		{cron("TZ="), "cron", CodeConflictingFields},
		{cron("CRON_TZ=Europe/Oslo"), "cron", CodeConflictingFields},
		{cron(" TZ=UTC 0 9 * * *"), "cron", CodeConflictingFields},
		{cron("60 * * * *"), "cron", CodeOutOfRange},
		{cron("99999 * * * *"), "cron", CodeInvalidValue},
		{cron("+5 * * * *"), "cron", CodeInvalidValue},
		{cron("-5 * * * *"), "cron", CodeInvalidValue},
		{cron("5- * * * *"), "cron", CodeInvalidValue},
		{cron("1,,2 * * * *"), "cron", CodeInvalidValue},
		{cron("1, * * * *"), "cron", CodeInvalidValue},
		{cron("*-5 * * * *"), "cron", CodeInvalidValue},
		{cron("5-*/2 * * * *"), "cron", CodeInvalidValue},
		{cron("*/5/5 * * * *"), "cron", CodeInvalidValue},
		{cron("*/0 * * * *"), "cron", CodeOutOfRange},
		{cron("*/ * * * *"), "cron", CodeInvalidValue},
		{cron("?/5 * * * *"), "cron", CodeInvalidValue},
		{cron("0 ? * * *"), "cron", CodeInvalidValue},
		{cron("1.5 * * * *"), "cron", CodeInvalidValue},
		{cron("٣ * * * *"), "cron", CodeInvalidValue},
		{cron("0x5 * * * *"), "cron", CodeInvalidValue},
		{cron("mon * * * *"), "cron", CodeInvalidValue},
		{cron("0 0 * * MONDAY"), "cron", CodeInvalidValue},
		{cron("0 0 * jan-foo *"), "cron", CodeInvalidValue},
		{cron("0 0 * * 8"), "cron", CodeOutOfRange},
		{cron("0 0 32 * *"), "cron", CodeOutOfRange},
		{cron("0 0 30 2 *"), "cron", CodeNeverFires},
		{cron("0 0 31 2,4,6,9,11 ?"), "cron", CodeNeverFires},
		{cron("0 0 31W 4 ?"), "cron", CodeNeverFires},
		{cron("0 0 L-29 2 ?"), "cron", CodeNeverFires},
		{cron("* * * * * * *"), "cron", CodeInvalidValue},
		{cron("@daily now"), "cron", CodeInvalidValue},
		{cron("@reboot"), "cron", CodeInvalidValue},
		{cron("@every"), "cron", CodeInvalidValue},
		{cron("@every 0s"), "cron", CodeOutOfRange},
		{cron("@every -5m"), "cron", CodeInvalidValue},
		{cron("@every 250ms"), "cron", CodeOutOfRange},
		{cron("@every 2.5s"), "cron", CodeInvalidValue},
		{cron("@every 1d"), "cron", CodeInvalidValue},
		{cron("@every 99999999999999h"), "cron", CodeOutOfRange},
		{cron("@every 1000000h"), "cron", CodeOutOfRange},
		{cron(strings.Join(allMinutes, ",") + strings.Repeat(" ", 1000) + "* * * *"), "cron", CodeOutOfRange},
		{cron("*/60 * * * *"), "cron", CodeOutOfRange},
		{cron("*/90 * * * *"), "cron", CodeOutOfRange},
		{cron("5/90 * * * *"), "cron", CodeOutOfRange},
		{cron("*/61 * * * * *"), "cron", CodeOutOfRange},
		{cron("0 */24 * * *"), "cron", CodeOutOfRange},
		{cron("0 0 */31 * *"), "cron", CodeOutOfRange},
		{cron("0 0 1 */12 *"), "cron", CodeOutOfRange},
		{cron("0 9 ? * MON-FRI *"), "cron", CodeInvalidValue},
		{cron("cron(0 9 ? * MON-FRI *)"), "cron", CodeInvalidValue},
		{cron("rate(5 minutes)"), "cron", CodeInvalidValue},
		{cron("at(2027-01-01T00:00:00)"), "cron", CodeInvalidValue},
		{rule("FREQ=MINUTELY;INTERVAL=7"), "start_at", CodeMissingField},
		{Spec{RRule: new("FREQ=MINUTELY"), RepeatedHour: new("first")}, "repeated_hour", CodeConflictingFields},
		{cron("0 0 L * 5"), "cron", CodeInvalidValue},
		{cron("0 0 L-31 * ?"), "cron", CodeOutOfRange},
		{cron("0 0 0W * ?"), "cron", CodeOutOfRange},
		{cron("0 0 ? * 5#6"), "cron", CodeOutOfRange},
		{cron("0 0 ? * 5#0"), "cron", CodeOutOfRange},
		{cron("0 0 ? * 9L"), "cron", CodeInvalidValue},
		{cron("0 0 ? * FOO#1"), "cron", CodeInvalidValue},
		{cron("0 0 ? * L"), "cron", CodeInvalidValue},

		{Spec{Every: new("")}, "every", CodeInvalidValue},
		{Spec{Every: new("0s")}, "every", CodeOutOfRange},
		{Spec{Every: new("999ms")}, "every", CodeOutOfRange},
		{Spec{Every: new("1500ms")}, "every", CodeInvalidValue},
		{Spec{Every: new("-5m")}, "every", CodeInvalidValue},
		{Spec{Every: new("1.5h")}, "every", CodeInvalidValue},
		{Spec{Every: new("40000d")}, "every", CodeOutOfRange},
		{Spec{Every: new("99999999999999999999d")}, "every", CodeOutOfRange},
		{Spec{Every: new("5m"), Phase: new("5m")}, "phase", CodeOutOfRange},
		{Spec{Every: new("5m"), Phase: new("1ms")}, "phase", CodeInvalidValue},
		{Spec{Every: new("5m"), Phase: new("x")}, "phase", CodeInvalidValue},
		{Spec{Every: new("5m"), MissingHour: new("skip")}, "missing_hour", CodeConflictingFields},
		{Spec{Cron: new("@every 5m"), RepeatedHour: new("both")}, "repeated_hour", CodeConflictingFields},

		{Spec{Dates: []string{}}, "dates", CodeOutOfRange},
		{Spec{Dates: make([]string, MaxDates+1)}, "dates", CodeOutOfRange},
		{Spec{Dates: []string{"2027-01-01T00:00:00Z", "2027-02-29T00:00:00Z"}}, "dates/1", CodeInvalidValue},
		{Spec{Dates: []string{"2027-01-01"}}, "dates/0", CodeInvalidValue},
		{Spec{Dates: []string{"2027-01-01T00:00:00+24:00"}}, "dates/0", CodeInvalidValue},
		{Spec{Dates: []string{"2027-01-01T00:00:00-23:60"}}, "dates/0", CodeInvalidValue},
		{Spec{Cron: new("@daily"), StartAt: new("2027-01-01T00:00:00+24:00")}, "start_at", CodeInvalidValue},
		{Spec{Dates: []string{"1899-12-31T00:00:00Z"}}, "dates/0", CodeOutOfRange},

		{Spec{Cron: new("@daily"), Timezone: new("")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("Local")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("Factory")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("localtime")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("right/UTC")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("../Europe/Berlin")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("Europe/")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("europe/berlin")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("UTC ")}, "timezone", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Timezone: new("+02:00")}, "timezone", CodeInvalidValue},

		{Spec{Cron: new("@daily"), StartAt: new("")}, "start_at", CodeInvalidValue},
		{Spec{Cron: new("@daily"), EndAt: new("tomorrow")}, "end_at", CodeInvalidValue},
		{Spec{Cron: new("@daily"), StartAt: new("2027-01-02T00:00:00Z"), EndAt: new("2027-01-01T00:00:00Z")}, "end_at",
			CodeConflictingFields},
		{Spec{Cron: new("@daily"), StartAt: new("2027-01-02T00:00:01Z"), EndAt: new("2027-01-03T00:00:00Z")}, "cron",
			CodeNeverFires},
		{Spec{Dates: []string{"2027-01-01T00:00:00Z"}, StartAt: new("2027-01-02T00:00:01Z")}, "dates", CodeNeverFires},
		{Spec{Every: new("10d"), StartAt: new("2027-01-02T00:00:00Z"), Phase: new("2d"),
			EndAt: new("2027-01-03T00:00:00Z")}, "every", CodeNeverFires},
		{Spec{Cron: new("@daily"), MaxRuns: new(0)}, "max_runs", CodeOutOfRange},
		{Spec{Cron: new("@daily"), MaxRuns: new(-1)}, "max_runs", CodeOutOfRange},
		{Spec{Cron: new("@daily"), MissingHour: new("")}, "missing_hour", CodeInvalidValue},
		{Spec{Cron: new("@daily"), MissingHour: new("run_before")}, "missing_hour", CodeInvalidValue},
		{Spec{Cron: new("@daily"), RepeatedHour: new("never")}, "repeated_hour", CodeInvalidValue},
		{Spec{Cron: new("*/30 2 ? 3 0#2"), Timezone: new("America/New_York"), StartAt: new("2027-01-01T00:00:00Z")},
			"cron", CodeNeverFires},

		{Spec{Cron: new("@daily"), Exclude: []string{"nobody"}}, "exclude/0", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Exclude: []string{"weekend", "weekend"}}, "exclude/1", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Exclude: []string{"weekend", "broken"}}, "exclude/1", CodeInvalidValue},
		{Spec{Cron: new("@daily"), Exclude: make([]string, MaxExclude+1)}, "exclude", CodeOutOfRange},
		{Spec{Cron: new("@daily"), Exclude: []string{"weekend", "week"}}, "cron", CodeNeverFires},
		{Spec{Cron: new("* * * * * *"), Exclude: []string{"weekend", "week"}}, "cron", CodeNeverFires},
		{Spec{Cron: new("0 9 * * 6"), Exclude: []string{"weekend"}}, "cron", CodeNeverFires},
		{Spec{Cron: new("0 9 * * *"), Exclude: []string{"weekend", "easterly"}}, "cron", CodeNeverFires},
		{Spec{Cron: new("0 */30 * * * *"), Exclude: []string{"next"}}, "exclude", CodeConflictingFields},
		{Spec{Every: new("59m"), Exclude: []string{"next"}}, "exclude", CodeConflictingFields},
		{Spec{RRule: new("FREQ=MINUTELY"), Exclude: []string{"next"}}, "exclude", CodeConflictingFields},

		{Spec{Cron: new("@daily"), Spread: new("0s")}, "spread", CodeOutOfRange},
		{Spec{Cron: new("@daily"), Spread: new("61m")}, "spread", CodeOutOfRange},
		{Spec{Cron: new("@daily"), Spread: new("soon")}, "spread", CodeInvalidValue},
		{Spec{Cron: new("*/5 * * * *"), Spread: new("5m")}, "spread", CodeOutOfRange},
		{Spec{Cron: new("0,50 * * * *"), Spread: new("10m")}, "spread", CodeOutOfRange},
		{Spec{Cron: new("30 23,0 * * *"), Spread: new("1h")}, "spread", CodeOutOfRange},
		{Spec{Every: new("30s"), Spread: new("30s")}, "spread", CodeOutOfRange},
		{Spec{Dates: []string{"2027-01-01T00:00:00Z", "2027-01-01T00:01:00Z"}, Spread: new("1m")}, "spread",
			CodeOutOfRange},
		{Spec{RRule: new("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,10"), Spread: new("10m")}, "spread", CodeOutOfRange},
		{Spec{RRule: new("FREQ=MINUTELY;INTERVAL=10"), StartAt: new("2027-01-01T00:00:00Z"), Spread: new("10m")},
			"spread", CodeOutOfRange},

		{rule(""), "rrule", CodeInvalidValue},
		{rule("FREQ=FORTNIGHTLY"), "rrule", CodeInvalidValue},
		{rule("BYHOUR=9"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;FREQ=DAILY"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;BYHOUR"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;BYHOUR=24"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;BYHOUR=1,,2"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;BYSECOND=60"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;BYEASTER=0"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;X-FOO=1"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY\nEXDATE:20270101T000000Z"), "rrule", CodeInvalidValue},
		{rule("DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY"), "rrule", CodeConflictingFields},
		{rule("FREQ=DAILY;UNTIL=20270229"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;UNTIL=tomorrow"), "rrule", CodeInvalidValue},
		{rule("FREQ=DAILY;UNTIL=18000101T000000Z"), "rrule", CodeNeverFires},
		{started("FREQ=DAILY;COUNT=0"), "rrule", CodeOutOfRange},
		{started("FREQ=DAILY;COUNT=1001"), "rrule", CodeOutOfRange},
		{started("FREQ=DAILY;COUNT=5;UNTIL=20280101"), "rrule", CodeConflictingFields},
		{started("FREQ=DAILY;INTERVAL=0"), "rrule", CodeOutOfRange},
		{started("FREQ=YEARLY;INTERVAL=60"), "rrule", CodeOutOfRange},
		{started("FREQ=YEARLY;INTERVAL=100"), "rrule", CodeOutOfRange},
		{started("FREQ=MONTHLY;INTERVAL=709"), "rrule", CodeOutOfRange},
		{started("FREQ=WEEKLY;INTERVAL=10000"), "rrule", CodeOutOfRange},
		{started("FREQ=DAILY;INTERVAL=10001"), "rrule", CodeOutOfRange},
		{started("FREQ=HOURLY;INTERVAL=999999999"), "rrule", CodeOutOfRange},
		{started("FREQ=YEARLY;INTERVAL=11;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"), "rrule", CodeOutOfRange},
		{started("FREQ=YEARLY;INTERVAL=50;COUNT=1000"), "rrule", CodeOutOfRange},
		{rule("FREQ=DAILY;COUNT=5"), "start_at", CodeMissingField},
		{rule("FREQ=DAILY;INTERVAL=2"), "start_at", CodeMissingField},
		{rule("FREQ=WEEKLY"), "start_at", CodeMissingField},
		{rule("FREQ=MONTHLY"), "start_at", CodeMissingField},
		{rule("FREQ=YEARLY;BYMONTH=3"), "start_at", CodeMissingField},
		{rule("FREQ=WEEKLY;BYDAY=1MO"), "rrule", CodeConflictingFields},
		{rule("FREQ=MONTHLY;BYDAY=0MO"), "rrule", CodeInvalidValue},
		{rule("FREQ=MONTHLY;BYMONTHDAY=0"), "rrule", CodeInvalidValue},
		{rule("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0"), "rrule", CodeInvalidValue},
		{rule("FREQ=WEEKLY;BYMONTHDAY=1"), "rrule", CodeConflictingFields},
		{rule("FREQ=MONTHLY;BYWEEKNO=1;BYDAY=MO"), "rrule", CodeConflictingFields},
		{rule("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO"), "rrule", CodeConflictingFields},
		{rule("FREQ=DAILY;BYYEARDAY=1"), "rrule", CodeConflictingFields},
		{rule("FREQ=HOURLY;BYSETPOS=2"), "rrule", CodeNeverFires},
		{rule("FREQ=MINUTELY;BYSECOND=0,30;BYSETPOS=3,-3"), "rrule", CodeNeverFires},
		{rule("FREQ=SECONDLY;BYSETPOS=-2"), "rrule", CodeNeverFires},
		{rule("FREQ=YEARLY;BYDAY=MO;BYSETPOS=" + strings.TrimSuffix(strings.Repeat("1,", MaxSetPos+1), ",")), "rrule",
			CodeOutOfRange},
		{rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), "rrule", CodeNeverFires},
		{started("FREQ=HOURLY;INTERVAL=2;BYHOUR=1,3,5"), "rrule", CodeNeverFires},
		{started("FREQ=SECONDLY;INTERVAL=2;BYSECOND=1"), "rrule", CodeNeverFires},
		{rule(strings.Repeat("A", MaxRRule+1)), "rrule", CodeOutOfRange},
	} {
		_, err := Parse(tt.spec, weekend)
		var refused *Error
		if !errors.As(err, &refused) {
			t.Errorf("%s was accepted, want %s %s", describe(tt.spec), tt.field, tt.code)
			continue
		}
		if refused.Field != tt.field || refused.Code != tt.code {
			t.Errorf("%s: got %s %s, want %s %s: %v", describe(tt.spec), refused.Field, refused.Code, tt.field, tt.code,
				err)
		}
		if refused.Detail == "" || len(refused.Error()) > 400 {
			t.Errorf("%s: says %q", describe(tt.spec), refused)
		}
	}
}

func describe(s Spec) string {
	var b strings.Builder
	for name, v := range map[string]*string{"cron": s.Cron, "every": s.Every, "phase": s.Phase, "rrule": s.RRule,
		"timezone": s.Timezone, "spread": s.Spread} {
		if v != nil {
			fmt.Fprintf(&b, "%s=%.80q ", name, *v)
		}
	}
	return b.String()
}

//proof:of S09
func TestParse_SuggestsWhatWasMeant(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"America/New_Yrok": `"America/New_York"`, "europe/berlin": `"Europe/Berlin"`, "utc": `"UTC"`,
		"Mars/Olympus": "does not exist",
	} {
		_, err := Parse(Spec{Cron: new("@daily"), Timezone: &name}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %s", name, err, want)
		}
	}
	_, err := Parse(Spec{Cron: new("@every 0s")}, nil)
	if err == nil || !strings.Contains(err.Error(), "from 1s to 36525d") {
		t.Errorf("%v does not name the minimum", err)
	}
	for text, want := range map[string]string{
		"0 9 L * 5":               `"0 9 L * *"`,
		"0 9 1 * FRI#2":           `"0 9 * * FRI#2"`,
		"*/90 * * * *":            `{"every":"90m"}`,
		"0 */36 * * *":            `{"every":"36h"}`,
		"0 9 ? * MON-FRI *":       `"0 9 ? * MON-FRI"`,
		"cron(0 9 ? * MON-FRI *)": `"0 9 ? * MON-FRI"`,
		"0 9 ? * 2-6 *":           `"0 9 ? * 1-5"`,
		"cron(0 12 1 1 ? 2027)":   "start_at and end_at",
		"rate(5 minutes)":         `{"every":"5m"}`,
		"rate(2 weeks)":           `{"every":"14d"}`,
		"rate(1 day)":             `{"every":"1d"}`,
		"at(2027-11-20T13:00:00)": "dates",
		"cron(every monday)":      "EventBridge",
	} {
		_, err := Parse(Spec{Cron: &text}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %s", text, err, want)
		}
	}
	for zone, want := range map[string]string{"UTC+2": `"Etc/GMT-2"`, "GMT+1": `"Etc/GMT-1"`,
		"UTC-03:00": `"Etc/GMT+3"`, "UTC+0": `"UTC"`, "+2": `"Etc/GMT-2"`} {
		_, err := Parse(Spec{Cron: new("@daily"), Timezone: &zone}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%q: %v does not say %s", zone, err, want)
		}
	}
	for text, want := range map[string]string{
		"2027-02-29T00:00:00Z": "leap year", "2026-12-31T23:59:60Z": "leap second",
		"2027-01-01T00:00:00z": "upper case",
		"2027-04-31T00:00:00Z": "has 30 days", "2027-13-01T00:00:00Z": "no month 13", "2027-01-01": "time of day",
		"2027-01-01T00:00:00": "zone is missing", "2027-01-01T00:00:00+24:00": "beyond 23:59",
		"tomorrow": "begin with a date",
	} {
		_, err := Parse(Spec{Cron: new("@daily"), StartAt: &text}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %s", text, err, want)
		}
	}
}

//proof:of F21
func TestParse_AcceptsLastAndNthDaysWithAStar(t *testing.T) {
	t.Parallel()
	for star, question := range map[string]string{
		"0 0 L * *": "0 0 L * ?", "0 0 15W * *": "0 0 15W * ?", "0 0 LW * *": "0 0 LW * ?",
		"0 9 * * 1#2": "0 9 ? * 1#2", "0 9 * * 5L": "0 9 ? * 5L",
	} {
		a := mustParse(t, Spec{Cron: &star}, nil).Preview(at("2027-01-01T00:00:00Z"), 30)
		b := mustParse(t, Spec{Cron: &question}, nil).Preview(at("2027-01-01T00:00:00Z"), 30)
		requireTimes(t, nominals(a), nominals(b))
		if len(a) != 30 {
			t.Errorf("%s has %d times", star, len(a))
		}
	}
}

//proof:of F24
func TestRRule_KeepsMinuteIntervalsThroughClockChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, start string
		want        time.Duration
	}{
		{"FREQ=MINUTELY;INTERVAL=7", "2027-03-28T00:00:00Z", 7 * time.Minute},
		{"FREQ=MINUTELY;INTERVAL=7", "2027-10-31T00:00:00Z", 7 * time.Minute},
		{"FREQ=SECONDLY;INTERVAL=70", "2027-10-31T00:30:00Z", 70 * time.Second},
		{"FREQ=MINUTELY;INTERVAL=90;COUNT=9", "2027-03-27T22:00:00Z", 90 * time.Minute},
	} {
		c2 := mustParse(t, Spec{RRule: &c.rule, StartAt: &c.start, Timezone: new("Europe/Berlin")}, nil)
		list := c2.Preview(at(c.start).Add(-time.Second), 60)
		for i, o := range list {
			if want := at(c.start).Add(time.Duration(i) * c.want); !o.NominalAt.Equal(want) {
				t.Fatalf("%s: time %d is %s, want %s", c.rule, i, o.NominalAt, want)
			}
		}
		if want := 60; strings.Contains(c.rule, "COUNT") {
			if len(list) != 9 {
				t.Errorf("%s has %d times", c.rule, len(list))
			}
		} else if len(list) != want {
			t.Errorf("%s has %d times", c.rule, len(list))
		}
	}
	// A filter follows the wall clock, the interval elapsed time.
	rule, start := "FREQ=MINUTELY;INTERVAL=50;BYHOUR=3", "2027-03-27T00:00:00Z"
	for _, o := range mustParse(t, Spec{RRule: &rule, StartAt: &start, Timezone: new("Europe/Berlin")}, nil).
		Preview(at(start), 40) {
		elapsed := o.NominalAt.Sub(at(start))
		if berlin := o.NominalAt.In(loadBerlin(t)); elapsed%(50*time.Minute) != 0 || berlin.Hour() != 3 {
			t.Errorf("%s: %s after the start, %s", rule, elapsed, berlin)
		}
	}
}

func loadBerlin(t *testing.T) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestExclusion_IsRefusedByFieldAndCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		exclusion   Exclusion
		field, code string
	}{
		{Exclusion{}, "dates", CodeMissingField},
		{Exclusion{Dates: []string{"2027-02-29"}}, "dates/0", CodeInvalidValue},
		{Exclusion{Dates: []string{"2027-1-1"}}, "dates/0", CodeInvalidValue},
		{Exclusion{Dates: []string{"1899-01-01"}}, "dates/0", CodeInvalidValue},
		{Exclusion{Dates: make([]string, MaxDates+1)}, "dates", CodeOutOfRange},
		{Exclusion{Ranges: make([]Range, MaxRanges+1)}, "ranges", CodeOutOfRange},
		{Exclusion{Yearly: make([]string, 367)}, "yearly", CodeOutOfRange},
		{Exclusion{Ranges: []Range{{}}}, "ranges/0/from", CodeInvalidValue},
		{Exclusion{Ranges: []Range{{From: "2027-01-01"}}}, "ranges/0", CodeInvalidValue},
		{Exclusion{Ranges: []Range{{From: "2027-01-01", To: "2027-01-01T00:00:00Z"}}}, "ranges/0", CodeInvalidValue},
		{Exclusion{Ranges: []Range{{From: "2027-01-01", To: "2027-13-01"}}}, "ranges/0/to", CodeInvalidValue},
		{Exclusion{Ranges: []Range{{From: "2027-01-02", To: "2027-01-01"}}}, "ranges/0", CodeConflictingFields},
		{Exclusion{Ranges: []Range{{From: "2027-01-02T00:00:00Z", To: "2027-01-02T00:00:00Z"}}}, "ranges/0",
			CodeConflictingFields},
		{Exclusion{Yearly: []string{"12-25", "02-30"}}, "yearly/1", CodeInvalidValue},
		{Exclusion{Yearly: []string{"2-3"}}, "yearly/0", CodeInvalidValue},
		{Exclusion{Weekly: []string{"saturday"}}, "weekly/0", CodeInvalidValue},
		{Exclusion{Weekly: []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}}, "weekly", CodeNeverFires},
		{Exclusion{Weekly: []string{"sat"}, Timezone: new("Local")}, "timezone", CodeInvalidValue},
		{Exclusion{Weekly: []string{"sat"}, Timezone: new("")}, "timezone", CodeInvalidValue},
		{Exclusion{Weekly: []string{"sat"}, Move: new("")}, "move", CodeInvalidValue},
		{Exclusion{Weekly: []string{"sat"}, Move: new("skip")}, "move", CodeInvalidValue},
	} {
		var refused *Error
		if err := tt.exclusion.Check(); !errors.As(err, &refused) || refused.Field != tt.field ||
			refused.Code != tt.code {
			t.Errorf("%+v: got %v, want %s %s", tt.exclusion, err, tt.field, tt.code)
		}
	}
	good := Exclusion{Dates: []string{"2027-01-01"}, Yearly: []string{"02-29"}, Weekly: []string{"Sat"},
		Move: new("next"), Timezone: new("UTC"),
		Ranges: []Range{{From: "2027-01-01", To: "2027-01-01"}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
