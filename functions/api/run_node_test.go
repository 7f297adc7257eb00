package api_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/run"
)

// twoTagged is a dag with tags whose nodes have tags, too.
const twoTagged = `{"nodes":{"a":{"task":"echo","tags":{"of":"node","a":"1"}},"b":{"task":"echo","when":"false","tags":{"b":"1"}},
	"c":{"task":"echo"}},"tags":{"of":"dag","dag":"1"}}`

func TestRun_TagsTheJobsOfItsNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", twoTagged)
	r := b.want(t, 202, "POST", "/v1/dags/d/runs", `{"tags":{"of":"run","run":"1"}}`)
	if got := fmt.Sprint(r.body["tags"]); got != "map[dag:1 of:run run:1]" {
		t.Errorf("the run has tags %s", got)
	}
	for name, want := range map[string]string{
		"a": "map[a:1 dag:1 of:node run:1]", "b": "map[b:1 dag:1 of:run run:1]", "c": "map[dag:1 of:run run:1]",
	} {
		one := b.want(t, 200, "GET", "/v1/jobs/"+node(r, name)["job_id"].(string), "")
		if got := fmt.Sprint(one.body["tags"]); got != want {
			t.Errorf("the job of %s has tags %s, want %s", name, got, want)
		}
	}
	plain := b.want(t, 202, "POST", "/v1/runs", chain)
	if b.row(t, node(plain, "a")["job_id"].(string)).Tagged || plain.body["tags"] != nil {
		t.Errorf("without tags there are some: %s", plain.text)
	}
}

func TestRun_ShowsTheTasksRetriesForANodeThatNeverRan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"a":{"task":"echo","when":"false","retry":{"max_attempts":2}},"b":{"task":"echo","when":"false"}}}}`)
	for name, want := range map[string]float64{"a": 2, "b": 6} {
		one := b.want(t, 200, "GET", "/v1/jobs/"+node(r, name)["job_id"].(string), "")
		if one.body["max_attempts"] != want {
			t.Errorf("%s has %v attempts, want %v", name, one.body["max_attempts"], want)
		}
	}
}

func TestRun_RecordsTheStatusesOfARetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := "/v1/runs/" + b.want(t, 202, "POST", "/v1/runs", chain).str("run_id")
	b.want(t, 200, "POST", id+"/cancel", "")
	b.want(t, 200, "POST", id+"/retry", "")
	e := b.want(t, 200, "GET", id+"/events", "").items()[2]
	if e["action"] != "retry" || e["from"] != "CANCELLED" || e["to"] != "RUNNING" {
		t.Errorf("the event of the retry is %v", e)
	}
}

func TestRun_RecordsThatACancelLeadsToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", chain)
	id := "/v1/runs/" + r.str("run_id")
	b.claim(t, node(r, "a")["job_id"].(string))
	b.want(t, 200, "POST", id+"/pause", "")
	b.want(t, 200, "POST", id+"/cancel", "")
	e := b.want(t, 200, "GET", id+"/events", "").items()[2]
	if e["action"] != "cancel" || e["from"] != "PAUSED" || e["to"] != "CANCELLED" {
		t.Errorf("the event of the cancel is %v", e)
	}
	for _, verb := range []string{"pause", "resume"} {
		if p := b.want(t, 409, "POST", id+"/"+verb, ""); p.str("detail") != "the run is being stopped" {
			t.Errorf("%s while a node has yet to stop: %s", verb, p.text)
		}
	}
}

func TestRun_GoesOnByARetryAfterACancelUnderAPause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := "/v1/runs/" + b.want(t, 202, "POST", "/v1/runs", chain).str("run_id")
	b.want(t, 200, "POST", id+"/pause", "")
	b.want(t, 200, "POST", id+"/cancel", "")
	if r := b.want(t, 200, "POST", id+"/retry", ""); r.str("status") != "RUNNING" {
		t.Errorf("the run is %s", r.text)
	}
	if e := b.want(t, 200, "GET", id+"/events", "").items()[3]; e["from"] != "CANCELLED" || e["to"] != "RUNNING" {
		t.Errorf("the event of the retry is %v", e)
	}
}

func TestRun_IsNotForgottenWhileAnEarlierJobOfItHasYetToStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":{"task":"echo"},"b":{"task":"echo"}}}}`)
	id := "/v1/runs/" + r.str("run_id")
	b.want(t, 200, "POST", id+"/nodes/a/complete", "")
	b.claim(t, node(r, "b")["job_id"].(string))
	b.want(t, 200, "POST", id+"/retry", `{"from":"b"}`)
	b.want(t, 200, "POST", id+"/nodes/b/complete", "")
	p := b.want(t, 409, "DELETE", id, "")
	if p.str("code") != "not_finished" ||
		p.str("detail") != "a job of the run has not stopped yet; repeat the request in a moment" {
		t.Errorf("%s", p.text)
	}
	b.want(t, 200, "GET", "/v1/jobs/"+node(r, "a")["job_id"].(string), "")
}

