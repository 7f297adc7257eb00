package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// strict is a task whose payloads have a whole number a.
const strict = `{"executor":"go","payload_schema":{"type":"object","properties":{"a":{"type":"integer"}},
	"required":["a"]}}`

func TestRunScheduleNow_TakesAPayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/strict", strict)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *"},"overlap":"buffer_all",
		"job":{"task":"strict","payload":{"a":1,"b":{"c":2.50,"d":3}},"tags":{"t":"u"},"priority":"low"}}`)
	before := fmt.Sprint(b.schedule(t, "s").Item())
	long, item := strings.Repeat("l", contract.MaxPayload-100), strings.Repeat("i", 100<<10)
	for name, c := range map[string]struct{ body, payload string }{
		"no body":                {``, `{"a":1,"b":{"c":2.50,"d":3}}`},
		"an overlap alone":       {`{"overlap":"obey"}`, `{"a":1,"b":{"c":2.50,"d":3}}`},
		"a payload":              {`{"payload":{"a":7}}`, `{"a":7}`},
		"a patch":                {`{"payload_patch":{"b":{"c":null,"e":[4]}}}`, `{"a":1,"b":{"d":3,"e":[4]}}`},
		"an empty patch":         {`{"payload_patch":{}}`, `{"a":1,"b":{"c":2.50,"d":3}}`},
		"a payload with obey":    {`{"payload":{"a":8},"overlap":"obey"}`, `{"a":8}`},
		"one of an own item":     {`{"payload":{"a":9,"x":"` + item + `"}}`, `{"a":9,"x":"` + item + `"}`},
		"one of an own object":   {`{"payload":{"a":9,"x":"` + long + `"}}`, `{"a":9,"x":"` + long + `"}`},
		"a patch that lengthens": {`{"payload_patch":{"b":"` + item + `"}}`, `{"a":1,"b":"` + item + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", c.body)
			row := b.row(t, r.str("job_id"))
			payload, err := b.Store.Payload(context.Background(), row)
			if err != nil || string(payload) != c.payload {
				t.Errorf("the payload is %.200s, %v", payload, err)
			}
			if row.ManualOf != "s" || row.Priority != job.Low || r.at("tags", "t") != "u" ||
				row.PayloadSize != int64(len(payload)) {
				t.Errorf("the job is %.300s", r.text)
			}
			if after := fmt.Sprint(b.schedule(t, "s").Item()); after != before {
				t.Errorf("the schedule is changed to %s", after)
			}
		})
	}
}

func TestRunScheduleNow_ChecksAPayloadLikeThatOfANewJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/strict", strict)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *"},
		"job":{"task":"strict","payload":{"a":1}}}`)
	b.want(t, 201, "PUT", "/v1/schedules/web", `{"calendar":{"cron":"0 10 * * *"},
		"job":{"task":"http","payload":{"url":"https://example.com"}}}`)
	long := strings.Repeat("a", contract.MaxPayload)
	secret := `"AKIA` + `IOSFODNN7EXAMPLE"`
	for _, c := range []wrong{
		{"both", `{"payload":{"a":1},"payload_patch":{}}`, 400, "conflicting_fields", "/payload_patch"},
		{"params of a job", `{"params":{"a":1}}`, 400, "conflicting_fields", "/params"},
		{"a payload against the schema", `{"payload":{"a":"x"}}`, 400, "invalid_value", "/payload/a"},
		{"a payload without what is needed", `{"payload":{}}`, 400, "missing_field", "/payload/a"},
		{"a null payload where one is needed", `{"payload":null}`, 400, "invalid_value", "/payload"},
		{"a patch against the schema", `{"payload_patch":{"a":"x"}}`, 400, "invalid_value", "/payload_patch/a"},
		{"a patch that removes what is needed", `{"payload_patch":{"a":null}}`, 400, "missing_field", "/payload_patch/a"},
		{"a patch that is no object", `{"payload_patch":1}`, 400, "invalid_value", "/payload_patch"},
		{"a payload with a secret", `{"payload":{"a":1,"x":` + secret + `}}`, 400, "secret_in_payload", "/payload/x"},
		{"a patch with a secret", `{"payload_patch":{"x":` + secret + `}}`, 400, "secret_in_payload", "/payload_patch/x"},
		{"a field twice", `{"payload_patch":{"a":1,"a":2}}`, 400, "duplicate_field", "/payload_patch/a"},
		{"a payload that is too long", `{"payload":{"a":1,"x":"` + long + `"}}`, 413, "too_large", "/payload"},
		{"a patch that is too long", `{"payload_patch":{"x":"` + long + `"}}`, 413, "too_large", "/payload_patch"},
		{"a patch that is too deep", `{"payload_patch":{"b":` + strings.Repeat("[", contract.MaxDepth) +
			strings.Repeat("]", contract.MaxDepth) + `}}`, 400, "out_of_range", "/payload_patch"},
		{"literals of nothing", `{"allow_literals":["/payload/x"]}`, 400, "missing_field", "/payload"},
		{"another word", `{"overlap":"skip"}`, 400, "invalid_value", "/overlap"},
		{"an unknown field", `{"patch":{}}`, 400, "unknown_field", "/patch"},
	} {
		requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/s/run-now", c.body))
	}
	requireRefused(t, b, wrong{"a payload against its executor", "", 400, "target_refused", "/payload_patch/url"},
		b.do(t, "POST", "/v1/schedules/web/run-now", `{"payload_patch":{"url":"ftp://example.com"}}`))
	if jobs := b.want(t, 200, "GET", "/v1/jobs", "").items(); len(jobs) != 0 {
		t.Errorf("refused requests made %v", jobs)
	}
	b.want(t, 404, "POST", "/v1/schedules/none/run-now", `{"payload":{"a":1}}`)
}

func TestRunScheduleNow_TakesDeclaredLiterals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo",
		"payload":{"old":"AKIA`+`IOSFODNN7EXAMPLE"},"allow_literals":["/payload/old"]}}`)
	b.want(t, 202, "POST", "/v1/schedules/s/run-now", `{"payload_patch":{"n":1}}`)
	r := b.want(t, 202, "POST", "/v1/schedules/s/run-now",
		`{"payload_patch":{"new":"AKIA`+`IOSFODNN7EXAMPLE"},"allow_literals":["/payload/new"]}`)
	kept, err := b.Store.Content(context.Background(), b.key(r.str("job_id")), job.LiteralsContent)
	if err != nil || !strings.Contains(kept, "/payload/new") || !strings.Contains(kept, b.who.Subject) {
		t.Errorf("the declaration is %s, %v", kept, err)
	}
}

