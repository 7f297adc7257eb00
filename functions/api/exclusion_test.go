package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

func TestExclusions_ArePutReadListedAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"dates":["2027-12-25"],"ranges":[{"from":"2027-12-24","to":"2027-12-26"},{"from":"2027-12-31T12:00:00Z","to":"2028-01-01T12:00:00+01:00"}],"yearly":["12-25","02-29"],"weekly":["sat","sun"],"timezone":"Europe/Berlin","move":"next"}`
	r := b.want(t, 201, "PUT", "/v1/exclusions/holidays-de", body)
	want := `{"name":"holidays-de",` + strings.TrimSuffix(body[1:], "}") + `,"version":1}`
	if strings.TrimSpace(r.text) != want {
		t.Errorf("the view is %s, want %s", r.text, want)
	}
	if repeated := b.want(t, 200, "PUT", "/v1/exclusions/holidays-de", body); repeated.text != r.text {
		t.Errorf("the same body once more: %s", repeated.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/exclusions/holidays-de",
		`{"weekly":["sun"],"move":"drop"}`); r.body["version"] != 2.0 || r.body["dates"] != nil {
		t.Errorf("replaced by %s", r.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/exclusions/holidays-de", `{"weekly":["sun"]}`); r.body["version"] != 2.0 ||
		r.str("move") != "drop" {
		t.Errorf("drop is the default: %s", r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/exclusions/holidays-de", ""); fmt.Sprint(r.body["weekly"]) != "[sun]" {
		t.Errorf("reads %s", r.text)
	}
	for _, name := range []string{"b", "a", "c"} {
		b.want(t, 201, "PUT", "/v1/exclusions/"+name, `{"weekly":["sun"]}`)
	}
	if pages := b.pages(t, "/v1/exclusions?limit=2", "name"); fmt.Sprint(pages) != "[[a b] [c holidays-de]]" {
		t.Errorf("the list is %v", pages)
	}
	who := b.who
	b.who = all("globex")
	b.want(t, 404, "GET", "/v1/exclusions/a", "")
	b.want(t, 404, "DELETE", "/v1/exclusions/a", "")
	if r := b.want(t, 200, "GET", "/v1/exclusions", ""); len(r.items()) != 0 || r.body["next_cursor"] != nil {
		t.Errorf("another tenant sees %s", r.text)
	}
	b.who = who
	b.want(t, 204, "DELETE", "/v1/exclusions/a", "")
	b.want(t, 404, "GET", "/v1/exclusions/a", "")
	b.want(t, 404, "DELETE", "/v1/exclusions/a", "")
}

func TestPutExclusion_RefusesBadExclusions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"nothing", `{}`, 400, "missing_field", "/dates"},
		{"no object", `[]`, 400, "invalid_value", ""},
		{"an unknown field", `{"weekly":["sun"],"monthly":["1"]}`, 400, "unknown_field", "/monthly"},
		{"no date", `{"dates":["2027-02-29"]}`, 400, "invalid_value", "/dates/0"},
		{"a date with a time", `{"dates":["2027-02-28T00:00:00Z"]}`, 400, "invalid_value", "/dates/0"},
		{"a date that is a number", `{"dates":[20270228]}`, 400, "invalid_value", "/dates/0"},
		{"1001 dates", `{"dates":[` + strings.Repeat(`"2027-03-28",`, 1000) + `"2027-03-28"]}`, 400, "out_of_range",
			"/dates"},
		{"a range without its end", `{"ranges":[{"from":"2027-12-24"}]}`, 400, "missing_field", "/ranges/0/to"},
		{"a range of two kinds", `{"ranges":[{"from":"2027-12-24","to":"2027-12-26T00:00:00Z"}]}`, 400,
			"invalid_value", "/ranges/0"},
		{"a range backwards", `{"ranges":[{"from":"2027-12-24","to":"2027-12-23"}]}`, 400, "conflicting_fields",
			"/ranges/0"},
		{"a range that is text", `{"ranges":["2027"]}`, 400, "invalid_value", "/ranges/0"},
		{"an unknown field of a range", `{"ranges":[{"from":"2027-12-24","to":"2027-12-25","why":"x"}]}`, 400,
			"unknown_field", "/ranges/0/why"},
		{"no day of the year", `{"yearly":["02-30"]}`, 400, "invalid_value", "/yearly/0"},
		{"no weekday", `{"weekly":["sonntag"]}`, 400, "invalid_value", "/weekly/0"},
		{"the whole week", `{"weekly":["mon","tue","wed","thu","fri","sat","sun"]}`, 400, "never_fires", "/weekly"},
		{"a zone", `{"weekly":["sun"],"timezone":"Local"}`, 400, "invalid_value", "/timezone"},
		{"no way to move", `{"weekly":["sun"],"move":"nearest"}`, 400, "invalid_value", "/move"},
	} {
		t.Run("refuses an exclusion: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "PUT", "/v1/exclusions/x", c.body))
		})
	}
	b.want(t, 400, "PUT", "/v1/exclusions/a%20b", `{"weekly":["sun"]}`)
}

func TestPutExclusion_BoundsHowManyATenantHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range contract.MaxExclusions {
		e := store.Exclusion{Name: fmt.Sprintf("e%03d", n)}
		e.Weekly = []string{"sun"}
		put := func(*store.Exclusion) (store.Exclusion, error) { return e, nil }
		if _, err := b.Store.UpdateExclusion(context.Background(), "acme", e.Name, put); err != nil {
			t.Fatal(err)
		}
	}
	r := b.want(t, 429, "PUT", "/v1/exclusions/one-more", `{"weekly":["sun"]}`)
	if r.str("code") != "rate_limited" || r.header.Get("Retry-After") != "" ||
		!strings.Contains(r.str("detail"), "200") {
		t.Errorf("one too many: %s", r.text)
	}
	b.want(t, 200, "PUT", "/v1/exclusions/e000", `{"weekly":["sat"]}`)
	b.want(t, 204, "DELETE", "/v1/exclusions/e000", "")
	b.want(t, 201, "PUT", "/v1/exclusions/one-more", `{"weekly":["sun"]}`)
}

func TestPutExclusion_GivesConcurrentPutsOneVersionEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var wg sync.WaitGroup
	for n := range 5 {
		wg.Go(func() { b.do(t, "PUT", "/v1/exclusions/x", fmt.Sprintf(`{"dates":["2027-03-0%d"]}`, n+1)) })
	}
	wg.Wait()
	if r := b.want(t, 200, "GET", "/v1/exclusions/x", ""); r.body["version"] != 5.0 {
		t.Errorf("after five: %s", r.text)
	}
}

func TestPutExclusion_ChangesTheSchedulesThatNameIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sat"]}`)
	b.want(t, 201, "PUT", "/v1/exclusions/y", `{"weekly":["sun"]}`)
	b.want(t, 201, "PUT", "/v1/schedules/both",
		`{"calendar":{"cron":"0 10 * * *","exclude":["x","y"]},"job":{"task":"echo","payload":`+text(3000)+`}}`)
	b.want(t, 201, "PUT", "/v1/schedules/none", daily)
	b.want(t, 201, "PUT", "/v1/schedules/once",
		`{"calendar":{"dates":["2027-03-06T10:00:00Z","2027-03-09T10:00:00Z"],"exclude":["x"]},"job":{"task":"echo"}}`)
	next := func(name string) string { return b.want(t, 200, "GET", "/v1/schedules/"+name, "").at("next") }
	if got := next("once"); got != "[2027-03-09T10:00:00.000Z]" {
		t.Errorf("before: %s", got)
	}
	b.want(t, 200, "PUT", "/v1/exclusions/x", `{"weekly":["tue","wed"]}`)
	if got := next("both"); got != "[2027-03-04T10:00:00.000Z 2027-03-05T10:00:00.000Z 2027-03-06T10:00:00.000Z]" {
		t.Errorf("both: %s", got)
	}
	if got := next("once"); got != "[2027-03-06T10:00:00.000Z]" {
		t.Errorf("once: %s", got)
	}
	if b.schedule(t, "both").Epoch != 2 || b.schedule(t, "none").Epoch != 1 || b.schedule(t, "once").Epoch != 2 {
		t.Error("not exactly those that name it were edited")
	}
	b.want(t, 200, "PUT", "/v1/exclusions/x", `{"weekly":["tue","wed"]}`)
	if b.schedule(t, "both").Epoch != 2 {
		t.Error("an equal exclusion was an edit")
	}
	r := b.want(t, 400, "PUT", "/v1/exclusions/x", `{"weekly":["tue","sat"]}`)
	if r.str("code") != "never_fires" || !strings.Contains(r.str("detail"), "once") {
		t.Errorf("an exclusion under which a schedule never fires: %s", r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/exclusions/x", ""); r.body["version"] != 2.0 {
		t.Errorf("it was put: %s", r.text)
	}
	if r := b.want(t, 409, "DELETE", "/v1/exclusions/x", ""); r.str("code") != "wrong_state" ||
		!strings.Contains(r.str("detail"), "both and once") {
		t.Errorf("one that is named: %s", r.text)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/both", `{"calendar":{"cron":"0 10 * * *","exclude":["y"]}}`)
	b.want(t, 204, "DELETE", "/v1/schedules/once", "")
	b.want(t, 204, "DELETE", "/v1/exclusions/x", "")
}

func TestPutExclusion_EditsTheRemainingSchedulesWhenRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sat"]}`)
	for n := range 5 {
		b.want(t, 201, "PUT", fmt.Sprintf("/v1/schedules/s%d", n),
			`{"calendar":{"cron":"0 10 * * *","exclude":["x"]},"job":{"task":"echo"}}`)
	}
	later := func(c memory.Call) bool { return c.Name == schedule.WriteEdit && c.Ref.SK >= "s2" }
	b.Fault(later, memory.Fault{Fail: fault.Unavailable})
	b.want(t, 503, "PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`)
	b.World.SetFaults(nil)
	b.want(t, 200, "PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`)
	for n := range 5 {
		if s := b.schedule(t, fmt.Sprintf("s%d", n)); fmt.Sprint(s.Exclusions["x"].Weekly) != "[sun]" || s.Epoch != 2 {
			t.Errorf("%s follows %v at epoch %d", s.Name, s.Exclusions["x"].Weekly, s.Epoch)
		}
	}
}
