package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// described is metadata as it is sent; shown is how every view shows it.
const (
	described = `{ "ticket": {"n": 9007199254740993, "url": "https://example.com/1\u2028"}, "by": ["a", null, 1.50] }`
	shown     = `map[by:[a <nil> 1.5] ticket:map[n:9.007199254740992e+15 url:https://example.com/1` + "\u2028" + `]]`
)

func metadataOf(v map[string]any) string { return fmt.Sprint(v["metadata"]) }

func TestMetadata_IsShownWithTheJobAndInLists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","tags":{"a":"b"},"metadata":`+described+`}`)
	if metadataOf(r.body) != shown || fmt.Sprint(r.body["tags"]) != "map[a:b]" {
		t.Errorf("accepted: %s", r.text)
	}
	if !strings.Contains(r.text, `"metadata":{"by":["a",null,1.50],"ticket":{"n":9007199254740993,`) {
		t.Errorf("names are not in order, or numbers not as they came: %s", r.text)
	}
	plain, tagged := b.post(t, `{"task":"echo"}`), b.post(t, `{"task":"echo","tags":{"a":"b"}}`)
	one := b.want(t, 200, "GET", "/v1/jobs/"+r.str("job_id"), "")
	if metadataOf(one.body) != shown || fmt.Sprint(one.body["tags"]) != "map[a:b]" {
		t.Errorf("shown alone: %s", one.text)
	}
	want := map[string]string{plain: "<nil>", tagged: "<nil>", r.str("job_id"): shown}
	for _, v := range b.want(t, 200, "GET", "/v1/jobs", "").items() {
		if id := v["job_id"].(string); metadataOf(v) != want[id] || v["tags"] != nil {
			t.Errorf("in a list: %v", v)
		}
		delete(want, v["job_id"].(string))
	}
	if len(want) > 0 {
		t.Errorf("the list has no %v", want)
	}
}

func TestMetadata_NeedsNoTags(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","metadata":{"a":1}}`)
	if one := b.want(t, 200, "GET", "/v1/jobs/"+r.str("job_id"), ""); metadataOf(one.body) != "map[a:1]" ||
		one.body["tags"] != nil {
		t.Errorf("alone: %s", one.text)
	}
	r = b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","metadata":{}}`)
	if row := b.row(t, r.str("job_id")); row.Tagged || r.body["metadata"] != nil {
		t.Errorf("empty: %s", r.text)
	}
}

func TestMetadata_BelongsToEachJobOfABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 200, "POST", "/v1/jobs/batch",
		`{"jobs":[{"task":"echo","metadata":{"n":1}},{"task":"echo"},{"task":"echo","metadata":1}]}`)
	items := r.items()
	if got := metadataOf(items[0]["job"].(map[string]any)); got != "map[n:1]" {
		t.Errorf("of the first: %s", got)
	}
	if got := metadataOf(items[1]["job"].(map[string]any)); got != "<nil>" {
		t.Errorf("of the second: %s", got)
	}
	if items[2]["problem"] == nil {
		t.Errorf("the third was accepted: %s", r.text)
	}
}

func TestMetadata_IsInTheAnswerToARepeatedRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n, replayed := range []string{"", "true"} {
		r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","metadata":{"a":"b"}}`, "Idempotency-Key", "k")
		if metadataOf(r.body) != "map[a:b]" || r.header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("answer %d: %s", n, r.text)
		}
	}
}

func TestMetadata_IsRefusedIfItCannotBeShown(t *testing.T) {
	t.Parallel()
	at := strings.Repeat("a", contract.MaxMetadata-len(`{"k":""}`))
	b := setup(t)
	b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","metadata":{ "k" : "`+at+`" }}`)
	b.want(t, 202, "POST", "/v1/jobs",
		`{"task":"echo","metadata":{"token":"xoxb-1234567890-abcdefghij"},"allow_literals":["/metadata/token"]}`)
	with := func(metadata string) string { return `{"task":"echo","metadata":` + metadata + `}` }
	for _, c := range []wrong{
		{"a text", with(`"a"`), 400, "invalid_value", "/metadata"},
		{"null", with(`null`), 400, "invalid_value", "/metadata"},
		{"a list", with(`[1]`), 400, "invalid_value", "/metadata"},
		{"a byte too long", with(`{"k":"` + at + `b"}`), 400, "out_of_range", "/metadata"},
		{"too deep", with(`{"k":` + nested(contract.MaxDepth) + `}`), 400, "out_of_range", "/metadata"},
		{"a name twice", with(`{"k":{"a":1,"a":2}}`), 400, "duplicate_field", "/metadata/k/a"},
		{"a NUL in a string", with(`{"k":["\u0000"]}`), 400, "invalid_value", "/metadata/k/0"},
		{"an escape in a name", with(`{"k":{"\u001b[31m":1}}`), 400, "invalid_value", "/metadata/k/\u001b[31m"},
		{"a password", with(`{"k":{"password":"hunter2hunter2"}}`), 400, "secret_in_payload", "/metadata/k/password"},
	} {
		t.Run("refuses metadata: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", c.body))
		})
	}
}

func TestMetadata_IsReplacedAloneByAPatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h","payload":`+text(5000)+`,"tags":{"a":"b"},"metadata":{"x":1}}`)
	r := b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"metadata":{"y":2}}`)
	if metadataOf(r.body) != "map[y:2]" || fmt.Sprint(r.body["tags"]) != "map[a:b]" || len(r.str("payload")) != 4998 {
		t.Errorf("replaced: %.200s", r.text)
	}
	if r = b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"priority":"high"}`); metadataOf(r.body) != "map[y:2]" {
		t.Errorf("left alone: %.200s", r.text)
	}
	r = b.want(t, 200, "PATCH", "/v1/jobs/"+id,
		`{"metadata":{"token":"xoxb-1234567890-abcdefghij"},"allow_literals":["/metadata/token"]}`)
	if metadataOf(r.body) != "map[token:xoxb-1234567890-abcdefghij]" {
		t.Errorf("with a literal: %.200s", r.text)
	}
	r = b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"metadata":{}}`)
	if r.body["metadata"] != nil || fmt.Sprint(r.body["tags"]) != "map[a:b]" {
		t.Errorf("emptied: %.200s", r.text)
	}
	requireRefused(t, b, wrong{status: 400, code: "invalid_value", pointer: "/metadata"},
		b.do(t, "PATCH", "/v1/jobs/"+id, `{"metadata":null}`))
	plain := b.post(t, `{"task":"echo","delay":"1h"}`)
	if r = b.want(t, 200, "PATCH", "/v1/jobs/"+plain, `{"metadata":{"y":2}}`); metadataOf(r.body) != "map[y:2]" {
		t.Errorf("given to a job that had no labels: %s", r.text)
	}
	if r = b.want(t, 200, "PATCH", "/v1/jobs/"+plain, `{"metadata":{}}`); r.body["metadata"] != nil ||
		b.row(t, plain).Tagged {
		t.Errorf("taken from it: %s", r.text)
	}
}

func TestMetadata_IsKeptByRedriveAndShownAmongDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(t, `{"task":"echo","metadata":{"ticket":7}}`)
	for _, v := range b.want(t, 200, "GET", "/v1/dead-letters", "").items() {
		if metadataOf(v) != "map[ticket:7]" {
			t.Errorf("among the dead letters: %v", v)
		}
	}
	b.clock.at = noon.Add(time.Minute)
	if r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", ""); metadataOf(r.body) != "map[ticket:7]" {
		t.Errorf("redriven: %s", r.text)
	}
}

func TestMetadata_OfAScheduleIsCopiedToItsJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"calendar":{"every":"10m"},"job":{"task":"echo","metadata":{"b":{"c":1,"d":2},"a":1}}}`
	r := b.want(t, 201, "PUT", "/v1/schedules/s", body)
	if r.at("job", "metadata") != "map[a:1 b:map[c:1 d:2]]" {
		t.Errorf("the schedule: %s", r.text)
	}
	if r = b.want(t, 200, "PUT", "/v1/schedules/s",
		strings.Replace(body, `"c":1,"d":2`, `"d":2, "c":1`, 1)); r.body["version"] != 1.0 {
		t.Errorf("the same in other words is an edit: %s", r.text)
	}
	made := b.want(t, 200, "GET", "/v1/jobs?schedule=s", "").items()
	if len(made) == 0 {
		t.Fatal("no job was made")
	}
	for _, v := range made {
		if metadataOf(v) != "map[a:1 b:map[c:1 d:2]]" {
			t.Errorf("a job of it: %v", v)
		}
	}
	if r = b.want(t, 202, "POST", "/v1/schedules/s/run-now", ""); metadataOf(r.body) != "map[a:1 b:map[c:1 d:2]]" {
		t.Errorf("a run that was asked for: %s", r.text)
	}
	r = b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true", `{"job":{"metadata":{"b":{"c":null}}}}`)
	if fmt.Sprint(r.body["changed"]) != "[/job/metadata]" {
		t.Errorf("a dry run: %s", r.text)
	}
	if r = b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"metadata":{"b":{"c":null}}}}`); r.at("job",
		"metadata") != "map[a:1 b:map[d:2]]" {
		t.Errorf("merged: %s", r.text)
	}
	if r = b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"metadata":null}}`); r.at("job", "metadata") != "<nil>" {
		t.Errorf("removed: %s", r.text)
	}
	twice := b.do(t, "PATCH", "/v1/schedules/s", `{"job":{"metadata":{"b":{"c":1,"c":2}}}}`)
	requireRefused(t, b, wrong{status: 400, code: "duplicate_field", pointer: "/job/metadata/b/c"}, twice)
}

func TestMetadata_IsForgottenWithItsJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","metadata":{"a":1}}`)
	r := b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded})
	b.want(t, 204, "DELETE", "/v1/jobs/"+id, "")
	if l, err := b.Store.LabelsOf(t.Context(), r); err != nil || l[0] != (job.Labels{}) {
		t.Errorf("labels %v, %v", l, err)
	}
}
