package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/limit"
	"punctual/shared/tenant"
)

func TestLimits_ArePutReadListedAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"max_running":5,"rate":{"count":100,"per":"1m"},"when_full":"cancel_oldest"}`
	r := b.want(t, 201, "PUT", "/v1/limits/github", body)
	if !strings.HasPrefix(r.text, `{"name":"github",`+strings.TrimSuffix(body[1:], "}")+`,"version":1,"created_at":"`) ||
		r.header.Get("ETag") != `"1"` {
		t.Errorf("the view is %s, ETag %s", r.text, r.header.Get("ETag"))
	}
	if repeated := b.want(t, 200, "PUT", "/v1/limits/github", body); repeated.text != r.text {
		t.Errorf("the same body once more: %s", repeated.text)
	}
	r = b.want(t, 200, "PUT", "/v1/limits/github", `{"rate":{"count":1,"per":"1s"}}`)
	if r.body["version"] != 2.0 || r.body["max_running"] != nil || r.str("when_full") != "wait" {
		t.Errorf("replaced by %s", r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/limits/github", ""); fmt.Sprint(r.body["rate"]) != "map[count:1 per:1s]" ||
		r.header.Get("ETag") != `"2"` {
		t.Errorf("reads %s", r.text)
	}
	for _, name := range []string{"b", "a", "c"} {
		b.want(t, 201, "PUT", "/v1/limits/"+name, `{"max_running":1}`)
	}
	if pages := b.pages(t, "/v1/limits?limit=2", "name"); fmt.Sprint(pages) != "[[a b] [c github]]" {
		t.Errorf("the list is %v", pages)
	}
	who := b.who
	b.who = all("globex")
	b.want(t, 404, "GET", "/v1/limits/a", "")
	b.want(t, 404, "DELETE", "/v1/limits/a", "")
	b.who = who
	b.want(t, 204, "DELETE", "/v1/limits/a", "")
	b.want(t, 404, "GET", "/v1/limits/a", "")
	b.want(t, 404, "GET", "/v1/limits/a/keys", "")
	b.want(t, 404, "DELETE", "/v1/limits/a", "")
	b.want(t, 201, "PUT", "/v1/limits/a", `{"max_running":2}`)
}

func TestLimits_AreChangedByVersionAndByAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(status int, match, body string) {
		t.Helper()
		if r := b.do(t, "PUT", "/v1/limits/x", body, "If-Match", match); r.status != status {
			t.Errorf("If-Match %s: %d %s", match, r.status, r.text)
		}
	}
	put(412, `"1"`, `{"max_running":1}`)
	b.want(t, 201, "PUT", "/v1/limits/x", `{"max_running":1}`)
	put(412, `"2"`, `{"max_running":2}`)
	put(200, `"1"`, `{"max_running":2}`)
	put(400, `2`, `{"max_running":3}`)
	if r := b.do(t, "DELETE", "/v1/limits/x", "", "If-Match", `"1"`); r.status != 412 {
		t.Errorf("deleting an old version: %d %s", r.status, r.text)
	}
	b.who.Scopes = []tenant.Scope{tenant.Read, tenant.Write}
	b.want(t, 403, "PUT", "/v1/limits/x", `{"max_running":2}`)
	b.want(t, 403, "DELETE", "/v1/limits/x", "")
	b.want(t, 200, "GET", "/v1/limits/x", "")
}

func TestPutLimit_RefusesBadLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rate := func(count, per string) string { return `{"rate":{"count":` + count + `,"per":` + per + `}}` }
	for _, c := range []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"nothing", `{}`, 400, "missing_field", "/max_running"},
		{"only when_full", `{"when_full":"skip"}`, 400, "missing_field", "/max_running"},
		{"no object", `[]`, 400, "invalid_value", ""},
		{"an unknown field", `{"max_running":1,"min_running":1}`, 400, "unknown_field", "/min_running"},
		{"none that run", `{"max_running":0}`, 400, "out_of_range", "/max_running"},
		{"too many that run", `{"max_running":10001}`, 400, "out_of_range", "/max_running"},
		{"half a job", `{"max_running":1.5}`, 400, "invalid_value", "/max_running"},
		{"null", `{"max_running":null}`, 400, "invalid_value", "/max_running"},
		{"no starts", rate("0", `"1m"`), 400, "out_of_range", "/rate/count"},
		{"too many starts", rate("100001", `"24h"`), 400, "out_of_range", "/rate/count"},
		{"501 a second", rate("501", `"1s"`), 400, "out_of_range", "/rate/count"},
		{"over 500 a second", rate("751", `"1500ms"`), 400, "out_of_range", "/rate/count"},
		{"a short window", rate("1", `"999ms"`), 400, "out_of_range", "/rate/per"},
		{"a long window", rate("1", `"25h"`), 400, "out_of_range", "/rate/per"},
		{"a number as window", rate("1", `60`), 400, "invalid_value", "/rate/per"},
		{"a rate without its window", `{"rate":{"count":1}}`, 400, "missing_field", "/rate/per"},
		{"a rate without its count", `{"rate":{"per":"1s"}}`, 400, "missing_field", "/rate/count"},
		{"another policy", `{"max_running":1,"when_full":"drop"}`, 400, "invalid_value", "/when_full"},
		{"cancel_oldest of a rate", `{"rate":{"count":1,"per":"1s"},"when_full":"cancel_oldest"}`, 400,
			"conflicting_fields", "/when_full"},
	} {
		t.Run("refuses a limit: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "PUT", "/v1/limits/x", c.body))
		})
	}
	b.want(t, 400, "PUT", "/v1/limits/a%20b", `{"max_running":1}`)
	b.want(t, 400, "GET", "/v1/limits/a%20b", "")
	b.want(t, 400, "GET", "/v1/limits/a%20b/keys", "")
	b.want(t, 400, "DELETE", "/v1/limits/a%20b", "")
	for n, body := range []string{`{"max_running":10000}`, rate("500", `"1s"`), rate("750", `"1500ms"`), rate("100000", `"24h"`)} {
		b.want(t, 201, "PUT", fmt.Sprintf("/v1/limits/most%d", n), body)
	}
}