func TestRun_SaysWhyItFailedWhenANodeWasCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", chain)
	b.want(t, 200, "POST", "/v1/jobs/"+node(r, "a")["job_id"].(string)+"/cancel", "")
	got := b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id"), "")
	why, _ := got.body["status_reason"].(map[string]any)
	if got.str("status") != "FAILED" || why["code"] != "node_failed" || why["message"] != "node a was cancelled" {
		t.Errorf("%s", got.text)
	}

	// One node of a run that was cancelled is brought back, and the others stay cancelled.
	r = b.want(t, 202, "POST", "/v1/runs", chain)
	id := "/v1/runs/" + r.str("run_id")
	b.want(t, 200, "POST", id+"/cancel", "")
	got = b.want(t, 200, "POST", id+"/nodes/c/complete", "")
	why, _ = got.body["status_reason"].(map[string]any)
	if got.str("status") != "FAILED" || why["message"] != "nodes a and b were cancelled" {
		t.Errorf("%s", got.text)
	}
}

func TestRun_NamesTheStatusThatForbidsAnAct(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"a":{"task":"echo"},"m":{"task":"echo","for_each":"${[1,2]}"}}}}`)
	b.claim(t, node(r, "a")["job_id"].(string))
	for _, name := range []string{"a", "m"} {
		if p := b.want(t, 409, "POST", "/v1/runs/"+r.str("run_id")+"/nodes/"+name+"/retry",
			""); p.str("detail") != "the node is RUNNING" {
			t.Errorf("%s: %s", name, p.text)
		}
	}
}

func TestRun_SaysWhatTheItemsOfANodeWaitFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const mapped = `"dag":{"nodes":{"m":{"task":"echo","for_each":"${[1,2]}"}}}}`
	later := b.want(t, 202, "POST", "/v1/runs", `{"delay":"1h",`+mapped)
	if m := node(later, "m"); m["waiting_for"] != "due" || m["status"] != "SCHEDULED" {
		t.Errorf("items of a run that is due in an hour: %v", m)
	}
	now := b.want(t, 202, "POST", "/v1/runs", `{`+mapped)
	if m := node(now, "m"); m["waiting_for"] != "worker" || m["why"] != "none of its 2 items has started" {
		t.Errorf("items that are due: %v", m)
	}
	path := "/v1/runs/" + now.str("run_id") + "/nodes/m"
	p := b.want(t, 409, "POST", path+"/skip", "")
	if !strings.HasPrefix(p.str("detail"), "items of the node are released") {
		t.Errorf("a skip: %s", p.text)
	}
	for _, each := range b.want(t, 200, "GET", path, "").body["items"].(map[string]any)["items"].([]any) {
		b.want(t, 200, "POST", "/v1/jobs/"+each.(map[string]any)["job_id"].(string)+"/cancel", "")
	}
	why := b.want(t, 200, "GET", path, "").body["status_reason"].(map[string]any)
	if why["code"] != "cancelled" || why["message"] != "item 0: CANCELLED" {
		t.Errorf("a node whose items were cancelled: %v", why)
	}
}

func TestRun_SaysWhichTaskWasDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/mail", `{"executor":"echo"}`)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"mail"}}}`)
	b.want(t, 204, "DELETE", "/v1/tasks/mail", "")
	r := b.want(t, 202, "POST", "/v1/dags/d/runs", "")
	why := node(r, "a")["status_reason"].(map[string]any)
	if why["code"] != "unknown_task" || why["message"] != `task "mail" was deleted before the node was released` {
		t.Errorf("the node is %v", node(r, "a"))
	}
}

