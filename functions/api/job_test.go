package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/tenant"
)

//proof:of 5 17 33 40 41
func TestCreateJob_FiresAJobThatIsDueNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","payload":{"hello":"world"}}`)
	if got := r.header.Get("Location"); got != "/v1/jobs/"+r.str("job_id") {
		t.Errorf("Location is %q", got)
	}
	if r.header.Get("ETag") != `"1"` || r.str("status") != "QUEUED" || r.str("waiting_for") != "worker" ||
		r.str("due_at") != "2027-03-01T12:00:00.000Z" {
		t.Errorf("the view is %s with ETag %s", r.text, r.header.Get("ETag"))
	}
	sent := b.Received(stagetest.FiringQueue)
	if len(sent) != 1 || sent[0].Group != "acme" {
		t.Fatalf("firings: %+v", sent)
	}
	f, err := message.Decode[message.Firing](sent[0].Body)
	if err != nil || f.JobID != r.str("job_id") || f.Version != 1 || f.Attempt != 1 || !f.DueAt.Equal(noon) {
		t.Errorf("the firing is %+v, %v", f, err)
	}
	if row := b.row(t, r.str("job_id")); row.Near || row.WakeAt.Before(noon) {
		t.Errorf("the row is near %v, wakes at %v", row.Near, row.WakeAt)
	}
	g := b.want(t, 200, "GET", "/v1/jobs/"+r.str("job_id"), "")
	if g.header.Get("ETag") != `"1"` || fmt.Sprint(g.body["payload"]) != "map[hello:world]" ||
		g.str("timeout") != "30s" {
		t.Errorf("GET answered %s", g.text)
	}
}

//proof:of 2 201
func TestCreateJob_LeavesALaterJobToTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, want := range map[string]struct {
		near  bool
		after time.Duration // of the wake-up after due: a job of the direct lane does not fire by its slice
	}{
		`{"task":"echo","delay":"901s"}`:                       {true, 0},
		`{"task":"echo","delay":"6h"}`:                         {false, 0},
		`{"task":"echo","run_at":"2027-03-01T13:00:05+01:00"}`: {true, contract.AfterDue},
		`{"task":"echo","run_at":"2029-03-01T12:00:00Z"}`:      {false, 0},
	} {
		r := b.want(t, 202, "POST", "/v1/jobs", body)
		if r.str("status") != "SCHEDULED" || r.str("waiting_for") != "due" {
			t.Errorf("%s: the view is %s", body, r.text)
		}
		if row := b.row(t, r.str("job_id")); row.Near != want.near || row.WakeAt.Sub(row.DueAt) != want.after {
			t.Errorf("%s: near is %v, wakes at %v", body, row.Near, row.WakeAt)
		}
	}
	if sent := b.Received(stagetest.FiringQueue); len(sent) != 0 {
		t.Errorf("%d firings were sent by the writer of jobs that are due later", len(sent))
	}
}

//proof:of 92 99
func TestCreateJob_TakesDefaultsFromTheTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge",
		`{"executor":"go","pool":"long","priority":"high","timeout":"20h","retry":{"max_attempts":3,"factor":1}}`)
	r := b.row(t,
		b.post(t, `{"task":"charge","retry":{"jitter":0,"initial_delay":"5s"},"start_within":"10m","expire_after":"1d","tags":{"team":"billing"},"delay":"1h"}`))
	want := job.RetryPolicy{MaxAttempts: 3, InitialDelay: 5 * time.Second, Factor: 1, MaxDelay: 5 * time.Minute,
		Jitter: 0}
	if r.Executor != "go" || r.Pool != "long" || r.Priority != job.High || r.Timeout != 20*time.Hour ||
		r.Retry != want || r.StartWithin != 10*time.Minute || !r.ExpiryAt.Equal(noon.Add(25*time.Hour)) {
		t.Errorf("the row is %+v", r)
	}
	if g := b.want(t, 200, "GET", "/v1/jobs/"+string(r.ID), ""); fmt.Sprint(g.body["tags"]) != "map[team:billing]" ||
		g.str("start_within") != "10m" || g.str("expire_after") != "1d" {
		t.Errorf("GET answered %s", g.text)
	}
	if r := b.want(t, 400, "POST", "/v1/jobs",
		`{"task":"charge","pool":"short"}`); r.str("code") != "conflicting_fields" {
		t.Errorf("a timeout of 20h in pool short: %s", r.text)
	}
}

