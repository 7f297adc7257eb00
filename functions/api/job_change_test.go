package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/telemetry"
)

//proof:of 19 69
func TestPatchJob_MakesANewVersionAndFiresIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h","payload":1,"expire_after":"2h"}`)
	r := b.want(t, 200, "PATCH", "/v1/jobs/"+id,
		`{"run_at":"2027-03-01T12:00:01Z","priority":"critical","payload":{"n":`+text(3000)+`}}`, "If-Match", `"1"`)
	if r.header.Get("ETag") != `"2"` || r.body["version"] != 2.0 || r.str("due_at") != "2027-03-01T12:00:01.000Z" ||
		r.str("priority") != "critical" {
		t.Errorf("answered %s with ETag %s", r.text[:300], r.header.Get("ETag"))
	}
	row := b.row(t, id)
	payload, err := b.Store.Payload(context.Background(), row)
	if err != nil || len(payload) != 3006 || row.PayloadSize != 3006 ||
		!row.ExpiryAt.Equal(noon.Add(2*time.Hour+time.Second)) {
		t.Errorf("payload of %d bytes (%v), expiry %v", len(payload), err, row.ExpiryAt)
	}
	sent := b.Received(contract.FiringQueue("short", "critical"))
	if len(sent) != 1 {
		t.Fatalf("%d firings", len(sent))
	}
	if f, _ := message.Decode[message.Firing](sent[0].Body); f.Version != 2 {
		t.Errorf("the firing is of version %d", f.Version)
	}
	if c, err := b.Store.Claim(context.Background(), b.key(id)); err != nil || c.Attempt != 1 || c.Token != 1 {
		t.Errorf("the attempt was not fenced: %+v, %v", c, err)
	}
	b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"delay":"5m"}`, "If-Match", "*")
	if row := b.row(t, id); !row.DueAt.Equal(noon.Add(5*time.Minute)) || row.Version != 3 || !row.Near {
		t.Errorf("the row is %+v", row)
	}
	if r := b.want(t, 412, "PATCH", "/v1/jobs/"+id, `{"delay":"5m"}`, "If-Match",
		`"2"`); r.str("code") != "stale_version" {
		t.Errorf("answered %s", r.text)
	}
}

//proof:of S48
func TestPatchJob_NeverRacesAnAttempt(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"PATCH ", "POST /run-now"} {
		method, action, _ := strings.Cut(path, " ")
		body := map[string]string{"PATCH": `{"priority":"low"}`}[method]
		t.Run("refuses "+method+action+" while an attempt runs", func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.post(t, `{"task":"echo"}`)
			b.claim(t, id)
			if r := b.want(t, 409, method, "/v1/jobs/"+id+action, body); r.str("code") != "already_started" {
				t.Errorf("while it is claimed: %s", r.text)
			}
			b.clock.at = noon.Add(contract.Lease + time.Second)
			b.want(t, 200, method, "/v1/jobs/"+id+action, body) // its lease has ended
			b.end(t, id, job.Outcome{Kind: job.OutcomeFailed})
			b.want(t, 200, method, "/v1/jobs/"+id+action, body) // between attempts
			if row := b.row(t, id); row.Attempt != 2 || row.Version != 3 {
				t.Errorf("the row is at attempt %d, version %d", row.Attempt, row.Version)
			}
			b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded})
			if r := b.want(t, 409, method, "/v1/jobs/"+id+action, body); r.str("code") != "already_finished" {
				t.Errorf("once it is over: %s", r.text)
			}
		})
	}
	t.Run("refuses an edit when a worker claims in between", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.post(t, `{"task":"echo"}`)
		b.Before(stagetest.Every(memory.TableCommit), func() { b.claim(t, id) })
		if r := b.want(t, 409, "PATCH", "/v1/jobs/"+id, `{"delay":"1h"}`); r.str("code") != "already_started" {
			t.Errorf("answered %s", r.text)
		}
		if row := b.row(t, id); row.Version != 1 {
			t.Errorf("the row was changed: version %d", row.Version)
		}
	})
}

//proof:of 5 24 36
func TestRunJobNow_DoesNotWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"20d"}`)
	r := b.want(t, 200, "POST", "/v1/jobs/"+id+"/run-now", "")
	if r.str("status") != "QUEUED" || r.str("due_at") != "2027-03-01T12:00:00.000Z" ||
		len(b.Received(stagetest.FiringQueue)) != 1 {
		t.Errorf("answered %s", r.text)
	}
}

