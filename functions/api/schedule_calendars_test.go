package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/schedule"
)

// both has two calendars, which have one instant of each winter's day in common.
const both = `"calendars":[{"cron":"0 9 * * *","timezone":"Europe/Berlin"},{"cron":"0 8,20 * * *"}]`

// nominals lists the nominal times of an answer by day and hour.
func nominals(items []map[string]any) (list []string) {
	for _, o := range items {
		at, _ := o["nominal_at"].(string)
		list = append(list, at[len("2027-"):len("2027-03-01T08")])
	}
	return list
}

func TestPutSchedule_TakesAListOfCalendars(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{` + both + `,"job":{"task":"echo"}}`
	r := b.want(t, 201, "PUT", "/v1/schedules/s", body)
	if r.body["calendar"] != nil || fmt.Sprint(r.body["calendars"]) !=
		"[map[cron:0 9 * * * timezone:Europe/Berlin] map[cron:0 8,20 * * *]]" {
		t.Errorf("it is shown as %s", r.text)
	}
	if next := fmt.Sprint(r.body["next"]); next !=
		"[2027-03-01T20:00:00.000Z 2027-03-02T08:00:00.000Z 2027-03-02T20:00:00.000Z]" {
		t.Errorf("its next times are %s", next)
	}
	if repeated := b.want(t, 200, "PUT", "/v1/schedules/s", body); repeated.body["version"] != 1.0 {
		t.Errorf("the same body gives version %v", repeated.body["version"])
	}
	one := b.want(t, 201, "PUT", "/v1/schedules/one", `{"calendars":[{"every":"1d"}],"job":{"task":"echo"}}`)
	if one.body["calendar"] != nil || fmt.Sprint(one.body["calendars"]) != "[map[every:1d]]" {
		t.Errorf("a list of one is shown as %s", one.text)
	}
	plain := b.want(t, 201, "PUT", "/v1/schedules/plain", `{"calendar":{"every":"1d"},"job":{"task":"echo"}}`)
	if plain.body["calendars"] != nil || fmt.Sprint(plain.body["calendar"]) != "map[every:1d]" {
		t.Errorf("a calendar is shown as %s", plain.text)
	}
	listed := b.want(t, 200, "GET", "/v1/schedules", "").items()
	if len(listed) != 3 || listed[0]["calendars"] == nil || listed[1]["calendar"] == nil {
		t.Errorf("the list is %v", listed)
	}
	preview := b.want(t, 200, "GET", "/v1/schedules/s/preview?after=2027-03-27T12:00:00Z&count=4", "")
	if got := fmt.Sprint(nominals(preview.items())); got != "[03-27T20 03-28T07 03-28T08 03-28T20]" {
		t.Errorf("after the change of the clock it runs at %s", got)
	}
}

func TestPutSchedule_MakesOneJobOfAnInstantThatTwoCalendarsHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendars":[{"every":"10m"},{"cron":"*/15 * * * *","spread":"1m"}],
		"job":{"task":"echo"}}`)
	pending := b.want(t, 200, "GET", "/v1/schedules/s/occurrences?outcome=pending", "").items()
	var at []string
	for _, o := range pending {
		at = append(at, o["nominal_at"].(string)[len("2027-03-01T"):len("2027-03-01T12:10")])
		if o["nominal_at"] == "2027-03-01T12:30:00.000Z" && o["due_at"] != o["nominal_at"] {
			t.Errorf("a time that is due at once by one of its calendars is %v", o)
		}
	}
	if got := fmt.Sprint(at); got != "[12:10 12:15 12:20 12:30]" {
		t.Errorf("its times are %s", got)
	}
}

