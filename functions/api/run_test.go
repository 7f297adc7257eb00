package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

// chain is an inline run of three nodes in a row.
const chain = `{"dag":{"nodes":{"a":{"task":"echo","payload":{"n":"${params.n + 1}"}},"b":{"task":"echo","depends_on":["a"]},
	"c":{"task":"echo","depends_on":["b"]}},"params":{"n":3}}}`

// node returns one node of a run's view.
func node(r reply, name string) map[string]any {
	return r.body["nodes"].(map[string]any)[name].(map[string]any)
}

// states returns the status of a run and of its nodes.
func states(r reply) string {
	var all []string
	for name, n := range r.body["nodes"].(map[string]any) {
		all = append(all, fmt.Sprintf("%s:%s", name, n.(map[string]any)["status"]))
	}
	slices.Sort(all)
	return r.str("status") + " " + strings.Join(all, " ")
}

//proof:of 46 56 58 129 134 139 144
func TestRun_StartsItsFirstNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", chain)
	if r.header.Get("Location") != "/v1/runs/"+r.str("run_id") || states(r) != "RUNNING a:QUEUED b:BLOCKED c:BLOCKED" {
		t.Errorf("%s: %s", r.header.Get("Location"), r.text)
	}
	if r.body["dag"] != nil || r.body["dag_version"] != nil || fmt.Sprint(r.body["params"]) != "map[n:3]" {
		t.Errorf("the view is %s", r.text)
	}
	if c := fmt.Sprint(
		r.body["counts"]); c != "map[blocked:2 cancelled:0 failed:0 running:0 "+
		"skipped:0 succeeded:0 total:3 waiting:1]" {
		t.Errorf("counts %s", c)
	}
	if n := node(r, "b"); n["waiting_for"] != "parents" || n["why"] != "waits for a" || n["parents"] != 1.0 ||
		n["parents_done"] != 0.0 || n["generation"] != 1.0 {
		t.Errorf("b is %v", n)
	}
	if n := node(r, "a"); n["waiting_for"] != "worker" || n["attempt"] != 1.0 {
		t.Errorf("a is %v", n)
	}
	one := b.want(t, 200, "GET", "/v1/jobs/"+node(r, "a")["job_id"].(string), "")
	if one.str("run_id") != r.str("run_id") || one.str("node") != "a" || fmt.Sprint(one.body["payload"]) != "map[n:4]" {
		t.Errorf("its job is %s", one.text)
	}
	if sent := b.Received(stagetest.FiringQueue); len(sent) != 1 {
		t.Errorf("%d firings were sent", len(sent))
	}
	if g := b.want(t, 200, "GET", r.header.Get("Location"), ""); g.text != r.text {
		t.Errorf("GET answers\n%s and POST\n%s", g.text, r.text)
	}
	n := b.want(t, 200, "GET", r.header.Get("Location")+"/nodes/a", "")
	if n.str("node") != "a" || fmt.Sprint(n.body["payload"]) != "map[n:4]" {
		t.Errorf("the node is %s", n.text)
	}
	b.want(t, 404, "GET", r.header.Get("Location")+"/nodes/x", "")
}

//proof:of 46
func TestRun_OfADagKeepsItsVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 404, "POST", "/v1/dags/etl/runs", "")
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.want(t, 200, "PUT", "/v1/dags/etl", strings.Replace(etl, `"n":1`, `"n":9`, 1))
	r := b.want(t, 202, "POST", "/v1/dags/etl/runs", "")
	if r.str("dag") != "etl" || r.body["dag_version"] != 2.0 {
		t.Errorf("the run is %s", r.text)
	}
	old := b.want(t, 202, "POST", "/v1/dags/etl/runs",
		`{"version":1,"params":{"url":"x"},"delay":"1h","tags":{"team":"data"}}`)
	if old.body["dag_version"] != 1.0 || fmt.Sprint(old.body["params"]) != "map[url:x]" ||
		fmt.Sprint(old.body["tags"]) != "map[team:data]" ||
		old.str("due_at") != "2027-03-01T13:00:00.000Z" || node(old, "a")["waiting_for"] != "due" {
		t.Errorf("the run is %s", old.text)
	}
	b.want(t, 404, "POST", "/v1/dags/etl/runs", `{"version":3}`)
	for body, want := range map[string]string{
		`{"params":{"uri":"x"}}`:            "/params/uri unknown_field",
		`{"params":[]}`:                     "/params invalid_value",
		`{"x":1}`:                           "/x unknown_field",
		`{"limits":[]}`:                     "/limits unknown_field",
		`{"delay":"1h","run_at":"x"}`:       "/delay conflicting_fields",
		`{"version":0}`:                     "/version out_of_range",
		`{"priority":"x","expire_after":1}`: "/priority invalid_value",
	} {
		r := b.want(t, 400, "POST", "/v1/dags/etl/runs", body)
		if m := violationOf(r); fmt.Sprintf("%s %s", m["pointer"], m["code"]) != want {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	b.want(t, 204, "DELETE", "/v1/dags/etl", "")
	b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id"), "")
	b.want(t, 404, "POST", "/v1/dags/etl/runs", "")
}

func TestRun_GoesOnWhenTheRequestIsRepeatedAfterACrash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := false
	b.World.SetFaults(func(c memory.Call) memory.Fault { // the process ends after the write of the run
		if made && (c.Op == memory.TableWrite || c.Op == memory.TableCommit || c.Op == memory.QueueSend) {
			return memory.Fault{Fail: fault.Unavailable}
		}
		made = made || c.Name == run.WriteCreate
		return memory.Fault{}
	})
	b.want(t, 202, "POST", "/v1/runs", chain, "Idempotency-Key", "k")
	b.World.SetFaults(nil)
	if n := len(b.Received(stagetest.FiringQueue)); !made || n != 0 {
		t.Fatalf("made: %v, with %d firings", made, n)
	}
	r := b.want(t, 202, "POST", "/v1/runs", chain, "Idempotency-Key", "k")
	if n := len(b.Received(stagetest.FiringQueue)); n == 0 || r.str("status") != "RUNNING" {
		t.Errorf("after the repetition %d firings were sent: %s", n, r.text)
	}
}