//proof:of 21 42
func TestCancelJob_EndsAtOnceAJobThatNobodyRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	r := b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
	if r.str("status") != "CANCELLED" || r.str("cancel_requested_at") == "" ||
		fmt.Sprint(r.body["status_reason"]) != "map[code:cancelled]" {
		t.Errorf("answered %s", r.text)
	}
	if row := b.row(t, id); !row.WakeAt.IsZero() || row.Near {
		t.Errorf("a wake-up is left: %+v", row)
	}
	if c, _ := b.Store.Claim(context.Background(), b.key(id)); c.Attempt != 1 || c.Token != 1 ||
		!c.LeaseUntil.Equal(time.UnixMilli(0)) {
		t.Errorf("no fence stands: %+v", c)
	}
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", `{}`)
	if r := b.want(t, 409, "POST", "/v1/jobs/"+id+"/run-now", ""); r.str("code") != "already_finished" {
		t.Errorf("run-now of a cancelled job: %s", r.text)
	}
	done := b.post(t, `{"task":"echo"}`)
	b.end(t, done, job.Outcome{Kind: job.OutcomeSucceeded})
	if r := b.want(t, 409, "POST", "/v1/jobs/"+done+"/cancel", ""); r.str("code") != "already_finished" {
		t.Errorf("cancel of what is over: %s", r.text)
	}
}

func TestCancelJob_AsksARunningJobToStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	b.claim(t, id)
	r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/cancel", "")
	if r.str("status") != "RUNNING" || r.str("cancel_requested_at") != "2027-03-01T12:00:00.000Z" {
		t.Errorf("answered %s", r.text)
	}
	if c, _ := b.Store.Claim(context.Background(), b.key(id)); !c.Cancel {
		t.Error("the claim has no cancel")
	}
	b.want(t, 202, "POST", "/v1/jobs/"+id+"/cancel", "") // repeating it is harmless
	if r := b.want(t, 409, "PATCH", "/v1/jobs/"+id, `{"delay":"1h"}`); r.str("code") != "wrong_state" {
		t.Errorf("an edit of a job that is to stop: %s", r.text)
	}
	b.clock.at = noon.Add(time.Minute) // its worker died, so nothing is left to wait for
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
	if row := b.row(t, id); row.Status != job.Cancelled {
		t.Errorf("the row is %s", row.Status)
	}
}

//proof:of F13
func TestAPI_AnnouncesTheEndOfAJobThatItCancels(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), context.Background()
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo"},"overlap":"buffer_all"}`)
	s, err := b.Store.Schedule(ctx, schedule.Key{Tenant: "acme", Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(n int) job.Row {
		at := noon.Add(time.Duration(n-2) * time.Minute)
		r, _ := s.Job(calendar.Occurrence{NominalAt: at, DueAt: at}, 4, noon)
		if err := b.Store.Put(ctx, job.Accept(r)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	holder, next := run(0), run(1)
	_, queued := job.ParkQueuedBehind(next, noon)
	for _, w := range []item.Write{s.TakeSlot(holder.ID), queued} {
		if err := b.Store.Put(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	b.want(t, 200, "POST", "/v1/jobs/"+string(holder.ID)+"/cancel", "")
	if n := b.Meter.Total(telemetry.JobsSettled); n != 1 {
		t.Errorf("it counts as settled %v times", n)
	}
	if got := b.Received(stagetest.FiringQueue); len(got) != 1 ||
		!strings.Contains(got[0].Body, string(next.ID)) {
		t.Errorf("the next in line was not fired: %v", got)
	}
	b.want(t, 200, "POST", "/v1/jobs/"+string(holder.ID)+"/cancel", "")
	if n := b.Meter.Total(telemetry.JobsSettled); n != 1 {
		t.Errorf("after a second request it counts as settled %v times", n)
	}
}

func TestCancelJob_TreatsAnUnsettledOutcomeAsRunning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo"}`)
	c := b.claim(t, id)
	if err := b.Store.Put(context.Background(),
		job.RecordOutcome(b.key(id), 1, c.Token, job.Outcome{Kind: job.OutcomeSucceeded})); err != nil {
		t.Fatal(err)
	}
	b.clock.at = noon.Add(time.Hour)
	b.want(t, 202, "POST", "/v1/jobs/"+id+"/cancel", "")
	b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded})
	if row := b.row(t, id); row.Status != job.Succeeded {
		t.Errorf("what was done became %s", row.Status)
	}
}

//proof:of S47
func TestCancelJob_DecidesOnceMoreWhenSomebodyWasFaster(t *testing.T) {
	t.Parallel()
	for _, at := range []string{job.WriteStop, job.WriteClaimFence, job.WriteFinishStop, job.WriteClaimCancel} {
		t.Run("cancels although somebody writes just before "+at, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.post(t, `{"task":"echo","retry":{"max_attempts":9}}`)
			if at == job.WriteClaimCancel {
				b.claim(t, id)
			}
			changed := false
			b.Before(stagetest.Named(at), func() {
				changed = true
				switch at {
				case job.WriteClaimFence:
					b.claim(t, id)
				case job.WriteClaimCancel:
					if err := b.Store.Put(context.Background(),
						job.RecordOutcome(b.key(id), 1, 1, job.Outcome{Kind: job.OutcomeFailed})); err != nil {
						t.Error(err)
					}
				default:
					b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded})
				}
			})
			want := map[string]int{
				job.WriteStop: 409, job.WriteClaimFence: 202, job.WriteFinishStop: 409, job.WriteClaimCancel: 202,
			}[at]
			b.want(t, want, "POST", "/v1/jobs/"+id+"/cancel", "")
			if !changed {
				t.Errorf("no write is named %s", at)
			}
		})
	}
}

