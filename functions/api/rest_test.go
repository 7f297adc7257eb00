package api_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/tenant"
)

//proof:of F18
func TestCreateJob_AnswersTheViewThatGetAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{
		`{"task":"echo"}`,
		`{"task":"echo","payload":{"b":1,"a":[9007199254740993]},"tags":{"team":"billing"},"start_within":"10m","expire_after":"1d","timeout":"5s","retry":{"max_attempts":2}}`,
		`{"task":"echo","payload":` + text(300<<10) + `,"delay":"1h"}`,
		`{"task":"echo","payload":` + text(100<<10) + `,"delay":"1h"}`,
	} {
		one := b.want(t, 202, "POST", "/v1/jobs", body)
		if got := b.want(t, 200, "GET", "/v1/jobs/"+one.str("job_id"), ""); got.text != one.text {
			t.Errorf("GET answers\n%.600s\nand POST\n%.600s", got.text, one.text)
		}
		batch := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[`+body+`]}`).items()[0]["job"].(map[string]any)
		if got := b.want(t, 200, "GET", "/v1/jobs/"+batch["job_id"].(string),
			""); !reflect.DeepEqual(without(got.body, "payload"), batch) {
			t.Errorf("GET answers\n%.600v\nand the batch\n%.600v", got.body, batch)
		}
		keyed := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", fmt.Sprint(len(body)))
		repeated := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", fmt.Sprint(len(body)))
		if keyed.text != repeated.text || repeated.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("with a key\n%.600s\nand repeated\n%.600s", keyed.text, repeated.text)
		}
	}
	for _, verb := range []string{"PUT", "DELETE"} { // with a pause, and after it
		b.do(t, verb, "/v1/pauses/task:echo", "")
		one := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo"}`)
		if got := b.want(t, 200, "GET", "/v1/jobs/"+one.str("job_id"), ""); got.text != one.text ||
			(got.str("waiting_for") == "pause") != (verb == "PUT") {
			t.Errorf("after %s of a pause GET answers %s and POST %s", verb, got.text, one.text)
		}
	}
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	now := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "")
	if got := b.want(t, 200, "GET", now.header.Get("Location"), ""); got.text != now.text {
		t.Errorf("GET answers %s and run-now %s", got.text, now.text)
	}
}

// without returns a view without one field.
func without(view map[string]any, field string) map[string]any {
	delete(view, field)
	return view
}

//proof:of F28
func TestLists_TakeLimitAndCursor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var scopes []string
	for _, name := range []string{"all", "task:a", "task:a-b", "task:b", "task:echo"} {
		b.want(t, 201, "PUT", "/v1/pauses/"+name, "")
		scopes = append(scopes, name)
	}
	if err := b.Store.PutPause(t.Context(), job.Everyone, job.Pause{Scope: "all", Missed: "last"}); err != nil {
		t.Fatal(err)
	}
	pages := b.pages(t, "/v1/pauses?limit=2", "scope")
	if got := flat(pages); len(pages) != 3 || !reflect.DeepEqual(got, append([]string{"all"}, scopes...)) {
		t.Errorf("pauses: %q", pages)
	}
	codes := b.pages(t, "/v1/problems?limit=7", "code")
	if len(codes) < 5 || len(codes[0]) != 7 {
		t.Errorf("codes: %q", codes)
	}
	for _, code := range flat(codes) {
		if r := b.want(t, 200, "GET", "/v1/problems/"+code, ""); r.str("code") != code || r.str("help") == "" {
			t.Errorf("%s is explained by %s", code, r.text)
		}
	}
	for _, list := range []string{"jobs", "tasks", "pauses", "schedules", "exclusions", "dead-letters", "problems"} {
		b.want(t, 200, "GET", "/v1/"+list+"?limit=1", "")
		if r := b.want(t, 400, "GET", "/v1/"+list+"?limit=0", ""); violationOf(r)["pointer"] != "limit" {
			t.Errorf("%s: %s", list, r.text)
		}
		if r := b.want(t, 400, "GET", "/v1/"+list+"?cursor=x", ""); r.str("code") != "invalid_cursor" {
			t.Errorf("%s: %s", list, r.text)
		}
	}
}

