package api_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

//proof:of 3 S06
func TestPreview_AnswersEveryPublicVector(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../shared/calendar/testdata/cron-shared.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		ID, Spec, Zone string
		After          string   `json:"after_utc"`
		Expect         []string `json:"expect_next_utc"`
		ExpectError    bool     `json:"expect_error"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil || len(vectors) != 100 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	b := setup(t)
	for _, v := range vectors {
		body := fmt.Sprintf(`{"calendar":{"cron":%s,"timezone":%s}`, quote(v.Spec), quote(v.Zone))
		if v.After != "" {
			body += `,"after":` + quote(v.After)
		}
		switch v.ID {
		case "cs-e22", "cs-e11", "cs-e23": // "L" is documented here, and so are ranges that pass the end of their field
			b.want(t, 200, "POST", "/v1/schedules/preview", body+"}")
			continue
		}
		if v.ExpectError {
			r := b.do(t, "POST", "/v1/schedules/preview", body+"}")
			errs, _ := r.body["errors"].([]any)
			if r.status != 400 || len(errs) != 1 {
				t.Errorf("%s: %q in %q was answered %d %s", v.ID, v.Spec, v.Zone, r.status, r.text)
				continue
			}
			e := errs[0].(map[string]any)
			pointer, _ := e["pointer"].(string)
			if pointer != "/calendar/cron" && pointer != "/calendar/timezone" || e["code"] == "" ||
				e["detail"] == "" || e["allowed"] == nil && e["code"] != "never_fires" {
				t.Errorf("%s: %q in %q: %v", v.ID, v.Spec, v.Zone, e)
			}
			continue
		}
		r := b.want(t, 200, "POST", "/v1/schedules/preview", body+fmt.Sprintf(`,"count":%d}`, len(v.Expect)))
		items := r.items()
		if len(items) != len(v.Expect) {
			t.Errorf("%s: %s", v.ID, r.text)
			continue
		}
		for i, want := range v.Expect {
			if got, _ := items[i]["nominal_at"].(string); strings.TrimSuffix(got, ".000Z") != strings.TrimSuffix(want,
				"Z") || items[i]["due_at"] != got {
				t.Errorf("%s: time %d is %v, due %v, want %s", v.ID, i, got, items[i]["due_at"], want)
			}
		}
	}
}

func TestPreview_FlagsSpecialTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/exclusions/holidays-de", `{"dates":["2027-03-29"],"weekly":["sun"]}`)
	b.want(t, 201, "PUT", "/v1/exclusions/weekends", `{"weekly":["sat","sun"],"move":"next"}`)
	for name, c := range map[string]struct{ body, want string }{
		"a wall time that a change swallows": {
			`{"calendar":{"cron":"30 2 * * *","timezone":"Europe/Berlin"},"after":"2027-03-27T12:00:00Z","count":2}`,
			`{"items":[{"nominal_at":"2027-03-28T01:00:00.000Z","due_at":"2027-03-28T01:00:00.000Z","local":"2027-03-28T03:00:00+02:00","flags":["change_over_day","missing_hour"]},` +
				`{"nominal_at":"2027-03-29T00:30:00.000Z","due_at":"2027-03-29T00:30:00.000Z","local":"2027-03-29T02:30:00+02:00","flags":[]}]}`,
		},
		"a wall time that comes twice": {
			`{"calendar":{"cron":"30 2 * * *","timezone":"Europe/Berlin"},"after":"2027-10-30T12:00:00Z","count":1}`,
			`{"items":[{"nominal_at":"2027-10-31T00:30:00.000Z","due_at":"2027-10-31T00:30:00.000Z","local":"2027-10-31T02:30:00+02:00","flags":["change_over_day","repeated_hour"]}]}`,
		},
		"what an exclusion drops and a change-over skips": {
			`{"calendar":{"cron":"30 2 * * *","timezone":"Europe/Berlin","missing_hour":"skip","exclude":["holidays-de"]},"after":"2027-03-27T12:00:00Z","count":1}`,
			`{"items":[{"nominal_at":"2027-03-30T00:30:00.000Z","due_at":"2027-03-30T00:30:00.000Z","local":"2027-03-30T02:30:00+02:00","flags":[]}],` +
				`"skipped":[{"nominal_at":"2027-03-28T01:00:00.000Z","local":"2027-03-28T03:00:00+02:00","reason":"missing_hour","why":"the clock in Europe/Berlin jumped over this time and missing_hour is skip"},` +
				`{"nominal_at":"2027-03-29T00:30:00.000Z","local":"2027-03-29T02:30:00+02:00","reason":"excluded","exclusion":"holidays-de","why":"excluded by \"holidays-de\""}]}`,
		},
		"what an exclusion moves": {
			`{"calendar":{"cron":"0 9 6 * *","exclude":["weekends"]},"after":"2027-03-01T00:00:00Z","count":1}`,
			`{"items":[{"nominal_at":"2027-03-08T09:00:00.000Z","due_at":"2027-03-08T09:00:00.000Z","local":"2027-03-08T09:00:00Z","flags":["moved_later"],"load":0}]}`,
		},
		"two day fields": {
			`{"calendar":{"cron":"0 0 13 * 5"},"after":"2026-02-10T00:00:00Z","count":2}`,
			`{"items":[{"nominal_at":"2026-02-13T00:00:00.000Z","due_at":"2026-02-13T00:00:00.000Z","local":"2026-02-13T00:00:00Z","flags":[]},` +
				`{"nominal_at":"2026-02-20T00:00:00.000Z","due_at":"2026-02-20T00:00:00.000Z","local":"2026-02-20T00:00:00Z","flags":[]}],` +
				`"notes":["day of month and day of week are both restricted, so a day runs when either of them matches"]}`,
		},
		"a calendar that ends": {
			`{"calendar":{"dates":["2027-03-02T00:00:00Z","2027-02-01T00:00:00+01:00"]}}`,
			`{"items":[{"nominal_at":"2027-03-02T00:00:00.000Z","due_at":"2027-03-02T00:00:00.000Z","local":"2027-03-02T00:00:00Z","flags":[],"load":0}]}`,
		},
	} {
		if r := b.want(t, 200, "POST", "/v1/schedules/preview", c.body); strings.TrimSpace(r.text) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, r.text, c.want)
		}
	}
	b.who = all("globex")
	if r := b.want(t, 400, "POST", "/v1/schedules/preview",
		`{"calendar":{"cron":"0 9 6 * *","exclude":["weekends"]}}`); r.str("code") != "invalid_value" ||
		!strings.Contains(r.text, "/calendar/exclude/0") {
		t.Errorf("another tenant's exclusion: %s", r.text)
	}
}

func TestPreview_AnswersForAnyTimeOfThePast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, want := range map[string]string{
		`{"calendar":{"cron":"0 9 * * *"},"after":"1960-02-28T10:00:00Z","count":1}`:                                   "1960-02-29T09:00:00.000Z",
		`{"calendar":{"cron":"0 9 * * *","end_at":"1961-01-01T00:00:00Z"},"after":"1960-12-30T10:00:00Z"}`:             "1960-12-31T09:00:00.000Z",
		`{"calendar":{"dates":["1999-12-31T23:59:59.9999Z"]},"after":"1999-01-01T00:00:00Z"}`:                          "2000-01-01T00:00:00.000Z",
		`{"calendar":{"rrule":"FREQ=DAILY;COUNT=1","start_at":"1970-01-01T00:00:00Z"},"after":"0001-01-01T00:00:00Z"}`: "1970-01-01T00:00:00.000Z",
	} {
		r := b.want(t, 200, "POST", "/v1/schedules/preview", body)
		if items := r.items(); len(items) != 1 || items[0]["nominal_at"] != want {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	const ended = `{"dates":["1999-12-31T23:59:59Z"]}`
	r := b.want(t, 200, "POST", "/v1/schedules/preview", `{"calendar":`+ended+`}`)
	if len(r.items()) != 0 || !strings.Contains(r.text, "has no time after now") {
		t.Errorf("an ended calendar from now on: %s", r.text)
	}
	if r := b.want(t, 400, "PUT", "/v1/schedules/old", `{"calendar":`+ended+`,"job":{"task":"echo"}}`); r.str(
		"code") != "never_fires" {
		t.Errorf("a schedule of it: %s", r.text)
	}
}

func TestPreview_HasTheRequestedLength(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, want := range map[string]int{
		`{"calendar":{"every":"1s"}}`:                                5,
		`{"calendar":{"cron":"* * * * * *"},"count":1000}`:           1000,
		`{"calendar":{"every":"1s"},"count":1}`:                      1,
		`{"calendar":{"every":"1s","max_runs":3},"count":10}`:        3,
		`{"calendar":{"cron":"@every 1h30m"},"count":2}`:             2,
		`{"calendar":{"every":"5m"},"after":"9999-12-31T00:00:00Z"}`: 0,
	} {
		if r := b.want(t, 200, "POST", "/v1/schedules/preview", body); len(r.items()) != want {
			t.Errorf("%s: %d times, want %d", body, len(r.items()), want)
		}
	}
	items := b.want(t, 200, "POST", "/v1/schedules/preview",
		`{"calendar":{"cron":"@every 90m"},"after":"2027-01-01T00:00:00Z","count":2}`).items()
	if items[0]["nominal_at"] != "2027-01-01T01:30:00.000Z" || items[1]["nominal_at"] != "2027-01-01T03:00:00.000Z" {
		t.Errorf("@every counts from after: %v", items)
	}
	spread := func(name string) any {
		return b.want(t, 200, "POST", "/v1/schedules/preview",
			`{"calendar":{"every":"1h","spread":"59m"},"count":1,"name":"`+name+`"}`).items()[0]["due_at"]
	}
	if spread("a") != spread("a") || spread("a") == spread("b") {
		t.Errorf("the spread of a is %v and %v, of b %v", spread("a"), spread("a"), spread("b"))
	}
}

// badCalendars are refused by every reader of a calendar. The pointer is relative to the calendar.
var badCalendars = []struct{ name, calendar, code, pointer string }{
	{"nothing", `{}`, "missing_field", "/cron"},
	{"no object", `"0 9 * * *"`, "invalid_value", ""},
	{"an unknown field", `{"cron":"0 9 * * *","tz":"UTC"}`, "unknown_field", "/tz"},
	{"a field twice", `{"cron":"0 9 * * *","cron":"0 8 * * *"}`, "duplicate_field", "/cron"},
	{"cron null", `{"cron":null}`, "invalid_value", "/cron"},
	{"cron empty", `{"cron":""}`, "invalid_value", "/cron"},
	{"cron as a list", `{"cron":["0 9 * * *"]}`, "invalid_value", "/cron"},
	{"cron too long", `{"cron":"` + strings.Repeat("1,", 600) + `1 * * * *"}`, "out_of_range", "/cron"},
	{"S06: TZ without a spec", `{"cron":"TZ=UTC"}`, "conflicting_fields", "/cron"},
	{"S06: TZ without anything", `{"cron":"TZ="}`, "conflicting_fields", "/cron"},
	{"S06: CRON_TZ", `{"cron":"CRON_TZ=Europe/Oslo"}`, "conflicting_fields", "/cron"},
	{"S06: TZ and timezone", `{"cron":"TZ=America/New_York 0 9 * * *","timezone":"UTC"}`, "conflicting_fields",
		"/cron"},
	{"S07: 31 April", `{"cron":"0 0 31 4 *"}`, "never_fires", "/cron"},
	{"S09: no period", `{"cron":"@every 0s"}`, "out_of_range", "/cron"},
	{"S09: a negative period", `{"cron":"@every -5m"}`, "invalid_value", "/cron"},
	{"S09: below a second", `{"cron":"@every 250ms"}`, "out_of_range", "/cron"},
	{"S09: half a second more", `{"cron":"@every 2.5s"}`, "invalid_value", "/cron"},
	{"every below a second", `{"every":"999ms"}`, "out_of_range", "/every"},
	{"every of nothing", `{"every":"0s"}`, "out_of_range", "/every"},
	{"every without a unit", `{"every":"5"}`, "invalid_value", "/every"},
	{"every as a number", `{"every":5}`, "invalid_value", "/every"},
	{"every longer than time", `{"every":"99999999d"}`, "out_of_range", "/every"},
	{"a phase of a period", `{"every":"5m","phase":"5m"}`, "out_of_range", "/phase"},
	{"a phase without every", `{"cron":"0 9 * * *","phase":"5m"}`, "conflicting_fields", "/phase"},
	{"S11: a zone misspelled", `{"cron":"0 9 * * *","timezone":"America/New_Yrok"}`, "invalid_value", "/timezone"},
	{"Local", `{"cron":"0 9 * * *","timezone":"Local"}`, "invalid_value", "/timezone"},
	{"no zone", `{"cron":"0 9 * * *","timezone":""}`, "invalid_value", "/timezone"},
	{"a zone's path", `{"cron":"0 9 * * *","timezone":"../../etc/passwd"}`, "invalid_value", "/timezone"},
	{"a long zone", `{"cron":"0 9 * * *","timezone":"` + strings.Repeat("A", 100000) + `"}`, "invalid_value",
		"/timezone"},
	{"cron and every", `{"cron":"0 9 * * *","every":"5m"}`, "conflicting_fields", "/every"},
	{"all four", `{"cron":"0 9 * * *","every":"5m","dates":[],"rrule":"FREQ=DAILY"}`, "conflicting_fields", "/every"},
	{"no dates", `{"dates":[]}`, "out_of_range", "/dates"},
	{"a date without a zone", `{"dates":["2027-03-28T09:00:00Z","2027-03-29T09:00:00"]}`, "invalid_value", "/dates/1"},
	{"1001 dates", `{"dates":[` + strings.Repeat(`"2027-03-28T09:00:00Z",`, 1000) + `"2027-03-28T09:00:00Z"]}`,
		"out_of_range", "/dates"},
	{"an RRULE that is none", `{"rrule":"every day"}`, "invalid_value", "/rrule"},
	{"an end before the start", `{"every":"5m","start_at":"2027-04-02T00:00:00Z","end_at":"2027-04-01T00:00:00Z"}`,
		"conflicting_fields", "/end_at"},
	{"an end at the start", `{"every":"5m","start_at":"2027-04-02T00:00:00Z","end_at":"2027-04-02T00:00:00Z"}`,
		"conflicting_fields", "/end_at"},
	{"a start that is no time", `{"every":"5m","start_at":"tomorrow"}`, "invalid_value", "/start_at"},
	{"a window without a time",
		`{"cron":"0 9 * * *","start_at":"2027-04-01T10:00:00Z","end_at":"2027-04-02T08:00:00Z"}`, "never_fires",
		"/cron"},
	{"no runs", `{"every":"5m","max_runs":0}`, "out_of_range", "/max_runs"},
	{"half a run", `{"every":"5m","max_runs":1.5}`, "invalid_value", "/max_runs"},
	{"an exclusion that is not there", `{"every":"5m","exclude":["nowhere"]}`, "invalid_value", "/exclude/0"},
	{"an exclusion that is no name", `{"every":"5m","exclude":["no where"]}`, "invalid_value", "/exclude/0"},
	{"eleven exclusions", `{"every":"5m","exclude":["a","a","a","a","a","a","a","a","a","a","a"]}`, "out_of_range",
		"/exclude"},
	{"a policy for the missing hour", `{"cron":"0 9 * * *","missing_hour":"before"}`, "invalid_value", "/missing_hour"},
	{"a policy for the repeated hour", `{"cron":"0 9 * * *","repeated_hour":"none"}`, "invalid_value",
		"/repeated_hour"},
	{"a change-over of real time", `{"every":"5m","missing_hour":"skip"}`, "conflicting_fields", "/missing_hour"},
	{"a spread of the period", `{"every":"5m","spread":"5m"}`, "out_of_range", "/spread"},
	{"a spread over the period", `{"cron":"*/5 * * * *","spread":"6m"}`, "out_of_range", "/spread"},
	{"a spread over an hour", `{"cron":"0 9 * * *","spread":"61m"}`, "out_of_range", "/spread"},
	{"a spread of nothing", `{"cron":"0 9 * * *","spread":"0s"}`, "out_of_range", "/spread"},
}

func TestPreview_RefusesBadCalendars(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range badCalendars {
		t.Run("refuses to preview a calendar: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, wrong{c.name, "", 400, c.code, "/calendar" + c.pointer},
				b.do(t, "POST", "/v1/schedules/preview", `{"calendar":`+c.calendar+`}`))
		})
	}
	for _, c := range []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"no calendar", `{}`, 400, "missing_field", "/calendar"},
		{"an unknown field", `{"calendar":{"every":"5m"},"before":"2027-03-28T00:00:00Z"}`, 400, "unknown_field",
			"/before"},
		{"no time", `{"calendar":{"every":"5m"},"after":"now"}`, 400, "invalid_value", "/after"},
		{"a time without a zone", `{"calendar":{"every":"5m"},"after":"2027-03-28T00:00:00"}`, 400, "invalid_value",
			"/after"},
		{"a count of nothing", `{"calendar":{"every":"5m"},"count":0}`, 400, "out_of_range", "/count"},
		{"a count of 1001", `{"calendar":{"every":"5m"},"count":1001}`, 400, "out_of_range", "/count"},
		{"a name that is none", `{"calendar":{"every":"5m"},"name":"a b"}`, 400, "invalid_value", "/name"},
	} {
		t.Run("refuses a preview: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/preview", c.body))
		})
	}
	if r := b.want(t, 400, "POST", "/v1/schedules/preview?count=5",
		`{"calendar":{"every":"5m"}}`); r.str("code") != "unknown_field" {
		t.Errorf("a parameter that nobody reads: %s", r.text)
	}
}

// FuzzPreview previews any text: it is answered, or refused with a reason.
func FuzzPreview(f *testing.F) {
	for _, c := range badCalendars {
		if len(c.calendar) < 200 {
			f.Add(c.calendar)
		}
	}
	for _, good := range []string{`{"cron":"0 9 L * ?","timezone":"Asia/Tehran"}`,
		`{"every":"5m","phase":"30s","spread":"1m"}`,
		`{"rrule":"FREQ=MONTHLY;BYDAY=-1FR","start_at":"2027-01-01T00:00:00Z"}`,
		`{"dates":["2027-03-28T01:00:00.001Z"],"max_runs":1}`} {
		f.Add(good)
	}
	f.Fuzz(func(t *testing.T, calendar string) {
		b := setup(t)
		r := b.do(t, "POST", "/v1/schedules/preview", `{"calendar":`+calendar+`,"count":20}`)
		if r.status != 200 && (r.status != 400 || r.str("code") == "" || r.str("detail") == "") {
			t.Errorf("%s is answered %d %s", calendar, r.status, r.text)
		}
	})
}