func TestRun_ChecksItsParamsByTheDagsSchema(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo","payload":"${params.n}"}},"params":{"n":1},
		"params_schema":{"type":"object","properties":{"n":{"type":"integer"},"more":{"type":"string"}}}}`)
	if m := violationOf(b.want(t, 400, "POST", "/v1/dags/d/runs", `{"params":{"n":"x"}}`)); m["pointer"] != "/params/n" ||
		m["code"] != "invalid_value" ||
		!strings.Contains(m["detail"].(string), "params_schema") {
		t.Errorf("the first violation is %v", m)
	}
	b.want(t, 202, "POST", "/v1/dags/d/runs", `{"params":{"more":"x"}}`)
}

func TestRun_IsMadeOnceForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.want(t, 202, "POST", "/v1/runs", chain, "Idempotency-Key", "k")
	repeated := b.want(t, 202, "POST", "/v1/runs", chain, "Idempotency-Key", "k")
	if repeated.str("run_id") != first.str("run_id") || repeated.header.Get("Idempotency-Replayed") != "true" ||
		first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("a repeated request: %s", repeated.text)
	}
	if r := b.want(t, 422, "POST", "/v1/runs", strings.Replace(chain, `"n":3`, `"n":4`, 1), "Idempotency-Key",
		"k"); r.str("code") != "idempotency_key_reused" {
		t.Errorf("another body: %s", r.text)
	}
	b.want(t, 422, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "k")
	if got := flat(b.pages(t, "/v1/runs", "run_id")); len(got) != 1 {
		t.Errorf("there are %v", got)
	}
}

func TestRun_IsListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	var ids []string
	for n := range 5 {
		b.clock.at = noon.Add(time.Duration(n) * time.Minute)
		path, body := "/v1/runs", chain
		if n%2 == 1 {
			path, body = "/v1/dags/etl/runs", ""
		}
		ids = append([]string{b.want(t, 202, "POST", path, body).str("run_id")}, ids...)
	}
	b.want(t, 200, "POST", "/v1/runs/"+ids[0]+"/cancel", "")
	for query, want := range map[string][]string{
		"limit=2":                ids,
		"limit=1&dag=etl":        {ids[1], ids[3]},
		"status=CANCELLED":       ids[:1],
		"status=RUNNING&limit=3": ids[1:],
		"status=HELD":            nil,
		"schedule=s":             nil,
		"created_after=2027-03-01T12:01:00Z&created_before=2027-03-01T12:03:00Z": {ids[2], ids[3]},
	} {
		if got := flat(b.pages(t, "/v1/runs?"+query, "run_id")); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
	}
	one := b.want(t, 200, "GET", "/v1/runs?limit=1", "").items()[0]
	if one["nodes"] != nil || one["status"] != "CANCELLED" {
		t.Errorf("the list shows %v", one)
	}
	for query, pointer := range map[string]string{"status=DEAD": "status", "dag=a%20b": "dag",
		"created_after=x": "created_after", "x=1": "x"} {
		if m := violationOf(b.want(t, 400, "GET", "/v1/runs?"+query, "")); m["pointer"] != pointer {
			t.Errorf("%s: %v", query, m)
		}
	}
}

func TestRun_IsVisibleToItsTenantOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := "/v1/runs/" + b.want(t, 202, "POST", "/v1/runs", chain).str("run_id")
	b.who = all("other")
	for _, c := range []string{
		"GET ", "DELETE ", "GET /events", "GET /nodes/a", "POST /pause", "POST /resume", "POST /cancel",
		"POST /retry", "POST /nodes/a/retry", "POST /nodes/a/skip", "POST /nodes/a/complete",
	} {
		method, path, _ := strings.Cut(c, " ")
		b.want(t, 404, method, id+path, "")
		b.want(t, 404, method, "/v1/runs/x"+path, "")
	}
	if got := flat(b.pages(t, "/v1/runs", "run_id")); len(got) != 0 {
		t.Errorf("another tenant lists %v", got)
	}
}

//proof:of 29 37 59
func TestRun_FollowsTheOperationsOfAnOperator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := "/v1/runs/" + b.want(t, 202, "POST", "/v1/runs", chain).str("run_id")
	operation := func(status int, verb, body, want string) reply {
		t.Helper()
		r := b.want(t, status, "POST", id+"/"+verb, body)
		if status == 200 && states(r) != want || status != 200 && r.str("code")+fmt.Sprint(r.body["allowed"]) != want {
			t.Errorf("%s %s: %s, want %s", verb, body, r.text, want)
		}
		return r
	}
	operation(200, "pause", `{"reason":"look first"}`, "PAUSED a:QUEUED b:BLOCKED c:BLOCKED")
	operation(200, "pause", "", "PAUSED a:QUEUED b:BLOCKED c:BLOCKED")
	operation(200, "resume", "", "RUNNING a:QUEUED b:BLOCKED c:BLOCKED")
	operation(200, "resume", "", "RUNNING a:QUEUED b:BLOCKED c:BLOCKED")
	operation(409, "retry", "", "wrong_state[BUILDING RUNNING PAUSED HELD SUCCEEDED FAILED CANCELLED]")
	operation(409, "nodes/a/retry", "", "wrong_state[DEAD EXPIRED CANCELLED]")
	operation(404, "nodes/x/retry", "", "not_found<nil>")
	r := operation(200, "nodes/a/complete", `{"result":{"rows":3},"reason":"did it by hand"}`,
		"RUNNING a:SUCCEEDED b:QUEUED c:BLOCKED")
	if n := node(r, "a"); n["forced"] != true ||
		n["status_reason"].(map[string]any)["code"] != "completed_by_operator" {
		t.Errorf("a is %v", n)
	}
	if n := b.want(t, 200, "GET", id+"/nodes/a", ""); fmt.Sprint(n.body["result"]) != "map[rows:3]" {
		t.Errorf("a gave %s", n.text)
	}
	operation(409, "nodes/a/skip", "", "wrong_state[BLOCKED SCHEDULED QUEUED DEAD EXPIRED CANCELLED]")
	operation(200, "nodes/b/skip", `{"children":"skip"}`, "SUCCEEDED a:SUCCEEDED b:SKIPPED c:SKIPPED")
	operation(409, "nodes/a/complete", "", "wrong_state[BLOCKED SCHEDULED QUEUED DEAD EXPIRED CANCELLED]")
	operation(409, "cancel", "", "wrong_state[BUILDING RUNNING PAUSED HELD]")
	operation(400, "retry", `{"from":"x"}`, "unknown_node<nil>")
	operation(200, "retry", `{"from":"b"}`, "RUNNING a:SUCCEEDED b:QUEUED c:BLOCKED")
	b.want(t, 409, "DELETE", id, "")
	operation(200, "cancel", `{"reason":"enough"}`, "CANCELLED a:SUCCEEDED b:CANCELLED c:CANCELLED")
	operation(200, "nodes/b/retry", "", "RUNNING a:SUCCEEDED b:QUEUED c:BLOCKED")
	operation(200, "cancel", "", "CANCELLED a:SUCCEEDED b:CANCELLED c:CANCELLED")
	operation(400, "cancel", `{"why":1}`, "unknown_field<nil>")
	operation(400, "nodes/b/skip", `{"children":"both"}`, "invalid_value<nil>")

	var did []string
	for _, page := range b.pages(t, id+"/events?limit=3", "action") {
		did = append(did, page...)
	}
	if got := strings.Join(did, " "); got != "create pause resume complete skip retry cancel retry cancel" {
		t.Errorf("events: %s", got)
	}
	e := b.want(t, 200, "GET", id+"/events", "").items()[1]
	if fmt.Sprint(
		e) != "map[action:pause at:2027-03-01T12:00:00.000Z by:tester from:RUNNING reason:look first to:PAUSED]" {
		t.Errorf("the event of the pause is %v", e)
	}
	ofB := node(b.want(t, 200, "GET", id, ""), "b")["job_id"].(string)
	b.want(t, 204, "DELETE", id, "")
	b.want(t, 404, "GET", id, "")
	b.want(t, 404, "GET", "/v1/jobs/"+ofB, "")
	if got := flat(b.pages(t, "/v1/runs", "run_id")); len(got) != 0 {
		t.Errorf("still listed: %v", got)
	}
}

//proof:of 139
func TestRun_ShowsTheItemsOfAMappedNode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"part":{"task":"echo","for_each":"${params.list}","payload":{"n":"${item}","at":"${index}"},"max_parallel":2},
		"sum":{"task":"echo","depends_on":["part"]}},"params":{"list":[5,6,7]}}}`)
	if fmt.Sprint(node(r,
		"part")["items"]) != "map[blocked:1 cancelled:0 failed:0 running:0 skipped:0 succeeded:0 total:3 waiting:2]" {
		t.Errorf("the node is %v", node(r, "part"))
	}
	if node(r, "sum")["why"] != "waits for part (0 of 3 items)" {
		t.Errorf("sum is %v", node(r, "sum"))
	}
	path := "/v1/runs/" + r.str("run_id") + "/nodes/part"
	items := b.want(t, 200, "GET", path+"?limit=2", "").body["items"].(map[string]any)
	rest := b.want(t, 200, "GET", path+"?limit=2&cursor="+items["next_cursor"].(string),
		"").body["items"].(map[string]any)
	first := items["items"].([]any)[0].(map[string]any)["job_id"].(string)
	if one := b.want(t, 200, "GET", "/v1/jobs/"+first, ""); one.body["item"] != 0.0 || one.str("node") != "part" {
		t.Errorf("its job is %s", one.text)
	}
	if len(items["items"].([]any)) != 2 || rest["next_cursor"] != nil ||
		rest["items"].([]any)[0].(map[string]any)["item"] != 2.0 {
		t.Errorf("items %v and %v", items, rest)
	}
}

