package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

func TestRedriveJob_TakesCorrections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge", `{"executor":"go","payload_schema":{"type":"object",
		"properties":{"amount":{"type":"integer"}},"required":["to"]}}`)
	dead := `{"task":"charge","payload":{"to":"x","amount":1,"n":{"a":1,"b":2}},"tags":{"a":"b"},"metadata":{"m":1},
		"priority":"low","timeout":"10s","retry":{"max_attempts":1,"factor":3},"expire_after":"2h"}`
	later := noon.Add(time.Minute)
	for name, c := range map[string]struct{ body, payload, tags string }{
		"none":            {``, `{"to":"x","amount":1,"n":{"a":1,"b":2}}`, "map[a:b]"},
		"an empty object": {`{}`, `{"to":"x","amount":1,"n":{"a":1,"b":2}}`, "map[a:b]"},
		"a payload":       {`{"payload":{"to":"y"}}`, `{"to":"y"}`, "map[a:b]"},
		"a patch": {`{"payload_patch":{"amount":2,"n":{"a":null},"more":[1]}}`,
			`{"amount":2,"more":[1],"n":{"b":2},"to":"x"}`, "map[a:b]"},
		"tags":    {`{"tags":{"c":"d"}}`, `{"to":"x","amount":1,"n":{"a":1,"b":2}}`, "map[c:d]"},
		"no tags": {`{"tags":{}}`, `{"to":"x","amount":1,"n":{"a":1,"b":2}}`, "<nil>"},
	} {
		t.Run("of the contents: "+name, func(t *testing.T) {
			t.Parallel()
			b := *b
			id := b.dead(t, dead)
			r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", c.body)
			row := b.row(t, r.str("job_id"))
			payload, err := b.Store.Payload(context.Background(), row)
			if err != nil || string(payload) != c.payload || fmt.Sprint(r.body["tags"]) != c.tags ||
				metadataOf(r.body) != "map[m:1]" || r.str("redrive_of") != id || row.HandlerKey() != job.ID(id) {
				t.Errorf("%s with %s, %v", r.text, payload, err)
			}
		})
	}
	t.Run("of the settings", func(t *testing.T) {
		id := b.dead(t, dead)
		b.clock.at = later
		b.Received(contract.FiringQueue("short", "low"))
		r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", `{"delay":"1h","priority":"high","pool":"long",
			"timeout":"20h","retry":{"max_attempts":7}}`)
		row := b.row(t, r.str("job_id"))
		if !row.DueAt.Equal(later.Add(time.Hour)) || !row.ExpiryAt.Equal(later.Add(3*time.Hour)) ||
			row.Priority != job.High || row.Pool != "long" || row.Timeout != 20*time.Hour ||
			row.Retry.MaxAttempts != 7 || row.Retry.Factor != 3 {
			t.Errorf("%+v", row)
		}
		if r.str("status") != "SCHEDULED" || len(b.Received(contract.FiringQueue("long", "high"))) != 0 {
			t.Errorf("answered %s", r.text)
		}
	})
}

func TestRedriveJob_JudgesCorrectionsLikeANewJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge", `{"executor":"go","payload_schema":{"type":"object",
		"properties":{"amount":{"type":"integer"}},"required":["to"]}}`)
	id := b.dead(t, `{"task":"charge","payload":{"to":"x","amount":1},"pool":"long","timeout":"20h"}`)
	secret := `"AKIA` + `IOSFODNN7EXAMPLE"`
	for name, c := range map[string]struct{ body, code, pointer string }{
		"no object":                        {`[]`, "invalid_value", ""},
		"an unknown field":                 {`{"task":"echo"}`, "unknown_field", "/task"},
		"payload and patch":                {`{"payload":{"to":"x"},"payload_patch":{}}`, "conflicting_fields", "/payload_patch"},
		"run_at and delay":                 {`{"run_at":"2027-03-02T00:00:00Z","delay":"1h"}`, "conflicting_fields", "/delay"},
		"a delay of words":                 {`{"delay":"soon"}`, "invalid_value", "/delay"},
		"an unknown pool":                  {`{"pool":"deep"}`, "unknown_pool", "/pool"},
		"an unknown priority":              {`{"priority":"top"}`, "invalid_value", "/priority"},
		"a pool for a shorter timeout":     {`{"pool":"short"}`, "conflicting_fields", "/pool"},
		"too many attempts":                {`{"retry":{"max_attempts":51}}`, "out_of_range", "/retry/max_attempts"},
		"a payload against the schema":     {`{"payload":{"to":"x","amount":"1"}}`, "invalid_value", "/payload/amount"},
		"a patch against the schema":       {`{"payload_patch":{"amount":"1"}}`, "invalid_value", "/payload_patch/amount"},
		"a patch without what is needed":   {`{"payload_patch":{"to":null}}`, "missing_field", "/payload_patch/to"},
		"a patch that names a field twice": {`{"payload_patch":{"to":1,"to":2}}`, "duplicate_field", "/payload_patch/to"},
		"a patch that is too deep": {`{"payload_patch":{"a":` + strings.Repeat("[", contract.MaxDepth) +
			strings.Repeat("]", contract.MaxDepth) + `}}`, "out_of_range", "/payload_patch"},
		"a payload with a secret":    {`{"payload":{"to":` + secret + `}}`, "secret_in_payload", "/payload/to"},
		"a patch with a secret":      {`{"payload_patch":{"to":` + secret + `}}`, "secret_in_payload", "/payload_patch/to"},
		"tags with a secret":         {`{"tags":{"a":` + secret + `}}`, "secret_in_payload", "/tags/a"},
		"literals of nothing":        {`{"allow_literals":["/payload/to"]}`, "missing_field", "/payload"},
		"a tag that is not a string": {`{"tags":{"a":1}}`, "invalid_value", "/tags/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := b.want(t, 400, "POST", "/v1/jobs/"+id+"/redrive", c.body)
			if r.str("code") != c.code || !strings.Contains(r.text, `"pointer":"`+c.pointer+`"`) {
				t.Errorf("answered %s", r.text)
			}
			if row := b.row(t, id); row.RedrivenBy != "" {
				t.Errorf("it was redriven by %s", row.RedrivenBy)
			}
		})
	}
}

func TestRedriveJob_TakesDeclaredLiterals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(t, `{"task":"echo","payload":{"to":"x"}}`)
	r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive",
		`{"payload_patch":{"to":"AKIA`+`IOSFODNN7EXAMPLE"},"allow_literals":["/payload/to"]}`)
	kept, err := b.Store.Content(context.Background(), b.key(r.str("job_id")), job.LiteralsContent)
	if err != nil || !strings.Contains(kept, "/payload/to") {
		t.Errorf("the declaration is %s, %v", kept, err)
	}
}

func TestRedriveJob_WithOtherCorrectionsAnswersWithTheFirstJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(t, `{"task":"echo","payload":1}`)
	first := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", `{"payload":2}`).str("job_id")
	r := b.want(t, 409, "POST", "/v1/jobs/"+id+"/redrive", `{"payload":3,"delay":"1h"}`)
	if r.str("code") != "wrong_state" || r.str("redriven_by") != first {
		t.Errorf("answered %s", r.text)
	}
	if row := b.row(t, first); row.Payload != "2" {
		t.Errorf("the first job has the payload %s", row.Payload)
	}
}

func TestRedriveJob_OfANodeTakesNoCorrections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":{"task":"echo"},"b":{"task":"echo"}}}}`)
	dead := node(run, "a")["job_id"].(string)
	b.end(t, dead, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x", Message: "y"}})
	r := b.want(t, 400, "POST", "/v1/jobs/"+dead+"/redrive", `{"payload":1,"delay":"1h"}`)
	for _, field := range []string{"payload", "delay"} {
		if r.str("code") != "conflicting_fields" || !strings.Contains(r.text, `"pointer":"/`+field+`"`) {
			t.Errorf("answered %s", r.text)
		}
	}
	if row := b.row(t, dead); row.RedrivenBy != "" {
		t.Errorf("it was redriven by %s", row.RedrivenBy)
	}
	b.want(t, 202, "POST", "/v1/jobs/"+dead+"/redrive", `{}`)
}
