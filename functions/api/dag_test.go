package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// dagAndRunRoutes are the routes of dags and runs.
var dagAndRunRoutes = []string{
	"DELETE /v1/dags/{name}", "GET /v1/dags", "GET /v1/dags/{name}", "GET /v1/dags/{name}/versions",
	"POST /v1/dags/validate", "PUT /v1/dags/{name}", "POST /v1/dags/{name}/runs",
	"POST /v1/runs", "GET /v1/runs", "GET /v1/runs/{id}/graph", "GET /v1/runs/{id}", "DELETE /v1/runs/{id}",
	"GET /v1/runs/{id}/nodes/{node}", "GET /v1/runs/{id}/events", "POST /v1/runs/{id}/pause",
	"POST /v1/runs/{id}/resume", "POST /v1/runs/{id}/cancel", "POST /v1/runs/{id}/retry",
	"POST /v1/runs/{id}/nodes/{node}/retry", "POST /v1/runs/{id}/nodes/{node}/skip",
	"POST /v1/runs/{id}/nodes/{node}/complete",
}

const etl = `{"nodes":{
	"a":{"task":"echo","payload":{"n":1}},"b":{"task":"echo","payload":{"n":2}},
	"merge":{"task":"echo","depends_on":["b","a"],"payload":{"all":"${nodes.a.result}","url":"${params.url}"}},
	"report":{"task":"echo","depends_on":["merge"],"run_if":"all_done"}},"params":{"url":"https://example.com"}}`

//proof:of 46 66
func TestDag_MakesAVersionOfEachNewDefinition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	if first.str("name") != "etl" || first.body["version"] != 1.0 || first.str("on_failure") != "cancel_downstream" {
		t.Errorf("the view is %s", first.text)
	}
	// The same definition with another order of keys and dependencies, and with its defaults.
	same := strings.Replace(etl, `["b","a"]`, `["a","b"]`, 1)
	same = strings.Replace(same, `{"nodes"`, `{"on_failure":"cancel_downstream","nodes"`, 1)
	if r := b.want(t, 200, "PUT", "/v1/dags/etl", same); r.body["version"] != 1.0 {
		t.Errorf("the same definition is version %v", r.body["version"])
	}
	if r := b.want(t, 200, "PUT", "/v1/dags/etl", strings.Replace(etl, `"n":1`, `"n":3`, 1)); r.body["version"] != 2.0 {
		t.Errorf("another one is version %v", r.body["version"])
	}
	if r := b.want(t, 200, "GET", "/v1/dags/etl?version=1", ""); r.text != first.text {
		t.Errorf("version 1 is\n%s and was\n%s", r.text, first.text)
	}
	if r := b.want(t, 200, "GET", "/v1/dags/etl", ""); r.body["version"] != 2.0 {
		t.Errorf("the newest is %s", r.text)
	}
	b.want(t, 404, "GET", "/v1/dags/etl?version=3", "")
	versions := b.pages(t, "/v1/dags/etl/versions?limit=1", "version")
	if fmt.Sprint(versions) != "[[2] [1]]" {
		t.Errorf("versions %v", versions)
	}
	b.want(t, 204, "DELETE", "/v1/dags/etl", "")
	b.want(t, 404, "DELETE", "/v1/dags/etl", "")
	b.want(t, 404, "GET", "/v1/dags/etl", "")
	b.want(t, 404, "GET", "/v1/dags/etl?version=1", "")
	if r := b.want(t, 201, "PUT", "/v1/dags/etl", etl); r.body["version"] != 3.0 {
		t.Errorf("after a delete and a PUT it is version %v", r.body["version"])
	}
}

func TestDag_MakesNoVersionOfAnEmptyFieldInPlaceOfAnAbsentOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
	for _, same := range []string{
		`{"params":{},"nodes":{"a":{"task":"echo"}}}`,
		`{"tags":{},"nodes":{"a":{"task":"echo"}}}`,
		`{"allow_literals":[],"nodes":{"a":{"task":"echo"}}}`,
		`{"nodes":{"a":{"task":"echo","tags":{}}}}`,
		`{"nodes":{"a":{"task":"echo","retry":{}}}}`,
		`{"nodes":{"a":{"task":"echo","depends_on":[]}}}`,
	} {
		if r := b.want(t, 200, "PUT", "/v1/dags/d", same); r.body["version"] != 1.0 {
			t.Errorf("%s is version %v", same, r.body["version"])
		}
	}
}

func TestDag_IsListedByNameForItsTenantOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"b", "a", "c", "gone"} {
		b.want(t, 201, "PUT", "/v1/dags/"+name, etl)
	}
	b.want(t, 204, "DELETE", "/v1/dags/gone", "")
	if got := flat(b.pages(t, "/v1/dags?limit=2", "name")); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("listed %v", got)
	}
	b.who = all("other")
	if got := flat(b.pages(t, "/v1/dags", "name")); len(got) != 0 {
		t.Errorf("another tenant sees %v", got)
	}
	b.want(t, 404, "GET", "/v1/dags/a", "")
	b.want(t, 404, "DELETE", "/v1/dags/a", "")
}

//proof:of 131
func TestDag_IsCheckedAsADraft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 200, "POST", "/v1/dags/validate", etl)
	if strings.TrimSpace(r.text) != `{"levels":[["a","b"],["merge"],["report"]],"nodes":4,"edges":3}` {
		t.Errorf("answered %s", r.text)
	}
	b.want(t, 404, "GET", "/v1/dags/etl", "")
}

// No violation hides another.
func TestDag_ReportsOneMistakeOfEachKindInOneAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(
		t,
		400,
		"PUT",
		"/v1/dags/d",
		`{"on_failure":"cry","max_concurrency":0,"expire_after":"0s","priority":"x",
		"unknown":1,"tags":{"a":1},"params":{"a b":1},"params_schema":{"type":"nothing"},"nodes":{
		"a": {"task":"echo","when":"1 +","run_if":"never","timeout":"0s"},
		"b": {"task":"nope","depends_on":["b"],"payload":{"x":"${params.y}"}},
		"c": {"task":"echo","depends_on":["a","a"],"for_each":"${1}","max_parallel":0},
		"d": {"task":"echo","depends_on":["e"],"when":"1 + 1"},
		"e": {"task":"echo","depends_on":["d"],"payload":"${nodes.d.resolt}"},
		"f": {"depends_on":["x"],"payload":["${"],"max_parallel":2},
		"g": {"task":"echo","depends_on":["f"],"pool":"none","when":"nodes.x.forced","x":1},
		"h h": {"task":"echo"}}}`,
	)
	got := map[string]string{}
	for _, m := range r.body["errors"].([]any) {
		got[m.(map[string]any)["pointer"].(string)] = m.(map[string]any)["code"].(string)
	}
	want := map[string]string{
		"/on_failure": "invalid_value", "/max_concurrency": "out_of_range", "/expire_after": "out_of_range",
		"/priority": "invalid_value", "/unknown": "unknown_field", "/tags/a": "invalid_value",
		"/params/a b": "invalid_value", "/params_schema/type": "invalid_value",
		"/nodes/a/when": "invalid_expression", "/nodes/a/run_if": "invalid_value", "/nodes/a/timeout": "out_of_range",
		"/nodes/b/task": "unknown_task", "/nodes/b/depends_on/0": "self_edge",
		"/nodes/b/payload/x": "invalid_expression", "/nodes/c/depends_on/1": "duplicate_edge",
		"/nodes/c/for_each": "invalid_expression", "/nodes/c/max_parallel": "out_of_range",
		"/nodes/e/depends_on/0": "cycle", "/nodes/d/when": "invalid_expression",
		"/nodes/e/payload": "invalid_expression", "/nodes/f/task": "missing_field",
		"/nodes/f/depends_on/0": "unknown_node", "/nodes/f/payload/0": "invalid_expression",
		"/nodes/f/max_parallel": "invalid_value", "/nodes/g/pool": "unknown_pool",
		"/nodes/g/when": "invalid_expression", "/nodes/g/x": "unknown_field", "/nodes/h h": "invalid_value",
	}
	if !maps.Equal(got, want) {
		for at := range maps.Keys(got) {
			if want[at] != got[at] {
				t.Errorf("%s is told as %s, want %q", at, got[at], want[at])
			}
		}
		for at := range want {
			if got[at] == "" {
				t.Errorf("%s is not told", at)
			}
		}
	}
}

