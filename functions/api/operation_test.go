package api_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/operate"
	"punctual/functions/engine/show"
	"punctual/functions/stagetest"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/process"
	"punctual/shared/tenant"
)

// continueAll continues an operation for twenty minutes of the clock.
func (b *bench) continueAll(t *testing.T, id string) reply {
	t.Helper()
	d := process.Base{Clock: b.clock, Shards: stagetest.Shards}.WithDefaults()
	e := engine.New(engine.Deps{Base: d, Store: b.Store, Queue: b.World.Queues()})
	read := &show.Reader{Base: d, Store: b.Store, Nodes: e.Runs.Nodes}
	o := &operate.Operator{Base: d, Store: b.Store, Queue: b.World.Queues(), Read: read, Runs: e.Runs,
		Edit: &edit.Editor{Store: b.Store, Read: read, Accept: e.Accept, Decisions: e, Queue: b.World.Queues(),
			Log: d.Log},
		Entropy: &accept.Entropy{R: rand.Reader}}
	for range 20 {
		began := b.clock.Now()
		_, _, err := o.Work(t.Context(), operation.Key{Tenant: b.who.Tenant, ID: job.ID(id)},
			func() bool { return b.clock.Now().Equal(began) })
		b.Must(err)
		b.clock.set(began.Add(time.Minute))
	}
	return b.want(t, 200, "GET", "/v1/operations/"+id, "")
}

// waiting makes jobs of a task that wait, and returns their ids.
func (b *bench) waiting(t *testing.T, n int) (ids []string) {
	t.Helper()
	for range n {
		ids = append(ids, b.post(t, `{"task":"echo","delay":"2h"}`))
	}
	return ids
}

func TestOperations_CancelWhatMatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := b.waiting(t, 3)
	done := b.post(t, `{"task":"echo"}`)
	b.end(t, done, success)
	body := `{"action":"cancel","filter":{"task":"echo"},"reason":"not today"}`
	dry := b.want(t, 200, "POST", "/v1/operations", strings.Replace(body, `{`, `{"dry_run":true,`, 1))
	if dry.body["matched"] != 3.0 || dry.body["operation_id"] != nil || dry.body["status"] != nil {
		t.Errorf("dry run: %s", dry.text)
	}
	r := b.want(t, 202, "POST", "/v1/operations", body, "Idempotency-Key", "k")
	id := r.str("operation_id")
	want := `{"operation_id":"` + id + `","action":"cancel","status":"COUNTING","as_of":"2027-03-01T12:00:00.000Z",` +
		`"matched":0,"done":0,"skipped":0,"failed":0,"open":0,"errors":[],"created_at":"2027-03-01T12:00:00.000Z",` +
		`"by":"tester","reason":"not today"}`
	if got := strings.Replace(strings.TrimSpace(r.text), `"canary":null,`, "", 1); got != want ||
		r.header.Get("Location") != "/v1/operations/"+id {
		t.Errorf("created: %s\nwant %s", got, want)
	}
	repeated := b.want(t, 202, "POST", "/v1/operations", body, "Idempotency-Key", "k")
	if repeated.str("operation_id") != id || repeated.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("repeated: %s", repeated.text)
	}
	if reused := b.want(t, 422, "POST", "/v1/operations", `{"action":"pause","all":true}`, "Idempotency-Key", "k"); reused.
		str("code") != "idempotency_key_reused" {
		t.Error(reused.text)
	}
	r = b.continueAll(t, id)
	if r.str("status") != "SUCCEEDED" || r.body["matched"] != 3.0 || r.body["done"] != 3.0 {
		t.Errorf("ended: %s", r.text)
	}
	for _, id := range ids {
		if is := b.row(t, id); is.Status != job.Cancelled {
			t.Errorf("job %s is %s", id, is.Status)
		}
	}
}

func TestOperations_WorkOnTheRowsThatAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := b.waiting(t, 2)
	body := `{"action":"reprioritize","filter":{"job_ids":["` + ids[0] + `","` + ids[0] + `","01KB4YJ2V0S6Y3Q4M5N6P7R8T9"]},` +
		`"set":{"priority":"high"}`
	dry := b.want(t, 200, "POST", "/v1/operations", body+`,"dry_run":true}`)
	if dry.body["matched"] != 2.0 || dry.body["skipped"] != 1.0 {
		t.Errorf("dry run: %s", dry.text)
	}
	r := b.want(t, 202, "POST", "/v1/operations", body+`}`)
	if r.str("status") != "RUNNING" || r.body["matched"] != 2.0 {
		t.Errorf("created: %s", r.text)
	}
	r = b.continueAll(t, r.str("operation_id"))
	if r.body["done"] != 1.0 || r.body["skipped"] != 1.0 || b.row(t, ids[0]).Priority != job.High ||
		b.row(t, ids[1]).Priority == job.High {
		t.Errorf("ended: %s", r.text)
	}
}

