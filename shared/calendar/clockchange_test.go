package calendar

import (
	"strings"
	"testing"
)

// skippedOver returns the entries of a calendar from one instant to another, each as its local time and reason.
func skippedOver(t *testing.T, c Calendar, after, until string) (entries []string) {
	t.Helper()
	skips, through := c.Skipped(at(after), at(until), 10_000)
	if !through.Equal(at(until)) {
		t.Errorf("came through to %s", through)
	}
	for _, s := range skips {
		if s.Why == "" || !s.NominalAt.Equal(at(s.Local)) {
			t.Errorf("%+v", s)
		}
		entries = append(entries, s.Local+" "+s.Reason)
	}
	return entries
}

func TestSkipped_HoldsTheTimesThatARuleInRealTimeLosesAtAJump(t *testing.T) {
	t.Parallel()
	const berlin, howe = "Europe/Berlin", "Australia/Lord_Howe"
	for name, tt := range map[string]struct {
		spec         Spec
		after, until string
		want         []string
	}{
		"quarters of the missing hour": {Spec{Cron: new("*/15 2 * * *"), Timezone: new(berlin)},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", []string{"2027-03-28T03:00:00+02:00 missing_hour"}},
		"seconds of the missing hour": {Spec{Cron: new("* * 2 * * *"), Timezone: new(berlin)},
			"2027-03-28T00:00:00Z", "2027-03-28T12:00:00Z", []string{"2027-03-28T03:00:00+02:00 missing_hour"}},
		"every second hour": {Spec{Cron: new("30 */2 * * *"), Timezone: new(berlin)},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", []string{"2027-03-28T03:30:00+02:00 missing_hour"}},
		"the part of the jump that no time replaces": {Spec{Cron: new("0,15,30 * * * *"), Timezone: new(howe)},
			"2026-10-03T12:00:00Z", "2026-10-04T12:00:00Z", []string{"2026-10-04T02:45:00+11:00 missing_hour"}},
		"an rrule by the hour": {Spec{RRule: new("FREQ=HOURLY;BYHOUR=1,2"), Timezone: new(berlin)},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", []string{"2027-03-28T03:00:00+02:00 missing_hour"}},
		"an rrule by the minute": {Spec{RRule: new("FREQ=MINUTELY;BYHOUR=2;BYMINUTE=10,40"), Timezone: new(berlin)},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", []string{"2027-03-28T03:10:00+02:00 missing_hour"}},
		"quarters of every hour": {Spec{Cron: new("*/15 * * * *"), Timezone: new(berlin)},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", nil},
		"quarters of the hours around it": {Spec{Cron: new("*/15 2-3 * * *"), Timezone: new(berlin)},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", nil},
		"an rrule of minutes": {Spec{RRule: new("FREQ=MINUTELY;INTERVAL=7"), Timezone: new(berlin),
			StartAt: new("2027-03-27T12:00:00Z")}, "2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", nil},
		"run_after runs once instead": {Spec{Cron: new("*/15 2 * * *"), Timezone: new(berlin),
			MissingHour: new("run_after")}, "2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := mustParse(t, tt.spec, nil)
			requireTimes(t, skippedOver(t, c, tt.after, tt.until), tt.want)
			if c.LeavesOut() != (tt.want != nil) {
				t.Errorf("leaves out: %v", c.LeavesOut())
			}
			// In pieces there are the same entries, and none is a time at which it runs.
			var pieces []string
			for from := at(tt.after); from.Before(at(tt.until)); {
				skips, through := c.Skipped(from, at(tt.until), 3)
				for _, s := range skips {
					pieces = append(pieces, s.Local+" "+s.Reason)
					if o, ok := c.Next(s.NominalAt.Add(-1e6)); ok && o.NominalAt.Equal(s.NominalAt) {
						t.Errorf("%s runs as well", s.Local)
					}
				}
				from = through
			}
			requireTimes(t, pieces, tt.want)
		})
	}
}

func TestCalendar_NotesWhatARuleInRealTimeDoesAtAChange(t *testing.T) {
	t.Parallel()
	for cron, noted := range map[string]bool{
		"*/15 2 * * *": true, "0 */2 * * *": true, "*/15 * * * *": false, "*/15 9-17 * * 1-5": false,
		"30 2 * * *":  false,
		"* * * * * *": false,
	} {
		for zone, changes := range map[string]bool{"Europe/Berlin": true, "Asia/Kolkata": false} {
			notes := strings.Join(mustParse(t, Spec{Cron: &cron, Timezone: &zone}, nil).Notes(), " ")
			if strings.Contains(notes, "follows real time") != (noted && changes) {
				t.Errorf("%s in %s: notes %q", cron, zone, notes)
			}
		}
	}
	asked := Spec{Cron: new("*/15 2 * * *"), Timezone: new("Europe/Berlin"), RepeatedHour: new("first")}
	if notes := mustParse(t, asked, nil).Notes(); notes != nil {
		t.Errorf("notes %q where a policy is given", notes)
	}
}

func TestParse_TakesRangesThatPassTheEndOfTheirField(t *testing.T) {
	t.Parallel()
	for around, plain := range map[string]string{
		"0 9 * * FRI-MON": "0 9 * * 0,1,5,6", "0 9 * * SAT-SUN": "0 9 * * 0,6", "0 9 * * MON-SUN": "0 9 * * *",
		"0 9 * * 7-2": "0 9 * * 0-2", "0 9 * * 7-7": "0 9 * * 0", "0 9 * * 5-7": "0 9 * * 0,5,6",
		"0 9 * * sat-tue/2": "0 9 * * 1,6", "0 22-2 * * *": "0 0,1,2,22,23 * * *", "55-5 * * * *": "0-5,55-59 * * * *",
		"57-5/3 0 9 * * *": "0,3,57 0 9 * * *", "0 9 20-5/5 * *": "0 9 4,20,25,30 * *",
		"0 9 1 NOV-FEB *": "0 9 1 1,2,11,12 *",
		"@DAILY":          "0 0 * * *", "@Hourly": "0 * * * *", "0 9 L-2W * *": "0 9 L-2W * ?",
	} {
		got := mustParse(t, Spec{Cron: &around}, nil).Preview(at("2027-01-01T00:00:00Z"), 200)
		requireTimes(t, nominals(got), nominals(mustParse(t, Spec{Cron: &plain}, nil).
			Preview(at("2027-01-01T00:00:00Z"), 200)))
	}
	got := mustParse(t, Spec{Cron: new("0 9 L-2W * *")}, nil).Preview(at("2027-01-01T00:00:00Z"), 3)
	requireTimes(t, nominals(got), []string{"2027-01-29T09:00:00Z", "2027-02-26T09:00:00Z", "2027-03-29T09:00:00Z"})
	if got := mustParse(t, Spec{Cron: new("@EVERY 90s")}, nil).Preview(at("2027-01-01T00:00:00Z"), 1); !got[0].
		NominalAt.Equal(at("2027-01-01T00:01:30Z")) {
		t.Errorf("@EVERY 90s runs at %s", got[0].NominalAt)
	}
}

func TestCalendar_NotesHowDayFieldsCombine(t *testing.T) {
	t.Parallel()
	for cron, want := range map[string]string{
		"0 14 */14 * 3": `day of month is "*/14", which begins with *` +
			`, so a day runs when day of month and day of week both`,
		"0 14 1 * */2": `day of week is "*/2", which begins with *` +
			`, so a day runs when day of month and day of week both`,
		"0 14 */2 * */3":   "both match",
		"0 14 1-31/14 * 3": "when either of them matches", "0 14 13 * 5": "when either of them matches",
		"0 14 */14 * *": "", "0 14 ? * 3": "", "0 14 * * 3": "", "0 14 L * *": "", "0 14 * * 5L": "",
		"0 14 */1 * 3": "",
	} {
		notes := strings.Join(mustParse(t, Spec{Cron: &cron}, nil).Notes(), " ")
		if !strings.Contains(notes, want) || want == "" && notes != "" {
			t.Errorf("%s: notes %q do not say %q", cron, notes, want)
		}
	}
}

func TestZone_IsNeverGuessedFromAFewLetters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"PST": `such as "America/Los_Angeles"`, "BST": `such as "Europe/London"`,
		"pdt":  `such as "America/Los_Angeles"`,
		"CEST": `such as "Europe/Berlin"`, "CST": `"America/Chicago" or "Asia/Shanghai"`,
		"IST": `"Asia/Kolkata" or "Europe/Dublin" or "Asia/Jerusalem"`, "XST": `"XST" does not exist`,
		"GTM": "does not exist", "est": `did you mean "EST"?`, "UTC+05:30": `such as "Asia/Kolkata"`,
		"GMT+0545": `such as "Asia/Kathmandu"`, "-09:30": `such as "Pacific/Marquesas"`, "UTC+01:17": "no zone keeps",
		"UTC+15": "no zone keeps", "Europe/Berln": `did you mean "Europe/Berlin"?`,
		"Singapoure": `did you mean "Singapore"?`,
	} {
		_, err := findZone("timezone", name)
		if err == nil || !strings.Contains(err.Detail, want) || len(name) <= 4 && name != "est" &&
			strings.Contains(err.Detail, "did you mean") {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	for letters, cities := range abbreviations {
		if _, exists := zoneFiles()[letters]; exists {
			t.Errorf("%s is a zone", letters)
		}
		for _, city := range cities {
			if _, err := findZone("timezone", city); err != nil {
				t.Error(err)
			}
		}
	}
	for offset, city := range offsetCities {
		z, err := findZone("timezone", city)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"2027-01-15T00:00:00", "2027-07-15T00:00:00"} {
			wall, _, _ := z.instants(at(text + "Z").Unix())
			if want := at(text + offset).Unix(); wall != want {
				t.Errorf("%s is not %s at %s", city, offset, text)
			}
		}
	}
	for name, noted := range map[string]bool{"EST": true, "MST": true, "HST": false, "Europe/Berlin": false,
		"EST5EDT": false} {
		notes := strings.Join(mustParse(t, Spec{Cron: new("@daily"), Timezone: &name}, nil).Notes(), " ")
		if strings.Contains(notes, "never changes its clock") != noted {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

func TestParse_TakesOffsetsAndFractionsAsRunAtDoes(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Spec{Dates: []string{"2027-01-01T00:00:00.000001Z", "2027-01-01T23:59:00+23:59"}}, nil)
	requireTimes(t, nominals(c.Preview(at("2026-01-01T00:00:00Z"), 3)),
		[]string{"2027-01-01T00:00:00Z", "2027-01-01T00:00:00.001Z"})
	every := mustParse(t, Spec{Every: new("1h"), StartAt: new("2027-01-01T00:00:00.123456Z")}, nil)
	requireTimes(t, nominals(every.Preview(at("2026-01-01T00:00:00Z"), 1)), []string{"2027-01-01T00:00:00.124Z"})
}

func TestRRule_SelectsPositionsOfShortPeriods(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string][]string{
		"FREQ=HOURLY;BYMINUTE=0,20,40;BYSETPOS=-1":         {"2027-03-01T00:40:00Z", "2027-03-01T01:40:00Z"},
		"FREQ=HOURLY;BYMINUTE=10;BYSECOND=0,30;BYSETPOS=2": {"2027-03-01T00:10:30Z", "2027-03-01T01:10:30Z"},
		"FREQ=HOURLY;INTERVAL=5;BYSETPOS=1":                {"2027-03-01T00:00:00Z", "2027-03-01T05:00:00Z"},
		"FREQ=MINUTELY;BYSECOND=5,15,25;BYSETPOS=1,-1":     {"2027-03-01T00:00:05Z", "2027-03-01T00:00:25Z"},
		"FREQ=SECONDLY;INTERVAL=10;BYSETPOS=-1":            {"2027-03-01T00:00:00Z", "2027-03-01T00:00:10Z"},
		"FREQ=YEARLY;BYWEEKNO=20":                          {"2027-05-17T00:00:00Z", "2027-05-18T00:00:00Z"},
	} {
		c := mustParse(t, Spec{RRule: &rule, StartAt: new("2027-03-01T00:00:00Z")}, nil)
		requireTimes(t, nominals(c.Preview(at("2027-02-28T23:59:59Z"), 2)), want)
	}
}

func TestRRule_NeverEndsWithoutAWord(t *testing.T) {
	t.Parallel()
	for rule, start := range map[string]string{
		"FREQ=YEARLY;INTERVAL=59": "1990-01-01T00:00:00Z", "FREQ=MONTHLY;INTERVAL=708": "1990-01-01T00:00:00Z",
		"FREQ=DAILY;INTERVAL=10000": "1990-01-01T00:00:00Z", "FREQ=SECONDLY;INTERVAL=9001": "1990-01-01T00:00:00Z",
		"FREQ=YEARLY;INTERVAL=8;BYMONTH=2;BYMONTHDAY=29":  "2024-02-29T00:00:00Z",
		"FREQ=MINUTELY;INTERVAL=9973;BYHOUR=9;BYMINUTE=0": "1990-01-01T09:00:00Z",
		"FREQ=HOURLY;INTERVAL=999;BYHOUR=9;BYDAY=MO":      "1990-01-01T09:00:00Z",
	} {
		c := mustParse(t, Spec{RRule: &rule, StartAt: &start}, nil)
		last := at(start)
		for o, ok := c.Next(last); ok; o, ok = c.Next(o.NominalAt) {
			last = o.NominalAt.AddDate(1, 0, 0)
		}
		if last.Year() < 2400-HorizonYears {
			t.Errorf("%s ends at %s", rule, last)
		}
	}
}
