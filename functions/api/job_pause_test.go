package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
)

const onHold = `{"reason":"the target is down"}`

// waits are jobs that wait, by what for: each makes one and returns its id.
func waits(t *testing.T) map[string]func(*bench) string {
	return map[string]func(*bench) string{
		"its due time": func(b *bench) string { return b.post(t, `{"task":"echo","delay":"1h"}`) },
		"a worker":     func(b *bench) string { return b.post(t, `{"task":"echo"}`) },
		"a retry": func(b *bench) string {
			id := b.post(t, `{"task":"echo"}`)
			b.end(t, id, job.Outcome{Kind: job.OutcomeFailed})
			return id
		},
		"its parents": func(b *bench) string {
			parent := b.post(t, `{"task":"echo","delay":"1h"}`)
			return b.want(t, 202, "POST", "/v1/jobs", comingAfter("", parent)).str("job_id")
		},
	}
}

func TestPauseJob_HoldsAJobThatWaits(t *testing.T) {
	t.Parallel()
	for what, of := range waits(t) {
		t.Run("that waits for "+what, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := of(b)
			before := b.row(t, id)
			b.fired(t)
			r := b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", onHold)
			const paused = "map[by:someone reason:the target is down since:2027-03-01T12:00:00.000Z]"
			want := strings.Replace(paused, "someone", b.who.Subject, 1)
			if fmt.Sprint(r.body["paused"]) != want || r.str("waiting_for") != "pause" ||
				r.str("status") != string(before.Status) || r.body["version"] != float64(before.Version+1) {
				t.Errorf("answered %s", r.text)
			}
			if got := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); got.text != r.text {
				t.Errorf("reads %s", got.text)
			}
			b.clock.at = noon.Add(time.Minute)
			second := b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", `{"reason":"another"}`)
			if second.text != r.text {
				t.Errorf("paused twice: %s", second.text)
			}
			if n := b.fired(t); n != 0 {
				t.Errorf("%d firings", n)
			}
			r = b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", "")
			if r.body["paused"] != nil || r.str("waiting_for") == "pause" ||
				r.body["version"] != float64(before.Version+2) {
				t.Errorf("resumed: %s", r.text)
			}
			after := b.row(t, id)
			if after.Status != before.Status || after.DueAt != before.DueAt || after.Attempt != before.Attempt {
				t.Errorf("the row is %+v", after)
			}
			due := before.Status == job.Scheduled && !before.DueAt.After(b.clock.at)
			if n := b.fired(t); (n == 1) != due || n > 1 {
				t.Errorf("resumed, it is fired %d times", n)
			}
		})
	}
	t.Run("without a reason", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		r := b.want(t, 200, "POST", "/v1/jobs/"+b.post(t, `{"task":"echo"}`)+"/pause", "")
		if r.body["paused"] == nil || strings.Contains(r.text, `"reason"`) {
			t.Errorf("answered %s", r.text)
		}
	})
}

func TestPauseJob_RefusesAJobThatRunsOrHasEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	claimed, running := b.post(t, `{"task":"echo"}`), b.post(t, `{"task":"echo"}`)
	b.claim(t, claimed)
	row := b.row(t, running)
	if err := b.Store.Put(context.Background(), job.MarkRunning(row.Key, 1, 1, noon, 0)); err != nil {
		t.Fatal(err)
	}
	over := b.post(t, `{"task":"echo"}`)
	b.end(t, over, success)
	cancelled := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.want(t, 200, "POST", "/v1/jobs/"+cancelled+"/cancel", "")
	for what, id := range map[string]string{
		"claimed": claimed, "running": running, "over": over, "cancelled": cancelled,
		"dead": b.dead(t, `{"task":"echo"}`),
	} {
		for _, verb := range []string{"pause", "resume"} {
			r := b.want(t, 409, "POST", "/v1/jobs/"+id+"/"+verb, "")
			if r.str("code") != "wrong_state" || fmt.Sprint(r.body["allowed"]) != "[BLOCKED SCHEDULED QUEUED]" {
				t.Errorf("%s of one that is %s: %s", verb, what, r.text)
			}
		}
	}
	raced := b.post(t, `{"task":"echo"}`)
	b.Before(stagetest.Every(memory.TableCommit), func() { b.claim(t, raced) })
	if r := b.want(t, 409, "POST", "/v1/jobs/"+raced+"/pause", ""); r.str("code") != "wrong_state" {
		t.Errorf("claimed in between: %s", r.text)
	}
	if b.row(t, raced).IsPaused() {
		t.Error("a job that a worker claimed in between is paused")
	}
}

func TestResumeJob_ChangesNothingOfAJobThatIsNotPaused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	before := b.row(t, id)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", `{}`)
	if after := b.row(t, id); fmt.Sprint(after) != fmt.Sprint(before) || b.fired(t) != 0 {
		t.Errorf("it was %+v and is %+v", before, after)
	}
}

// The process that resumed a job may end before it has sent the firing.
func TestResumeJob_SendsAMissingFiringWhenRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", "")
	b.fired(t)
	b.Fail(stagetest.Every(memory.QueueSend))
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", "")
	b.World.SetFaults(nil)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", "")
	sent := b.Received(stagetest.FiringQueue)
	if len(sent) != 1 {
		t.Fatalf("%d firings", len(sent))
	}
	if f, _ := message.Decode[message.Firing](sent[0].Body); f.Version != 3 {
		t.Errorf("the firing is of version %d", f.Version)
	}
	b.clock.at = noon.Add(contract.Grace)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", "")
	if n := b.fired(t); n != 0 {
		t.Errorf("long after, it is fired %d times", n)
	}
}