//proof:of 47 131 132
func TestDag_ReportsEveryMistakeByPointer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	node := func(more string) string { return `{"nodes":{"a":{"task":"echo"},"b":{"task":"echo"` + more + `}}}` }
	for body, want := range map[string]string{
		`{}`:                                       "/nodes missing_field",
		`{"nodes":{}}`:                             "/nodes missing_field",
		`{"nodes":[]}`:                             "/nodes invalid_value",
		`{"nodes":{"a b":{"task":"echo"}}}`:        "/nodes/a b invalid_value",
		`{"nodes":{"a":{}}}`:                       "/nodes/a/task missing_field",
		`{"nodes":{"a":{"task":"nope"}}}`:          "/nodes/a/task unknown_task",
		`{"nodes":{"a":{"task":"http"}}}`:          "/nodes/a/payload missing_field",
		`{"nodes":{"a":{"task":"echo","x":1}}}`:    "/nodes/a/x unknown_field",
		node(`,"depends_on":["a","b"]`):            "/nodes/b/depends_on/1 self_edge",
		node(`,"depends_on":["a","a"]`):            "/nodes/b/depends_on/1 duplicate_edge",
		node(`,"depends_on":["x"]`):                "/nodes/b/depends_on/0 unknown_node",
		node(`,"run_if":"never"`):                  "/nodes/b/run_if invalid_value",
		node(`,"max_parallel":2`):                  "/nodes/b/max_parallel invalid_value",
		node(`,"max_failed":2`):                    "/nodes/b/max_failed invalid_value",
		node(`,"for_each":"${[]}"`) + "":           "",
		node(`,"when":"nodes.a.result > 0"`):       "/nodes/b/when invalid_expression",
		node(`,"when":""`):                         "/nodes/b/when invalid_expression",
		node(`,"payload":{"x":["${params.y}"]}`):   "/nodes/b/payload/x/0 invalid_expression",
		node(`,"payload":{"password":"hunter22"}`): "/nodes/b/payload/password secret_in_payload",
		`{"nodes":{"a":{"task":"echo","depends_on":["b"]},"b":{"task":"echo","depends_on":["a"]}}}`: "/nodes/b/depends_on/0 cycle",
		`{"nodes":{"a":{"task":"echo","when":"1 +"},"b":{"task":"nope","depends_on":["x"],"when":"nodes.x.forced"}}}`: "/nodes/b/task unknown_task " +
			"/nodes/b/depends_on/0 unknown_node /nodes/a/when invalid_expression",
		`{"nodes":{"a":{"task":"echo"}},"on_failure":"cry","max_concurrency":0,"expire_after":"0s"}`: "/on_failure invalid_value " +
			"/max_concurrency out_of_range /expire_after out_of_range",
	} {
		if want == "" {
			b.want(t, 200, "POST", "/v1/dags/validate", body)
			continue
		}
		r := b.want(t, 400, "PUT", "/v1/dags/d", body)
		var got []string
		for _, m := range r.body["errors"].([]any) {
			got = append(got, fmt.Sprintf("%s %s", m.(map[string]any)["pointer"], m.(map[string]any)["code"]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, strings.Join(got, " "), want)
		}
	}
	if r := b.want(t, 413, "PUT", "/v1/dags/d",
		`{"nodes":{"a":{"task":"echo","payload":`+text(256<<10)+`}}}`); r.str("code") != "too_large" {
		t.Errorf("a large one: %s", r.text)
	}
}

func TestDag_AcceptsAPayloadWithExpressions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(
		t,
		200,
		"POST",
		"/v1/dags/validate",
		`{"nodes":{"a":{"task":"http","payload":{"url":"${params.url}","headers":{"Authorization":"${params.arn}"}}}},"params":{"url":"https://example.com","arn":"x"}}`,
	)
	r := b.want(
		t,
		400,
		"POST",
		"/v1/dags/validate",
		`{"nodes":{"a":{"task":"http","payload":{"url":"${params.url}","urll":1}}},"params":{"url":"https://example.com"}}`,
	)
	if m := violationOf(r); m["pointer"] != "/nodes/a/payload/urll" {
		t.Errorf("answered %s", r.text)
	}
}