// violationOf returns the first violation of a problem.
func violationOf(r reply) map[string]any {
	list, _ := r.body["errors"].([]any)
	if len(list) == 0 {
		return nil
	}
	return list[0].(map[string]any)
}

//proof:of F28
func TestCreateJob_SaysWhereAPayloadMissesItsSchema(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge",
		`{"executor":"go","payload_schema":{"type":"object","additionalProperties":false,"required":["amount"],
		"properties":{"amount":{"type":"integer","minimum":1,"maximum":99.5},
		"currency":{"enum":["EUR","USD"]},"to":{"type":"string","minLength":3,"pattern":"^[a-z]+$"},
		"parts":{"type":"array","maxItems":1,"items":{"type":"number"}}}}}`)
	for payload, want := range map[string]string{
		`{}`:                            `/payload/amount missing_field `,
		`{"amount":0}`:                  `/payload/amount invalid_value minimum 1`,
		`{"amount":100}`:                `/payload/amount invalid_value maximum 99.5`,
		`{"amount":"5"}`:                `/payload/amount invalid_value integer`,
		`{"amount":5,"currency":"GBP"}`: `/payload/currency invalid_value EUR, USD`,
		`{"amount":5,"to":"ab"}`:        `/payload/to invalid_value minLength 3`,
		`{"amount":5,"to":"ABCD"}`:      `/payload/to invalid_value pattern ^[a-z]+$`,
		`{"amount":5,"parts":[1,2]}`:    `/payload/parts invalid_value maxItems 1`,
		`{"amount":5,"parts":["x"]}`:    `/payload/parts/0 invalid_value number`,
		`{"amount":5,"a/b":1}`:          `/payload/a~1b invalid_value `,
		`[]`:                            `/payload invalid_value object`,
	} {
		r := b.want(t, 400, "POST", "/v1/jobs", `{"task":"charge","payload":`+payload+`}`)
		m := violationOf(r)
		allowed, _ := m["allowed"].(string)
		if got := fmt.Sprintf("%s %s %s", m["pointer"], m["code"], allowed); got != want {
			t.Errorf("%s: %q, want %q\n%s", payload, got, want, r.text)
		}
	}
}

//proof:of F31
func TestPutTask_SaysWhyASchemaDoesNotCompile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for schema, want := range map[string][2]string{
		`{"type":"objekt"}`: {"/payload_schema/type", "JSON Schema"},
		`{"properties":{"a":{"pattern":"("}}}`: {"/payload_schema/properties/a/pattern",
			"regular expression"},
		`{"$ref":"#/$defs/a"}`:                    {"/payload_schema", "points to nothing"},
		`{"$ref":"#a"}`:                           {"/payload_schema", "points to nothing"},
		`{"$ref":"https://example.com/s.json"}`:   {"/payload_schema", "another document"},
		`{"$schema":"https://example.com/draft"}`: {"/payload_schema", ""},
		`{"properties":{"a":{"minimum":"1"}}}`: {"/payload_schema/properties/a/minimum",
			"another type"},
		`{"required":"a"}`: {"/payload_schema/required", "another type"},
		`{"$defs":{"a":{"$id":"x:y"},"b":{"$id":"x:y"}},"type":"object"}`: {"/payload_schema", "more than once"},
	} {
		r := b.want(t, 400, "PUT", "/v1/tasks/t", `{"executor":"go","payload_schema":`+schema+`}`)
		m := violationOf(r)
		if m["pointer"] != want[0] || !strings.Contains(fmt.Sprint(m["detail"]), want[1]) {
			t.Errorf("%s: %s", schema, r.text)
		}
	}
}

