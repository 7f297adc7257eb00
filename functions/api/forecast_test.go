package api_test

import (
	"fmt"
	"strings"
	"testing"

	"punctual/functions/stagetest"
	"punctual/shared/memory"
	"punctual/shared/tenant"
)

// nightly puts schedules at 02:00 in Berlin, which is 01:00 UTC, and at each full hour.
func nightly(t *testing.T) *bench {
	t.Helper()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/night", `{"calendar":{"cron":"0 2 * * *","timezone":"Europe/Berlin"},"job":{"task":"echo"}}`)
	b.want(t, 201, "PUT", "/v1/schedules/hourly", `{"calendar":{"cron":"0 * * * *"},"job":{"task":"echo"}}`)
	b.post(t, `{"task":"echo","run_at":"2027-03-02T01:00:30Z"}`)
	return b
}

func TestForecast_CountsStartsByStep(t *testing.T) {
	t.Parallel()
	b := nightly(t)
	for query, want := range map[string]string{
		"": `{"step":"1h","from":"2027-03-01T12:00:00.000Z","starts":[0,1,1,1,1,1,1,1,1,1,1,1,1,3,1,1,1,1,1,1,1,1,1,1],` +
			`"peak":{"at":"2027-03-02T01:00:00.000Z","starts":3}}`,
		"?from=2027-03-02T00:59:30Z&to=2027-03-02T01:01:01Z&step=1m": `{"step":"1m","from":"2027-03-02T00:59:00.000Z",` +
			`"starts":[0,3,0],"peak":{"at":"2027-03-02T01:00:00.000Z","starts":3}}`,
		"?from=2027-03-01T12:10:00Z&to=2027-03-01T12:50:00Z&step=15m": `{"step":"15m","from":"2027-03-01T12:00:00.000Z",` +
			`"starts":[0,0,0,0],"peak":{"at":"2027-03-01T12:00:00.000Z","starts":0}}`,
		"?to=2027-03-08T12:00:00Z&step=1d": `{"step":"1d","from":"2027-03-01T00:00:00.000Z",` +
			`"starts":[11,26,25,25,25,25,25,25],"peak":{"at":"2027-03-02T00:00:00.000Z","starts":26}}`,
	} {
		if r := b.want(t, 200, "GET", "/v1/forecast"+query, ""); strings.TrimSpace(r.text) != want {
			t.Errorf("%s:\n got %s\nwant %s", query, r.text, want)
		}
	}
	b.want(t, 204, "DELETE", "/v1/schedules/hourly", "")
	if r := b.want(t, 200, "GET", "/v1/forecast?step=1d", ""); fmt.Sprint(r.body["starts"]) != "[0 2]" {
		t.Errorf("without the schedule: %s", r.text)
	}
	b.who = all("globex")
	if r := b.want(t, 200, "GET", "/v1/forecast?step=1d", ""); fmt.Sprint(r.body["starts"]) != "[0 0]" {
		t.Errorf("another tenant is shown %s", r.text)
	}
}

func TestForecast_RefusesBadPeriods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []wrong{
		{"no time", "from=tomorrow", 400, "invalid_value", "from"},
		{"a time without a zone", "to=2027-03-02T01:00:00", 400, "invalid_value", "to"},
		{"the past", "from=2027-03-01T11:58:59Z", 400, "in_the_past", "from"},
		{"backwards", "from=2027-03-03T00:00:00Z&to=2027-03-02T00:00:00Z", 400, "conflicting_fields", "to"},
		{"nothing", "from=2027-03-03T00:00:00Z&to=2027-03-03T00:00:00Z", 400, "conflicting_fields", "to"},
		{"an end that is past", "to=2027-03-01T11:00:00Z", 400, "conflicting_fields", "to"},
		{"too far", "to=2027-03-08T12:00:00.001Z", 400, "out_of_range", "to"},
		{"all too far", "from=2027-03-08T12:00:00Z", 400, "out_of_range", "from"},
		{"seconds over a week", "to=2027-03-08T12:00:00Z&step=1s", 400, "out_of_range", "step"},
		{"minutes over a week", "to=2027-03-08T12:00:00Z&step=1m", 400, "out_of_range", "step"},
		{"a step that does not divide a day", "step=7m", 400, "out_of_range", "step"},
		{"a part of a minute", "step=90s", 400, "out_of_range", "step"},
		{"two days", "step=2d", 400, "out_of_range", "step"},
		{"no step", "step=0s", 400, "out_of_range", "step"},
		{"a bare number", "step=60", 400, "invalid_value", "step"},
		{"an empty step", "step=", 400, "invalid_value", "step"},
		{"an unknown parameter", "until=2027-03-02T00:00:00Z", 400, "unknown_field", "until"},
	} {
		requireRefused(t, b, c, b.do(t, "GET", "/v1/forecast?"+c.body, ""))
	}
	for _, fits := range []string{"from=2027-03-01T11:59:00Z", "to=2027-03-08T12:00:00Z&step=10m", "step=1m",
		"step=24h", "from=2027-03-08T11:00:00Z"} {
		b.want(t, 200, "GET", "/v1/forecast?"+fits, "")
	}
}

