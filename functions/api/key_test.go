package api_test

import (
	"testing"

	"punctual/shared/job"
)

func TestKeys_ShowTheJobAsItIsNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"task":"echo","payload":{"a":1},"retry":{"max_attempts":1}}`
	id := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k").str("job_id")
	b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded, Result: []byte(`{"ok":true}`)})
	r := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k")
	if r.str("job_id") != id || r.str("status") != "SUCCEEDED" || r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", r.header, r.text)
	}
	if now := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); now.text != r.text {
		t.Errorf("GET answers %s and the replay %s", now.text, r.text)
	}
}

func TestKeys_NameTheRedriveOfADeadJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"task":"echo","retry":{"max_attempts":1}}`
	batch := `{"jobs":[{"task":"echo","idempotency_key":"k","retry":{"max_attempts":1}},{"task":"echo"}]}`
	id := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k").str("job_id")
	b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x"}})
	r := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k")
	if want := "</v1/jobs/" + id + `/redrive>; rel="redrive"`; r.str("status") != "DEAD" ||
		r.header.Get("Link") != want {
		t.Errorf("%v %s", r.header, r.text)
	}
	items := b.want(t, 200, "POST", "/v1/jobs/batch", batch).items()
	if items[0]["replayed"] != true || items[0]["link"] != r.header.Get("Link") || items[1]["link"] != nil {
		t.Errorf("in a batch: %v", items)
	}
	b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", "")
}

//proof:of F79
func TestKeys_AreFreeOnceTheirJobIsDeleted(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(b *bench, id string){
		"deleted after a cancel": func(b *bench, id string) {
			b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
			b.want(t, 204, "DELETE", "/v1/jobs/"+id, "")
		},
		"purged as a dead letter": func(b *bench, id string) {
			b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x"}})
			b.want(t, 200, "POST", "/v1/dead-letters/purge", `{"job_ids":["`+id+`"]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			body, other := `{"task":"echo","delay":"1h"}`, `{"task":"echo","delay":"2h"}`
			first := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k").str("job_id")
			forget(b, first)
			b.clock.at = b.clock.at.Add(1)
			second := b.want(t, 202, "POST", "/v1/jobs", other, "Idempotency-Key", "k") // any body: the key is free
			if second.str("job_id") == first || second.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s", second.text)
			}
			b.want(t, 200, "GET", "/v1/jobs/"+second.str("job_id"), "")
			repeated := b.want(t, 202, "POST", "/v1/jobs", other, "Idempotency-Key", "k")
			if repeated.str("job_id") != second.str("job_id") || repeated.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s", repeated.text)
			}
			b.want(t, 422, "POST", "/v1/jobs", body, "Idempotency-Key", "k")
			b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
			b.want(t, 422, "POST", "/v1/dags/d/runs", `{}`, "Idempotency-Key", "k")
		})
	}
}

func TestKeys_AreFreeOnceTheirRunIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
	first := b.want(t, 202, "POST", "/v1/dags/d/runs", `{"delay":"1h"}`, "Idempotency-Key", "k").str("run_id")
	b.want(t, 422, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "k")
	b.do(t, "POST", "/v1/runs/"+first+"/cancel", "")
	if r := b.do(t, "DELETE", "/v1/runs/"+first, ""); r.status != 204 {
		t.Fatalf("the run is not deleted: %s", r.text)
	}
	second := b.want(t, 202, "POST", "/v1/dags/d/runs", `{}`, "Idempotency-Key", "k")
	if second.str("run_id") == first || second.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%s", second.text)
	}
}
