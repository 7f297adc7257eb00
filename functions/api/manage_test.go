package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/api"
	"punctual/functions/engine/pause"
	"punctual/functions/stagetest"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

//proof:of 67
func TestTasks_AreDefinedReplacedListedAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"executor":"http","pool":"long","timeout":"1h","retry":{"max_attempts":2},"payload_schema":{"type":"object","required":["url"]}}`
	r := b.want(t, 201, "PUT", "/v1/tasks/call", body)
	if r.body["version"] != 1.0 || r.str("timeout") != "1h" || r.str("priority") != "normal" ||
		r.body["retry"].(map[string]any)["max_attempts"] != 2.0 {
		t.Errorf("answered %s", r.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/tasks/call", body); r.body["version"] != 1.0 {
		t.Errorf("the same body once more: %s", r.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/tasks/call", `{"executor":"go"}`); r.body["version"] != 2.0 ||
		r.str("executor") != "go" || r.body["payload_schema"] != nil {
		t.Errorf("replaced: %s", r.text)
	}
	if g := b.want(t, 200, "GET", "/v1/tasks/call", ""); g.body["version"] != 2.0 {
		t.Errorf("GET: %s", g.text)
	}
	for _, name := range []string{"a", "ech", "echo2", "zz", "i"} {
		b.want(t, 201, "PUT", "/v1/tasks/"+name, `{"executor":"go"}`)
	}
	want := []string{"a", "call", "ech", "echo", "echo2", "http", "i", "lambda", "webhook", "zz"}
	for _, limit := range []string{"1", "2", "3", "4", "100"} {
		if got := flat(b.pages(t, "/v1/tasks?limit="+limit, "name")); !slices.Equal(got, want) {
			t.Errorf("in pages of %s: %v", limit, got)
		}
	}
	waiting := b.post(t, `{"task":"call","delay":"1h","payload":1}`)
	b.want(t, 204, "DELETE", "/v1/tasks/call", "")
	b.want(t, 404, "GET", "/v1/tasks/call", "")
	b.want(t, 400, "POST", "/v1/jobs", `{"task":"call"}`)
	b.want(t, 200, "PATCH", "/v1/jobs/"+waiting, `{"payload":2}`) // it runs with what it copied from the task
	b.who = all("globex")
	b.want(t, 404, "GET", "/v1/tasks/a", "")
}

//proof:of F41
func TestCreateJob_RefusesAPayloadThatDoesNotFitItsSchema(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge", `{"executor":"go","payload_schema":{
		"type":"object","required":["amount"],"properties":{"amount":{"type":"integer","minimum":1},
		"items":{"type":"array","items":{"$ref":"#/$defs/item"}}},"additionalProperties":false,
		"$defs":{"item":{"type":"string","maxLength":3}}}}`)
	b.want(t, 202, "POST", "/v1/jobs", `{"task":"charge","payload":{"amount":5,"items":["abc"]}}`)
	for _, c := range []wrong{
		{"too little", `{"amount":0}`, 400, "invalid_value", "/payload/amount"},
		{"the wrong type", `{"amount":"` + sentinel + `"}`, 400, "invalid_value", "/payload/amount"},
		{"missing", `{}`, 400, "missing_field", "/payload/amount"},
		{"one too many", `{"amount":1,"more":"` + sentinel + `"}`, 400, "invalid_value", "/payload/more"},
		{"deep", `{"amount":1,"items":["abc","` + sentinel + `"]}`, 400, "invalid_value", "/payload/items/1"},
		{"null", `null`, 400, "invalid_value", "/payload"},
	} {
		requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", `{"task":"charge","payload":`+c.body+`}`))
	}
	id := b.post(t, `{"task":"charge","payload":{"amount":5},"delay":"1h"}`)
	requireRefused(t, b, wrong{status: 400, code: "invalid_value", pointer: "/payload/amount"},
		b.do(t, "PATCH", "/v1/jobs/"+id, `{"payload":{"amount":-5}}`))
	requireRefused(t, b, wrong{status: 400, code: "invalid_value", pointer: "/payload"},
		b.do(t, "PATCH", "/v1/jobs/"+id, `{"payload":null}`))
	for _, c := range []wrong{
		{"of a job", `{"task":"charge"}`, 400, "missing_field", "/payload"},
		{"of a schedule", `{"calendar":{"every":"1h"},"job":{"task":"charge"}}`, 400, "missing_field", "/job/payload"},
		{"of a node", `{"nodes":{"a":{"task":"charge"}}}`, 400, "missing_field", "/nodes/a/payload"},
	} {
		method, path := "POST", "/v1/jobs"
		switch {
		case strings.Contains(c.body, "calendar"):
			method, path = "PUT", "/v1/schedules/s"
		case strings.Contains(c.body, "nodes"):
			method, path = "PUT", "/v1/dags/d"
		}
		requireRefused(t, b, c, b.do(t, method, path, c.body))
	}
	b.want(t, 200, "PUT", "/v1/tasks/charge", `{"executor":"go","payload_schema":{"type":["object","null"]}}`)
	b.want(t, 202, "POST", "/v1/jobs", `{"task":"charge"}`)
	b.want(t, 202, "POST", "/v1/jobs", `{"task":"charge","payload":null}`)
}

func TestPutTask_GivesConcurrentPutsOneVersionEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/t", `{"executor":"go"}`)
	b.Before(stagetest.Named(store.WriteTaskPut), func() {
		b.want(t, 200, "PUT", "/v1/tasks/t", `{"executor":"lambda"}`)
	})
	if r := b.want(t, 200, "PUT", "/v1/tasks/t", `{"executor":"http"}`); r.body["version"] != 3.0 ||
		r.str("executor") != "http" {
		t.Errorf("answered %s", r.text)
	}
}

//proof:of 36 52 192
func TestPauses_AnswerWhenTheyHoldAndWakeParkedJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dispatches := func() []message.Dispatch {
		var all []message.Dispatch
		for _, m := range b.Received(contract.DispatchQueue) {
			d, err := message.Decode[message.Dispatch](m.Body)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		return all
	}
	r := b.want(t, 201, "PUT", "/v1/pauses/task:http", `{"reason":"target is down"}`)
	if r.str("scope") != "task:http" || r.str("effective_at") != "2027-03-01T12:00:02.000Z" ||
		r.str("since") != "2027-03-01T12:00:00.000Z" || r.str("missed") != "" || r.str("by") != "tester" ||
		r.str("until") != "" {
		t.Errorf("answered %s", r.text)
	}
	b.clock.at = noon.Add(time.Minute)
	repeated := b.want(t, 200, "PUT", "/v1/pauses/task:http", `{"reason":"still"}`)
	if repeated.str("effective_at") != r.str("effective_at") || repeated.str("reason") != "still" {
		t.Errorf("it has held since, but: %s", repeated.text)
	}
	b.want(t, 201, "PUT", "/v1/pauses/all", "") // without a body
	held := b.post(t, `{"task":"echo"}`)
	if g := b.want(t, 200, "GET", "/v1/jobs/"+held, ""); g.str("waiting_for") != "pause" {
		t.Errorf("a job that is held: %s", g.text)
	}
	if got := flat(b.pages(t, "/v1/pauses", "scope")); !slices.Equal(got, []string{"all", "task:http"}) {
		t.Errorf("the pauses: %v", got)
	}
	if d := dispatches(); len(d) != 0 {
		t.Errorf("something was woken by a pause without end: %v", d)
	}
	b.want(t, 204, "DELETE", "/v1/pauses/all", "")
	lifted := dispatches()
	if len(lifted) != contract.ParkShards {
		t.Fatalf("%d dispatches", len(lifted))
	}
	for _, d := range lifted {
		if !strings.HasPrefix(d.Slice, "parked#acme#") || d.Round != 0 || !d.At.Equal(b.clock.at) {
			t.Errorf("a dispatch: %+v", d)
		}
	}
	if got := flat(b.pages(t, "/v1/pauses", "scope")); !slices.Equal(got, []string{"task:http"}) {
		t.Errorf("the pauses: %v", got)
	}

	soon := b.clock.at.Add(10 * time.Minute)
	b.want(t, 201, "PUT", "/v1/pauses/all", `{"until":"`+soon.Format(time.RFC3339)+`","missed":"drop"}`)
	b.clock.at = soon.Add(-time.Second)
	if d := dispatches(); len(d) != contract.ParkShards || !d[0].At.Equal(soon) {
		t.Errorf("a second before its end the pause had dispatched %+v", d)
	}
	b.clock.at = soon
	if got := flat(b.pages(t, "/v1/pauses", "scope")); !slices.Equal(got, []string{"task:http"}) {
		t.Errorf("a pause that has passed is shown: %v", got)
	}
	far := b.clock.at.Add(3 * time.Hour)
	for range 2 { // the second one arms the same timers
		b.do(t, "PUT", "/v1/pauses/all", `{"until":"`+far.Format(time.RFC3339)+`"}`)
	}
	armed := b.World.Timers().Armed()
	if len(armed) != contract.ParkShards || !armed[0].At.Equal(far.Add(-contract.TimerLead)) {
		t.Errorf("%d timers, the first %+v", len(armed), armed)
	}
}

// The function may stop between choosing the time and its write; nothing may start after what it answers then.
//
//proof:of F37
func TestPause_CountsFromItsWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, path, write, header string }{
		{"PUT", "/v1/pauses/all", store.WritePausePut, ""},
		{"POST", "/v1/schedules/s/pause", schedule.WritePause, ""},
		{"DELETE", "/v1/schedules/s", schedule.WriteDelete, "Punctual-Effective-At"},
	} {
		t.Run(c.write, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.want(t, 201, "PUT", "/v1/schedules/s", daily)
			b.Each(stagetest.Named(c.write), func(memory.Call) { b.clock.at = b.clock.at.Add(20 * time.Second) })
			r := b.do(t, c.method, c.path, "")
			text := r.str("effective_at")
			if c.header != "" {
				text = r.header.Get(c.header)
			}
			at, err := time.Parse(time.RFC3339, text)
			if earliest := noon.Add(20 * time.Second).Add(pause.FactAge); err != nil || at.Before(earliest) {
				t.Errorf("%d: a worker may start by what it read until %s, and it answers %s", r.status, earliest, text)
			}
		})
	}
}

// The request that lifted the pause may have failed before it woke the parked jobs.
func TestDeletePause_RepeatsItsWakeUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/pauses/all", "")
	for _, status := range []int{204, 404} {
		b.want(t, status, "DELETE", "/v1/pauses/all", "")
		if n := len(b.Received(contract.DispatchQueue)); n != contract.ParkShards {
			t.Errorf("lifted with %d, %d places are woken", status, n)
		}
	}
}

func TestPutPause_HoldsWhenItsWakeUpCannotBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/pauses/all", "")
	fires := func(c memory.Call) bool { return c.Op == memory.QueueSend || c.Op == memory.TimerArm }
	b.Fail(fires)
	b.want(t, 200, "PUT", "/v1/pauses/all", `{"until":"2027-03-02T00:00:00Z"}`)
	b.want(t, 204, "DELETE", "/v1/pauses/all", "")
	if strings.Count(b.log.String(), "wait for the sweeper") != 2 {
		t.Errorf("logged: %s", b.log)
	}
}

//proof:of 43 50 51
func TestDocument_NamesEveryRouteAndCode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 200, "GET", "/v1/openapi.json", "")
	if r.str("openapi") != "3.1.0" || r.header.Get("Content-Type") != "application/openapi+json" {
		t.Errorf("openapi %s as %s", r.str("openapi"), r.header.Get("Content-Type"))
	}
	paths := r.body["paths"].(map[string]any)
	var routes []string
	for path, p := range paths {
		for method, o := range p.(map[string]any) {
			routes = append(routes, strings.ToUpper(method)+" "+path)
			op := o.(map[string]any)
			if op["summary"] == nil || op["operationId"] == nil || op["responses"].(map[string]any)["400"] == nil {
				t.Errorf("%s %s is not described", method, path)
			}
			takes := strings.Contains(path, "redrive") && strings.Contains(path, "dead-letters") ||
				strings.HasSuffix(path, "purge") || path == "/v1/jobs" || path == "/v1/jobs/batch"
			if method == "put" || method == "patch" || method == "post" && takes {
				if op["requestBody"] == nil {
					t.Errorf("%s %s has no body", method, path)
				}
			}
		}
	}
	slices.Sort(routes)
	want := []string{
		"DELETE /v1/exclusions/{name}", "DELETE /v1/jobs/{id}", "DELETE /v1/limits/{name}", "DELETE /v1/pauses/{scope}",
		"DELETE /v1/schedules/{name}", "DELETE /v1/tasks/{name}",
		"GET /v1/audit",
		"GET /v1/dead-letters", "GET /v1/dead-letters/groups",
		"GET /v1/exclusions", "GET /v1/exclusions/{name}", "GET /v1/health", "GET /v1/jobs",
		"GET /v1/jobs/{id}", "GET /v1/jobs/{id}/attempts",
		"GET /v1/jobs/{id}/attempts/{n}/log", "GET /v1/limits", "GET /v1/limits/{name}",
		"GET /v1/limits/{name}/keys", "GET /v1/operations", "GET /v1/operations/{id}",
		"GET /v1/forecast", "GET /v1/forecast/calm", "GET /v1/openapi.json", "GET /v1/pauses", "GET /v1/problems",
		"GET /v1/problems/{code}", "GET /v1/ready", "GET /v1/schedules", "GET /v1/schedules/{name}",
		"GET /v1/schedules/{name}/occurrences", "GET /v1/schedules/{name}/preview", "GET /v1/stats",
		"GET /v1/tasks", "GET /v1/usage",
		"GET /v1/tasks/{name}", "GET /v1/whoami", "GET /v1/workers", "PATCH /v1/jobs/{id}",
		"PATCH /v1/schedules/{name}",
		"POST /v1/dead-letters/purge", "POST /v1/dead-letters/redrive", "POST /v1/jobs", "POST /v1/jobs/batch",
		"POST /v1/jobs/{id}/cancel", "POST /v1/jobs/{id}/pause", "POST /v1/jobs/{id}/redrive",
		"POST /v1/jobs/{id}/resume", "POST /v1/jobs/{id}/run-now",
		"POST /v1/operations", "POST /v1/operations/{id}/pause", "POST /v1/operations/{id}/proceed",
		"POST /v1/operations/{id}/resume", "POST /v1/operations/{id}/stop", "POST /v1/schedules/{name}/backfills",
		"POST /v1/schedules/preview", "POST /v1/schedules/{name}/dry-run",
		"POST /v1/schedules/{name}/pause", "POST /v1/schedules/{name}/resume",
		"POST /v1/schedules/{name}/run-now",
		"PUT /v1/exclusions/{name}", "PUT /v1/limits/{name}", "PUT /v1/pauses/{scope}", "PUT /v1/schedules/{name}",
		"PUT /v1/tasks/{name}",
		"DELETE /v1/webhooks/{name}", "GET /v1/webhooks", "GET /v1/webhooks/{name}",
		"GET /v1/webhooks/{name}/deliveries", "POST /v1/webhooks/{name}/deliveries/{id}/redeliver",
		"POST /v1/webhooks/{name}/test", "PUT /v1/webhooks/{name}",
	}
	want = append(want, dagAndRunRoutes...)
	slices.Sort(want)
	if !slices.Equal(routes, want) {
		t.Errorf("routes: %q", routes)
	}
	schemas := r.body["components"].(map[string]any)["schemas"].(map[string]any)
	codes := schemas["Problem"].(map[string]any)["properties"].(map[string]any)["code"].(map[string]any)["enum"].([]any)
	if len(codes) != 41 {
		t.Errorf("%d codes", len(codes))
	}
	for _, code := range codes {
		e := b.want(t, 200, "GET", "/v1/problems/"+code.(string), "")
		if e.str("code") != code || e.str("help") == "" || e.body["status"].(float64) < 400 {
			t.Errorf("%v is explained as %s", code, e.text)
		}
	}
	for name, s := range schemas {
		schema := s.(map[string]any)
		read := strings.HasSuffix(name, "Request") || name == "HTTPAuth" || strings.HasSuffix(name, "Payload") &&
			name != "EchoPayload"
		if closed := schema["additionalProperties"] == false; schema["oneOf"] == nil && closed != read {
			t.Errorf("schema %s: closed is %v; only what we read may be", name, closed)
		}
	}
	if strings.Contains(r.text, "unpkg") || strings.Contains(r.text, `"422":{"content"`) &&
		strings.Count(r.text, `"422"`) != 5 {
		t.Error("huma's defaults show through")
	}
	var refs func(v any)
	refs = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
			for _, child := range v {
				refs(child)
			}
		case []any:
			for _, child := range v {
				refs(child)
			}
		}
	}
	refs(r.body)
}

func TestReady_ShowsWhatTheTenantHasUsedOfItsQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t, bounded, func(_ *memory.Options, d *api.Deps) { d.ScheduleQuota = 70 })
	want := func(runs, requests string) {
		t.Helper()
		b.clock.at = b.clock.at.Add(10 * time.Second) // by which it has rested from all but this request
		want := `"quotas":[{"name":"schedule_runs","used":` + runs + `,"limit":70},{"name":"requests","used":` +
			requests + `,"limit":200}]`
		if r := b.want(t, 200, "GET", "/v1/ready", ""); !strings.Contains(r.text, want) {
			t.Errorf("answered %s, want %s", r.text, want)
		}
	}
	want("0", "1")
	b.want(t, 201, "PUT", "/v1/schedules/a", `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo"}}`)
	b.want(t, 201, "PUT", "/v1/schedules/b", `{"calendar":{"cron":"* 0 10 * * *"},"job":{"task":"echo"}}`)
	want("61", "1")
	b.who = all("globex")
	want("0", "1")
	b.who = all("acme")
	b.want(t, 204, "DELETE", "/v1/schedules/b", "")
	want("1", "1")
	b.answered(t, 150)
	r := b.want(t, 200, "GET", "/v1/ready", "")
	if used := used(t, r, "requests"); used < 151 || used > 200 {
		t.Errorf("%d of the burst are used after 151 requests", used)
	}
	if r := setup(t).want(t, 200, "GET", "/v1/ready", ""); strings.Contains(r.text, `"requests"`) {
		t.Errorf("without an allowance: %s", r.text)
	}
}

