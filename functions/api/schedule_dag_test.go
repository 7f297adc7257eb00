package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// ofEtl runs a dag at ten each day, so at noon its next time is beyond the horizon.
const ofEtl = `{"calendar":{"cron":"0 10 * * *"},"dag":{"name":"etl","version":1,"params":{"url":"https://example.com/x"},"start_within":"10m"}}`

func TestScheduleOfDag_ShowsItsTemplate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	r := b.want(t, 201, "PUT", "/v1/schedules/s", ofEtl)
	const dag = `"dag":{"name":"etl","version":1,"start_within":"10m","params":{"url":"https://example.com/x"}}`
	if !strings.Contains(r.text, dag) || strings.Contains(r.text, `"job"`) {
		t.Errorf("the view is %s", r.text)
	}
	if g := b.want(t, 200, "GET", "/v1/schedules/s", ""); g.text != r.text {
		t.Errorf("GET answers %s", g.text)
	}
	if repeated := b.want(t, 200, "PUT", "/v1/schedules/s", ofEtl); repeated.body["version"] != 1.0 {
		t.Errorf("the same body once more: %s", repeated.text)
	}
	if list := b.want(t, 200, "GET", "/v1/schedules", ""); !strings.Contains(list.text,
		`"dag":{"name":"etl","version":1,"start_within":"10m"}`) {
		t.Errorf("the list is %s", list.text)
	}
	if p := b.want(t, 200, "GET", "/v1/schedules/s/preview?count=1", ""); len(p.items()) != 1 {
		t.Errorf("the preview is %s", p.text)
	}
}

