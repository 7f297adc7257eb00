package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/event"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/tenant"
	"punctual/shared/webhook"
)

const (
	hook   = `{"url":"https://hooks.example.com/x","events":["job.dead"]}`
	secret = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/hook"
)

func TestWebhooks_ArePutReadListedAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 201, "PUT", "/v1/webhooks/ops", `{"url":"https://hooks.example.com/x","events":["job.dead","job.*",`+
		`"job.dead"],"filter":{"task":"mail","tags":{"team":"a"}},"sign_with":"`+secret+`","headers":{"X-A":"b"}}`)
	want := `{"name":"ops","url":"https://hooks.example.com/x","events":["job.*","job.dead"],"filter":{"task":"mail",` +
		`"tags":{"team":"a"}},"sign_with":"` + secret +
		`","headers":{"X-A":"b"},"enabled":true,"version":1,"created_at":"`
	if !strings.HasPrefix(r.text, want) || r.header.Get("ETag") != `"1"` {
		t.Errorf("the view is %s", r.text)
	}
	if got := b.want(t, 200, "GET", "/v1/webhooks/ops", ""); got.text != r.text {
		t.Errorf("reads %s", got.text)
	}
	r = b.want(t, 200, "PUT", "/v1/webhooks/ops", hook)
	if r.body["version"] != 2.0 || r.body["filter"] != nil || r.body["headers"] != nil {
		t.Errorf("replaced by %s", r.text)
	}
	if same := b.want(t, 200, "PUT", "/v1/webhooks/ops", hook); same.text != r.text {
		t.Errorf("the same body once more: %s", same.text)
	}
	b.want(t, 201, "PUT", "/v1/webhooks/a", hook)
	if pages := b.pages(t, "/v1/webhooks?limit=1", "name"); fmt.Sprint(pages) != "[[a] [ops]]" {
		t.Errorf("the list is %v", pages)
	}
	who := b.who
	b.who = all("globex")
	b.want(t, 404, "GET", "/v1/webhooks/a", "")
	b.want(t, 404, "DELETE", "/v1/webhooks/a", "")
	b.want(t, 404, "POST", "/v1/webhooks/a/test", "")
	b.want(t, 404, "GET", "/v1/webhooks/a/deliveries", "")
	b.who = who
	b.want(t, 204, "DELETE", "/v1/webhooks/a", "")
	b.want(t, 404, "GET", "/v1/webhooks/a", "")
	b.want(t, 404, "DELETE", "/v1/webhooks/a", "")
}

func TestWebhooks_AreChangedByVersionAndByAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(status int, match string) {
		t.Helper()
		body := strings.Replace(hook, "dead", "expired", 1)
		if r := b.do(t, "PUT", "/v1/webhooks/x", body, "If-Match", match); r.status != status {
			t.Errorf("If-Match %s: %d %s", match, r.status, r.text)
		}
	}
	put(412, `"1"`)
	b.want(t, 201, "PUT", "/v1/webhooks/x", hook)
	put(412, `"2"`)
	put(200, `"1"`)
	put(400, `2`)
	if r := b.do(t, "DELETE", "/v1/webhooks/x", "", "If-Match", `"1"`); r.status != 412 {
		t.Errorf("deleting an old version: %d %s", r.status, r.text)
	}
	b.who.Scopes = []tenant.Scope{tenant.Read, tenant.Write}
	b.want(t, 403, "PUT", "/v1/webhooks/x", hook)
	b.want(t, 403, "DELETE", "/v1/webhooks/x", "")
	b.want(t, 202, "POST", "/v1/webhooks/x/test", "")
	b.who.Scopes = []tenant.Scope{tenant.Read}
	b.want(t, 403, "POST", "/v1/webhooks/x/test", "")
	b.want(t, 200, "GET", "/v1/webhooks/x", "")
}