//proof:of S12
func TestCreateJob_RunsAJobAtOnceThatIsJustPast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, at := range []string{"2027-03-01T11:59:58Z", "2027-03-01T11:59:00Z"} {
		r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","run_at":"`+at+`"}`)
		if r.str("status") != "QUEUED" || !strings.HasPrefix(r.str("due_at"), at[:19]) {
			t.Errorf("%s: the view is %s", at, r.text)
		}
	}
	if sent := b.Received(stagetest.FiringQueue); len(sent) != 2 {
		t.Errorf("%d firings were sent", len(sent))
	}
}

//proof:of 6 70
func TestCreateJob_AcceptsEachLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, body := range map[string]string{
		"a payload of 1 MiB":             `{"task":"echo","payload":` + text(1<<20) + `}`,
		"a payload of 256 KB":            `{"task":"echo","payload":` + text(256<<10) + `}`,
		"a payload 100 levels deep":      `{"task":"echo","payload":` + nested(100) + `}`,
		"a payload with an escaped NUL":  `{"task":"echo","payload":"\u0000"}`,
		"a payload with fields in cases": `{"task":"echo","payload":{"a":1,"A":2}}`,
		"null as its payload":            `{"task":"echo","payload":null}`,
		"10 tags":                        `{"task":"echo","tags":` + tags(10) + `}`,
		"tags of the longest length": `{"task":"echo","tags":{"` + strings.Repeat("ä", 64) + `":"` +
			strings.Repeat("ß", 256) + `"}}`,
		"a run_at 2 years ahead":         `{"task":"echo","run_at":"2029-03-01T12:00:00Z"}`,
		"a run_at 60 s ago":              `{"task":"echo","run_at":"2027-03-01T11:59:00Z"}`,
		"a delay of 2 years":             `{"task":"echo","delay":"731d"}`,
		"no delay":                       `{"task":"echo","delay":"0s"}`,
		"a timeout of 12 h":              `{"task":"echo","timeout":"12h"}`,
		"a timeout of 24 h in pool long": `{"task":"echo","timeout":"24h","pool":"long"}`,
		"the largest retry":              `{"task":"echo","retry":{"max_attempts":50,"initial_delay":"1h","factor":10,"max_delay":"24h","jitter":1,"on_worker_lost":"fail"}}`,
		"the smallest retry":             `{"task":"echo","retry":{"max_attempts":1,"initial_delay":"0s","factor":1.0,"max_delay":"1ms","jitter":0}}`,
		"the default of a lost worker":   `{"task":"echo","retry":{"on_worker_lost":"rerun"}}`,
		"the limits of its windows":      `{"task":"echo","start_within":"1s","expire_after":"30d"}`,
	} {
		t.Run("accepts a job with "+name, func(t *testing.T) {
			t.Parallel()
			r := b.do(t, "POST", "/v1/jobs", body)
			if r.status != 202 {
				t.Fatalf("answered %d %.300s", r.status, r.text)
			}
			row := b.row(t, r.str("job_id"))
			if size := row.Item().Size(); size > contract.MaxRow {
				t.Errorf("the row has %d bytes", size)
			}
			if row.PayloadSize > 0 {
				payload, err := b.Store.Payload(context.Background(), row)
				if err != nil || int64(len(payload)) != row.PayloadSize {
					t.Errorf("the payload has %d bytes (%v), the row says %d", len(payload), err, row.PayloadSize)
				}
			}
		})
	}
}

func TestCreateJob_KeepsPayloadsWithoutWhiteSpace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.row(t, b.post(t, `{ "task" : "echo" , "payload" : { "a" : [ 1 , "x y" ] } }`))
	if row.Payload != `{"a":[1,"x y"]}` {
		t.Errorf("kept %q", row.Payload)
	}
}

//proof:of 84 171
func TestCreateJob_AcceptsWhenTheFiringCannotBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Fail(stagetest.Every(memory.QueueSend))
	if id := b.post(t, `{"task":"echo"}`); b.row(t, id).WakeAt.IsZero() {
		t.Error("the job has no wake-up")
	}
	if !strings.Contains(b.log.String(), "the sweeper will send them") {
		t.Errorf("nothing was logged: %s", b.log)
	}
}