//proof:of 8
func TestScheduleOfDag_RefusesBadTemplates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.want(t, 201, "PUT", "/v1/dags/strict",
		`{"nodes":{"a":{"task":"echo"}},"params":{"n":1},"params_schema":{"properties":{"n":{"type":"integer"}}}}`)
	for dag, want := range map[string]string{
		`null`:                                 "/dag invalid_value",
		`"etl"`:                                "/dag invalid_value",
		`{}`:                                   "/dag/name missing_field",
		`{"name":"e t l"}`:                     "/dag/name invalid_value",
		`{"name":"none"}`:                      "/dag/name unknown_dag",
		`{"name":"etl","version":2}`:           "/dag/version unknown_dag",
		`{"name":"etl","version":0}`:           "/dag/version out_of_range",
		`{"name":"etl","params":[]}`:           "/dag/params invalid_value",
		`{"name":"etl","params":{"uri":"x"}}`:  "/dag/params/uri unknown_field",
		`{"name":"etl","task":"echo"}`:         "/dag/task unknown_field",
		`{"name":"etl","run_at":"x"}`:          "/dag/run_at unknown_field",
		`{"name":"etl","limits":[]}`:           "/dag/limits unknown_field",
		`{"name":"etl","start_within":"1ms"}`:  "/dag/start_within out_of_range",
		`{"name":"strict","params":{"n":"x"}}`: "/dag/params/n invalid_value",
		`{"name":"etl","priority":"urgent"}`:   "/dag/priority invalid_value",
		`{"name":"etl","tags":{"a":1}}`:        "/dag/tags/a invalid_value",
		`{"name":"etl","tags":{"key":"AKIAIOSFODNN7EXAMPLE"}}`:   "/dag/tags/key secret_in_payload",
		`{"name":"etl","params":{"url":"AKIAIOSFODNN7EXAMPLE"}}`: "/dag/params/url secret_in_payload",
	} {
		r := b.want(t, 400, "PUT", "/v1/schedules/s", `{"calendar":{"every":"1d"},"dag":`+dag+`}`)
		if m := violationOf(r); fmt.Sprintf("%s %s", m["pointer"], m["code"]) != want {
			t.Errorf("%s: %s", dag, r.text)
		}
	}
	b.want(t, 404, "GET", "/v1/schedules/s", "")
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"every":"1d"},"dag":{"name":"etl","params":{"url":"AKIAIOSFODNN7EXAMPLE"},"allow_literals":["/params/url"]}}`)
	all := b.want(t, 400, "PUT", "/v1/schedules/s",
		`{"calendar":{"every":"1ms"},"dag":{"name":"none","params":[],"x":1},"overlap":"x"}`)
	if n := len(all.body["errors"].([]any)); n != 5 {
		t.Errorf("%d violations of 5: %s", n, all.text)
	}
}

func TestScheduleOfDag_ChangesByPatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.want(t, 201, "PUT", "/v1/schedules/s", ofEtl)
	for _, c := range []struct{ patch, want, changed string }{
		{`{"dag":{"version":null}}`, `{"name":"etl","start_within":"10m","params":{"url":"https://example.com/x"}}`,
			"[/dag/version]"},
		{`{"dag":{"params":{"url":"y"}}}`, `{"name":"etl","start_within":"10m","params":{"url":"y"}}`, "[/dag/params]"},
		{`{"dag":{"params":null,"start_within":null}}`, `{"name":"etl"}`, "[/dag/params /dag/start_within]"},
		{`{"calendar":{"cron":"0 11 * * *"}}`, `{"name":"etl"}`, "[/calendar/cron]"},
		{
			`{"dag":{"priority":"high","tags":{"team":"a"}}}`, `{"name":"etl","priority":"high","tags":{"team":"a"}}`,
			"[/dag/priority /dag/tags]",
		},
		{`{"dag":{"version":1}}`, `{"name":"etl","version":1,"priority":"high","tags":{"team":"a"}}`, "[/dag/version]"},
		{`{"dag":{"priority":null,"tags":null,"version":null}}`, `{"name":"etl"}`,
			"[/dag/priority /dag/tags /dag/version]"},
	} {
		dry := b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true", c.patch)
		if fmt.Sprint(dry.body["changed"]) != c.changed {
			t.Errorf("a dry run of %s: %s", c.patch, dry.text)
		}
		if r := b.want(t, 200, "PATCH", "/v1/schedules/s", c.patch); !strings.Contains(r.text, `"dag":`+c.want) {
			t.Errorf("%s gives %s", c.patch, r.text)
		}
	}
	for patch, want := range map[string]string{
		`{"dag":null}`:                                 "/dag missing_field",
		`{"dag":{"name":"none"}}`:                      "/dag/name unknown_dag",
		`{"dag":{"name":"etl"},"job":{"task":"echo"}}`: "/dag conflicting_fields",
		`{"dag":{"x":1}}`:                              "/dag/x unknown_field",
	} {
		r := b.want(t, 400, "PATCH", "/v1/schedules/s", patch)
		if m := violationOf(r); fmt.Sprintf("%s %s", m["pointer"], m["code"]) != want {
			t.Errorf("%s: %s", patch, r.text)
		}
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"dag":null,"job":{"task":"echo"}}`); r.at("job",
		"task") != "echo" || r.body["dag"] != nil {
		t.Errorf("a job in place of the dag: %s", r.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"dag":{"name":"etl"}}`); r.at("dag", "name") != "etl" ||
		r.body["job"] != nil {
		t.Errorf("a dag in place of the job: %s", r.text)
	}
}

func TestScheduleOfDag_KeepsItsDagFromBeingDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.want(t, 201, "PUT", "/v1/schedules/one", ofEtl)
	b.want(t, 201, "PUT", "/v1/schedules/two", ofEtl)
	r := b.want(t, 409, "DELETE", "/v1/dags/etl", "")
	if r.str("code") != "wrong_state" || !strings.Contains(r.str("detail"), "one and two") {
		t.Errorf("the answer is %s", r.text)
	}
	b.want(t, 204, "DELETE", "/v1/schedules/one", "")
	b.want(t, 200, "PUT", "/v1/schedules/two", daily)
	b.want(t, 204, "DELETE", "/v1/dags/etl", "")

	// If a schedule is put while its dag is deleted, one of the two is refused.
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.Before(stagetest.Named(store.WriteDagDelete),
		func() { b.want(t, 201, "PUT", "/v1/schedules/three", strings.Replace(ofEtl, `,"version":1`, "", 1)) })
	b.want(t, 409, "DELETE", "/v1/dags/etl", "")
	b.want(t, 204, "DELETE", "/v1/schedules/three", "")
	b.Before(stagetest.Named(schedule.WriteCreate), func() { b.want(t, 204, "DELETE", "/v1/dags/etl", "") })
	gone := b.want(t, 400, "PUT", "/v1/schedules/four", strings.Replace(ofEtl, `,"version":1`, "", 1))
	if m := violationOf(gone); m["pointer"] != "/dag/name" || m["code"] != "unknown_dag" {
		t.Errorf("the answer is %s", gone.text)
	}
}

func TestScheduleOfDag_RunsNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.want(t, 201, "PUT", "/v1/schedules/s", ofEtl)
	r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "")
	id := r.str("run_id")
	if r.header.Get("Location") != "/v1/runs/"+id || r.str("schedule") != "s" || r.str("status") != "RUNNING" ||
		r.body["nominal_at"] != nil {
		t.Errorf("the run is %s", r.text)
	}
	occurrences := b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "")
	if o := occurrences.items(); len(o) != 1 || o[0]["run_id"] != id || o[0]["status"] != "RUNNING" ||
		o[0]["outcome"] != "ran" || o[0]["manual"] != true || o[0]["job_id"] != nil {
		t.Errorf("the occurrences are %s", occurrences.text)
	}
	for _, c := range []struct{ method, path string }{
		{"GET", "/v1/jobs/" + id}, {"PATCH", "/v1/jobs/" + id}, {"DELETE", "/v1/jobs/" + id},
		{"POST", "/v1/jobs/" + id + "/cancel"}, {"POST", "/v1/jobs/" + id + "/redrive"},
		{"POST", "/v1/jobs/" + id + "/run-now"}, {"GET", "/v1/jobs/" + id + "/attempts"},
	} {
		body := ""
		if c.method == "PATCH" {
			body = `{"priority":"high"}`
		}
		b.want(t, 404, c.method, c.path, body)
	}
	for _, j := range b.want(t, 200, "GET", "/v1/jobs", "").items() {
		if j["job_id"] == id {
			t.Errorf("the row of the run is listed: %v", j)
		}
	}
	b.want(t, 200, "POST", "/v1/runs/"+id+"/cancel", "")
	if o := b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "").items(); o[0]["status"] != "CANCELLED" ||
		o[0]["outcome"] != "ran" || o[0]["reason"] != "run_cancelled" {
		t.Errorf("the occurrence is %v", o[0])
	}
	b.want(t, 200, "POST", "/v1/runs/"+id+"/retry", "")
	if o := b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "").items(); o[0]["status"] != "RUNNING" ||
		o[0]["reason"] != nil || o[0]["why"] != nil {
		t.Errorf("the occurrence of a retried run is %v", o[0])
	}
	b.want(t, 200, "POST", "/v1/runs/"+id+"/cancel", "")
	b.want(t, 204, "DELETE", "/v1/runs/"+id, "")
	if o := b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "").items(); o[0]["status"] != "CANCELLED" {
		t.Errorf("the occurrence of a forgotten run is %v", o[0])
	}
}

func TestScheduleOfDag_CountsTheJobsOfItsNodesUnderTheLimitsOfTheNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/github", `{"max_running":1}`)
	b.want(t, 201, "PUT", "/v1/tasks/limited", `{"executor":"echo","limits":[{"name":"github","key":"task"}]}`)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"params":{"acct":0},"nodes":{
		"own":{"task":"limited","limits":[{"name":"github","key":"acct-${params.acct}"}]},
		"tasks":{"task":"limited"},"none":{"task":"limited","limits":[]}}}`)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *"},"dag":{"name":"d","params":{"acct":42}}}`)
	id := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "").str("run_id")
	for node, want := range map[string]string{
		"own": `"limits":[{"name":"github","key":"acct-42"}]`, "none": "",
		"tasks": `"limits":[{"name":"github","key":"task"}]`,
	} {
		n := b.want(t, 200, "GET", "/v1/runs/"+id+"/nodes/"+node, "")
		j := b.want(t, 200, "GET", "/v1/jobs/"+n.str("job_id"), "")
		if has := strings.Contains(j.text, `"limits":[`); has != (want != "") || !strings.Contains(j.text, want) {
			t.Errorf("the job of %s is %s, want %s", node, j.text, want)
		}
	}
	if r := b.want(t, 409, "DELETE", "/v1/limits/github", ""); !strings.Contains(r.text, `dag d`) {
		t.Errorf("the limit is used by %s", r.text)
	}
}