//proof:of 23 44
func TestRedriveJob_BringsADeadJobBackOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.dead(t, `{"task":"echo","payload":`+text(400)+`,"tags":{"a":"b"},"priority":"high"}`)
	b.Received(contract.FiringQueue("short", "high"))
	b.clock.at = noon.Add(time.Minute)
	r := b.want(t, 202, "POST", "/v1/jobs/"+id+"/redrive", "")
	by := r.str("job_id")
	if by == id || r.str("redrive_of") != id || r.str("status") != "QUEUED" ||
		r.header.Get("Location") != "/v1/jobs/"+by || fmt.Sprint(r.body["tags"]) != "map[a:b]" ||
		r.str("payload") != strings.Repeat("a", 398) {
		t.Errorf("answered %s", r.text)
	}
	if n := len(b.Received(contract.FiringQueue("short", "high"))); n != 1 {
		t.Errorf("%d firings", n)
	}
	repeated := b.want(t, 409, "POST", "/v1/jobs/"+id+"/redrive", "")
	if repeated.str("code") != "wrong_state" || repeated.str("redriven_by") != by {
		t.Errorf("the second time: %s", repeated.text)
	}
	if g := b.want(t, 200, "GET", "/v1/jobs/"+id, ""); g.str("redriven_by") != by || g.str("status") != "DEAD" {
		t.Errorf("the old one: %s", g.text)
	}
	done := b.post(t, `{"task":"echo"}`)
	b.end(t, done, job.Outcome{Kind: job.OutcomeSucceeded})
	if r := b.want(t, 409, "POST", "/v1/jobs/"+done+"/redrive", ""); r.str("code") != "wrong_state" {
		t.Errorf("of a job that succeeded: %s", r.text)
	}
}

//proof:of 22 35 52
func TestDeleteJob_DeletesAllItemsOfTheJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, payload := range map[string]string{"inline": `1`, "in an item": text(5000),
		"in a blob": text(300 << 10)} {
		id := b.post(t, `{"task":"echo","payload":`+payload+`,"tags":{"a":"b"}}`)
		row := b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded, Result: []byte(text(1000))})
		b.want(t, 204, "DELETE", "/v1/jobs/"+id, "")
		b.want(t, 404, "GET", "/v1/jobs/"+id, "")
		b.want(t, 404, "DELETE", "/v1/jobs/"+id, "")
		for _, content := range []string{job.ResultContent, job.TagsContent, job.PayloadContent(1)} {
			if _, err := b.Store.Content(context.Background(), row.Key, content); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: %s is still there (%v)", name, content, err)
			}
		}
		if _, err := b.Store.Payload(context.Background(), row); row.PayloadIn == job.InBlob &&
			fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: the blob is still there (%v)", name, err)
		}
		if err := b.Store.Put(context.Background(), job.Accept(row)); err == nil {
			t.Errorf("%s: a late put of the same id went through", name)
		}
	}
	dead := b.dead(t, `{"task":"echo"}`) // its pending effect is a dead letter, which the delete of the row cancels
	b.want(t, 204, "DELETE", "/v1/jobs/"+dead, "")
}