//proof:of 140
func TestRun_IsDrawn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := "/v1/runs/" + b.want(t, 202, "POST", "/v1/runs", chain).str("run_id") + "/graph"
	for _, c := range []struct{ query, accept, kind, begins, holds string }{
		{"", "*/*", "text/plain; charset=utf-8", "flowchart TD\n", "n0 --> n1"},
		{"?format=mermaid", "image/svg+xml", "text/plain; charset=utf-8", "flowchart TD\n",
			`n0(["a<br/>QUEUED"]):::queued`},
		{"", "text/html;q=0.5,image/svg+xml", "image/svg+xml", "<svg ", `<g id="node-b"><title>b: BLOCKED</title>`},
		{"", "image/*, */*;q=0.8", "image/svg+xml", "<svg ", "</svg>"},
		{"?format=svg", "", "image/svg+xml", "<svg ", "</svg>"},
		{"?format=json", "", "application/json", "{", `"edges":[["a","b"],["b","c"]]`},
	} {
		ask := httptest.NewRequestWithContext(api.WithIdentity(t.Context(), b.who), "GET", path+c.query, http.NoBody)
		ask.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, ask)
		kind, text := w.Header().Get("Content-Type"), w.Body.String()
		if w.Code != 200 || kind != c.kind || !strings.HasPrefix(text, c.begins) || !strings.Contains(text, c.holds) {
			t.Errorf("%s as %s: %d %s\n%s", c.query, c.accept, w.Code, kind, text)
		}
	}
	b.want(t, 400, "GET", path+"?format=png", "")
}

func TestRun_RetriesANodeByItsOwnPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"a":{"task":"echo","retry":{"max_attempts":2,"max_delay":"7s"}}}}}`)
	one := b.row(t, node(r, "a")["job_id"].(string))
	want := job.DefaultRetry
	want.MaxAttempts, want.MaxDelay = 2, 7*time.Second
	if one.Retry != want {
		t.Errorf("the job is retried by %+v", one.Retry)
	}
}

func TestRun_IsMadeOnceForConcurrentRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := ""
	b.Before(func(c memory.Call) bool { return strings.Contains(c.Name, run.WriteCreate) }, func() {
		first = b.want(t, 202, "POST", "/v1/runs", chain, "Idempotency-Key", "k").str("run_id")
	})
	r := b.want(t, 202, "POST", "/v1/runs", chain, "Idempotency-Key", "k")
	if first == "" || r.str("run_id") != first || r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the first made %q, the second %s", first, r.text)
	}
	if got := flat(b.pages(t, "/v1/runs", "run_id")); len(got) != 1 {
		t.Errorf("there are %v", got)
	}
}