func TestDag_AcceptsDeclaredLiterals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const secrets = `{"task":"echo","payload":{"password":"hunter22"},"tags":{"secret":"hunter22"}`
	r := b.want(t, 400, "POST", "/v1/dags/validate",
		`{"nodes":{"a":`+secrets+`}},"params":{"api_key":"hunter22"},"tags":{"secret":"hunter22"}}`)
	if n := len(r.body["errors"].([]any)); n != 4 {
		t.Errorf("%d secrets are found: %s", n, r.text)
	}
	literals := `,"allow_literals":["/payload/password","/tags/secret"]}},"params":{"api_key":"hunter22"},
		"tags":{"secret":"hunter22"},
		"allow_literals":["/params/api_key","/tags/secret"]}`
	made := b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":`+secrets+literals)
	if fmt.Sprint(made.body["allow_literals"]) != "[/params/api_key /tags/secret]" ||
		fmt.Sprint(node(made, "a")["allow_literals"]) != "[/payload/password /tags/secret]" {
		t.Errorf("it is not recorded: %s", made.text)
	}
	b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":`+secrets+literals+`}`)
	if m := violationOf(b.want(t, 400, "POST", "/v1/dags/d/runs",
		`{"params":{"api_key":"hunter23"}}`)); m["pointer"] != "/params/api_key" {
		t.Errorf("a run's own is taken: %v", m)
	}
	b.want(t, 202, "POST", "/v1/dags/d/runs", `{"params":{"api_key":"hunter23"},"allow_literals":["/params/api_key"]}`)
	m := violationOf(b.want(t, 400, "POST", "/v1/dags/validate",
		`{"nodes":{"a":{"task":"echo","allow_literals":["payload"]}}}`))
	if m["pointer"] != "/nodes/a/allow_literals/0" || m["code"] != "invalid_value" {
		t.Errorf("what is no pointer: %v", m)
	}
}

func TestRun_IsListedWithAllButItsNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", strings.Replace(chain, `{"dag"`, `{"tags":{"x":"y"},"dag"`, 1))
	id := "/v1/runs/" + r.str("run_id")
	r = b.want(t, 200, "POST", id+"/nodes/a/complete", "")
	want := maps.Clone(r.body)
	delete(want, "nodes")
	if one := b.want(t, 200, "GET", "/v1/runs", "").items()[0]; !reflect.DeepEqual(one, want) {
		t.Errorf("the list shows\n%v\nand the run is\n%v", one, want)
	}
	b.want(t, 200, "POST", id+"/cancel", "")
	if one := b.want(t, 200, "GET", "/v1/runs", "").items()[0]; one["counts"].(map[string]any)["cancelled"] != 2.0 {
		t.Errorf("the list shows %v", one)
	}
}