//proof:of F16
func TestAPI_ListsEachStartOfAnAttemptInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","retry":{"max_attempts":3,"jitter":0}}`)
	lost := func(attempt int64) (all []job.Attempt) {
		for n := range int64(3) {
			all = append(all, job.Attempt{Attempt: attempt, Start: n + 1, Worker: fmt.Sprint("lost-", n+1),
				StartedAt: b.clock.at, FinishedAt: b.clock.at, Outcome: job.OutcomeLost})
		}
		return all
	}
	for attempt := range int64(2) {
		b.clock.at = b.clock.at.Add(time.Minute)
		b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Lost: lost(attempt + 1), StartedAt: b.clock.at,
			Error: &job.Reason{Code: "http_500", Message: strings.Repeat("long ", 100)}})
	}
	b.clock.at = b.clock.at.Add(time.Minute)
	b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Lost: lost(3), FinishedAt: b.clock.at,
		Error: &job.Reason{Code: job.CodePoison}})
	want := []string{"1 lost-1 lost", "1 lost-2 lost", "1 lost-3 lost", "1 w1 failed", "2 lost-1 lost", "2 lost-2 " +
		"lost", "2 lost-3 lost", "2 w1 failed", "3 lost-1 lost", "3 lost-2 lost", "3 lost-3 lost", "3 w1 failed"}
	for _, limit := range []string{"1", "2", "5", "200"} {
		var got []string
		for cursor := ""; ; {
			r := b.want(t, 200, "GET", "/v1/jobs/"+id+"/attempts?limit="+limit+cursor, "")
			for _, a := range r.items() {
				got = append(got, fmt.Sprint(a["attempt"], " ", a["worker"], " ", a["outcome"]))
				_, started := a["started_at"]
				_, late := a["start_lateness_ms"]
				_, finished := a["finished_at"]
				if started != late || started != finished {
					t.Errorf("of started_at, start_lateness_ms and finished_at some are there: %v", a)
				}
			}
			next, more := r.body["next_cursor"].(string)
			if !more {
				break
			}
			cursor = "&cursor=" + next
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %s: %v", limit, got)
		}
	}
	r := b.want(t, 200, "GET", "/v1/dead-letters", "").items()[0]
	tries, _ := r["attempts"].([]any)
	if len(tries) != 10 || fmt.Sprint(tries[9].(map[string]any)["attempt"]) != "3" {
		t.Errorf("a dead letter shows %d entries: %v", len(tries), tries)
	}
}

//proof:of 25 34 165 192 S35
func TestListAttempts_PagesFromTheOldest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("long ", 100)
	id := b.post(t, `{"task":"echo","retry":{"max_attempts":7,"jitter":0}}`)
	for i := range 7 {
		b.clock.at = b.clock.at.Add(time.Minute)
		b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, LatenessMS: int64(i),
			Error: &job.Reason{Code: "http_500", Message: fmt.Sprint(long, i)}})
	}
	var all []map[string]any
	path := "/v1/jobs/" + id + "/attempts?limit=3"
	pages := 0
	for cursor := ""; ; pages++ {
		r := b.want(t, 200, "GET", path+cursor, "")
		all = append(all, r.items()...)
		next, more := r.body["next_cursor"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if len(all) != 7 || pages != 2 {
		t.Fatalf("%d attempts on %d pages", len(all), pages+1)
	}
	for i, a := range all {
		message := a["error"].(map[string]any)["message"].(string)
		if a["attempt"] != float64(i+1) || a["start_lateness_ms"] != float64(i) || a["worker"] != "w1" ||
			a["outcome"] != "failed" || message != fmt.Sprint(long, i) {
			t.Errorf("attempt %d: %v", i+1, a)
		}
	}
	if row := b.row(t, id); row.Item().Size() > contract.MaxRow {
		t.Errorf("the row has grown to %d bytes", row.Item().Size())
	}
}

//proof:of F09
func TestAPI_DeletesTheBlobOfAPayloadThatAPatchReplaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	large := `{"a":` + text(contract.MaxItem+1) + `}`
	id := b.post(t, `{"task":"echo","delay":"1h","payload":`+large+`}`)
	for range 2 {
		b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"payload":`+large+`}`)
		if keys := b.World.Blobs().Keys(contract.JobBlobs); len(keys) != 1 ||
			keys[0] != b.row(t, id).BlobKey(job.PayloadContent(b.row(t, id).PayloadVer)) {
			t.Errorf("kept are %v", keys)
		}
	}
	b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"payload":1}`)
	if keys := b.World.Blobs().Keys(contract.JobBlobs); len(keys) != 0 {
		t.Errorf("kept are %v", keys)
	}
}
