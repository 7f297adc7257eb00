package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

const (
	hourly = `{"calendar":{"cron":"0 * * * *"},"job":{"task":"echo","payload":{"a":1},"tags":{"team":"x"}}}`
	// fourHours is a backfill of four times of it, of which the last is at 11:00.
	fourHours = `{"from":"2027-03-01T08:00:00Z","to":"2027-03-01T12:00:00Z","max_running":2,"reason":"the source was down"`
)

// openOf reads the rows of the jobs that a backfill has open.
func (b *bench) openOf(t *testing.T, operationID string) (rows []job.Row) {
	t.Helper()
	found, _, err := b.Store.JobsOf(context.Background(), schedule.Key{Tenant: b.who.Tenant, Name: "s"}, time.Time{},
		time.Time{}, false, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if r := b.row(t, string(f.ID)); string(r.Backfill) == operationID && !r.Status.Final() {
			rows = append(rows, r)
		}
	}
	return rows
}

// finishAll ends the open jobs of a backfill, and those that follow, until none is left.
func (b *bench) finishAll(t *testing.T, operationID string, o job.Outcome) {
	t.Helper()
	for range 20 {
		rows := b.openOf(t, operationID)
		if len(rows) == 0 {
			return
		}
		for _, r := range rows {
			b.settled(t, string(r.ID), o)
		}
	}
	t.Fatal("it does not end")
}