//proof:of 40
func TestCreateJob_AnswersAfterPayloadAndRowAreWritten(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"the row": `{"task":"echo"}`,
		"the payload": `{"task":"echo","payload":` + text(5000) + `}`, "the tags": `{"task":"echo","tags":{"a":"b"}}`} {
		for _, kind := range []fault.Kind{fault.Throttled, fault.Unavailable} {
			b := setup(t)
			b.Fault(stagetest.Every(memory.TableWrite), memory.Fault{Fail: kind})
			r := b.want(t, 503, "POST", "/v1/jobs", body)
			if r.str("code") != "unavailable" || r.header.Get("Retry-After") == "" {
				t.Errorf("%s, %s: %s with %v", name, kind, r.text, r.header)
			}
			if n := len(b.Received(stagetest.FiringQueue)); n != 0 {
				t.Errorf("%s: a firing was sent for a job that was not accepted", name)
			}
		}
	}
	b := setup(t)
	var order []string
	changes := func(c memory.Call) bool { return c.Op == memory.TableWrite || c.Op == memory.QueueSend }
	b.Each(changes, func(c memory.Call) {
		order = append(order, strings.Split(c.Name, "#")[0])
	})
	b.post(t, `{"task":"echo","payload":`+text(5000)+`,"tags":{"a":"b"}}`)
	if got := fmt.Sprint(order); got != "[content.payload content.tags task.note row.accept firing-short-normal]" {
		t.Errorf("written in the order %s", got)
	}
}

//proof:of 30 80 S12 S43
func TestIdempotencyKey_WithTheSameBodyGivesTheFirstJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.want(t, 202, "POST", "/v1/jobs",
		`{"task":"echo","run_at":"2027-03-01T12:00:01Z","payload":{"a":1,"b":[2]}}`, "Idempotency-Key", "k 1")
	id := first.str("job_id")
	repeated := func(when string) {
		t.Helper()
		r := b.want(t, 202, "POST", "/v1/jobs",
			`{"payload":{"b":[2.0],"a":1}, "task":"\u0065cho","run_at":"2027-03-01T12:00:01Z"}`, "Idempotency-Key",
			"k 1")
		now := b.want(t, 200, "GET", "/v1/jobs/"+id, "")
		if r.text != now.text || r.header.Get("Idempotency-Replayed") != "true" ||
			r.header.Get("Location") != "/v1/jobs/"+id {
			t.Errorf("%s: %s with %v, now it is %s", when, r.text, r.header, now.text)
		}
	}
	b.claim(t, id)
	repeated("at once")
	b.clock.at = noon.Add(23 * time.Hour) // its run_at is long past; that must not matter
	repeated("a day later")
	b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded})
	repeated("once it is over")
	if r := b.want(t, 422, "POST", "/v1/jobs", `{"task":"echo","payload":{"a":1,"b":[3]}}`, "Idempotency-Key",
		"k 1"); r.str("code") != "idempotency_key_reused" {
		t.Errorf("another body: %s", r.text)
	}
	if n := len(b.Received(stagetest.FiringQueue)); n != 1 {
		t.Errorf("%d firings were sent for one job", n)
	}
	other := b.who
	b.who = all("globex")
	if r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "k 1"); r.str("job_id") == id {
		t.Error("a key reached into another tenant")
	}
	b.who = other
	b.clock.at = noon.Add(24*time.Hour + time.Second)
	if r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "k 1"); r.str("job_id") == id ||
		r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("a key past its time still stood: %s", r.text)
	}
}

