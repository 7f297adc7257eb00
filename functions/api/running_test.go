package api_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/shared/job"
)

func TestGetJob_ShowsWhoRunsItAndSinceWhen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	if r := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); r.body["worker"] != nil || r.body["lease_until"] != nil ||
		r.body["started_at"] != nil {
		t.Errorf("before a worker has it: %s", r.text)
	}
	b.clock.at = b.clock.at.Add(time.Second)
	b.claim(t, id)
	want := func(worker, lease, started any) {
		t.Helper()
		r := b.want(t, 200, "GET", "/v1/jobs/"+id, "").body
		if r["worker"] != worker || r["lease_until"] != lease || r["started_at"] != started {
			t.Errorf("it shows %v, %v, %v", r["worker"], r["lease_until"], r["started_at"])
		}
	}
	want("w1", "2027-03-01T12:00:31.000Z", "2027-03-01T12:00:01.000Z")
	if r := b.want(t, 200, "GET", "/v1/jobs?task=echo", "").items()[0]; r["status"] != "RUNNING" ||
		r["worker"] != "w1" ||
		r["started_at"] == nil {
		t.Errorf("a list shows %v", r)
	}
	b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded})
	want(nil, nil, "2027-03-01T12:00:01.000Z")
}

func TestGetJob_ShowsTheStartOfItsOwnAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	b.claim(t, id)
	b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Error: &job.Reason{Code: "x"}})
	row := b.row(t, id)
	b.clock.at = row.DueAt.Add(-400 * time.Millisecond) // a worker claims the retry a little before it is due
	b.claim(t, id)
	b.clock.at = row.DueAt
	r := b.want(t, 200, "GET", "/v1/jobs/"+id, "")
	if want := row.DueAt.Format("2006-01-02T15:04:05.000Z"); r.str("started_at") != want ||
		r.str("status") != "RUNNING" {
		t.Errorf("it shows %s, %s; want %s", r.str("status"), r.str("started_at"), want)
	}
}

func TestRun_ShowsTheStartOfWhatRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"},"m":{"task":"echo","for_each":"${[1,2]}"}}}`)
	r := b.want(t, 202, "POST", "/v1/dags/d/runs", "")
	path := "/v1/runs/" + r.str("run_id")
	if r.body["started_at"] != nil || node(r, "a")["started_at"] != nil {
		t.Errorf("before anything started: %s", r.text)
	}
	items := b.want(t, 200, "GET", path+"/nodes/m", "").body["items"].(map[string]any)["items"].([]any)
	b.clock.at = b.clock.at.Add(time.Second)
	b.claim(t, items[1].(map[string]any)["job_id"].(string))
	b.clock.at = b.clock.at.Add(time.Second)
	b.claim(t, node(r, "a")["job_id"].(string))
	r = b.want(t, 200, "GET", path, "")
	got := fmt.Sprint(r.body["started_at"], " ", node(r, "m")["started_at"], " ", node(r, "a")["started_at"])
	if want := "2027-03-01T12:00:01.000Z 2027-03-01T12:00:01.000Z 2027-03-01T12:00:02.000Z"; got != want {
		t.Errorf("it shows %s, want %s", got, want)
	}
	if list := b.want(t, 200, "GET", "/v1/runs?dag=d",
		"").items(); list[0]["started_at"] != "2027-03-01T12:00:01.000Z" {
		t.Errorf("a list shows %v", list[0])
	}
}

func TestOccurrences_SayRunningWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	r := b.made(t, b.schedule(t, "s"), noon.Add(-2*time.Hour), nil)
	show := func(filter string) string {
		t.Helper()
		var all []string
		for _, o := range b.want(t, 200, "GET", "/v1/schedules/s/occurrences"+filter, "").items() {
			if o["job_id"] == string(r.ID) {
				all = append(all, fmt.Sprint(o["outcome"], " ", o["status"]))
			}
		}
		return fmt.Sprint(all)
	}
	if got := show(""); got != "[pending SCHEDULED]" {
		t.Errorf("due: %s", got)
	}
	b.claim(t, string(r.ID))
	for _, filter := range []string{"", "?outcome=pending"} {
		if got := show(filter); got != "[pending RUNNING]" {
			t.Errorf("while it runs, %q: %s", filter, got)
		}
	}
	// What runs goes on, whatever becomes of its schedule.
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if got := show(""); got != "[pending RUNNING]" {
		t.Errorf("while it runs and its schedule is deleted: %s", got)
	}
	if got := show("?outcome=superseded"); got != "[]" {
		t.Errorf("among those that were superseded: %s", got)
	}
}

func TestOccurrences_OfADeletedScheduleReadSkippedAlsoOnceItIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"5 * * * *"},"job":{"task":"echo"}}`)
	b.made(t, b.schedule(t, "s"), noon.Add(5*time.Minute), nil)
	old := string(b.schedule(t, "s").JobID(noon.Add(5 * time.Minute)))
	require := func(when string) {
		t.Helper()
		var got []any
		for _, o := range b.want(t, 200, "GET", "/v1/schedules/s/occurrences?before=2027-03-01T13:00:00Z", "").items() {
			if o["job_id"] == old {
				got = append(got, o["outcome"], o["status"])
			}
		}
		if fmt.Sprint(got) != "[superseded SKIPPED]" {
			t.Errorf("%s: the occurrence is %v", when, got)
		}
		if r := b.want(t, 200, "GET", "/v1/jobs/"+old, ""); r.str("status") != "SKIPPED" {
			t.Errorf("%s: the job is %s", when, r.text)
		}
	}
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	require("deleted")
	b.clock.at = b.clock.at.Add(time.Minute)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"10 * * * *"},"job":{"task":"echo"}}`)
	require("made again")
	b.clock.at = b.clock.at.Add(10 * time.Minute)
	require("made again, and the time has passed")
}