// A schedule goes on with what it copied of a task that was deleted, and so does its run on request.
func TestRunScheduleNow_TakesAPayloadOfADeletedTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/strict", strict)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *"},
		"job":{"task":"strict","payload":{"a":1}}}`)
	b.want(t, 204, "DELETE", "/v1/tasks/strict", "")
	r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", `{"payload":{"b":2}}`)
	if row := b.row(t, r.str("job_id")); row.Payload != `{"b":2}` {
		t.Errorf("the payload is %s", row.Payload)
	}
}

func TestRunScheduleNow_PayloadStaysWhileItWaitsForARun(t *testing.T) {
	t.Parallel()
	for overlap, status := range map[string]job.Status{"skip": job.Skipped, "buffer_one": job.Scheduled} {
		b := setup(t)
		b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *"},"overlap":"`+overlap+`",
			"job":{"task":"echo","payload":1}}`)
		s := b.schedule(t, "s")
		holder := b.made(t, s, noon.Add(-1), func(r *job.Row) { r.Status = job.Running })
		if err := b.Store.Put(context.Background(), s.TakeSlot(holder.ID)); err != nil {
			t.Fatal(err)
		}
		r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", `{"payload":2,"overlap":"obey"}`)
		b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"payload":3}}`)
		row := b.row(t, r.str("job_id"))
		if row.Payload != "2" || row.Status != status || row.QueuedBehind != (status == job.Scheduled) {
			t.Errorf("under %s it is %s, queued %v, with %s", overlap, row.Status, row.QueuedBehind, row.Payload)
		}
	}
}

func TestRunScheduleNow_TakesParams(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"params":{"day":"today","n":1,"m":1},"nodes":{"a":{"task":"echo"}},
		"params_schema":{"properties":{"n":{"type":"integer"}}}}`)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *"},"dag":{"name":"d","params":{"n":2,"m":2}}}`)
	b.want(t, 201, "PUT", "/v1/schedules/plain", `{"calendar":{"cron":"0 10 * * *"},"dag":{"name":"d"}}`)
	before := fmt.Sprint(b.schedule(t, "s").Item())
	for path, params := range map[string]string{"s": "map[day:today m:2 n:3]", "plain": "map[day:today m:1 n:3]"} {
		r := b.want(t, 202, "POST", "/v1/schedules/"+path+"/run-now", `{"params":{"n":3}}`)
		if g := b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id"), ""); g.at("params") != params {
			t.Errorf("the params are %s", g.at("params"))
		}
	}
	secret := `"AKIA` + `IOSFODNN7EXAMPLE"`
	for _, c := range []wrong{
		{"a payload of a run", `{"payload":{"a":1}}`, 400, "conflicting_fields", "/payload"},
		{"a patch of a run", `{"payload_patch":{"a":1}}`, 400, "conflicting_fields", "/payload_patch"},
		{"an unknown param", `{"params":{"x":1}}`, 400, "unknown_field", "/params/x"},
		{"a param twice", `{"params":{"n":1,"n":1}}`, 400, "duplicate_field", "/params/n"},
		{"params against the schema", `{"params":{"n":"x"}}`, 400, "invalid_value", "/params/n"},
		{"no params", `{"params":null}`, 400, "invalid_value", "/params"},
		{"a secret", `{"params":{"day":` + secret + `}}`, 400, "secret_in_payload", "/params/day"},
	} {
		requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/s/run-now", c.body))
	}
	b.want(t, 202, "POST", "/v1/schedules/s/run-now", `{"params":{"day":`+secret+`},"allow_literals":["/params/day"]}`)
	if after := fmt.Sprint(b.schedule(t, "s").Item()); after != before {
		t.Errorf("the schedule is changed to %s", after)
	}
}

// A patch of a payload in an item of its own gives one that the row holds; the schedule keeps its item.
func TestRunScheduleNow_PatchesAPayloadOutsideOfTheRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("l", 100<<10)
	put := func(n int) {
		b.do(t, "PUT", "/v1/schedules/s", fmt.Sprintf(
			`{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":{"n":%d,"x":"%s"}}}`, n, long))
	}
	put(1)
	s := b.schedule(t, "s")
	if s.Template.PayloadIn != job.InItem {
		t.Fatalf("the payload is kept in %q", s.Template.PayloadIn)
	}
	put(2)
	r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", `{"payload_patch":{"x":null}}`)
	if row := b.row(t, r.str("job_id")); row.Payload != `{"n":2}` || row.PayloadIn != job.InRow {
		t.Errorf("the payload is %s", row.Payload)
	}
	if got, err := b.Store.ScheduleContents(context.Background(), b.schedule(t, "s")); err != nil ||
		!strings.Contains(string(got.Payload), long) {
		t.Errorf("the schedule has lost its payload: %v", err)
	}
}
