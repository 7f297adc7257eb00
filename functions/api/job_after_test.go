package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/process"
)

// settled ends a job as its report does, and lets the jobs after it learn of that.
func (b *bench) settled(t *testing.T, id string, o job.Outcome) {
	t.Helper()
	row := b.end(t, id, o)
	if err := b.engine().Ended(context.Background(), row); err != nil {
		t.Fatal(err)
	}
}

// engine is what the other stages do to the bench's rows.
func (b *bench) engine() *engine.Engine {
	return engine.New(engine.Deps{
		Store: b.Store, Queue: b.World.Queues(), Base: process.Base{Clock: b.clock, Meter: b.Meter, Shards: 4},
	})
}

// comingAfter is a job after others, with more fields.
func comingAfter(more string, ids ...string) string {
	return `{"task":"echo","after":["` + strings.Join(ids, `","`) + `"]` + more + `}`
}

var success = job.Outcome{Kind: job.OutcomeSucceeded}

// fired counts the firings in the queue of the bench's priority.
func (b *bench) fired(t *testing.T) int {
	t.Helper()
	return len(b.Received(stagetest.FiringQueue))
}

//proof:of 32
func TestCreateJob_WaitsForTheJobsThatItComesAfter(t *testing.T) {
	t.Parallel()
	t.Run("makes a blocked job due a delay after its last parent has ended", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		first, last := b.post(t, `{"task":"echo","delay":"1h"}`), b.post(t, `{"task":"echo","delay":"1h"}`)
		r := b.want(t, 202, "POST", "/v1/jobs", comingAfter(`,"delay":"10m","expire_after":"1h"`, first, last))
		if r.str("status") != "BLOCKED" || r.str("waiting_for") != "parents" || r.str("run_if") != "all_succeeded" ||
			fmt.Sprint(r.body["after"]) != "["+first+" "+last+"]" || r.str("due_at") != "2027-03-01T12:10:00.000Z" {
			t.Errorf("answered %s", r.text)
		}
		id := r.str("job_id")
		if row := b.row(t, id); !row.WakeAt.Equal(noon.Add(contract.Grace)) || row.Near {
			t.Errorf("its own wake-up is at %s, near %v", row.WakeAt, row.Near)
		}
		b.clock.at = noon.Add(30 * time.Minute)
		b.settled(t, first, success)
		if r := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); r.str("status") != "BLOCKED" {
			t.Errorf("after the first it is %s", r.text)
		}
		b.settled(t, last, success)
		r = b.want(t, 200, "GET", "/v1/jobs/"+id, "")
		if r.str("status") != "SCHEDULED" || r.str("due_at") != "2027-03-01T12:40:00.000Z" ||
			r.str("waiting_for") != "due" {
			t.Errorf("after both it is %s", r.text)
		}
		if row := b.row(t, id); !row.ExpiryAt.Equal(noon.Add(100*time.Minute)) || row.Version != 1 {
			t.Errorf("it expires at %s in version %d", row.ExpiryAt, row.Version)
		}
		if b.row(t, last).PendingEffects != job.NoPendingEffects || b.fired(t) != 0 {
			t.Error("the parent still has pending effects, or a firing was sent")
		}
	})
	t.Run("fires a released job at once if its run_at has passed", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		parent := b.post(t, `{"task":"echo","delay":"1h"}`)
		soon := b.post(t, comingAfter(`,"run_at":"2027-03-01T12:20:00Z"`, parent))
		late := b.post(t, comingAfter(`,"run_at":"2027-03-01T18:00:00Z"`, parent))
		b.clock.at = noon.Add(time.Hour)
		b.settled(t, parent, success)
		if row := b.row(t, soon); !row.DueAt.Equal(b.clock.at) || row.Status != job.Scheduled || b.fired(t) != 1 {
			t.Errorf("it is %s, due at %s", row.Status, row.DueAt)
		}
		if row := b.row(t, late); !row.DueAt.Equal(noon.Add(6*time.Hour)) || row.Status != job.Scheduled {
			t.Errorf("the later one is %s, due at %s", row.Status, row.DueAt)
		}
	})
	t.Run("keeps the contents of a blocked job", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		parent := b.post(t, `{"task":"echo","delay":"1h"}`)
		id := b.post(t, comingAfter(`,"payload":{"n":"`+strings.Repeat("x", 3000)+`"},`+
			`"tags":{"a":"b"},"metadata":{"m":1},"priority":"high"`, parent))
		b.settled(t, parent, success)
		r := b.want(t, 200, "GET", "/v1/jobs/"+id, "")
		if r.str("priority") != "high" || fmt.Sprint(r.body["tags"], r.body["metadata"]) != "map[a:b] map[m:1]" ||
			len(r.text) < 3000 {
			t.Errorf("it is %s", r.text)
		}
	})
}