//proof:of F31
func TestCreateJob_ProposesAUnitForABareNumber(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, pointer := range map[string]string{
		`{"task":"echo","delay":30}`:                   "/delay",
		`{"task":"echo","timeout":30}`:                 "/timeout",
		`{"task":"echo","retry":{"initial_delay":30}}`: "/retry/initial_delay",
		`{"task":"echo","payload":{"sleep":30}}`:       "/payload/sleep",
		`{"task":"echo","start_within":30}`:            "/start_within",
	} {
		if m := violationOf(b.want(t, 400, "POST", "/v1/jobs", body)); m["pointer"] != pointer ||
			!strings.Contains(fmt.Sprint(m["detail"]), `"30s"`) {
			t.Errorf("%s: %v", body, m)
		}
	}
	m := violationOf(b.want(t, 400, "POST", "/v1/schedules/preview", `{"calendar":{"every":30}}`))
	if m["pointer"] != "/calendar/every" || !strings.Contains(fmt.Sprint(m["detail"]), `"30s"`) {
		t.Errorf("every: %v", m)
	}
}

//proof:of F28
func TestAPI_RefusesPatchTypesThatMeanSomethingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	for _, c := range []struct {
		method, path, body, kind string
		status                   int
	}{
		{"PATCH", "/v1/jobs/" + id, `{"priority":"high"}`, "application/json-patch+json", 415},
		{"PATCH", "/v1/jobs/" + id, `{"priority":"high"}`, "application/merge-patch+json", 200},
		{"POST", "/v1/jobs", `{"task":"echo"}`, "application/cloudevents+json", 415},
		{"POST", "/v1/jobs", `{"task":"echo"}`, "application/json; charset=utf-8", 202},
		{"PATCH", "/v1/schedules/s", `{"overlap":"skip"}`, "application/json-patch+json", 415},
		{"PATCH", "/v1/schedules/s", `{"overlap":"skip"}`, "application/merge-patch+json", 200},
		{"PUT", "/v1/schedules/s", daily, "application/merge-patch+json", 415},
	} {
		if r := b.do(t, c.method, c.path, c.body, "Content-Type", "", "Content-Type", c.kind); r.status != c.status {
			t.Errorf("%s %s as %s answered %d, want %d: %s", c.method, c.path, c.kind, r.status, c.status, r.text)
		}
	}
}

//proof:of F28
func TestCreateJob_RefusesControlCharactersInTags(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tags := range []string{`{"a\u0000b":"x"}`, `{"a":"x\ny"}`, `{"a\u007f":"x"}`, `{"a":"\u009b31m"}`,
		`{"a":"\u001b[31m"}`} {
		if r := b.want(t, 400, "POST", "/v1/jobs",
			`{"task":"echo","tags":`+tags+`}`); r.str("code") != "invalid_value" ||
			!strings.HasPrefix(fmt.Sprint(violationOf(r)["pointer"]), "/tags/") {
			t.Errorf("%s: %s", tags, r.text)
		}
	}
}

//proof:of F28
func TestHTTPPayload_MayNotNameOurOwnPort(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) {
		d.HTTPAllow, d.OwnPorts = api.MustRanges([]string{"127.0.0.0/8", "::1/128", "0.0.0.0/8"}), []uint16{8080, 80}
	})
	for url, status := range map[string]int{
		"http://127.0.0.1:8080/v1/jobs": 400, "http://localhost:8080/": 400, "http://a.localhost.:8080/": 400,
		"http://[::1]:8080/": 400, "http://127.1:8080/": 400, "http://0x7f000001:8080/": 400,
		"http://0.0.0.0:8080/": 400, "http://[::ffff:127.0.0.1]:8080/": 400, "http://127.0.0.1/": 400,
		"http://127.0.0.1:8081/": 202, "http://localhost:9/": 202, "http://example.com:8080/": 202,
		"https://127.0.0.1/": 202,
	} {
		r := b.want(t, status, "POST", "/v1/jobs", `{"task":"http","payload":{"url":"`+url+`"}}`)
		if status == 400 && r.str("code") != "target_refused" {
			t.Errorf("%s: %s", url, r.text)
		}
	}
}