func TestPutSchedule_RefusesBadListsOfCalendars(t *testing.T) {
	t.Parallel()
	b := setup(t)
	many := func(n int, each string) string { return strings.TrimSuffix(strings.Repeat(each+",", n), ",") }
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`)
	dates := `{"dates":[` + many(600, `"2027-12-01T00:00:00Z"`) + `]}`
	for _, c := range []wrong{
		{"calendar and calendars", `{"calendar":{"every":"1d"},"calendars":[{"every":"1d"}]}`, 400, "conflicting_fields",
			"/calendars"},
		{"an empty list", `{"calendars":[]}`, 400, "out_of_range", "/calendars"},
		{"eleven", `{"calendars":[` + many(11, `{"every":"1d"}`) + `]}`, 400, "out_of_range", "/calendars"},
		{"no list", `{"calendars":{"every":"1d"}}`, 400, "invalid_value", "/calendars"},
		{"null", `{"calendars":null}`, 400, "invalid_value", "/calendars"},
		{"no object in it", `{"calendars":[{"every":"1d"},"0 9 * * *"]}`, 400, "invalid_value", "/calendars/1"},
		{"a bad cron in it", `{"calendars":[{"every":"1d"},{"cron":"99 * * * *"}]}`, 400, "out_of_range",
			"/calendars/1/cron"},
		{"an unknown field in it", `{"calendars":[{"every":"1d","at":"9"}]}`, 400, "unknown_field", "/calendars/0/at"},
		{"a field twice in it", `{"calendars":[{"every":"1d","every":"2d"}]}`, 400, "duplicate_field",
			"/calendars/0/every"},
		{"an unknown exclusion", `{"calendars":[{"every":"1d","exclude":["x"]},{"every":"1d","exclude":["y"]}]}`, 400,
			"invalid_value", "/calendars/1/exclude/0"},
		{"too many dates together", `{"calendars":[` + dates + `,` + dates + `]}`, 400, "out_of_range",
			"/calendars/1/dates"},
		{"no calendar at all", `{"overlap":"skip"}`, 400, "missing_field", "/calendar"},
		{"only the past", `{"calendars":[{"dates":["2027-01-01T00:00:00Z"]},{"dates":["2027-01-02T00:00:00Z"]}]}`, 400,
			"never_fires", "/calendars"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := strings.TrimSuffix(c.body, "}") + `,"job":{"task":"echo"}}`
			requireRefused(t, b, c, b.do(t, "PUT", "/v1/schedules/bad", body))
			if strings.HasPrefix(c.name, "only") || strings.HasPrefix(c.name, "no calendar") {
				return
			}
			requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/preview", c.body))
		})
	}
	b.want(t, 404, "GET", "/v1/schedules/bad", "")
	// One that has ended may stay in the list while another one has times.
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendars":[{"dates":["2027-01-01T00:00:00Z"]},{"every":"1d"}],
		"job":{"task":"echo"}}`)
}

func TestPatchSchedule_ChangesBetweenACalendarAndAList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 9 * * *","timezone":"Europe/Berlin"},
		"job":{"task":"echo"}}`)
	d := b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true", `{`+both+`}`)
	if got := fmt.Sprint(d.body["changed"]); got != "[/calendar/cron /calendar/timezone /calendars]" {
		t.Errorf("a dry run says %s", got)
	}
	// Two more a day but for the instant that both have, which is there already; an hour's change comes with summer.
	added, _ := d.body["added"].([]any)
	if lost, _ := d.body["lost"].([]any); len(added) == 0 || len(lost) != 0 {
		t.Errorf("a dry run says %s", d.text)
	}
	r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{`+both+`}`)
	if r.body["calendar"] != nil || len(r.body["calendars"].([]any)) != 2 {
		t.Errorf("with a list it is %s", r.text)
	}
	r = b.want(t, 200, "PATCH", "/v1/schedules/s", `{"calendars":[{"cron":"0 7 * * *"}]}`)
	if fmt.Sprint(r.body["calendars"]) != "[map[cron:0 7 * * *]]" {
		t.Errorf("a list replaces a list: %s", r.text)
	}
	r = b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`)
	if fmt.Sprint(r.body["calendars"]) != "[map[cron:0 7 * * *]]" {
		t.Errorf("another field changes the list: %s", r.text)
	}
	for _, c := range []wrong{
		{"a part of a calendar", `{"calendar":{"timezone":"Europe/Berlin"}}`, 400, "missing_field", "/calendar/cron"},
		{"nothing in place of the list", `{"calendars":null}`, 400, "missing_field", "/calendars"},
		{"both", `{"calendar":{"every":"1d"},"calendars":[{"every":"1d"}]}`, 400, "conflicting_fields", "/calendars"},
		{"an empty list", `{"calendars":[]}`, 400, "out_of_range", "/calendars"},
	} {
		requireRefused(t, b, c, b.do(t, "PATCH", "/v1/schedules/s", c.body))
	}
	r = b.want(t, 200, "PATCH", "/v1/schedules/s", `{"calendar":{"cron":"0 6 * * *"},"calendars":null}`)
	if fmt.Sprint(r.body["calendar"]) != "map[cron:0 6 * * *]" || r.body["calendars"] != nil {
		t.Errorf("with a calendar it is %s", r.text)
	}
}

func TestExclusion_IsInUseByAnyCalendarOfAList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendars":[{"cron":"0 9 * * *"},{"cron":"0 10 * * *","exclude":["x"]}],
		"job":{"task":"echo"}}`)
	b.want(t, 409, "DELETE", "/v1/exclusions/x", "")
	b.want(t, 200, "PUT", "/v1/exclusions/x", `{"weekly":["tue"]}`)
	p := b.want(t, 200, "GET", "/v1/schedules/s/preview?after=2027-03-01T12:00:00Z&count=3", "")
	if got := fmt.Sprint(nominals(p.items())); got != "[03-02T09 03-03T09 03-03T10]" {
		t.Errorf("after the exclusion has changed it runs at %s", got)
	}
	if skipped, _ := p.body["skipped"].([]any); len(skipped) != 1 {
		t.Errorf("skipped are %v", skipped)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/s", `{"calendars":[{"cron":"0 9 * * *"}]}`)
	b.want(t, 204, "DELETE", "/v1/exclusions/x", "")
}