func TestBackfill_MakesPastTimesAndShowsItsProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	r := b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`)
	id := r.str("operation_id")
	want := `{"operation_id":"` + id + `","action":"backfill","status":"RUNNING","as_of":"2027-03-01T12:00:00.000Z",` +
		`"matched":4,"done":0,"skipped":0,"failed":0,"open":2,"errors":[],"canary":null,"schedule":"s",` +
		`"from":"2027-03-01T08:00:00.000Z","to":"2027-03-01T12:00:00.000Z","order":"oldest","max_running":2,` +
		`"created_at":"2027-03-01T12:00:00.000Z","by":"tester","reason":"the source was down"}`
	if strings.TrimSpace(r.text) != want || r.header.Get("Location") != "/v1/operations/"+id {
		t.Errorf("answered\n%s\nwant\n%s\nLocation %s", r.text, want, r.header.Get("Location"))
	}
	rows := b.openOf(t, id)
	v := b.want(t, 200, "GET", "/v1/jobs/"+string(rows[0].ID), "")
	if len(rows) != 2 || v.str("backfill") != id || v.str("nominal_at") != "2027-03-01T08:00:00.000Z" ||
		v.str("schedule") != "s" || v.body["manual"] != nil || v.str("due_at") != "2027-03-01T12:00:00.000Z" ||
		fmt.Sprint(v.body["payload"], v.body["tags"]) != "map[a:1] map[team:x]" {
		t.Errorf("%d jobs, the first is %s", len(rows), v.text)
	}
	if n := b.fired(t); n != 2 {
		t.Errorf("%d jobs were fired", n)
	}
	b.settled(t, string(rows[0].ID), success)
	b.clock.set(noon.Add(time.Minute))
	r = b.want(t, 200, "GET", "/v1/operations/"+id, "")
	if r.body["done"] != 1.0 || r.body["open"] != 2.0 || r.str("estimated_end_at") != "2027-03-01T12:04:00.000Z" {
		t.Errorf("after one has ended: %s", r.text)
	}
	b.settled(t, string(rows[1].ID), job.Outcome{Kind: job.OutcomeFailed, Permanent: true,
		Error: &job.Reason{Code: "http_400", Message: "the target said no"}})
	b.finishAll(t, id, success)
	r = b.want(t, 200, "GET", "/v1/operations/"+id+"?wait=20s", "")
	if r.str("status") != "SUCCEEDED" || r.body["done"] != 3.0 || r.body["failed"] != 1.0 || r.body["open"] != 0.0 ||
		r.str("ended_at") != "2027-03-01T12:01:00.000Z" || r.body["estimated_end_at"] != nil ||
		!strings.Contains(r.text, `"errors":[{"job_id":"`+string(rows[1].ID)+`","code":"http_400","detail":"the target`) {
		t.Errorf("at the end: %s", r.text)
	}
	r = b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`)
	if r.str("status") != "SUCCEEDED" || r.body["skipped"] != 4.0 || r.body["matched"] != 4.0 {
		t.Errorf("the same times once more: %s", r.text)
	}
	b.clock.set(noon.Add(2 * time.Minute))
	r = b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`,"again":true,"order":"newest"}`)
	if r.body["open"] != 2.0 || r.body["again"] != true || r.str("order") != "newest" {
		t.Errorf("again: %s", r.text)
	}
	pages := b.pages(t, "/v1/operations?limit=2", "operation_id")
	if len(pages) != 2 || len(pages[0]) != 2 || pages[0][0] != r.str("operation_id") || pages[1][0] != id {
		t.Errorf("the list is %v", pages)
	}
}

func TestBackfill_IsTriedWithoutWriting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	s := b.schedule(t, "s")
	b.made(t, s, noon.Add(-2*time.Hour), func(r *job.Row) { r.Status = job.Succeeded })
	writes := b.Count(func(c memory.Call) bool { return c.Op == memory.TableWrite || c.Op == memory.TableCommit })
	r := b.want(t, 200, "POST", "/v1/schedules/s/backfills", fourHours+`,"dry_run":true}`)
	if r.body["matched"] != 4.0 || r.body["skipped"] != 1.0 || r.body["operation_id"] != nil ||
		r.body["status"] != nil || r.header.Get("Location") != "" || r.body["matched_at_least"] != nil {
		t.Errorf("answered %s", r.text)
	}
	if n := writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
	if list := b.want(t, 200, "GET", "/v1/operations", ""); len(list.items()) != 0 {
		t.Errorf("the list is %s", list.text)
	}
	b.who.Scopes = []tenant.Scope{tenant.Read}
	b.want(t, 403, "POST", "/v1/schedules/s/backfills", fourHours+`,"dry_run":true}`)
}

func TestBackfill_TakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	b.want(t, 201, "PUT", "/v1/schedules/other", hourly)
	first := b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`, "Idempotency-Key", "k")
	b.clock.set(noon.Add(time.Hour))
	second := b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`, "Idempotency-Key", "k")
	if first.str("operation_id") != second.str("operation_id") || first.header.Get("Idempotency-Replayed") != "" ||
		second.header.Get("Idempotency-Replayed") != "true" ||
		second.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("%s\n%s", first.text, second.text)
	}
	b.want(t, 422, "POST", "/v1/schedules/s/backfills", fourHours+`,"again":true}`, "Idempotency-Key", "k")
	b.want(t, 422, "POST", "/v1/schedules/other/backfills", fourHours+`}`, "Idempotency-Key", "k")
	b.want(t, 422, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "k")
	b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "j")
	b.want(t, 422, "POST", "/v1/schedules/s/backfills", fourHours+`}`, "Idempotency-Key", "j")
}

// The process crashes at each call; the request is then repeated under its key, and makes one operation that makes each
// time once.
func TestBackfill_IsMadeOnceWhateverCrashes(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for at := range 40 {
			b := setup(t)
			b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
			asked := b.DieAt(at, lost)
			b.do(t, "POST", "/v1/schedules/s/backfills", fourHours+`}`, "Idempotency-Key", "k")
			b.World.SetFaults(nil)
			r := b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`, "Idempotency-Key", "k")
			if list := b.want(t, 200, "GET", "/v1/operations", "").items(); len(list) != 1 || r.body["open"] != 2.0 {
				t.Errorf("crash at call %d, lost %v: %d operations, %s", at, lost, len(list), r.text)
			}
			if *asked <= at {
				break
			}
		}
	}
}