// limitsOf shows the field limits of an answer.
func limitsOf(v map[string]any) string {
	shown := []string{}
	list, _ := v["limits"].([]any)
	for _, l := range list {
		shown = append(shown, fmt.Sprintf("%v=%v", l.(map[string]any)["name"], l.(map[string]any)["key"]))
	}
	return strings.Join(shown, " ")
}

func TestLimits_OfAJobReplaceThoseOfItsTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"github", "all"} {
		b.want(t, 201, "PUT", "/v1/limits/"+name, `{"max_running":1}`)
	}
	r := b.want(t, 201, "PUT", "/v1/tasks/sync", `{"executor":"echo","limits":[{"name":"all"}]}`)
	if limitsOf(r.body) != "all=<nil>" {
		t.Errorf("the task: %s", r.text)
	}
	for _, c := range []struct{ field, want string }{
		{``, "all=<nil>"},
		{`,"limits":[]`, ""},
		{`,"limits":[{"name":"github","key":"acct-42"}]`, "github=acct-42"},
		{`,"limits":[{"name":"github","key":"a"},{"name":"github","key":null},{"name":"all"}]`,
			"github=a github=<nil> all=<nil>"},
		{`,"limits":[{"name":"github","key":"ä ` + strings.Repeat("ö", 126) + `"}]`, "github=ä " + strings.Repeat("ö", 126)},
	} {
		r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"sync"`+c.field+`}`)
		one := b.want(t, 200, "GET", "/v1/jobs/"+r.str("job_id"), "")
		if limitsOf(r.body) != c.want || limitsOf(one.body) != c.want {
			t.Errorf("%s: accepted with %s, shown with %s", c.field, limitsOf(r.body), limitsOf(one.body))
		}
		batch := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[{"task":"sync"`+c.field+`}]}`)
		if of := batch.items()[0]["job"].(map[string]any); limitsOf(of) != c.want {
			t.Errorf("%s in a batch: %s", c.field, batch.text)
		}
	}
	b.want(t, 200, "PUT", "/v1/tasks/sync", `{"executor":"echo"}`)
	for _, v := range b.want(t, 200, "GET", "/v1/jobs?task=sync", "").items() {
		if limitsOf(v) == "all=<nil>" {
			return // accepted before the change of the task
		}
	}
	t.Error("the change of a task has changed its jobs")
}