func TestRun_IsHeldAsSoonAsNothingCanContinue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"a":{"task":"echo"},"b":{"task":"echo","depends_on":["a"]}},"on_failure":"hold"}}`)
	b.end(t, node(r, "a")["job_id"].(string),
		job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x"}})
	// Its end is not settled yet.
	r = b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id"), "")
	if states(r) != "HELD a:DEAD b:BLOCKED" || node(r, "b")["waiting_for"] != "operator" {
		t.Errorf("the run is %s", r.text)
	}
	if one := b.want(t, 200, "GET", "/v1/runs", "").items()[0]; one["status"] != "HELD" {
		t.Errorf("the list shows %v", one)
	}
	if all := b.want(t, 200, "GET", "/v1/runs?status=RUNNING", "").items(); len(all) != 0 {
		t.Errorf("it is listed as running: %v", all)
	}
}

func TestRun_CancelsTheItemsOfANodeWhoseJobIsCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"m":{"task":"echo","for_each":"${[1,2,3]}","max_parallel":2},
		"z":{"task":"echo","depends_on":["m"]}}}}`)
	k := run.Key{Tenant: b.who.Tenant, ID: job.ID(r.str("run_id"))}
	for range 2 {
		b.want(t, 200, "POST", "/v1/jobs/"+string(k.Job("m", 1, 0).ID)+"/cancel", "")
	}
	r = b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id"), "")
	if states(r) != "FAILED m:CANCELLED z:CANCELLED" {
		t.Errorf("the run is %s", r.text)
	}
	if items := node(r, "m")["items"].(map[string]any); items["cancelled"] != 3.0 {
		t.Errorf("its items are %v", items)
	}
	b.want(t, 200, "POST", "/v1/runs/"+r.str("run_id")+"/retry", "")
}

func TestRun_IsListedHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 105 {
		b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":{"task":"echo"}}}}`)
	}
	if got := flat(b.pages(t, "/v1/runs?limit=80", "run_id")); len(got) != 105 {
		t.Errorf("%d are listed", len(got))
	}
}

func TestRedriveJob_OfANodeWhoseRunIsPausedSaysWhoTakesItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":{"task":"echo"},"b":{"task":"echo"}}}}`)
	id, dead := "/v1/runs/"+r.str("run_id"), node(r, "a")["job_id"].(string)
	b.end(t, dead, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x", Message: "y"}})
	b.want(t, 200, "POST", id+"/pause", "")
	old := b.want(t, 202, "POST", "/v1/jobs/"+dead+"/redrive", "")
	by := old.str("redriven_by")
	if old.str("job_id") != dead || by == "" || old.header.Get("Location") != "/v1/jobs/"+by {
		t.Errorf("%s at %s", old.text, old.header.Get("Location"))
	}
	b.want(t, 200, "POST", id+"/resume", "")
	now := b.want(t, 200, "GET", "/v1/jobs/"+by, "")
	if now.str("node") != "a" || now.str("run_id") != r.str("run_id") {
		t.Errorf("in its place is %s", now.text)
	}
}

