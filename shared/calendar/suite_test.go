package calendar

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// suiteCase is a line of testdata/suites; the README there describes it.
type suiteCase struct {
	ID         string   `json:"id"`
	Calendar   Spec     `json:"calendar"`
	After      string   `json:"after"`
	Want       []string `json:"want"`
	Exact      bool     `json:"exact"`
	Refuse     bool     `json:"refuse"`
	NoneBefore string   `json:"none_before"`
	ElseWhy    string   `json:"else_why"`
	Also       []struct {
		With json.RawMessage `json:"with"`
	} `json:"also"`
}

// suiteRule is a documented rule of this package by which it refuses what a suite accepts.
type suiteRule struct {
	name   string
	detail string // a part of the error
}

var suiteRules = []suiteRule{
	{"BYEASTER is no part of RFC 5545", `"BYEASTER=`},
	{"BYWEEKDAY is dateutil's name of BYDAY", `"BYWEEKDAY=`},
	{"RFC 5545: BYWEEKNO needs YEARLY", "BYWEEKNO needs FREQ=YEARLY"},
	{"RFC 5545: BYYEARDAY needs YEARLY, HOURLY or shorter", "BYYEARDAY needs FREQ=YEARLY"},
	{"RFC 5545: BYMONTHDAY excludes WEEKLY", "BYMONTHDAY and FREQ=WEEKLY"},
	{"RFC 5545: a numbered weekday needs MONTHLY or YEARLY", "a numbered weekday needs"},
	{"a calendar that never fires is refused", "it never fires"},
	{"times are at most 60 years apart", "INTERVAL 100 is out of range"},
	{"INTERVAL is at most 10,000", "INTERVAL 90061 is out of range"},
	{"years are 1900 to 2399", "is out of range"},
	{"? is for the day fields", `"?" is not understood`},
	{"there is no H", `"H/30" is not understood`},
	{"there is no @every_second and no @every_minute", "is unknown"},
	{"W and L need * in the other day field", `needs "*" in the day of week`},
}

// takesNearestInLists is the rule by which this package takes what a suite refuses.
const takesNearestInLists = "a list may hold nW"

//proof:of F75
func TestParse_AgreesWithPublicSuites(t *testing.T) {
	t.Parallel()
	for _, suite := range []struct {
		file  string
		cases int
		rules map[string]int // how many cases each documented rule decides
	}{
		{"calendar-count.jsonl", 9, map[string]int{}},
		{"calendar-cronos.jsonl", 1491, map[string]int{
			"W and L need * in the other day field":          4,
			"there is no @every_second and no @every_minute": 4,
			"? is for the day fields":                        2,
			"there is no H":                                  20,
			takesNearestInLists:                              4,
			"both day fields restricted: they AND, ours is OR as in cron (documented)":                  22,
			"asked at the very end of the gap, Cronos takes what was skipped as past; ours as due then": 2,
		}},
		{"calendar-dateutil.jsonl", 256, map[string]int{
			"BYEASTER is no part of RFC 5545":                                      21,
			"BYWEEKDAY is dateutil's name of BYDAY":                                1,
			"RFC 5545: BYMONTHDAY excludes WEEKLY":                                 4,
			"RFC 5545: BYWEEKNO needs YEARLY":                                      30,
			"RFC 5545: BYYEARDAY needs YEARLY, HOURLY or shorter":                  12,
			"RFC 5545: a numbered weekday needs MONTHLY or YEARLY":                 10,
			"a calendar that never fires is refused":                               1,
			"times are at most 60 years apart":                                     1,
			"INTERVAL is at most 10,000":                                           1,
			"years are 1900 to 2399":                                               1,
			"a fraction of a second of the start: there cut, ours the next second": 1,
		}},
		{"calendar-rust-rrule.jsonl", 39, map[string]int{
			"02:22:10 in the gap is 03:22:10 there (RFC 5545, 3.3.5); ours 03:00:00, documented for all rules": 1,
		}},
	} {
		t.Run(suite.file, func(t *testing.T) {
			t.Parallel()
			cases := readSuite[suiteCase](t, suite.file)
			if len(cases) != suite.cases {
				t.Errorf("%d cases, want %d", len(cases), suite.cases)
			}
			rules := map[string]int{}
			for _, c := range cases {
				t.Run(c.ID, func(t *testing.T) {
					if rule := c.check(t); rule != "" {
						rules[rule]++
					}
				})
			}
			if !maps.Equal(rules, suite.rules) {
				t.Errorf("documented rules decide\n%v, want\n%v", rules, suite.rules)
			}
		})
	}
}

