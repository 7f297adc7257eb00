package api_test

import (
	"strings"
	"testing"

	"punctual/shared/job"
	"punctual/shared/run"
)

// cleaning is the body of a run whose node clean runs always.
const cleaning = `{"dag":{"nodes":{
	"work":{"task":"echo"},
	"clean":{"task":"echo","depends_on":["work"],"run_if":"always","payload":"${nodes.work.status}"},
	"report":{"task":"echo","depends_on":["clean"]}}}}`

func TestCancelRun_LeavesNodesAloneThatRunAlways(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", cleaning)
	k := run.Key{Tenant: b.who.Tenant, ID: job.ID(r.str("run_id"))}
	path := "/v1/runs/" + string(k.ID)
	if r.str("cancel_requested_at") != "" {
		t.Errorf("a run that is not cancelled is %s", r.text)
	}
	r = b.want(t, 200, "POST", path+"/cancel", `{"reason":"enough"}`)
	if r.str("status") != "RUNNING" || r.str("cancel_requested_at") == "" {
		t.Errorf("the cancelled run is %s, asked to stop at %q", r.str("status"), r.str("cancel_requested_at"))
	}
	for node, want := range map[string]string{"work": "CANCELLED", "clean": "QUEUED", "report": "CANCELLED"} {
		n := b.want(t, 200, "GET", path+"/nodes/"+node, "")
		if n.str("status") != want {
			t.Errorf("%s is %s, want %s", node, n.str("status"), want)
		}
		if node == "clean" && !strings.Contains(n.text, `"payload":"CANCELLED"`) {
			t.Errorf("clean sees %s", n.text)
		}
	}
	if list := b.want(t, 200, "GET", "/v1/runs?status=RUNNING", ""); !strings.Contains(list.text, string(k.ID)) {
		t.Errorf("the runs that go on are %s", list.text)
	}
	b.want(t, 409, "POST", path+"/pause", "")
	b.want(t, 409, "POST", path+"/retry", "")
	b.settled(t, string(k.Job("clean", 1, 0).ID), success)
	r = b.want(t, 200, "GET", path, "")
	if r.str("status") != "CANCELLED" || r.str("cancel_requested_at") == "" ||
		!strings.Contains(r.text, `"message":"enough"`) {
		t.Errorf("the run has ended as %s", r.text)
	}
}

func TestCancelRun_StopsNodesThatRunAlwaysTheSecondTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", cleaning)
	path := "/v1/runs/" + r.str("run_id")
	b.want(t, 200, "POST", path+"/cancel", "")
	r = b.want(t, 200, "POST", path+"/cancel", "")
	if r.str("status") != "CANCELLED" {
		t.Errorf("the run is %s", r.text)
	}
	if n := b.want(t, 200, "GET", path+"/nodes/clean", ""); n.str("status") != "CANCELLED" ||
		!strings.Contains(n.text, `"code":"run_cancelled"`) {
		t.Errorf("clean is %s", n.text)
	}
	if events := b.want(t, 200, "GET", path+"/events", ""); strings.Count(events.text, `"action":"cancel"`) != 2 {
		t.Errorf("the events are %s", events.text)
	}
	b.want(t, 409, "POST", path+"/cancel", "")
}

func TestRunIf_TakesAlwaysForSingleJobsAsAllDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","delay":"1h"}`)
	child := b.want(t, 202, "POST", "/v1/jobs",
		`{"task":"echo","after":["`+parent.str("job_id")+`"],"run_if":"always"}`)
	b.want(t, 200, "POST", "/v1/jobs/"+parent.str("job_id")+"/cancel", "")
	r := b.want(t, 200, "GET", "/v1/jobs/"+child.str("job_id"), "")
	if r.str("status") != "QUEUED" || r.str("run_if") != "always" {
		t.Errorf("after a parent that was cancelled the job is %s", r.text)
	}
}