// A client without an answer repeats its request. That is how a job is found that was accepted and not fired.
func TestIdempotencyKey_SendsAMissingFiringWhenRepeated(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(b *bench, key string){
		"a job": func(b *bench, key string) {
			b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", key)
		},
		"a batch": func(b *bench, key string) {
			b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo","idempotency_key":"`+key+`"}]}`)
		},
	} {
		b := setup(t)
		queue := stagetest.FiringQueue
		b.Fail(stagetest.Every(memory.QueueSend))
		ask(b, "k")
		b.World.SetFaults(nil)
		ask(b, "k")
		b.clock.at = noon.Add(contract.Grace + time.Second)
		ask(b, "k")
		fired := b.Received(queue)
		if len(fired) != 2 {
			t.Fatalf("%s: %d firings, want one for each repetition, at once or late", name, len(fired))
		}
		f, err := message.Decode[message.Firing](fired[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		b.claim(t, f.JobID)
		ask(b, "k")
		if n := len(b.Received(queue)); n != 0 {
			t.Errorf("%s: a claimed job is fired %d times", name, n)
		}
	}
	b := setup(t)
	for range 2 { // another process has fired it
		b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","delay":"1h"}`, "Idempotency-Key", "later")
		b.clock.at = noon.Add(time.Hour + time.Minute)
	}
	if n := len(b.Received(stagetest.FiringQueue)); n != 0 {
		t.Errorf("a job of later is fired %d times", n)
	}
}

func TestIdempotencyKey_IsSharedBySingleJobsAndBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","payload":1}`, "Idempotency-Key", "k").str("job_id")
	r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[
		{"task":"echo","payload":1,"idempotency_key":"k"}, {"task":"echo","payload":2,"idempotency_key":"k"},
		{"task":"echo","payload":3,"idempotency_key":"l"}, {"task":"echo","payload":3,"idempotency_key":"l"},
		{"task":"echo","payload":4,"idempotency_key":"l"}]}`)
	items := r.items()
	view := func(i int) map[string]any { v, _ := items[i]["job"].(map[string]any); return v }
	if view(0)["job_id"] != id || items[0]["replayed"] != true ||
		items[1]["problem"].(map[string]any)["code"] != "idempotency_key_reused" {
		t.Errorf("the key of a single job in a batch: %s", r.text)
	}
	if view(2) == nil || view(3)["job_id"] != view(2)["job_id"] || items[2]["replayed"] != nil ||
		items[4]["problem"].(map[string]any)["code"] != "idempotency_key_reused" {
		t.Errorf("a key that a batch repeats: %s", r.text)
	}
	if n := b.Meter.Total("jobs_accepted_total"); n != 2 {
		t.Errorf("%v jobs were counted, want 2", n)
	}
}

//proof:of 30 S43
func TestIdempotencyKey_MakesOneJobOfConcurrentRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/v1/jobs", strings.NewReader(`{"task":"echo"}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "k")
			ids[i] = b.ask(t, r).str("job_id")
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("ids: %v", ids)
		}
	}
	if list := b.want(t, 200, "GET", "/v1/jobs", ""); len(list.items()) != 1 {
		t.Errorf("there are %d jobs", len(list.items()))
	}
}

//proof:of S43
func TestIdempotencyKey_FindsTheJobAfterALostAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.FaultFirst(1, stagetest.Every(memory.TableCommit), memory.Fault{Lost: true})
	b.want(t, 503, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key", "k")
	if r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo"}`, "Idempotency-Key",
		"k"); r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repeat made another job: %s", r.text)
	}
}