// A worker that received a firing of before the pause holds the claim until it has read the row.
func TestResumeJob_DoesNotWaitForAWorkerWithAnOldFiring(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", "")
	row := b.row(t, id)
	fenced, err := b.Store.Claim(context.Background(), row.Key)
	if err != nil {
		t.Fatal(err)
	}
	owner := job.Owner{Worker: "w1", Nonce: "n", LeaseUntil: noon.Add(contract.Lease), DueAt: row.DueAt}
	if err := b.Store.Put(context.Background(), job.TakeOver(row.Key, fenced, owner, noon)); err != nil {
		t.Fatal(err)
	}
	if r := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); r.str("status") != "SCHEDULED" || r.body["worker"] != nil {
		t.Errorf("it is shown as %s", r.text)
	}
	if r := b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", ""); r.body["paused"] != nil {
		t.Errorf("answered %s", r.text)
	}
}

func TestPausedJob_IsEditedAndCancelledAndNotRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", onHold)
	if r := b.want(t, 409, "POST", "/v1/jobs/"+id+"/run-now", ""); r.str("code") != "wrong_state" ||
		!strings.Contains(r.text, "resume") {
		t.Errorf("run-now: %s", r.text)
	}
	r := b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"delay":"0s","priority":"high"}`)
	if r.body["paused"] == nil || r.str("waiting_for") != "pause" || r.str("status") != "SCHEDULED" ||
		r.str("priority") != "high" || len(b.Received(contract.FiringQueue("short", "high"))) != 0 {
		t.Errorf("edited: %s", r.text)
	}
	r = b.want(t, 200, "GET", "/v1/jobs", "")
	if items := r.items(); len(items) != 1 || items[0]["paused"] == nil || items[0]["waiting_for"] != "pause" {
		t.Errorf("listed: %s", r.text)
	}
	r = b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
	if r.str("status") != "CANCELLED" || r.body["paused"] != nil || r.body["waiting_for"] != nil {
		t.Errorf("cancelled: %s", r.text)
	}
	if row := b.row(t, id); !row.WakeAt.IsZero() {
		t.Errorf("a wake-up is left: %s", row.WakeAt)
	}
}

func TestPausedJob_IsReleasedWithoutAStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo"}`)
	id := b.want(t, 202, "POST", "/v1/jobs", comingAfter(`,"start_within":"1h"`, parent)).str("job_id")
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", onHold)
	b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"priority":"normal"}`)
	b.fired(t)
	b.settled(t, parent, success)
	r := b.want(t, 200, "GET", "/v1/jobs/"+id, "")
	if r.str("status") != "SCHEDULED" || r.str("waiting_for") != "pause" || r.body["paused"] == nil || b.fired(t) != 0 {
		t.Errorf("released: %s", r.text)
	}
	if row := b.row(t, id); !row.WakeAt.Equal(row.DueAt.Add(time.Hour + contract.AfterDue)) {
		t.Errorf("its wake-up is at %s", row.WakeAt)
	}
	if r := b.want(t, 200, "POST", "/v1/jobs/"+id+"/resume", ""); r.str("status") != "QUEUED" || b.fired(t) != 1 {
		t.Errorf("resumed: %s", r.text)
	}
	failed := b.post(t, `{"task":"echo"}`)
	id = b.want(t, 202, "POST", "/v1/jobs", comingAfter("", failed)).str("job_id")
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", "")
	b.settled(t, failed, job.Outcome{Kind: job.OutcomeFailed, Permanent: true})
	if r := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); r.str("status") != "CANCELLED" || r.body["paused"] != nil {
		t.Errorf("ended by its rule: %s", r.text)
	}
}

func TestPauseJob_OfAScheduleAndOfANode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"3 12 * * *"},"job":{"task":"echo"}}`)
	r := b.want(t, 200, "GET", "/v1/jobs?schedule=s", "")
	id := r.items()[0]["job_id"].(string)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", onHold)
	b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"task":"echo","priority":"high"}}`)
	r = b.want(t, 200, "GET", "/v1/jobs/"+id, "")
	if r.body["paused"] == nil || r.str("priority") != "high" || r.str("waiting_for") != "pause" {
		t.Errorf("adopted by an edit: %s", r.text)
	}
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if r = b.want(t, 409, "POST", "/v1/jobs/"+id+"/resume", ""); r.str("code") != "wrong_state" {
		t.Errorf("of a deleted schedule: %s", r.text)
	}
	b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"},"b":{"task":"echo","depends_on":["a"]}}}`)
	run := b.want(t, 202, "POST", "/v1/dags/d/runs", "").str("run_id")
	r = b.want(t, 200, "GET", "/v1/runs/"+run+"/nodes/a", "")
	id = r.str("job_id")
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", onHold)
	r = b.want(t, 200, "GET", "/v1/runs/"+run+"/nodes/a", "")
	if r.str("waiting_for") != "pause" || !strings.Contains(r.text, "its job is paused") {
		t.Errorf("its node: %s", r.text)
	}
	b.want(t, 404, "POST", "/v1/jobs/"+run+"/pause", onHold)
	b.want(t, 200, "POST", "/v1/runs/"+run+"/cancel", "")
	if r = b.want(t, 200, "GET", "/v1/jobs/"+id, ""); r.str("status") != "CANCELLED" {
		t.Errorf("of a run that was cancelled: %s", r.text)
	}
}

func TestPauseJob_KeepsSecretsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	secret := `"AKIA` + `IOSFODNN7EXAMPLE"`
	r := b.want(t, 400, "POST", "/v1/jobs/"+id+"/pause", `{"reason":`+secret+`}`)
	if !strings.Contains(r.text, `"secret_in_payload"`) || b.row(t, id).IsPaused() {
		t.Errorf("answered %s", r.text)
	}
}