func TestDocument_Has201ForEveryPut(t *testing.T) {
	t.Parallel()
	for name, laptop := range map[string]bool{"a deployment asks for a token": false, "a laptop asks for none": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(_ *memory.Options, d *api.Deps) { d.NoSignIn = laptop })
			doc := b.want(t, 200, "GET", "/v1/openapi.json", "").body
			paths := doc["paths"].(map[string]any)
			for path, methods := range paths {
				for method, op := range methods.(map[string]any) {
					op := op.(map[string]any)
					security, _ := op["security"].([]any)
					if laptop && len(security) > 0 && len(security[0].(map[string]any)) > 0 {
						t.Errorf("%s %s asks for %v", method, path, security)
					}
					if _, has := op["responses"].(map[string]any)["201"]; has != (method == "put") {
						t.Errorf("%s %s: 201 in the document is %v", method, path, has)
					}
				}
			}
			if security := paths["/v1/ready"].(map[string]any)["get"].(map[string]any)["security"].([]any); !laptop &&
				len(security) == 0 {
				t.Error("ready asks for no token in the document, and the gateway does")
			}
		})
	}
}

//proof:of F31
func TestRedriveDeadLetters_MatchesNothingByAnUnknownID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	alive := b.post(t, `{"task":"echo","delay":"1h"}`)
	for _, dry := range []string{"true", "false"} {
		for _, verb := range []string{"redrive", "purge"} {
			r := b.want(t, 200, "POST", "/v1/dead-letters/"+verb,
				`{"job_ids":["01ARZ3NDEKTSV4RRFFQ69G5FAV","`+alive+`"],"dry_run":`+dry+`}`)
			if r.body["matched"] != 0.0 || len(r.items()) != 2 || r.items()[0]["problem"] == nil ||
				r.items()[1]["problem"] == nil {
				t.Errorf("%s with dry_run %s: %s", verb, dry, r.text)
			}
		}
	}
	if r := b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"filter":{}}`); r.body["matched"] != 0.0 ||
		r.body["items"] == nil {
		t.Errorf("by filter: %s", r.text)
	}
}

//proof:of F31
func TestRedriveDeadLetters_SkipsRedrivenJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.dead(t, `{"task":"echo"}`), b.dead(t, `{"task":"echo"}`)
	b.want(t, 202, "POST", "/v1/jobs/"+first+"/redrive", "")
	r := b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"filter":{"task":"echo"}}`)
	if r.body["matched"] != 1.0 || r.items()[0]["job_id"] != second {
		t.Errorf("redrive: %s", r.text)
	}
	if r := b.want(t, 200, "POST", "/v1/dead-letters/redrive",
		`{"filter":{"task":"echo"},"dry_run":true}`); r.body["matched"] != 0.0 {
		t.Errorf("a second redrive: %s", r.text)
	}
	if r := b.want(t, 200, "POST", "/v1/dead-letters/purge", `{"filter":{}}`); r.body["matched"] != 2.0 {
		t.Errorf("purge: %s", r.text)
	}
}

//proof:of F36
func TestDeleteJob_NeedsTheScopeOfAPurgeForADeadJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dead, done := b.dead(t, `{"task":"echo"}`), b.post(t, `{"task":"echo"}`)
	b.end(t, done, job.Outcome{Kind: job.OutcomeSucceeded})
	b.who.Scopes = []tenant.Scope{tenant.Read, tenant.Write}
	if r := b.want(t, 403, "DELETE", "/v1/jobs/"+dead, ""); r.str("code") != "forbidden" ||
		!strings.Contains(r.str("detail"), string(tenant.Admin)) {
		t.Errorf("answered %s", r.text)
	}
	b.want(t, 200, "GET", "/v1/jobs/"+dead, "")
	b.want(t, 204, "DELETE", "/v1/jobs/"+done, "")
	b.who.Scopes = append(b.who.Scopes, tenant.Admin)
	b.want(t, 204, "DELETE", "/v1/jobs/"+dead, "")
}