func TestLimits_AreRefusedAtTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/github", `{"max_running":1}`)
	b.want(t, 201, "PUT", "/v1/limits/gone", `{"max_running":1}`)
	b.want(t, 204, "DELETE", "/v1/limits/gone", "")
	each := `{"name":"github"},`
	for _, c := range []wrong{
		{"unknown", `[{"name":"github"},{"name":"gitlab"}]`, 400, "unknown_limit", "/limits/1/name"},
		{"deleted", `[{"name":"gone"}]`, 400, "unknown_limit", "/limits/0/name"},
		{"no list", `{"name":"github"}`, 400, "invalid_value", "/limits"},
		{"a name", `["github"]`, 400, "invalid_value", "/limits/0"},
		{"without a name", `[{"key":"a"}]`, 400, "missing_field", "/limits/0/name"},
		{"no name", `[{"name":"a b"}]`, 400, "invalid_value", "/limits/0/name"},
		{"an unknown field", `[{"name":"github","max":1}]`, 400, "unknown_field", "/limits/0/max"},
		{"four", `[` + strings.Repeat(each, 3) + `{"name":"github"}]`, 400, "out_of_range", "/limits"},
		{"one twice", `[{"name":"github"},{"name":"github","key":null}]`, 400, "invalid_value", "/limits/1"},
		{"an empty key", `[{"name":"github","key":""}]`, 400, "invalid_value", "/limits/0/key"},
		{"a long key", `[{"name":"github","key":"` + strings.Repeat("ä", 129) + `"}]`, 400, "invalid_value",
			"/limits/0/key"},
		{"a line end in the key", `[{"name":"github","key":"a\nb"}]`, 400, "invalid_value", "/limits/0/key"},
		{"a number as key", `[{"name":"github","key":42}]`, 400, "invalid_value", "/limits/0/key"},
		{"a secret", `[{"name":"github","key":"ghp_0123456789abcdefghijklmnopqrstuvwxyz"}]`, 400, "secret_in_payload",
			"/limits/0/key"},
	} {
		for where, send := range map[string]func(limits string) reply{
			"a job": func(l string) reply { return b.do(t, "POST", "/v1/jobs", `{"task":"echo","limits":`+l+`}`) },
			"a task": func(l string) reply {
				return b.do(t, "PUT", "/v1/tasks/x", `{"executor":"echo","limits":`+l+`}`)
			},
		} {
			t.Run("refuses the limits of "+where+": "+c.name, func(t *testing.T) {
				t.Parallel()
				requireRefused(t, b, c, send(c.body))
			})
		}
	}
	r := b.do(t, "POST", "/v1/jobs", `{"task":"echo","limits":[{"name":"githup"}]}`)
	if !strings.Contains(r.text, `did you mean \"github\"?`) {
		t.Errorf("a misspelled name: %s", r.text)
	}
}

func TestLimits_OfSchedulesAreKeptByAPatchOfSomethingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/all", `{"max_running":1}`)
	b.want(t, 201, "PUT", "/v1/limits/github", `{"max_running":1}`)
	b.want(t, 201, "PUT", "/v1/tasks/sync", `{"executor":"echo","limits":[{"name":"all"}]}`)
	limits := func(r reply) string { return limitsOf(r.body["job"].(map[string]any)) }
	put := func(name, field string) string {
		return limits(b.want(t, 201, "PUT", "/v1/schedules/"+name, `{"calendar":{"every":"1h"},"job":{"task":"sync"`+field+`}}`))
	}
	patch := func(name, job string) string {
		return limits(b.want(t, 200, "PATCH", "/v1/schedules/"+name, `{"job":`+job+`}`))
	}
	if got := put("of-task", ""); got != "all=<nil>" {
		t.Errorf("left out: %s", got)
	}
	put("none", `,"limits":[]`)
	put("own", `,"limits":[{"name":"github","key":"a"}]`)
	for name, want := range map[string]string{"of-task": "all=<nil>", "none": "", "own": "github=a"} {
		if got := patch(name, `{"priority":"high"}`); got != want {
			t.Errorf("%s after another patch: %s", name, got)
		}
	}
	if got := patch("none", `{"limits":[{"name":"github"}]}`); got != "github=<nil>" {
		t.Errorf("patched to %s", got)
	}
	if got := patch("own", `{"limits":null}`); got != "all=<nil>" {
		t.Errorf("removed: %s", got)
	}
	r := b.do(t, "PATCH", "/v1/schedules/own", `{"job":{"limits":[{"name":"gitlab"}]}}`)
	if r.status != 400 || !strings.Contains(r.text, `"pointer":"/job/limits/0/name","code":"unknown_limit"`) {
		t.Errorf("unknown: %s", r.text)
	}
	ran := b.want(t, 202, "POST", "/v1/schedules/none/run-now", "")
	if limitsOf(ran.body) != "github=<nil>" {
		t.Errorf("its job: %s", ran.text)
	}
}