//proof:of F61
func TestDag_RefusesSecretsInExpressionsAndAroundThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := "AKIA" + strings.Repeat("Q", 16)
	node := func(fields string) string {
		return `{"params":{"u":"x","list":[]},"nodes":{"a":{"task":"echo",` + fields + `}}}`
	}
	for fields, pointer := range map[string]string{
		`"payload":{"password":"${''}hunter2hunter2${''}"}`:                                   "/payload/password",
		`"payload":{"password":"${'hunter2' + 'hunter2'}"}`:                                   "/payload/password",
		`"payload":{"password":"hunter2${'hunter2'}"}`:                                        "/payload/password",
		`"payload":{"password":"${params.u == 'x' ? 'hunter2hunter2' : ''}"}`:                 "/payload/password",
		`"payload":{"x":"${ {'password': 'hunter2hunter2'} }"}`:                               "/payload/x",
		`"payload":{"x":"${ {'u': params.u, 'password': 'hunter2hunter2'} }"}`:                "/payload/x",
		`"payload":{"k":"${'` + key + `'}"}`:                                                  "/payload/k",
		`"payload":["${params.u + '` + key + `'}"]`:                                           "/payload/0",
		`"payload":"${params.u}` + key[:10] + `${'` + key[10:] + `'}"`:                        "/payload",
		`"payload":"https://example.com/?token=hunter2hunter2&u=${params.u}"`:                 "/payload",
		`"payload":{"h":"Bearer hunter2hunter2${''}"}`:                                        "/payload/h",
		`"payload":{"list":[{"name":"password","value":"${'hunter2hunter2'}"}]}`:              "/payload/list/0/value",
		`"payload":{"credentials":["${'hunter2hunter2'}"]}`:                                   "/payload/credentials/0",
		`"when":"params.u == '` + key + `'"`:                                                  "/when",
		`"for_each":"${[{'password': 'hunter2hunter2'}]}"`:                                    "/for_each",
		`"for_each":"${['` + key + `']}"`:                                                     "/for_each",
		`"payload":{"password":"${params.u}"}`:                                                "",
		`"payload":{"Authorization":"Bearer ${params.u}"}`:                                    "",
		`"payload":{"password":"${params.u == 'production' ? params.u : ''}"}`:                "",
		`"payload":{"password":"${''}hunter2hunter2"},"allow_literals":["/payload/password"]`: "",
		`"when":"params.u == 'a long text that is no secret'"`:                                "",
	} {
		r := b.do(t, "POST", "/v1/dags/validate", node(fields))
		if pointer == "" {
			if r.status != 200 {
				t.Errorf("%s: %s", fields, r.text)
			}
			continue
		}
		if m := violationOf(r); r.status != 400 || m["code"] != "secret_in_payload" ||
			m["pointer"] != "/nodes/a"+pointer {
			t.Errorf("%s: %d %s", fields, r.status, r.text)
		}
		if strings.Contains(r.text, "hunter2") {
			t.Errorf("%s: the answer shows it: %s", fields, r.text)
		}
	}
	r := b.want(t, 400, "PUT", "/v1/dags/d",
		`{"nodes":{"a":{"task":"nope","payload":{"password":"hunter2${'hunter2'}"}}}}`)
	if !strings.Contains(r.text, "unknown_task") || !strings.Contains(r.text, "secret_in_payload") {
		t.Errorf("one violation hides another: %s", r.text)
	}
}