func TestBackfill_RefusesBadRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	b.want(t, 201, "PUT", "/v1/schedules/dense", `{"calendar":{"cron":"* * * * *"},"job":{"task":"echo"}}`)
	between := func(from, to, more string) string {
		return `{"from":"` + from + `","to":"` + to + `"` + more + `}`
	}
	for _, c := range []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"nothing", `{}`, 400, "missing_field", "/from"},
		{"no to", `{"from":"2027-03-01T08:00:00Z"}`, 400, "missing_field", "/to"},
		{"no time", between("yesterday", "2027-03-01T08:00:00Z", ""), 400, "invalid_value", "/from"},
		{"an empty range", between("2027-03-01T08:00:00Z", "2027-03-01T08:00:00Z", ""), 400, "out_of_range", "/to"},
		{"a range in the future", between("2027-03-01T08:00:00Z", "2027-03-01T12:00:00.001Z", ""), 400, "out_of_range",
			"/to"},
		{"a forgotten past", between("2027-01-30T11:59:59Z", "2027-03-01T12:00:00Z", ""), 400, "out_of_range", "/from"},
		{"none that run", fourHours[:len(fourHours)-1] + `","max_running":0}`, 400, "duplicate_field", "/max_running"},
		{"too many that run", between("2027-03-01T08:00:00Z", "2027-03-01T12:00:00Z", `,"max_running":101`), 400,
			"out_of_range", "/max_running"},
		{"another order", between("2027-03-01T08:00:00Z", "2027-03-01T12:00:00Z", `,"order":"random"`), 400,
			"invalid_value", "/order"},
		{"an unknown field", fourHours + `,"until":1}`, 400, "unknown_field", "/until"},
		{"a text as flag", fourHours + `,"dry_run":"yes"}`, 400, "invalid_value", "/dry_run"},
		{"a long reason", between("2027-03-01T08:00:00Z", "2027-03-01T12:00:00Z",
			`,"reason":"`+strings.Repeat("x", 257)+`"`), 400, "out_of_range", "/reason"},
	} {
		t.Run("refuses a backfill: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/s/backfills", c.body))
		})
	}
	requireRefused(t, b, wrong{"", "", 400, "out_of_range", "/to"},
		b.do(t, "POST", "/v1/schedules/dense/backfills", between("2027-02-22T13:19:00Z", "2027-03-01T12:00:00Z", "")))
	b.want(t, 202, "POST", "/v1/schedules/dense/backfills", between("2027-02-22T13:20:00Z", "2027-03-01T12:00:00Z", ""))
	b.want(t, 202, "POST", "/v1/schedules/s/backfills", between("2026-03-01T12:00:00Z", "2027-03-01T12:00:00Z",
		`,"again":true`))
	b.want(t, 404, "POST", "/v1/schedules/none/backfills", fourHours+`}`)
	b.want(t, 404, "POST", "/v1/schedules/none/backfills", fourHours+`,"dry_run":true}`)
}

func TestOperation_IsPausedResumedAndStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", hourly)
	id := b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`).str("operation_id")
	verb := func(status int, name, want string) reply {
		t.Helper()
		r := b.want(t, status, "POST", "/v1/operations/"+id+"/"+name, "")
		if status == 200 && r.str("status") != want || status == 409 && (r.str("code") != "wrong_state" ||
			fmt.Sprint(r.body["allowed"]) != want) {
			t.Errorf("%s answered %s", name, r.text)
		}
		return r
	}
	verb(200, "resume", "RUNNING")
	verb(409, "proceed", "<nil>")
	verb(200, "pause", "PAUSED")
	verb(200, "pause", "PAUSED")
	for _, r := range b.openOf(t, id) {
		b.settled(t, string(r.ID), success)
	}
	if r := verb(200, "pause", "PAUSED"); r.body["open"] != 0.0 || r.body["done"] != 2.0 {
		t.Errorf("paused: %s", r.text)
	}
	if r := verb(200, "resume", "RUNNING"); r.body["open"] != 2.0 {
		t.Errorf("resumed: %s", r.text)
	}
	verb(200, "stop", "STOPPED")
	if r := verb(200, "stop", "STOPPED"); r.body["done"] != 2.0 || r.str("ended_at") == "" {
		t.Errorf("stopped: %s", r.text)
	}
	verb(409, "pause", "[RUNNING PAUSED]")
	verb(409, "resume", "[RUNNING PAUSED]")
	id = b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`).str("operation_id")
	b.finishAll(t, id, success)
	verb(409, "stop", "[RUNNING PAUSED STOPPED]")
	for _, path := range []string{"", "/pause", "/stop"} {
		method := map[bool]string{true: "GET", false: "POST"}[path == ""]
		b.want(t, 404, method, "/v1/operations/01KB4YJ2V0S6Y3Q4M5N6P7R8T9"+path, "")
		b.want(t, 404, method, "/v1/operations/x"+path, "")
	}
	who := b.who
	b.who = all("globex")
	b.want(t, 404, "GET", "/v1/operations/"+id, "")
	b.want(t, 404, "POST", "/v1/operations/"+id+"/stop", "")
	b.who = who
	b.who.Scopes = []tenant.Scope{tenant.Read}
	b.want(t, 403, "POST", "/v1/operations/"+id+"/stop", "")
	b.want(t, 200, "GET", "/v1/operations/"+id, "")
}