func TestScheduleOfDag_NamesRunsInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.want(t, 201, "PUT", "/v1/dags/etl", etl)
	b.want(t, 201, "PUT", "/v1/schedules/s", ofEtl)
	due := noon.Add(-time.Minute)
	k := schedule.Key{Tenant: b.who.Tenant, Name: "s"}
	row := job.Row{
		Key: job.Key{Tenant: k.Tenant, ID: k.JobID(due)}, Status: job.Blocked, Version: 1, Attempt: 1, DueAt: due,
		NominalAt: due, CreatedAt: due, StartedAt: due, ScheduleRef: job.ScheduleRef{ScheduleID: "s", Epoch: 1},
		DagRef: job.DagRef{Dag: "etl"}, Settings: job.Settings{Pool: contract.RunPool, Priority: job.Normal},
	}
	if err := b.Store.Put(ctx, item.Write{Ref: row.Ref(), Name: "test.put", Put: row.Item()}); err != nil {
		t.Fatal(err)
	}
	paused := b.want(t, 200, "POST", "/v1/schedules/s/pause", "")
	if fmt.Sprint(paused.body["in_flight"]) != "["+string(row.ID)+"]" {
		t.Errorf("the answer is %s", paused.text)
	}
	if _, err := b.Store.Run(ctx, run.Key{Tenant: k.Tenant, ID: row.ID}); err == nil {
		t.Error("there is a run")
	}
	// A forgotten run keeps the status that its row has.
	if o := b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "").items(); len(o) != 1 ||
		o[0]["status"] != "RUNNING" || o[0]["run_id"] != string(row.ID) {
		t.Errorf("the occurrences are %v", o)
	}
	if r := b.want(t, 204, "DELETE", "/v1/schedules/s", ""); r.header.Get("Punctual-In-Flight") != string(row.ID) {
		t.Errorf("in flight: %q", r.header.Get("Punctual-In-Flight"))
	}
}