//proof:of F61
func TestDag_LetsNoExpressionChooseAHostOrASecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for fields, pointer := range map[string]string{
		`"url":"${params.u}"`:                                         "",
		`"url":"${params.u + '/orders'}"`:                             "",
		`"url":"https://example.com/${params.u}"`:                     "",
		`"url":"https://example.com?q=${url.encode(params.u)}"`:       "",
		`"url":"https://example.com#${params.u}"`:                     "",
		`"url":"https://${params.u}/"`:                                "/url",
		`"url":"https://example.com${params.u}"`:                      "/url",
		`"url":"https://example.com:${params.u}/"`:                    "/url",
		`"url":"https://api.${params.u}.example.com/"`:                "/url",
		`"url":"${params.u}/orders"`:                                  "/url",
		`"url":"${params.u}${params.u}"`:                              "/url",
		`"url":"https:${params.u}"`:                                   "/url",
		`"url":"https://example.com","auth":{"bearer":"${params.u}"}`: "/auth/bearer",
		`"url":"https://example.com","sign_with":"${params.u}"`:       "/sign_with",
		`"url":"https://example.com","headers":{"X-A":"${params.u}"}`: "",
	} {
		r := b.do(t, "POST", "/v1/dags/validate",
			`{"params":{"u":"x"},"nodes":{"a":{"task":"http","payload":{`+fields+`}}}}`)
		if pointer == "" {
			if r.status != 200 {
				t.Errorf("%s: %s", fields, r.text)
			}
			continue
		}
		if m := violationOf(r); r.status != 400 || m["code"] != "invalid_expression" ||
			m["pointer"] != "/nodes/a/payload"+pointer {
			t.Errorf("%s: %d %s", fields, r.status, r.text)
		}
	}
}

// FuzzDag puts any text as a dag and as a run: it is accepted, or refused with a reason.
func FuzzDag(f *testing.F) {
	for _, body := range []string{
		etl, twoTagged, `{"nodes":{"a":{"task":"echo","depends_on":["a"]}}}`, `{"nodes":{"a":null},"params":[]}`, `[]`,
		`{"nodes":`,
		`{"nodes":{"a":{"task":"http","payload":{"url":"${params.u}","password":"x"},"for_each":"${[1]}","max_parallel":0}},"params_schema":{"type":1}}`,
		`{"nodes":{"a":{"task":"echo","when":"nodes.b.result","retry":{"max_attempts":1e99}},"a":{}},"expire_after":"9999999d","allow_literals":["/"]}`,
	} {
		f.Add(body)
	}
	b := setup(f)
	f.Fuzz(func(t *testing.T, body string) {
		for path, good := range map[string]int{"/v1/dags/validate": 200, "/v1/runs": 202} {
			sent := body
			if good == 202 {
				sent = `{"dag":` + body + `}`
			}
			r := b.do(t, "POST", path, sent)
			if r.status != good &&
				(r.status != 400 && r.status != 413 || r.str("code") == "" || r.str("detail") == "") {
				t.Errorf("%s is answered %d %s", sent, r.status, r.text)
			}
		}
	})
}

func TestDag_ChecksPayloadsByTheirTasksSchemas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/small", `{"executor":"go","payload_schema":{"properties":{"n":{"maximum":10}}}}`)
	dagOf := func(n string) string {
		return `{"nodes":{"a":{"task":"echo"},"x":{"task":"small","payload":{"n":` + n + `}}},"params":{"n":11}}`
	}
	r := b.want(t, 400, "PUT", "/v1/dags/d", dagOf("11"))
	if m := violationOf(r); m["pointer"] != "/nodes/x/payload/n" || m["code"] != "invalid_value" ||
		m["allowed"] != "maximum 10" {
		t.Errorf("the problem is %s", r.text)
	}
	b.want(t, 201, "PUT", "/v1/dags/d", dagOf(`"${params.n}"`))
	made := b.want(t, 202, "POST", "/v1/dags/d/runs", `{}`)
	all, _ := made.body["nodes"].(map[string]any)
	x, _ := all["x"].(map[string]any)
	why, _ := x["status_reason"].(map[string]any)
	if x["status"] != "DEAD" || why["code"] != "invalid_payload" ||
		why["message"] != "/payload/n: the number is too large (of the task's payload_schema); allowed: maximum 10" {
		t.Errorf("the node is %v", x)
	}
	b.want(t, 202, "POST", "/v1/dags/d/runs", `{"params":{"n":9}}`)
}