func TestPutWebhook_RefusesBadWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	with := func(more string) string { return strings.TrimSuffix(hook, "}") + "," + more + "}" }
	for _, c := range []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"no url", `{"events":["job.dead"]}`, 400, "missing_field", "/url"},
		{"no events", `{"url":"https://example.com"}`, 400, "missing_field", "/events"},
		{"an empty list of events", `{"url":"https://example.com","events":[]}`, 400, "out_of_range", "/events"},
		{"an unknown event", `{"url":"https://example.com","events":["job.dead","job.died"]}`, 400, "invalid_value",
			"/events/1"},
		{"all events", `{"url":"https://example.com","events":["*"]}`, 400, "invalid_value", "/events/0"},
		{"the metadata address", `{"url":"http://169.254.169.254/","events":["job.dead"]}`, 400, "target_refused",
			"/url"},
		{"a file", `{"url":"file:///etc/passwd","events":["job.dead"]}`, 400, "target_refused", "/url"},
		{"an unknown field", with(`"filters":{}`), 400, "unknown_field", "/filters"},
		{"an unknown filter", with(`"filter":{"pool":"long"}`), 400, "unknown_field", "/filter/pool"},
		{"a filter that is no name", with(`"filter":{"task":"a b"}`), 400, "invalid_value", "/filter/task"},
		{"four tags", with(`"filter":{"tags":{"a":"1","b":"2","c":"3","d":"4"}}`), 400, "out_of_range", "/filter/tags"},
		{"a plain secret", with(`"sign_with":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`), 400, "secret_in_payload",
			"/sign_with"},
		{"a secret of another tenant", with(`"sign_with":"` + strings.Replace(secret, "acme", "globex", 1) + `"`), 400,
			"invalid_value", "/sign_with"},
		{"a secret in a header", with(`"headers":{"Authorization":"Bearer 0123456789abcdef"}`), 400,
			"secret_in_payload", "/headers/Authorization"},
		{"a header of ours", with(`"headers":{"Webhook-Id":"1"}`), 400, "invalid_value", "/headers/Webhook-Id"},
		{"headers that are none", with(`"headers":["a"]`), 400, "invalid_value", "/headers"},
		{"a word for enabled", with(`"enabled":"yes"`), 400, "invalid_value", "/enabled"},
	} {
		t.Run("refuses a webhook: "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "PUT", "/v1/webhooks/x", c.body))
		})
	}
	for _, path := range []string{"", "/deliveries"} {
		b.want(t, 400, "GET", "/v1/webhooks/a%20b"+path, "")
	}
	b.want(t, 400, "PUT", "/v1/webhooks/a%20b", hook)
	b.want(t, 201, "PUT", "/v1/webhooks/x", hook)
	b.want(t, 400, "GET", "/v1/webhooks/x/deliveries?status=gone", "")
	b.want(t, 404, "POST", "/v1/webhooks/x/deliveries/no-id/redeliver", "")
	b.want(t, 404, "POST", "/v1/webhooks/x/deliveries/01KB4YJ2V0S6Y3Q4M5N6P7R8T9/redeliver", "")
}

func TestWebhooks_AreTwentyAtMost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 20 {
		b.want(t, 201, "PUT", fmt.Sprintf("/v1/webhooks/w%d", n), hook)
	}
	requireRefused(t, b, wrong{"the 21st", hook, 400, "out_of_range", "name"}, b.do(t, "PUT", "/v1/webhooks/w20", hook))
	b.want(t, 200, "PUT", "/v1/webhooks/w3", hook)
	b.want(t, 204, "DELETE", "/v1/webhooks/w3", "")
	b.want(t, 201, "PUT", "/v1/webhooks/w20", hook)
}

func TestWebhooks_AreTwentyAtMostWhenTwoAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 19 {
		b.want(t, 201, "PUT", fmt.Sprintf("/v1/webhooks/w%d", n), hook)
	}
	b.Before(stagetest.Every(memory.TableCommit), func() { b.want(t, 201, "PUT", "/v1/webhooks/first", hook) })
	requireRefused(t, b, wrong{"the 21st", hook, 400, "out_of_range", "name"},
		b.do(t, "PUT", "/v1/webhooks/second", hook))
}

func TestDeliveries_AreTestedListedAndRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/webhooks/ops", strings.TrimSuffix(hook, "}")+`,"enabled":false}`)
	var ids []string
	for range 3 {
		r := b.want(t, 202, "POST", "/v1/webhooks/ops/test", "")
		if r.str("task") != "webhook" || r.header.Get("Location") != "/v1/jobs/"+r.str("job_id") ||
			!strings.Contains(r.text, `"type":"punctual.webhook.test"`) ||
			!strings.Contains(r.text, `"subject":"webhook/ops"`) {
			t.Errorf("the delivery is %s", r.text)
		}
		ids = append(ids, r.str("job_id"))
	}
	sent := b.want(t, 200, "GET", "/v1/jobs/"+ids[0], "").body["payload"].(map[string]any)
	b.want(t, 200, "PUT", "/v1/webhooks/ops", strings.Replace(hook, "/x", "/y", 1))
	r := b.want(t, 202, "POST", "/v1/webhooks/ops/deliveries/"+ids[0]+"/redeliver", "")
	repeated := r.body["payload"].(map[string]any)
	if repeated["event_id"] != sent["event_id"] || fmt.Sprint(repeated["event"]) != fmt.Sprint(sent["event"]) ||
		repeated["url"] != "https://hooks.example.com/y" {
		t.Errorf("sent %v, then %v", sent, repeated)
	}
	if pages := b.pages(t, "/v1/webhooks/ops/deliveries?limit=3", "job_id"); len(pages) != 2 || len(pages[0]) != 3 ||
		len(pages[1]) != 1 {
		t.Errorf("the deliveries are %v", pages)
	}
	for path, want := range map[string]int{
		"/v1/webhooks/ops/deliveries?status=QUEUED": 4, "/v1/webhooks/ops/deliveries?status=DEAD": 0,
		"/v1/jobs": 0, "/v1/jobs?task=webhook": 4, "/v1/jobs?status=QUEUED": 0, "/v1/jobs?task=echo": 0,
	} {
		if items := b.want(t, 200, "GET", path, "").body["items"].([]any); len(items) != want {
			t.Errorf("%s lists %d, want %d", path, len(items), want)
		}
	}
	b.want(t, 201, "PUT", "/v1/webhooks/other", hook)
	b.want(t, 404, "POST", "/v1/webhooks/other/deliveries/"+ids[0]+"/redeliver", "")
}