//proof:of 17
func TestBatch_IsWrittenAndFiredByQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var jobs []string
	for i := range 100 {
		jobs = append(jobs, fmt.Sprintf(`{"task":"echo","payload":%d,"priority":"%s"}`, i,
			[]string{"critical", "low"}[i%2]))
	}
	r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[`+strings.Join(jobs, ",")+`]}`)
	if r.body["accepted"] != 100.0 || r.body["refused"] != 0.0 {
		t.Fatalf("the batch: %.300s", r.text)
	}
	for i, item := range r.items() {
		row := b.row(t, item["job"].(map[string]any)["job_id"].(string))
		if row.Payload != fmt.Sprint(i) {
			t.Fatalf("item %d is the job with payload %s", i, row.Payload)
		}
	}
	if c, l := len(b.Received(contract.FiringQueue("short", "critical"))),
		len(b.Received(contract.FiringQueue("short", "low"))); c != 50 || l != 50 {
		t.Errorf("%d critical and %d low firings", c, l)
	}
}

//proof:of 18 193
func TestGetJob_WaitsForTheEndOrTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *memory.Options, d *api.Deps) { o.Clock, d.Clock = clock.System{}, clock.System{} })
		b.clock.at = time.Now()
		id := b.post(t, `{"task":"echo"}`)
		start := time.Now()
		if r := b.want(t, 200, "GET", "/v1/jobs/"+id+"?wait=2s", ""); r.str("status") != "QUEUED" ||
			time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %s", time.Since(start), r.text)
		}
		start = time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			b.clock.set(time.Now())
			b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded, Result: []byte(`{"ok":true}`)})
		}()
		r := b.want(t, 200, "GET", "/v1/jobs/"+id+"?wait=25s", "")
		if waited := time.Since(start); r.str("status") != "SUCCEEDED" || waited < 3*time.Second ||
			waited > 3500*time.Millisecond || fmt.Sprint(r.body["result"]) != "map[ok:true]" {
			t.Errorf("after %v: %s", waited, r.text)
		}
		start = time.Now()
		b.want(t, 200, "GET", "/v1/jobs/"+id+"?wait=25s", "")
		if time.Since(start) != 0 {
			t.Errorf("waited %v for a job that was over", time.Since(start))
		}
	})
}

func TestGetJob_StopsWaitingWhenTheClientHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *memory.Options, d *api.Deps) { o.Clock, d.Clock = clock.System{}, clock.System{} })
		id := b.post(t, `{"task":"echo","delay":"1h"}`)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		r := httptest.NewRequest(http.MethodGet, "/v1/jobs/"+id+"?wait=25s", nil).WithContext(ctx)
		b.ask(t, r)
		if time.Since(start) != time.Second {
			t.Errorf("it went on for %v", time.Since(start))
		}
	})
}

//proof:of 186 S39
func TestJobs_OfAnotherTenantAreNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(t, `{"task":"echo"}`)
	cursor := func() string {
		b.post(t, `{"task":"echo"}`)
		c, _ := b.want(t, 200, "GET", "/v1/jobs?limit=1", "").body["next_cursor"].(string)
		return c
	}()
	before := b.row(t, id)
	b.who = all("globex")
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/jobs/%s", ""}, {"GET", "/v1/jobs/%s/attempts", ""}, {"PATCH", "/v1/jobs/%s", `{"delay":"1s"}`},
		{"DELETE", "/v1/jobs/%s", ""}, {"POST", "/v1/jobs/%s/cancel", ""}, {"POST", "/v1/jobs/%s/run-now", ""},
		{"POST", "/v1/jobs/%s/redrive", ""},
	} {
		theirs := b.want(t, 404, c.method, fmt.Sprintf(c.path, id), c.body, "X-Request-Id", "r")
		none := b.want(t, 404, c.method, fmt.Sprintf(c.path, "01ARZ3NDEKTSV4RRFFQ69G5FAV"), c.body, "X-Request-Id", "r")
		if theirs.text != none.text {
			t.Errorf("%s %s tells a job of others from none:\n%s%s", c.method, c.path, theirs.text, none.text)
		}
	}
	for _, action := range []string{"redrive", "purge"} {
		r := b.want(t, 200, "POST", "/v1/dead-letters/"+action, `{"job_ids":["`+id+`"]}`)
		if p, _ := r.items()[0]["problem"].(map[string]any); p["code"] != "not_found" {
			t.Errorf("%s: %s", action, r.text)
		}
		if r := b.want(t, 200, "POST", "/v1/dead-letters/"+action, `{"filter":{}}`); r.body["matched"] != 0.0 {
			t.Errorf("%s by filter: %s", action, r.text)
		}
	}
	if r := b.want(t, 200, "GET", "/v1/jobs", ""); len(r.items()) != 0 {
		t.Errorf("the list shows %s", r.text)
	}
	if r := b.want(t, 400, "GET", "/v1/jobs?limit=1&cursor="+cursor, ""); r.str("code") != "invalid_cursor" {
		t.Errorf("a cursor of others: %s", r.text)
	}
	b.who = all("acme")
	if after := b.row(t, id); fmt.Sprint(after.Item()) != fmt.Sprint(before.Item()) {
		t.Errorf("the job was changed from outside: %+v", after)
	}
}

func TestAPI_AnswersAPanicWithAProblemAndNoTrace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.World.SetFaults(func(memory.Call) memory.Fault { panic("boom " + sentinel) })
	for _, c := range []struct{ method, path, body string }{{"GET", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV", ""},
		{"POST", "/v1/jobs", `{"task":"echo"}`}} {
		r := b.want(t, 500, c.method, c.path, c.body)
		if r.str("code") != "internal" || strings.Contains(r.text, "boom") || strings.Contains(r.text, ".go") {
			t.Errorf("answered %s", r.text)
		}
	}
	r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[{"task":"echo"}]}`)
	if p, _ := r.items()[0]["problem"].(map[string]any); p["code"] != "internal" {
		t.Errorf("in a batch: %s", r.text)
	}
	if !strings.Contains(b.log.String(), "a handler panicked") {
		t.Error("it was not logged")
	}
}