func TestPreview_TakesAListOfCalendars(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.want(t, 200, "POST", "/v1/schedules/preview", `{"calendars":[{"cron":"0 9 * * *","max_runs":2},
		{"cron":"0 9,18 * * *","max_runs":3}],"after":"2027-03-01T10:00:00Z","count":50}`)
	if got := fmt.Sprint(nominals(p.items())); got != "[03-01T18 03-02T09 03-02T18 03-03T09]" {
		t.Errorf("the times are %s", got)
	}
	noted := b.want(t, 200, "POST", "/v1/schedules/preview",
		`{"calendars":[{"every":"1d"},{"cron":"0 14 1-31/14 * 3"}]}`)
	if notes := fmt.Sprint(noted.body["notes"]); !strings.HasPrefix(notes, "[/calendars/1: ") {
		t.Errorf("the notes are %s", notes)
	}
}

// A calendar of a list that has reached its max_runs has no more times; the others go on.
func TestSchedule_GoesOnWithTheCalendarsThatMayRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendars":[{"cron":"0 * * * *","max_runs":1},{"cron":"30 9 * * *"}],
		"job":{"task":"echo"}}`)
	s := b.schedule(t, "s")
	row := b.made(t, s, noon, func(r *job.Row) { r.Status = job.Running })
	if err := b.Store.Commit(context.Background(), s.CountRun(row, make([]bool, 2))...); err != nil {
		t.Fatal(err)
	}
	_, full, err := b.Store.RunsOf(context.Background(), s, "")
	if err != nil || !slices.Equal(full, []bool{true, false}) {
		t.Fatalf("full are %v, %v", full, err)
	}
	after, write, err := schedule.Spend(s, full, noon)
	if err == nil {
		err = b.Store.Put(context.Background(), write)
	}
	if err != nil || !after.Next.Equal(time.Date(2027, 3, 2, 9, 30, 0, 0, time.UTC)) {
		t.Fatalf("next is %s, %v", after.Next, err)
	}
	r := b.want(t, 200, "GET", "/v1/schedules/s", "")
	if next := fmt.Sprint(r.body["next"]); !strings.HasPrefix(next, "[2027-03-02T09:30:00.000Z 2027-03-03T09:30") ||
		r.body["ended_by"] != nil {
		t.Errorf("it shows %s", r.text)
	}
	p := b.want(t, 200, "GET", "/v1/schedules/s/preview?count=2", "")
	if got := fmt.Sprint(nominals(p.items())); got != "[03-02T09 03-03T09]" {
		t.Errorf("its preview is %s", got)
	}
}