func TestOperations_RedriveByACanary(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for range 4 {
		id := b.post(t, `{"task":"echo","retry":{"max_attempts":1}}`)
		b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Permanent: true})
		ids = append(ids, id)
	}
	r := b.want(t, 202, "POST", "/v1/operations",
		`{"action":"redrive","all":true,"canary":{"count":2,"min_succeeded":1,"within":"5m"},"set":{"priority":"low"}}`)
	id := r.str("operation_id")
	r = b.continueAll(t, id)
	if r.str("status") != "FAILED" || fmt.Sprint(r.body["canary"]) != "map[failed:2 open:0 succeeded:0]" ||
		r.body["status_reason"].(map[string]any)["code"] != "canary_failed" || r.body["done"] != 2.0 {
		t.Fatalf("after the canary: %s", r.text)
	}
	b.want(t, 409, "POST", "/v1/operations/"+id+"/resume", "")
	if r = b.want(t, 200, "POST", "/v1/operations/"+id+"/proceed", ""); r.str("status") != "RUNNING" {
		t.Errorf("overruled: %s", r.text)
	}
	if r = b.continueAll(t, id); r.str("status") != "SUCCEEDED" || r.body["done"] != 4.0 {
		t.Errorf("ended: %s", r.text)
	}
	for _, id := range ids {
		next := b.row(t, string(b.row(t, id).RedrivenBy))
		if next.Priority != job.Low {
			t.Errorf("the new job has priority %s", next.Priority)
		}
	}
	b.want(t, 409, "POST", "/v1/operations/"+id+"/proceed", "")
}