// used reads how much of a quota an answer of /v1/ready shows as used.
func used(t *testing.T, r reply, quota string) int {
	t.Helper()
	for _, q := range r.body["quotas"].([]any) {
		if q := q.(map[string]any); q["name"] == quota {
			return int(q["used"].(float64))
		}
	}
	t.Fatalf("no %s in %s", quota, r.text)
	return 0
}

func TestReady_ShowsTheWatermarks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if r := b.want(t, 200, "GET", "/v1/ready", ""); r.str("status") != "ready" || r.str("swept_through") != "" ||
		r.str("now") != "2027-03-01T12:00:00.000Z" {
		t.Errorf("before the first pass: %s", r.text)
	}
	ctx := context.Background()
	for shard, at := range []time.Time{noon, noon.Add(-time.Minute), noon.Add(time.Minute)} {
		if err := b.Store.SetWatermark(ctx, store.Swept, shard, at); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.want(t, 200, "GET", "/v1/ready", ""); r.str("swept_through") != "2027-03-01T11:59:00.000Z" {
		t.Errorf("answered %s", r.text)
	}
	b.World.Table().Restored(contract.Jobs)
	if _, err := b.Store.Recognize(ctx); err != nil { // as a pass does
		t.Fatal(err)
	}
	if r := b.want(t, 200, "GET", "/v1/ready", ""); !strings.Contains(r.text, `"held":["jobs"]`) {
		t.Errorf("with a restored table: %s", r.text)
	}
	b.World.SetFaults(func(memory.Call) memory.Fault { return memory.Fault{Fail: fault.Unavailable} })
	if r := b.want(t, 503, "GET", "/v1/ready", ""); r.header.Get("Retry-After") == "" {
		t.Errorf("without a table: %s", r.text)
	}
	if r := b.want(t, 200, "GET", "/v1/health", ""); r.str("status") != "ok" ||
		r.str("zone_rules") != calendar.Zones().Version {
		t.Errorf("health: %s", r.text)
	}
}

func TestReady_WarnsOfOldTimeZoneRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	released := calendar.Zones().ReleasedAt
	for age, old := range map[time.Duration]bool{0: false, 120 * 24 * time.Hour: false, 121 * 24 * time.Hour: true} {
		b.clock.at = released.Add(age)
		r := b.want(t, 200, "GET", "/v1/ready", "")
		rules, _ := r.body["zone_rules"].(map[string]any)
		if rules["version"] != calendar.Zones().Version || rules["old"] != old ||
			rules["released_at"] != released.Format("2006-01-02T15:04:05.000Z") ||
			strings.Contains(r.text, `"warnings":["the time zone rules `) != old {
			t.Errorf("%s after the release: %s", age, r.text)
		}
	}
}

func TestProxy_TakesTheIdentityFromTheAuthorizer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var metrics bytes.Buffer
	answer := api.Proxy(b.handler, telemetry.StageAPIWrite, b.Meter, &metrics)
	event := func(method, path, body string) events.APIGatewayProxyRequest {
		return events.APIGatewayProxyRequest{
			HTTPMethod: method, Path: path, Body: body,
			MultiValueHeaders: map[string][]string{"content-type": {"application/json"}, "X-Tenant": {"globex"}},
			RequestContext: events.APIGatewayProxyRequestContext{RequestID: "gw-1", DomainName: "x.example",
				Authorizer: map[string]any{"tenant": "acme", "subject": "u", "scopes": "punctual:read punctual:write"}},
		}
	}
	ask := func(ev events.APIGatewayProxyRequest) (int, map[string]any, http.Header) {
		t.Helper()
		r, err := answer(context.Background(), ev)
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(r.Body), &v); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
		return r.StatusCode, v, http.Header(r.MultiValueHeaders)
	}
	status, v, header := ask(event("POST", "/v1/jobs", `{"task":"echo"}`))
	if status != 202 || header.Get("X-Request-Id") != "gw-1" {
		t.Fatalf("answered %d %v %v", status, v, header)
	}
	if row := b.row(t, v["job_id"].(string)); row.Tenant != "acme" {
		t.Errorf("the job is %s's", row.Tenant)
	}
	if status, v, _ := ask(event("PUT", "/v1/pauses/all", "")); status != 403 {
		t.Errorf("without the scope: %d %v", status, v)
	}
	ev := event("GET", "/v1/jobs", "")
	ev.MultiValueQueryStringParameters = map[string][]string{"created_after": {"2027-03-01T13:00:00+02:00"}}
	if status, v, _ := ask(ev); status != 200 || len(v["items"].([]any)) != 1 {
		t.Errorf("with a query: %d %v", status, v)
	}
	for name, authorizer := range map[string]map[string]any{"nobody": nil, "an empty tenant": {"tenant": ""},
		"a tenant of the wrong type":        {"tenant": 7},
		"a tenant that would leave its key": {"tenant": "a#b", "scopes": "punctual:read"}} {
		ev := event("GET", "/v1/jobs", "")
		ev.RequestContext.Authorizer = authorizer
		if status, v, _ := ask(ev); status != 401 || v["code"] != "unauthenticated" {
			t.Errorf("%s: %d %v", name, status, v)
		}
	}
	ev = event("POST", "/v1/jobs", "%%%")
	ev.IsBase64Encoded = true
	if status, v, _ := ask(ev); status != 400 || v["code"] != "invalid_value" {
		t.Errorf("a body that is no base64: %d %v", status, v)
	}
	if !strings.Contains(metrics.String(), "jobs_accepted_total") {
		t.Errorf("metrics: %s", metrics.String())
	}
}