func TestRetryRun_RunsANodeWhoseDeadJobIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"a":{"task":"echo"},"b":{"task":"echo"}}}}`)
	id, dead := "/v1/runs/"+r.str("run_id"), node(r, "a")["job_id"].(string)
	b.settled(t, dead, job.Outcome{Kind: job.OutcomeFailed, Permanent: true,
		Error: &job.Reason{Code: "x", Message: "y"}})
	if p := b.want(t, 409, "DELETE", "/v1/jobs/"+dead, ""); p.str("code") != "not_finished" {
		t.Errorf("while its run goes on: %s", p.text)
	}
	if letters := b.want(t, 200, "POST", "/v1/dead-letters/purge", `{"job_ids":["`+dead+`"]}`); !strings.Contains(
		letters.text, `"not_finished"`) {
		t.Errorf("while its run goes on: %s", letters.text)
	}
	b.want(t, 200, "POST", id+"/nodes/b/complete", "")
	b.want(t, 204, "DELETE", "/v1/jobs/"+dead, "")
	r = b.want(t, 200, "POST", id+"/nodes/a/retry", "")
	if a := node(r, "a"); a["status"] != "QUEUED" || b.row(t, a["job_id"].(string)).HandlerKey() != job.ID(dead) {
		t.Errorf("a is %v", a)
	}
}

func TestRedriveJob_NamesAJobThatIsThereHoweverItsPausedRunGoesOn(t *testing.T) {
	t.Parallel()
	const (
		one   = `{"dag":{"nodes":{"a":{"task":"echo"},"x":{"task":"echo"}}},"expire_after":"1h"}`
		items = `{"dag":{"nodes":{"a":{"task":"echo","for_each":"${[1]}"},"x":{"task":"echo"}}},"expire_after":"1h"}`
		below = `{"dag":{"nodes":{"p":{"task":"echo"},"a":{"task":"echo","depends_on":["p"],"for_each":"${[1]}"},
			"x":{"task":"echo"}}}}`
		redrive            = "redrive"
		skipped, completed = "skipped_by_operator", "completed_by_operator"
	)
	for name, c := range map[string]struct {
		dag        string
		operations []string // on the run, after a redrive under a pause
		status     string
		code       string
	}{
		"a node of a cancelled run":      {one, []string{redrive, "cancel"}, "CANCELLED", "run_cancelled"},
		"a retried and cancelled node":   {one, []string{"retry", "cancel", redrive}, "CANCELLED", "run_cancelled"},
		"a node of an expired run":       {one, []string{redrive, "expire"}, "CANCELLED", "run_expired"},
		"a node that is skipped":         {one, []string{redrive, "nodes/a/skip", "cancel"}, "SKIPPED", skipped},
		"a node skipped before":          {one, []string{"nodes/a/skip", redrive, "cancel"}, "SKIPPED", skipped},
		"a completed node":               {one, []string{redrive, "nodes/a/complete"}, "SUCCEEDED", completed},
		"an item of a cancelled run":     {items, []string{redrive, "cancel"}, "CANCELLED", "run_cancelled"},
		"an item redriven after the end": {items, []string{"retry", "cancel", redrive}, "CANCELLED", "run_cancelled"},
		"an item of an expired run":      {items, []string{redrive, "expire"}, "CANCELLED", "run_expired"},
		"an item of a skipped node":      {items, []string{redrive, "nodes/a/skip"}, "SKIPPED", skipped},
		"an item of a completed node":    {items, []string{redrive, "nodes/a/complete"}, "SKIPPED", completed},
		"an item of an older generation": {below, []string{redrive, `retry {"from":"p"}`}, "CANCELLED", "cancelled"},
		"an item that goes on":           {items, []string{redrive, "resume"}, "SCHEDULED", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.want(t, 202, "POST", "/v1/runs", c.dag)
			id := "/v1/runs/" + r.str("run_id")
			if c.dag == below {
				b.settled(t, node(r, "p")["job_id"].(string), success)
				r = b.want(t, 200, "GET", id, "")
			}
			dead, _ := node(r, "a")["job_id"].(string)
			if c.dag != one {
				all := b.want(t, 200, "GET", id+"/nodes/a", "").body["items"].(map[string]any)["items"].([]any)
				dead = all[0].(map[string]any)["job_id"].(string)
			}
			b.settled(t, dead, job.Outcome{Kind: job.OutcomeFailed, Permanent: true,
				Error: &job.Reason{Code: "x", Message: "y"}})
			b.want(t, 200, "POST", id+"/pause", "")
			for _, operation := range c.operations {
				switch what, body, _ := strings.Cut(operation, " "); what {
				case redrive:
					if got := b.do(t, "POST", "/v1/jobs/"+dead+"/redrive", ""); got.status != 202 && got.status != 409 {
						t.Errorf("the redrive answered %s", got.text)
					}
				case "expire":
					b.clock.at = noon.Add(time.Hour)
					k := run.Key{Tenant: b.who.Tenant, ID: job.ID(r.str("run_id"))}
					if err := b.engine().Runs.Due(t.Context(), k); err != nil {
						t.Error(err)
					}
				default:
					b.want(t, 200, "POST", id+"/"+what, body)
				}
			}
			by := b.row(t, dead).RedrivenBy
			next := b.want(t, 200, "GET", "/v1/jobs/"+string(by), "")
			row := b.row(t, string(by))
			if row.Status != job.Status(c.status) || row.Reason.Code != c.code || next.str("redrive_of") != dead ||
				row.HandlerKey() != job.ID(dead) {
				t.Errorf("in its place is %s, whose handler has the key %s", next.text, row.HandlerKey())
			}
		})
	}
}