func TestPatchJob_ChangesLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/all", `{"max_running":1}`)
	id := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","delay":"1h","limits":[{"name":"all","key":"a"}]}`).str("job_id")
	for _, c := range []struct{ patch, want string }{
		{`{"priority":"high"}`, "all=a"}, {`{"limits":[{"name":"all"}]}`, "all=<nil>"}, {`{"limits":[]}`, ""},
	} {
		if r := b.want(t, 200, "PATCH", "/v1/jobs/"+id, c.patch); limitsOf(r.body) != c.want {
			t.Errorf("%s: %s", c.patch, r.text)
		}
	}
	if r := b.do(t, "PATCH", "/v1/jobs/"+id, `{"limits":[{"name":"none"}]}`); r.status != 400 || r.str("code") != "unknown_limit" {
		t.Errorf("unknown: %s", r.text)
	}
}

func TestDeleteLimit_NamesWhatUsesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/all", `{"max_running":1}`)
	refused := func(user string) {
		t.Helper()
		if r := b.want(t, 409, "DELETE", "/v1/limits/all", ""); r.str("code") != "in_use" ||
			!strings.Contains(r.str("detail"), user) {
			t.Errorf("used by %s: %s", user, r.text)
		}
	}
	b.want(t, 201, "PUT", "/v1/tasks/sync", `{"executor":"echo","limits":[{"name":"all"}]}`)
	refused("task sync")
	b.want(t, 200, "PUT", "/v1/tasks/sync", `{"executor":"echo"}`)
	b.want(t, 201, "PUT", "/v1/schedules/hourly", `{"calendar":{"every":"1h"},"job":{"task":"echo","limits":[{"name":"all"}]}}`)
	refused("schedule hourly")
	b.want(t, 204, "DELETE", "/v1/schedules/hourly", "")
	b.want(t, 201, "PUT", "/v1/dags/etl", `{"nodes":{"a":{"task":"echo","limits":[{"name":"all","key":"${run.id}"}]}}}`)
	refused("dag etl")
	b.want(t, 201, "PUT", "/v1/schedules/pinned", `{"calendar":{"every":"1h"},"dag":{"name":"etl","version":1}}`)
	b.want(t, 200, "PUT", "/v1/dags/etl", `{"nodes":{"a":{"task":"echo"}}}`)
	refused("dag etl")
	b.want(t, 204, "DELETE", "/v1/schedules/pinned", "")
	b.post(t, `{"task":"echo","delay":"1h","limits":[{"name":"all"}]}`)
	b.want(t, 204, "DELETE", "/v1/limits/all", "")
}

func TestDag_LimitsOfNodesAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/github", `{"max_running":1}`)
	dag := func(limits string) string {
		return `{"params":{"account":"a"},"nodes":{"sync":{"task":"echo","limits":` + limits + `}}}`
	}
	r := b.want(t, 201, "PUT", "/v1/dags/x", dag(`[{"name":"github","key":"${params.account}"}]`))
	node := func(r reply) map[string]any { return r.body["nodes"].(map[string]any)["sync"].(map[string]any) }
	if limitsOf(node(r)) != "github=${params.account}" {
		t.Errorf("shown as %s", r.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/dags/x", dag(`[]`)); node(r)["limits"] == nil {
		t.Errorf("none are shown as the task's: %s", r.text)
	}
	for _, c := range []wrong{
		{"unknown", `[{"name":"gitlab"}]`, 400, "unknown_limit", "/nodes/sync/limits/0/name"},
		{"an unknown param", `[{"name":"github","key":"${params.user}"}]`, 400, "invalid_expression",
			"/nodes/sync/limits/0/key"},
		{"a number", `[{"name":"github","key":1}]`, 400, "invalid_value", "/nodes/sync/limits/0/key"},
		{"a long text", `[{"name":"github","key":"${params.account}` + strings.Repeat("x", 1010) + `"}]`, 400, "invalid_value",
			"/nodes/sync/limits/0/key"},
		{"a long key", `[{"name":"github","key":"` + strings.Repeat("x", 129) + `"}]`, 400, "invalid_value",
			"/nodes/sync/limits/0/key"},
	} {
		t.Run("refuses the limits of a node: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "PUT", "/v1/dags/y", dag(c.body)))
		})
	}
}