//proof:of 186 S39
func TestAPI_TakesTheTenantFromTheIdentityAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := httptest.NewRequest(http.MethodGet, "/v1/whoami", nil)
	r.Header.Set("X-Tenant", "globex")
	r = r.WithContext(api.WithIdentity(r.Context(), tenant.Identity{Tenant: "acme", Subject: "s"}))
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"tenant":"acme"`) {
		t.Errorf("whoami: %s", w.Body)
	}
}

//proof:of F16
func TestAPI_KeepsThePolicyForALostWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shown := func(path string) any {
		r, _ := b.want(t, 200, "GET", path, "").body["retry"].(map[string]any)
		return r["on_worker_lost"]
	}
	b.want(t, 201, "PUT", "/v1/tasks/charge", `{"executor":"go","retry":{"on_worker_lost":"fail"}}`)
	if got := shown("/v1/tasks/charge"); got != "fail" {
		t.Errorf("the task says %v", got)
	}
	for body, want := range map[string]string{
		`{"task":"charge","delay":"1h"}`:                                    "fail",
		`{"task":"charge","delay":"1h","retry":{"max_attempts":2}}`:         "fail",
		`{"task":"charge","delay":"1h","retry":{"on_worker_lost":"rerun"}}`: "rerun",
		`{"task":"echo","delay":"1h"}`:                                      "rerun",
		`{"task":"echo","delay":"1h","retry":{"on_worker_lost":"fail"}}`:    "fail",
	} {
		id := b.post(t, body)
		if got := shown("/v1/jobs/" + id); got != want || b.row(t, id).Retry.FailOnLost != (want == "fail") {
			t.Errorf("%s reads %v", body, got)
		}
	}
	r := b.want(t, 400, "POST", "/v1/jobs", `{"task":"echo","retry":{"on_worker_lost":"retry"}}`)
	if !strings.Contains(r.text, `"/retry/on_worker_lost"`) || !strings.Contains(r.text, "rerun") {
		t.Errorf("a third word is answered with %s", r.text)
	}
}

//proof:of F30
func TestAPI_ListsTheTasksWhenOneIsUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge", `{"executor":"go"}`)
	r := b.want(t, 400, "POST", "/v1/jobs", `{"task":"nothing-like-it"}`)
	if !strings.Contains(r.text, `"allowed":"charge, echo, http, lambda"`) {
		t.Errorf("answered %s", r.text)
	}
}

//proof:of F28
func TestAPI_RunsATaskByTheEchoExecutor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/rehearsal", `{"executor":"echo","pool":"long","priority":"low"}`)
	row := b.row(t, b.post(t, `{"task":"rehearsal","payload":{"sleep":"1s"}}`))
	if row.Executor != job.ExecutorEcho || row.Task != "rehearsal" || row.Pool != "long" {
		t.Errorf("the row is %+v", row)
	}
	b.want(t, 400, "POST", "/v1/jobs", `{"task":"rehearsal","payload":{"sleep":"soon"}}`)
}

//proof:of F30
func TestAPI_ShowsThatAJobWaitsForAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/charge", `{"executor":"go"}`)
	id := b.post(t, `{"task":"charge"}`)
	row := b.row(t, id)
	if got := b.want(t, 200, "GET", "/v1/jobs/"+id, "").str("waiting_for"); got != "worker" {
		t.Errorf("before a worker has met it, it waits for %q", got)
	}
	now := b.clock.at
	if err := b.Store.Put(context.Background(), job.NoteWaits(row.Key,
		job.Waits{Attempt: 1, For: job.WaitsForHandler, Until: now.Add(time.Minute)}, row.DueAt, now)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/jobs/" + id, "/v1/jobs"} {
		r := b.want(t, 200, "GET", path, "")
		if !strings.Contains(r.text, `"waiting_for":"handler"`) ||
			!strings.Contains(r.text, "has a handler for task charge") {
			t.Errorf("%s answers %s", path, r.text)
		}
	}
}