// check compares a case with this package and returns the documented rule that decides where they differ.
func (c suiteCase) check(t *testing.T) (rule string) {
	t.Helper()
	parsed, err := Parse(c.Calendar, nil)
	var refused *Error
	switch {
	case err == nil && c.Refuse:
		if !strings.Contains(strings.ToUpper(*c.Calendar.Cron), "1,2W") {
			t.Errorf("%s is accepted", describe(c.Calendar))
		}
		return takesNearestInLists
	case err != nil && !errors.As(err, &refused):
		t.Fatal(err)
	case err != nil && c.Refuse:
		return ""
	case err != nil:
		i := slices.IndexFunc(suiteRules, func(r suiteRule) bool { return strings.Contains(refused.Detail, r.detail) })
		if i < 0 {
			t.Fatalf("%s is refused, and no documented rule says so: %v", describe(c.Calendar), err)
		}
		return suiteRules[i].name
	}
	got := c.answer(parsed)
	if slices.Equal(got, c.want()) {
		return ""
	}
	if c.ElseWhy != "" {
		return c.ElseWhy
	}
	for _, also := range c.Also { // the suite's own default is a setting here
		other := c.Calendar
		if err := json.Unmarshal(also.With, &other); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(c.answer(mustParse(t, other, nil)), c.want()) {
			return ""
		}
	}
	t.Errorf("%s after %s:\n got %v\nwant %v", describe(c.Calendar), c.After, got, c.want())
	return ""
}

func (c suiteCase) want() (times []string) {
	for _, w := range c.Want {
		times = append(times, at(w).Format(time.RFC3339Nano))
	}
	return times
}

func (c suiteCase) answer(parsed Calendar) []string {
	count := len(c.Want)
	if c.Exact || c.NoneBefore != "" {
		count++
	}
	times := parsed.Preview(at(c.After), count)
	if c.NoneBefore != "" && len(times) == count && !times[count-1].NominalAt.Before(at(c.NoneBefore)) {
		times = times[:count-1]
	}
	return nominals(times)
}

func readSuite[T any](t *testing.T, name string) (list []T) {
	t.Helper()
	raw, err := os.ReadFile("testdata/suites/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var c T
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func TestParse_ReadsEqualExpressionsAlike(t *testing.T) {
	t.Parallel()
	type pair struct{ ID, Left, Right string }
	pairs := readSuite[pair](t, "cronos-equal.jsonl")
	if len(pairs) != 66 {
		t.Errorf("%d pairs, want 66", len(pairs))
	}
	refused := 0
	for _, p := range pairs {
		t.Run(p.ID, func(t *testing.T) {
			left, err := parseCron(p.Left)
			right, other := parseCron(p.Right)
			if err != nil || other != nil {
				if (err == nil) != (other == nil) ||
					!strings.Contains(err.Detail, suiteRules[len(suiteRules)-1].detail) {
					t.Errorf("%q: %v, %q: %v", p.Left, err, p.Right, other)
				}
				refused++
				return
			}
			if a, b := left.rule.days, right.rule.days; left.rule.time != right.rule.time || a.months != b.months ||
				a.dom != b.dom || a.weekdays != b.weekdays || a.nth != b.nth || a.fromEnd != b.fromEnd ||
				a.nearest != b.nearest || a.nearestFromEnd != b.nearestFromEnd {
				t.Errorf("%q is %+v, and %q is %+v", p.Left, *left.rule, p.Right, *right.rule)
			}
		})
	}
	if refused != 2 {
		t.Errorf("%d pairs are refused, want 2", refused)
	}
}