func TestOperations_AreRefused(t *testing.T) {
	t.Parallel()
	listed := setup(t)
	every := indexed(t)
	for name, c := range map[string]struct{ body, code, pointer string }{
		"without an action":            {`{"all":true}`, "missing_field", "/action"},
		"with an action that is none":  {`{"action":"explode","all":true}`, "invalid_value", "/action"},
		"backfill":                     {`{"action":"backfill","all":true}`, "invalid_value", "/action"},
		"without a filter":             {`{"action":"cancel"}`, "missing_field", "/filter"},
		"an empty filter":              {`{"action":"cancel","filter":{}}`, "missing_field", "/filter"},
		"a filter's unknown field":     {`{"action":"cancel","filter":{"tusk":"x"}}`, "unknown_field", "/filter/tusk"},
		"a status of runs":             {`{"action":"cancel","filter":{"status":"HELD"}}`, "invalid_value", "/filter/status"},
		"ids and more":                 {`{"action":"cancel","filter":{"task":"x","job_ids":["01KB4YJ2V0S6Y3Q4M5N6P7R8T9"]}}`, "conflicting_fields", "/filter/job_ids"},
		"ids of runs":                  {`{"action":"cancel","filter":{"run_ids":["01KB4YJ2V0S6Y3Q4M5N6P7R8T9"]}}`, "conflicting_fields", "/filter/run_ids"},
		"ids of jobs":                  {`{"action":"retry_runs","filter":{"job_ids":["01KB4YJ2V0S6Y3Q4M5N6P7R8T9"]}}`, "conflicting_fields", "/filter/job_ids"},
		"no ids":                       {`{"action":"cancel","filter":{"job_ids":[]}}`, "out_of_range", "/filter/job_ids"},
		"an id that is none":           {`{"action":"cancel","filter":{"job_ids":["x"]}}`, "invalid_value", "/filter/job_ids/0"},
		"four tags":                    {`{"action":"cancel","filter":{"tags":{"a":"1","b":"2","c":"3","d":"4"}}}`, "invalid_filter", "/filter/tags"},
		"a group that is none":         {`{"action":"purge","filter":{"group":"x"}}`, "invalid_filter", "/filter/group"},
		"a long value of a tag":        {`{"action":"cancel","filter":{"tags":{"a/b":"` + strings.Repeat("x", 257) + `"}}}`, "invalid_filter", "/filter/tags/a~1b"},
		"a tag without a name":         {`{"action":"cancel","filter":{"tags":{"":"x"}}}`, "invalid_filter", "/filter/tags"},
		"a long code":                  {`{"action":"cancel","filter":{"code":"` + strings.Repeat("x", 65) + `"}}`, "invalid_filter", "/filter/code"},
		"a run that is none":           {`{"action":"cancel","filter":{"run_id":"x"}}`, "invalid_filter", "/filter/run_id"},
		"a range that is backwards":    {`{"action":"cancel","filter":{"due_after":"2027-03-02T00:00:00Z","due_before":"2027-03-01T00:00:00Z"}}`, "conflicting_fields", "/filter/due_before"},
		"reprioritize without":         {`{"action":"reprioritize","all":true}`, "missing_field", "/set/priority"},
		"reschedule without":           {`{"action":"reschedule","all":true}`, "missing_field", "/set"},
		"cancel with a set":            {`{"action":"cancel","all":true,"set":{"priority":"low"}}`, "conflicting_fields", "/set/priority"},
		"both times":                   {`{"action":"reschedule","all":true,"set":{"delay":"1m","run_at":"2027-03-02T00:00:00Z"}}`, "conflicting_fields", "/set/delay"},
		"rate and spread":              {`{"action":"redrive","all":true,"rate":{"count":1,"per":"1s"},"spread":"1m"}`, "conflicting_fields", "/spread"},
		"half a rate":                  {`{"action":"redrive","all":true,"rate":{"count":1}}`, "missing_field", "/rate/per"},
		"a rate of nothing":            {`{"action":"redrive","all":true,"rate":{"count":0,"per":"1s"}}`, "out_of_range", "/rate/count"},
		"a spread of what has no time": {`{"action":"cancel","all":true,"spread":"1m"}`, "conflicting_fields", "/spread"},
		"a canary that starts nothing": {`{"action":"cancel","all":true,"canary":{"count":1}}`, "conflicting_fields", "/canary"},
		"a canary of no size":          {`{"action":"redrive","all":true,"canary":{}}`, "missing_field", "/canary/count"},
		"a status of letters":          {`{"action":"redrive","filter":{"status":"SUCCEEDED"}}`, "invalid_value", "/filter/status"},
		"a short beginning of an id":   {`{"action":"cancel","filter":{"id":"01KB4"}}`, "invalid_filter", "/filter/id"},
		"a patch of what waits":        {`{"action":"cancel","all":true,"set":{"payload_patch":{}}}`, "conflicting_fields", "/set/payload_patch"},
		"a patch with a secret":        {`{"action":"redrive","all":true,"set":{"payload_patch":{"password":"hunter2hunter2"}}}`, "secret_in_payload", "/set/payload_patch/password"},

		"a large canary": {`{"action":"redrive","all":true,"canary":{"count":101}}`, "out_of_range", "/canary/count"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := listed.want(t, 400, "POST", "/v1/operations", c.body)
			if !strings.Contains(r.text, `"pointer":"`+c.pointer+`","code":"`+c.code+`"`) {
				t.Errorf("%s", r.text)
			}
		})
	}
	t.Run("a large patch", func(t *testing.T) {
		t.Parallel()
		listed.want(t, 413, "POST", "/v1/operations",
			`{"action":"redrive","all":true,"set":{"payload_patch":{"a":"`+strings.Repeat("b", 9000)+`"}}}`)
	})
	t.Run("a filter without the index", func(t *testing.T) {
		t.Parallel()
		body := `{"action":"purge","filter":{"code":"handler"},"dry_run":true}`
		if r := listed.want(t, 400, "POST", "/v1/operations", body); !strings.Contains(r.text,
			`"pointer":"/filter/code","code":"not_indexed"`) || !strings.Contains(r.text, "dead_after") {
			t.Error(r.text)
		}
		every.want(t, 200, "POST", "/v1/operations", body)
		every.want(t, 400, "POST", "/v1/operations", `{"action":"retry_runs","filter":{"task":"x"}}`)
	})
}

func TestOperations_ThatDestroyNeedAdmin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Scopes = []tenant.Scope{tenant.Read, tenant.Write}
	for _, a := range operation.Actions {
		want := 202
		if a == operation.RedriveJobs || a == operation.PurgeJobs || a == operation.DeleteJobs {
			want = 403
		}
		set := ""
		if a == operation.ReprioritizeJobs {
			set = `,"set":{"priority":"low"}`
		}
		if a == operation.RescheduleJobs {
			set = `,"set":{"delay":"1m"}`
		}
		b.want(t, want, "POST", "/v1/operations", `{"action":"`+string(a)+`","all":true`+set+`}`)
	}
	b.who.Scopes = []tenant.Scope{tenant.Read}
	b.want(t, 403, "POST", "/v1/operations", `{"action":"cancel","all":true}`)
}