// waiter is a job that waits for a key of limit github.
func waiter(b *bench, t *testing.T, n int, p job.Priority, due time.Duration, key string) string {
	t.Helper()
	now := noon
	r := jobtest.Row(n, now.Add(due), now, func(r *job.Row) {
		r.Tenant, r.Priority, r.Limits = "acme", p, job.LimitsOf(job.LimitKey{Name: "github", Key: key})
		r.Parked, r.WaitsLimit, r.WakeAt = true, 1, now.Add(due).Add(1000*time.Hour)
	})
	if _, err := b.World.Table().Write(t.Context(), job.Accept(r)); err != nil {
		t.Fatal(err)
	}
	return string(r.ID)
}

func TestJob_ShowsForWhichLimitItWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := waiter(b, t, 1, job.Normal, -time.Hour, "acct-42")
	second := waiter(b, t, 2, job.Normal, -time.Minute, "acct-42")
	low := waiter(b, t, 3, job.Low, -2*time.Hour, "acct-42")
	other := waiter(b, t, 4, job.Normal, -time.Minute, "")
	want := map[string]string{
		first: "map[ahead:0 key:acct-42 name:github]", second: "map[ahead:1 key:acct-42 name:github]",
		low: "map[ahead:2 key:acct-42 name:github]", other: "map[ahead:0 key:<nil> name:github]",
	}
	for id, limit := range want {
		r := b.want(t, 200, "GET", "/v1/jobs/"+id, "")
		if r.str("waiting_for") != "limit" || fmt.Sprint(r.body["limit"]) != limit || r.str("status") == "RUNNING" {
			t.Errorf("job %s: %s", id, r.text)
		}
	}
	for _, v := range b.want(t, 200, "GET", "/v1/jobs", "").items() {
		if id := v["job_id"].(string); v["waiting_for"] != "limit" || fmt.Sprint(v["limit"]) != want[id] {
			t.Errorf("in a list: %v", v)
		}
	}
}

func TestLimitKeys_AreListedBusiestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, now := context.Background(), noon
	b.want(t, 201, "PUT", "/v1/limits/github", `{"max_running":2,"rate":{"count":10,"per":"1m"}}`)
	l, err := b.Store.Limit(ctx, "acme", "github")
	if err != nil {
		t.Fatal(err)
	}
	use := func(key string, running, starts int) {
		k := limit.Key{Tenant: "acme", LimitKey: job.LimitKey{Name: "github", Key: key}}
		if err := b.Store.NoteLimitKey(ctx, k, now); err != nil {
			t.Fatal(err)
		}
		for n := range running {
			if _, ok, err := b.Store.TakePermit(ctx, l, k, job.ID(fmt.Sprint("j", n)), 1, now); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		for range starts {
			if next, err := b.Store.DrawStart(ctx, l.Rate, k, now); err != nil || !next.IsZero() {
				t.Fatal(next, err)
			}
		}
	}
	use("idle", 0, 0)
	use("one", 1, 1)
	use("", 2, 2)
	use("full", 2, 3)
	use("started", 0, 9)
	waiter(b, t, 1, job.Normal, -time.Minute, "full")
	waiter(b, t, 2, job.Low, -time.Minute, "full")
	r := b.want(t, 200, "GET", "/v1/limits/github/keys", "")
	var shown []string
	for _, v := range r.items() {
		shown = append(shown, fmt.Sprintf("%v:%v+%v/%v", v["key"], v["running"], v["waiting"], v["starts_in_window"]))
		if v["next_start_at"] == nil {
			t.Errorf("no next start: %v", v)
		}
	}
	if got := strings.Join(shown, " "); got != "full:2+2/3 <nil>:2+0/2 started:0+0/9 one:1+0/1 idle:0+0/0" {
		t.Errorf("listed as %s", got)
	}
	if pages := b.pages(t, "/v1/limits/github/keys?limit=2", "running"); fmt.Sprint(pages) != "[[2 2] [0 1] [0]]" {
		t.Errorf("in pages: %v", pages)
	}
	b.want(t, 200, "PUT", "/v1/limits/github", `{"max_running":2}`)
	for _, v := range b.want(t, 200, "GET", "/v1/limits/github/keys", "").items() {
		if v["starts_in_window"] != nil || v["next_start_at"] != nil {
			t.Errorf("without a rate: %v", v)
		}
	}
	b.want(t, 404, "GET", "/v1/limits/none/keys", "")
}

func TestRedrive_KeepsLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/all", `{"max_running":1}`)
	id := b.dead(t, `{"task":"echo","limits":[{"name":"all","key":"a"}]}`)
	if r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", ""); limitsOf(r.body) != "all=a" {
		t.Errorf("redriven as %s", r.text)
	}
}