//proof:of 32
func TestCreateJob_DecidesByParentsThatAreOver(t *testing.T) {
	t.Parallel()
	failure := job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "no"}}
	for name, c := range map[string]struct {
		outcome      job.Outcome
		runIf        string
		status, code string
	}{
		"a parent's success lets the job run":                {success, "", "QUEUED", ""},
		"a parent's failure cancels the job":                 {failure, "", "CANCELLED", "parent_failed"},
		"a parent's failure lets all_done run":               {failure, "all_done", "QUEUED", ""},
		"a parent's failure lets one_failed run":             {failure, "one_failed", "QUEUED", ""},
		"a parent's success skips all_failed":                {success, "all_failed", "SKIPPED", "rule_not_met"},
		"a parent's failure leaves one_succeeded cancelled":  {failure, "one_succeeded", "CANCELLED", "parent_failed"},
		"a parent's success lets none_failed run":            {success, "none_failed", "QUEUED", ""},
		"a parent's success is enough for both rules in one": {success, "none_failed_one_succeeded", "QUEUED", ""},
	} {
		for _, forgotten := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", also when forgotten"}[forgotten], func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				parent := b.post(t, `{"task":"echo","delay":"1h"}`)
				b.settled(t, parent, c.outcome)
				if forgotten {
					b.want(t, 204, "DELETE", "/v1/jobs/"+parent, "")
				}
				more := ""
				if c.runIf != "" {
					more = `,"run_if":"` + c.runIf + `"`
				}
				r := b.want(t, 202, "POST", "/v1/jobs", comingAfter(more, parent, parent))
				why, _ := r.body["status_reason"].(map[string]any)
				if got := fmt.Sprint(why["code"]); r.str("status") != c.status || c.code != "" && got != c.code {
					t.Errorf("it is %s because of %s", r.str("status"), got)
				}
				if n := b.fired(t); (n == 1) != (c.status == "QUEUED") {
					t.Errorf("%d firings", n)
				}
			})
		}
	}
}

//proof:of 32
func TestCreateJob_RefusesBadParents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.who = all("globex")
	theirs := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.who = all("acme")
	for _, c := range []struct{ name, body, code, pointer string }{
		{"another tenant's", comingAfter("", own, theirs), "unknown_job", "/after/1"},
		{"one that never was", comingAfter("", "01KB4YJ2V0S6Y3Q4M5N6P7R8T9"), "unknown_job", "/after/0"},
		{"what is no id", comingAfter("", "first"), "unknown_job", "/after/0"},
		{"an item of a batch", comingAfter("", "#0"), "unknown_job", "/after/0"},
		{"eleven", comingAfter("", strings.Split(strings.Repeat(own+" ", 10)+own, " ")...), "out_of_range", "/after"},
		{"no list", `{"task":"echo","after":"` + own + `"}`, "invalid_value", "/after"},
		{"a number", `{"task":"echo","after":[7]}`, "invalid_value", "/after/0"},
		{"an unknown rule", comingAfter(`,"run_if":"any"`, own), "invalid_value", "/run_if"},
		{"a rule of nothing", `{"task":"echo","run_if":"all_done"}`, "missing_field", "/after"},
		{"both times", comingAfter(`,"run_at":"2027-03-01T13:00:00Z","delay":"1s"`, own), "conflicting_fields",
			"/delay"},
	} {
		t.Run("refuses a parent: "+c.name, func(t *testing.T) {
			requireRefused(t, b, wrong{status: 400, code: c.code, pointer: c.pointer},
				b.do(t, "POST", "/v1/jobs", c.body))
		})
	}
	t.Run("refuses parents in the job of a schedule", func(t *testing.T) {
		requireRefused(t, b, wrong{status: 400, code: "unknown_field", pointer: "/job/after"},
			b.do(t, "PUT", "/v1/schedules/s", `{"calendar":{"every":"1d"},"job":`+comingAfter("", own)+`}`))
	})
}

func TestCreateJob_AcceptsAnEmptyListOfParents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","after":[],"run_if":"all_done"}`)
	if r.str("status") != "QUEUED" || r.body["after"] != nil || b.fired(t) != 1 {
		t.Errorf("answered %s", r.text)
	}
}