func TestBackfill_MakesRunsOfADag(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 * * * *"},"dag":{"name":"d"}}`)
	id := b.want(t, 202, "POST", "/v1/schedules/s/backfills", fourHours+`}`).str("operation_id")
	for done := 0; done < 4; {
		rows := b.openOf(t, id)
		if len(rows) == 0 {
			t.Fatalf("after %d runs: %s", done, b.want(t, 200, "GET", "/v1/operations/"+id, "").text)
		}
		for _, r := range rows {
			e := b.engine()
			if _, err := e.Reevaluate(context.Background(), r.Key, r.Version, r.Attempt); err != nil {
				t.Fatal(err)
			}
			v := b.want(t, 200, "GET", "/v1/runs/"+string(r.ID), "")
			if v.str("backfill") != id || v.str("nominal_at") == "" || v.str("schedule") != "s" {
				t.Fatalf("the run is %s", v.text)
			}
			b.settled(t, string(run.Key{Tenant: b.who.Tenant, ID: r.ID}.Job("a", 1, 0).ID), success)
			done++
		}
	}
	r := b.want(t, 200, "GET", "/v1/operations/"+id, "")
	if r.str("status") != "SUCCEEDED" || r.body["done"] != 4.0 {
		t.Errorf("at the end: %s", r.text)
	}
}

// A time that did not run shows the job of its backfill, and others what they showed before.
func TestOccurrences_ShowBackfills(t *testing.T) {
	t.Parallel()
	b, _ := history(t)
	shown := func(path string) (list []string) {
		for _, i := range b.want(t, 200, "GET", "/v1/schedules/s/occurrences"+path, "").items() {
			list = append(list, fmt.Sprintf("%.10s %v %v", i["nominal_at"], i["outcome"], i["backfill"] != nil))
		}
		return list
	}
	before := shown("?before=2027-03-01T00:00:00Z")
	id := b.want(t, 202, "POST", "/v1/schedules/s/backfills",
		`{"from":"2027-02-23T00:00:00Z","to":"2027-03-01T00:00:00Z","max_running":9}`).str("operation_id")
	pending := shown("?outcome=pending&after=2027-02-20T00:00:00Z&before=2027-03-01T00:00:00Z")
	if got := strings.Join(pending, ", "); got != "2027-02-25 pending true, 2027-02-26 pending true, "+
		"2027-02-27 pending true, 2027-02-28 pending true" {
		t.Errorf("while it runs: %s", got)
	}
	b.finishAll(t, id, success)
	want := []string{"2027-02-28 ran true", "2027-02-27 ran true", "2027-02-26 ran true", "2027-02-26 missed false",
		"2027-02-25 ran true", "2027-02-24 ran false", "2027-02-23 ran false"}
	if got := shown("?before=2027-03-01T00:00:00Z"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("before\n%s\nafter\n%s\nwant\n%s", strings.Join(before, "\n"), strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
	var paged []string
	for _, page := range b.pages(t, "/v1/schedules/s/occurrences?limit=1&before=2027-03-01T00:00:00Z", "nominal_at") {
		paged = append(paged, page...)
	}
	if len(paged) != len(want) {
		t.Errorf("one by one: %v", paged)
	}
	if got := shown("?outcome=skipped&before=2027-03-01T00:00:00Z"); len(got) != 0 {
		t.Errorf("skipped: %v", got)
	}
}