func TestCalm_ListsMinutesWithTheLeastLoad(t *testing.T) {
	t.Parallel()
	b := nightly(t)
	for query, want := range map[string]string{
		"?between=01:58-02:03&timezone=Europe/Berlin&count=36": `{"items":[` + // seven days of five minutes
			`{"at":"2027-03-03T00:58:00.000Z","local":"2027-03-03T01:58:00+01:00","load":0}`, // the first day has a job more
		"?between=23:59-00:01&count=3": `{"items":[{"at":"2027-03-01T23:59:00.000Z","local":"2027-03-01T23:59:00Z","load":0},` +
			`{"at":"2027-03-02T23:59:00.000Z","local":"2027-03-02T23:59:00Z","load":0},` +
			`{"at":"2027-03-03T23:59:00.000Z","local":"2027-03-03T23:59:00Z","load":0}]}`,
		"?between=12:00-12:01&count=1": `{"items":[{"at":"2027-03-01T12:00:00.000Z","local":"2027-03-01T12:00:00Z","load":0}]}`,
		"?between=23:00-24:00&count=1": `{"items":[{"at":"2027-03-01T23:06:00.000Z","local":"2027-03-01T23:06:00Z","load":0}]}`,
	} {
		if r := b.want(t, 200, "GET", "/v1/forecast/calm"+query, ""); !strings.HasPrefix(r.text, want) {
			t.Errorf("%s:\n got %s\nwant %s", query, r.text, want)
		}
	}
	items := b.want(t, 200, "GET", "/v1/forecast/calm?between=01:58-02:03&timezone=Europe/Berlin&count=36", "").items()
	if len(items) != 35 || items[34]["load"] != 3.0 || items[34]["local"] != "2027-03-02T02:00:00+01:00" {
		t.Errorf("the last of %d minutes is %v", len(items), items[len(items)-1])
	}
	if items := b.want(t, 200, "GET", "/v1/forecast/calm", "").items(); len(items) != 5 {
		t.Errorf("by default there are %d", len(items))
	}
}

func TestCalm_RefusesBadQuestions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []wrong{
		{"one time", "between=01:00", 400, "invalid_value", "between"},
		{"no time", "between=night-day", 400, "invalid_value", "between"},
		{"an hour that is none", "between=01:00-25:00", 400, "invalid_value", "between"},
		{"a minute that is none", "between=01:60-02:00", 400, "invalid_value", "between"},
		{"one digit", "between=1:00-2:00", 400, "invalid_value", "between"},
		{"a sign", "between=%2B1:00-02:00", 400, "invalid_value", "between"},
		{"an empty stretch", "between=01:00-01:00", 400, "invalid_value", "between"},
		{"after the end of the day", "between=24:00-02:00", 400, "invalid_value", "between"},
		{"an unknown zone", "timezone=Europe/Atlantis", 400, "invalid_value", "timezone"},
		{"the machine's zone", "timezone=Local", 400, "invalid_value", "timezone"},
		{"no minutes", "count=0", 400, "out_of_range", "count"},
		{"too many", "count=101", 400, "out_of_range", "count"},
		{"no number", "count=some", 400, "invalid_value", "count"},
	} {
		requireRefused(t, b, c, b.do(t, "GET", "/v1/forecast/calm?"+c.body, ""))
	}
}

func TestForecast_WantsTheScopeReadAndTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Scopes = []tenant.Scope{tenant.Write}
	b.want(t, 403, "GET", "/v1/forecast", "")
	b.want(t, 403, "GET", "/v1/forecast/calm", "")
	b.who.Scopes = []tenant.Scope{tenant.Read}
	b.want(t, 200, "GET", "/v1/forecast", "")
	b.Fault(stagetest.Every(memory.TableQuery), memory.Fault{Fail: "unavailable"})
	b.want(t, 503, "GET", "/v1/forecast", "")
	b.want(t, 503, "GET", "/v1/forecast/calm", "")
}

func TestPreview_ShowsTheLoadAtItsTimes(t *testing.T) {
	t.Parallel()
	b := nightly(t)
	loads := func(r reply) (all []any) {
		for _, i := range r.items() {
			all = append(all, i["load"])
		}
		return all
	}
	if r := b.want(t, 200, "GET", "/v1/schedules/night/preview?count=8", ""); fmt.Sprint(loads(r)) !=
		"[3 2 2 2 2 2 2 <nil>]" {
		t.Errorf("a schedule at 02:00: %s", r.text)
	}
	if r := b.want(t, 200, "POST", "/v1/schedules/preview", `{"calendar":{"cron":"59,0 12,13 * * *"},"count":4}`); fmt.Sprint(
		loads(r)) != "[0 1 0 1]" {
		t.Errorf("a calendar that is not in use: %s", r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/schedules/night/preview?after=2027-02-01T00:00:00Z&count=1",
		""); fmt.Sprint(loads(r)) != "[<nil>]" {
		t.Errorf("a time that is past: %s", r.text)
	}
}