//proof:of 32
func TestBatch_LinksJobsToEarlierOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[
		{"task":"echo","delay":"1h"},
		{"task":"echo","after":["#0"]},
		{"task":"echo","after":["#0","#1"],"run_if":"all_done"},
		{"task":"nope"},
		{"task":"echo","after":["#3"]},
		{"task":"echo","after":["#6"]},
		{"task":"echo","after":["#5"]},
		{"task":"echo","after":["#7"]},
		{"task":"echo","after":["#00"]},
		{"task":"echo","after":["#99"]}]}`)
	items := r.body["items"].([]any)
	view := func(n int) map[string]any { v, _ := items[n].(map[string]any)["job"].(map[string]any); return v }
	for n, want := range []string{"SCHEDULED []", "BLOCKED [#0]", "BLOCKED [#0 #1]"} {
		got := strings.ReplaceAll(fmt.Sprint(view(n)["status"], " ", view(n)["after"]), "<nil>", "[]")
		for i := range n {
			got = strings.ReplaceAll(got, fmt.Sprint(view(i)["job_id"]), fmt.Sprintf("#%d", i))
		}
		if got != want {
			t.Errorf("job %d is %s, want %s", n, got, want)
		}
	}
	for n := 4; n < 10; n++ {
		p, _ := items[n].(map[string]any)["problem"].(map[string]any)
		if p["code"] != "unknown_job" ||
			!strings.Contains(fmt.Sprint(p["errors"]), fmt.Sprintf("/jobs/%d/after/0", n)) {
			t.Errorf("job %d: %v", n, items[n])
		}
	}
	b.settled(t, fmt.Sprint(view(0)["job_id"]), success)
	if got := b.row(t, fmt.Sprint(view(1)["job_id"])).Status; got != "SCHEDULED" {
		t.Errorf("job 1 is %s", got)
	}
}

func TestBatch_OfAJobAfterOthersMayBeRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"jobs":[{"task":"echo","delay":"1h","idempotency_key":"a"},
		{"task":"echo","after":["#0"],"idempotency_key":"b"},
		{"task":"echo","after":["#1"],"idempotency_key":"b"}]}`
	first := b.want(t, 200, "POST", "/v1/jobs/batch", body)
	repeated := b.want(t, 200, "POST", "/v1/jobs/batch", body)
	ids := func(r reply) (ids []string) {
		for _, i := range r.body["items"].([]any) {
			of, _ := i.(map[string]any)["job"].(map[string]any)
			ids = append(ids, fmt.Sprint(of["job_id"]))
		}
		return ids
	}
	if a, b := fmt.Sprint(ids(first)), fmt.Sprint(ids(repeated)); a != b || repeated.body["accepted"] != 2.0 {
		t.Errorf("first %s, then %s: %s", a, b, repeated.text)
	}
}

func TestIdempotencyKey_DecidesAboutABlockedJobWhenRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	// The parent ends before it is followed, and the decision after that fails.
	b.Before(stagetest.Named(job.WriteFollow), func() {
		b.World.SetFaults(nil)
		b.settled(t, parent, success)
		b.Fail(stagetest.Named(job.WriteRelease))
	})
	body := comingAfter("", parent)
	r := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k")
	b.World.SetFaults(nil)
	id := r.str("job_id")
	if r.str("status") != "BLOCKED" || b.row(t, id).Status != job.Blocked {
		t.Fatalf("answered %s", r.text)
	}
	repeated := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "k")
	if repeated.str("job_id") != id || repeated.str("status") != "BLOCKED" ||
		repeated.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("repeated: %s", repeated.text)
	}
	if row := b.row(t, id); row.Status != job.Scheduled || b.fired(t) != 1 {
		t.Errorf("it is %s", row.Status)
	}
}

//proof:of 39
func TestCancelJob_EndsABlockedJobAndWhatComesAfterIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, comingAfter("", parent))
	below := b.post(t, comingAfter("", id))
	anyway := b.post(t, comingAfter(`,"run_if":"all_done"`, id))
	last := b.post(t, comingAfter("", below))
	for range 2 {
		r := b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
		if r.str("status") != "CANCELLED" || r.str("cancel_requested_at") == "" {
			t.Errorf("answered %s", r.text)
		}
	}
	for id, want := range map[string]string{
		below: "CANCELLED parent_failed", anyway: "SCHEDULED ", last: "CANCELLED parent_failed",
	} {
		row := b.row(t, id)
		if fmt.Sprint(row.Status, " ", row.Reason.Code) != want || row.Status.Final() && !row.WakeAt.IsZero() {
			t.Errorf("it is %s %s with a wake-up at %s, want %s", row.Status, row.Reason.Code, row.WakeAt, want)
		}
	}
	b.settled(t, parent, success)
	if row := b.row(t, id); row.Status != job.Cancelled {
		t.Errorf("its parent brought it back: %s", row.Status)
	}
}