func TestDeliveries_AreMadeByPunctualAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"task":"webhook","payload":{"url":"https://example.com"}}`
	requireRefused(t, b, wrong{"a job", body, 400, "unknown_task", "/task"}, b.do(t, "POST", "/v1/jobs", body))
	b.want(t, 400, "PUT", "/v1/schedules/s", `{"job":`+body+`,"calendar":{"every":"1h"}}`)
	b.want(t, 409, "PUT", "/v1/tasks/webhook", `{"executor":"go"}`)
	b.want(t, 400, "PUT", "/v1/tasks/mine", `{"executor":"webhook"}`)
}

func TestWebhooks_ShowWhyTheyAreDisabled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/webhooks/ops", hook)
	_, err := b.Store.UpdateWebhook(t.Context(), "acme", "ops", func(w *webhook.Webhook) (webhook.Webhook, error) {
		next := *w
		next.Enabled, next.Disabled, next.DisabledAt = false, job.Reason{Code: "gone", Message: "m"}, w.CreatedAt
		return next, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := b.want(t, 200, "GET", "/v1/webhooks/ops", "")
	if d, _ := r.body["disabled"].(map[string]any); r.body["enabled"] != false || d["code"] != "gone" {
		t.Errorf("shown as %s", r.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/webhooks/ops", hook); r.body["enabled"] != true || r.body["disabled"] != nil {
		t.Errorf("enabled once more as %s", r.text)
	}
}

// The data of an event is the view of its job, by the names of the view.
func TestEvents_HaveTheNamesOfTheView(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)
	labels := job.Labels{Tags: `{"team":"a"}`, Metadata: `{"x":1}`}
	r := jobtest.Row(1, at, at, func(r *job.Row) {
		r.Status, r.Attempt, r.StartedAt, r.FinishedAt, r.LatenessMS = job.Dead, 2, at, at.Add(time.Second), 5
		r.Reason, r.NominalAt, r.ManualOf, r.Backfill = job.Reason{Code: "c", Message: "m"}, at, "s", "b"
		r.RunID, r.Node, r.ItemNo, r.RedriveOf, r.CancelRequestedAt = "r", "n", 3, "old", at
		r.Limits = job.LimitsOf(job.LimitKey{Name: "l", Key: "k"}, job.LimitKey{Name: "m"})
		r.Unique = job.Unique{Key: "u", Until: job.UntilDone, OnConflict: job.ConflictReject}
		r.Payload, r.PayloadSize, r.Result, r.Labelled = `{}`, 2, `1`, labels.Labelled()
		r.Parents = dag.After{Rule: dag.AllDone, Parents: []dag.Parent{{ID: "01KB4YJ2V0S6Y3Q4M5N6P7R8T9"}}}.Encode()
	})
	var sent struct{ Data map[string]any }
	if err := json.Unmarshal(event.Of(event.Change{New: r})[0].Body(labels), &sent); err != nil {
		t.Fatal(err)
	}
	view := spec.ViewJob(show.Job{Row: r, Labels: labels, At: at})
	view.JobDetail = &spec.JobDetail{TagsView: spec.ViewLabels(labels).TagsView}
	text, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	want["sequence"] = 5.0
	delete(want, "result")
	if !maps.EqualFunc(sent.Data, want, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("sent  %v\nshown %v", sent.Data, want)
	}
}

func TestWebhooks_AreRefusedWhereNothingIsAnnounced(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) { d.Announced = false })
	for route, body := range map[string]string{
		"PUT /v1/webhooks/ops": hook, "GET /v1/webhooks/ops": "", "DELETE /v1/webhooks/ops": "", "GET /v1/webhooks": "",
		"GET /v1/webhooks/ops/deliveries": "", "POST /v1/webhooks/ops/test": "",
		"POST /v1/webhooks/ops/deliveries/01KB4YJ2V0S6Y3Q4M5N6P7R8T9/redeliver": "",
	} {
		method, path, _ := strings.Cut(route, " ")
		if r := b.want(t, 400, method, path, body); r.str("code") != "not_indexed" {
			t.Errorf("%s: %s", route, r.text)
		}
	}
}