func TestRedriveJob_LeavesTheChildrenOfTheDeadJobCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, comingAfter("", parent))
	b.settled(t, parent, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "no"}})
	if row := b.row(t, id); row.Status != job.Cancelled || row.Reason.Message != "job "+parent+" failed" {
		t.Fatalf("it is %s: %s", row.Status, row.Reason.Message)
	}
	repeated := b.want(t, 202, "POST", "/v1/jobs/"+parent+"/redrive", "").str("job_id")
	b.settled(t, repeated, success)
	if row := b.row(t, id); row.Status != job.Cancelled {
		t.Errorf("it is %s", row.Status)
	}
}

func TestBlockedJob_IsListedAndNotDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, comingAfter("", parent))
	r := b.want(t, 200, "GET", "/v1/jobs?status=BLOCKED", "")
	if items := r.body["items"].([]any); len(items) != 1 || !strings.Contains(r.text, id) ||
		!strings.Contains(r.text, `"waiting_for":"parents"`) {
		t.Errorf("listed %s", r.text)
	}
	if r := b.want(t, 409, "DELETE", "/v1/jobs/"+id, ""); r.str("code") != "not_finished" {
		t.Errorf("deleted: %s", r.text)
	}
}

func TestDeleteJob_RefusesAJobWithPendingEffects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, comingAfter("", parent))
	b.end(t, parent, success) // its child does not know yet
	if r := b.want(t, 409, "DELETE", "/v1/jobs/"+parent, ""); r.str("code") != "wrong_state" {
		t.Errorf("deleted: %s", r.text)
	}
	if row := b.row(t, id); row.Status != job.Blocked {
		t.Errorf("it is %s", row.Status)
	}
}

//proof:of 39
func TestPatchJob_ChangesABlockedJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, comingAfter(`,"payload":1,"delay":"10m"`, parent))
	r := b.want(t, 200, "PATCH", "/v1/jobs/"+id,
		`{"delay":"20m","priority":"critical","payload":{"n":`+text(3000)+`},"metadata":{"m":1}}`, "If-Match", `"1"`)
	if r.str("status") != "BLOCKED" || r.header.Get("ETag") != `"2"` || r.str("priority") != "critical" ||
		r.str("due_at") != "2027-03-01T12:20:00.000Z" || fmt.Sprint(r.body["metadata"]) != "map[m:1]" {
		t.Errorf("answered %.300s", r.text)
	}
	r = b.want(t, 412, "PATCH", "/v1/jobs/"+id, `{"delay":"5m"}`, "If-Match", `"1"`)
	if r.str("code") != "stale_version" {
		t.Errorf("an older version: %s", r.text)
	}
	if r := b.want(t, 409, "POST", "/v1/jobs/"+id+"/run-now", ""); r.str("code") != "wrong_state" {
		t.Errorf("run now: %s", r.text)
	}
	b.clock.at = noon.Add(time.Hour)
	b.settled(t, parent, success)
	row := b.row(t, id)
	payload, err := b.Store.Payload(context.Background(), row)
	if err != nil || len(payload) != 3006 || row.Status != job.Scheduled || row.Version != 2 ||
		!row.DueAt.Equal(noon.Add(80*time.Minute)) {
		t.Errorf("released it is %s in version %d, due at %s, with %d bytes, %v", row.Status, row.Version, row.DueAt,
			len(payload), err)
	}
	late := b.post(t, comingAfter("", b.post(t, `{"task":"echo","delay":"1h"}`)))
	r = b.want(t, 200, "PATCH", "/v1/jobs/"+late, `{"run_at":"2027-03-02T00:00:00Z"}`)
	if r.str("due_at") != "2027-03-02T00:00:00.000Z" {
		t.Errorf("moved by run_at: %s", r.text)
	}
}

func TestPatchJob_KeepsAReleaseDuringTheEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, comingAfter("", parent))
	done := false
	b.Before(stagetest.Named(job.WriteEditBlocked), func() {
		done = true
		b.settled(t, parent, success)
	})
	r := b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"priority":"critical"}`)
	row := b.row(t, id)
	if !done || row.Status != job.Scheduled || row.Priority != job.Critical || r.str("status") != "QUEUED" {
		t.Errorf("it is %s with priority %s: %s", row.Status, row.Priority, r.text)
	}
}
