package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/console"
	"punctual/workers/laptop"
)

// rest is the laptop's API of one test.
type rest struct {
	t   *testing.T
	url string
}

// servers are those that have not ended.
var servers sync.WaitGroup

func TestMain(m *testing.M) {
	code := m.Run()
	end()
	servers.Wait()
	os.Exit(code)
}

// serve runs the laptop's server until the test ends.
func serve(t *testing.T) rest {
	t.Helper()
	return serveAt(t, time.Time{})
}

// serveAt is serve where it is another time at the start; the zero time is the real one.
func serveAt(t *testing.T, at time.Time) rest {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	serving, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- laptop.Serve(ctx, laptop.Options{Addr: "127.0.0.1:0", At: at,
			Serving: func(addr string) { serving <- addr }})
	}()
	servers.Add(1)
	t.Cleanup(func() {
		stop()
		go func() { // draining takes seconds in which the next test may run
			<-ended
			servers.Done()
		}()
	})
	select {
	case addr := <-serving:
		return rest{t, "http://" + addr}
	case err := <-ended:
		t.Fatal(err)
		return rest{}
	}
}

// ask sends a request and returns the answer, which must be a success.
func (r rest) ask(method, path, body string) map[string]any {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.url+"/v1"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode >= 300 {
		r.t.Fatalf("%s %s: %d %s %v", method, path, a.StatusCode, text, err)
	}
	var v map[string]any
	if len(bytes.TrimSpace(text)) > 0 && json.Unmarshal(text, &v) != nil {
		r.t.Fatalf("%s %s: %s is no object", method, path, text)
	}
	return v
}

// post posts a job and returns its id.
func (r rest) post(body string) string {
	r.t.Helper()
	return r.ask("POST", "/jobs", body)["job_id"].(string)
}

// ended waits for the end of a job or run, and returns its status.
func (r rest) ended(path string) string {
	r.t.Helper()
	return r.ask("GET", path+"?wait=20s", "")["status"].(string)
}

// etl is the graph of dags.md, whose refunds and reviews fail.
const etl = `{"nodes":{
  "orders":  {"task":"extract","payload":{"rows":120}},
  "refunds": {"task":"extract","payload":{"rows":7,"fail":1}},
  "reviews": {"task":"extract","payload":{"fail":9}},
  "merge":   {"task":"echo","depends_on":["orders","refunds","reviews"],
    "payload":{"rows":"${nodes.orders.result.rows - nodes.refunds.result.rows}","reviews":"${!nodes.reviews.forced}"}},
  "report":  {"task":"echo","depends_on":["merge"],"payload":"${nodes.merge.result.rows} rows"}}}`

// startETL runs it to its failure, mends what refunds needs and returns the run's id.
func (r rest) startETL() string {
	r.t.Helper()
	r.ask("PUT", "/tasks/extract", `{"executor":"echo","retry":{"max_attempts":1}}`)
	r.ask("PUT", "/dags/etl", etl)
	id := r.ask("POST", "/dags/etl/runs", `{}`)["run_id"].(string)
	if status := r.ended("/runs/" + id); status != "FAILED" {
		r.t.Fatalf("the run is %s, want FAILED", status)
	}
	r.ask("PUT", "/tasks/extract", `{"executor":"echo","retry":{"max_attempts":2,"initial_delay":"100ms"}}`)
	return id
}

//proof:of 195
func TestConsole_ServesItsUsers(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	for name, story := range map[string]func(*testing.T, *browser, rest){
		"shows a job posted by REST without a reload, and keeps the focus": followsJobs,
		"tells a job's life, each attempt with its lateness and error":     describesALife,
		"cancels a job by the keyboard, after asking":                      cancelsByKeyboard,
		"pauses one job with a reason, and resumes it":                     pausesAJob,
		"redrives dead letters by clicks, ten first":                       redrives,
		"holds, resumes, stops and overrules an operation":                 operates,
		//proof:of 140
		"retries the failed node of a run and skips another, by clicks": retriesANode,
		"lists the items of a node with their payloads and errors":      listsItems,
		"shows a cron's times and its mistakes while it is typed":       previews,
		"shows what became of each time of a schedule":                  showsALedger,
		"makes past times of a schedule and shows how far it is":        backfills,
		"pauses a task with a reason, and lifts the pause":              pauses,
		"shows what the API refused, with code and detail":              showsRefusals,
		"scrolls through ten thousand jobs with a hundred rows":         scrolls,
		"rests while its tab is hidden":                                 rests,
		"loads at most 150 KB, and asks little before it can be used":   loadsLittle,
		"counts each of many waiting jobs in the next hour":             charts,
		"shows of what runs what is known, and no lateness that is not": showsWhatRuns,
		"pauses and resumes its refreshing":                             holdsStill,
		"sums up what died of what, and what is paused":                 sumsUp,
		"finds jobs by tag, code and the beginning of an id":            findsJobs,
		"shows who changed what, by filters":                            showsChanges,
		"shows the last day, the next one, and the workers":             showsADay,
		"does to all that a filter matches what one allows, by clicks":  changesMany,
		"shows what jobs used, and what that costs about":               showsUse,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, b, serve(t))
		})
	}
}

func followsJobs(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/jobs")
	p.shows("No jobs yet.")
	p.shoot("jobs-empty")
	first := r.post(`{"task":"echo","payload":{"hello":"world"}}`)
	p.shows(first)
	p.eval(named(first) + ".focus()")
	second := r.post(`{"task":"echo","delay":"1h"}`)
	p.shows(second, "scheduled")
	if at := p.eval("document.activeElement.textContent"); at != first {
		t.Errorf("the focus is on %q, want it kept on %s", at, first)
	}
	p.write("Task", "ec") // and is not done yet
	third := r.post(`{"task":"echo","delay":"2h"}`)
	p.shows(third)
	if typed := p.eval(named("Task") + ".value"); typed != "ec" {
		t.Errorf("a refresh has made %q of what was typed", typed)
	}
	p.visit("#/jobs?status=SCHEDULED")
	p.await("!document.body.innerText.includes(" + quoted(first) + ")") // which has succeeded
	p.shows(second, third)
}

func describesALife(t *testing.T, b *browser, r rest) {
	id := r.post(`{"task":"echo","payload":{"fail":1},"delay":"1s","retry":{"max_attempts":3,"initial_delay":"200ms"}}`)
	if status := r.ended("/jobs/" + id); status != "SUCCEEDED" {
		t.Fatalf("the job is %s", status)
	}
	p := b.open(t, r.url+"/#/jobs/"+id)
	p.shows("Accepted", "Due", "Attempt 1 claimed and started by laptop", "Attempt 1 failed", "echo_failed",
		"Attempt 2 claimed and started", "Attempt 2 succeeded", "Settled: succeeded")
	moments := p.eval(`[...document.querySelectorAll('.life li strong')].map((e) => e.textContent).join(' > ')`)
	const want = "Accepted > Due > Attempt 1 claimed and started > Attempt 1 failed > " +
		"Attempt 2 claimed and started > Attempt 2 succeeded > Settled: succeeded"
	if moments != want {
		t.Errorf("its life is\n%v, want\n%s", moments, want)
	}
	late, ok := p.eval(`document.querySelector('.life .busy .mute, .life .busy .late')?.textContent`).(string)
	if !ok || !strings.Contains(late, " ms") && !strings.Contains(late, "late") {
		t.Errorf("the first start has no lateness: %q", late)
	}
	title, _ := p.eval("document.querySelector('.life time').title").(string)
	if !strings.HasSuffix(title, " UTC") {
		t.Errorf("a time has no UTC beside it: %q", title)
	}
	p.shoot("job")
	p.await("document.querySelector('h1').textContent === " + quoted("echo …"+id[len(id)-8:]))
	p.await("document.title === document.querySelector('h1').textContent + ' – Punctual'")
}

func cancelsByKeyboard(t *testing.T, b *browser, r rest) {
	id := r.post(`{"task":"echo","delay":"1h"}`)
	p := b.open(t, r.url+"/#/jobs/"+id)
	p.shows("Waits for its due time")
	p.eval(named("Cancel") + ".focus()")
	p.press("Enter")
	p.shows("This touches 1 job.")
	p.shoot("dialog")
	p.press("Escape")
	p.await("!document.querySelector('dialog') && document.activeElement.textContent === 'Cancel'")
	if v := r.ask("GET", "/jobs/"+id, ""); v["status"] != "SCHEDULED" {
		t.Fatalf("it is %v though nobody confirmed", v["status"])
	}
	p.press("Enter")
	p.shows("This touches 1 job.")
	p.await("document.activeElement.textContent === 'Keep it'")
	p.press("Tab")
	p.await("document.activeElement.textContent === 'Cancel the job'")
	p.press("Enter")
	p.shows("Settled: cancelled")
}

func pausesAJob(t *testing.T, b *browser, r rest) {
	id := r.post(`{"task":"echo","delay":"1h"}`)
	p := b.open(t, r.url+"/#/jobs/"+id)
	p.shows("Waits for its due time")
	p.click("Pause")
	p.shows("This touches 1 job.")
	p.write("Reason", "not before noon")
	p.click("Pause the job")
	p.shows("Held by the pause of this job: “not before noon”, by laptop", "scheduled, and paused",
		"Waits for its resume")
	p.shoot("job-paused")
	if v := r.ask("GET", "/jobs/"+id, ""); v["waiting_for"] != "pause" {
		t.Fatalf("it waits for %v", v["waiting_for"])
	}
	p.await("!" + named("Run now"))
	list := b.open(t, r.url+"/#/jobs")
	list.shows("paused", "not before noon")
	p.click("Resume")
	p.click("Resume the job")
	p.shows("Waits for its due time")
	if v := r.ask("GET", "/jobs/"+id, ""); v["paused"] != nil {
		t.Errorf("it is paused: %v", v["paused"])
	}
}

func redrives(t *testing.T, b *browser, r rest) {
	var mended atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !mended.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(target.Close)
	var ids []string
	for range 12 {
		ids = append(ids, r.post(`{"task":"http","payload":{"url":"`+target.URL+`"},"retry":{"max_attempts":1}}`))
	}
	ids = append(ids, r.post(`{"task":"echo","payload":{"fail":1},"retry":{"max_attempts":1}}`))
	for _, id := range ids {
		if status := r.ended("/jobs/" + id); status != "DEAD" {
			t.Fatalf("%s is %s, want DEAD", id, status)
		}
	}
	p := b.open(t, r.url+"/#/dead-letters")
	p.shows("13 jobs failed for good, of 2 causes.", "http: http_status", "12 letters", "1 letter")
	p.click("Dry run") // of the largest group, which is first
	p.shows("12 jobs would be redriven.")
	p.click("Show the jobs")
	p.await("document.querySelectorAll('.inside tbody tr:not([aria-hidden])').length === 12")
	p.shoot("deadletters")
	if v := r.ask("GET", "/jobs/"+ids[0], ""); v["redriven_by"] != nil {
		t.Fatal("a dry run has redriven a job")
	}
	const state = "document.querySelector('main section .status').textContent.includes(%s)"
	redrive := func() {
		p.click("Redrive, ten first…")
		p.shows("This touches 12 dead jobs.")
		p.write("Reason", "the provider says that it is back")
		p.click("Begin the redrive")
		p.shows("The operation has begun.")
	}
	redrive()
	p.shows("canary_failed", "of the first 10, 0 succeeded", "10 of 12 jobs.")
	p.shoot("deadletters-canary")
	mended.Store(true)
	p = b.open(t, r.url+"/#/dead-letters") // the ten have died once more, and nothing that has ended is shown
	p.shows("22 letters")
	redrive()
	p.shows("12 of 12 jobs.", "Of the first ones: 10 succeeded.", "the newest were redriven")
	p.await(fmt.Sprintf(state, "'succeeded'"))
	p.shoot("deadletters-redriven")
	left := "" // of the first redrive
	for _, id := range ids[:12] {
		v := r.ask("GET", "/jobs/"+id, "")
		if v["redriven_by"] == nil {
			left = id
		}
	}
	if left != "" {
		t.Errorf("%s is not redriven", left)
	}
	if v := r.ask("GET", "/jobs/"+ids[12], ""); v["redriven_by"] != nil {
		t.Error("a job of another cause is redriven")
	}
	p.click("Redrive, ten first…")
	p.shows("Nothing is left of this: all of them were redriven.")
	p.eval(`[...document.querySelectorAll('section[aria-label="echo: echo_failed"] button')].at(-2).click()`)
	p.shows("This touches 1 dead job.")
	p.click("Begin the purge")
	p.shows("22 jobs failed for good, of 1 cause.")
}

// operates holds, resumes, stops and overrules an operation by clicks.
func operates(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/operations")
	p.shows("No operations yet.")
	for range 12 {
		r.post(`{"task":"echo","payload":{"fail":1},"retry":{"max_attempts":1}}`)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if all := r.ask("GET", "/jobs?status=DEAD", "")["items"].([]any); len(all) == 12 {
			break
		}
	}
	canary := r.ask("POST", "/operations", `{"action":"redrive","filter":{"task":"echo"},"reason":"a try",
		"canary":{"count":2}}`)["operation_id"].(string)
	p.shows("Redrive dead letters", "a try")
	p.visit("#/operations/" + canary)
	p.shows("canary_failed", "2 of 12 jobs.", "Of the first ones: 0 succeeded, 2 failed.",
		"The others are as they were.")
	p.shoot("operation")
	p.click("Proceed")
	p.shows("The other 10 jobs follow, however the first ones end.")
	p.click("Proceed") // in the dialog
	p.shows("12 of 12 jobs.")
	p.await("document.querySelector('main .status').textContent.includes('succeeded')")
	slow := r.ask("POST", "/operations", `{"action":"delete","filter":{"status":"DEAD","task":"echo"},
		"rate":{"count":1,"per":"10s"}}`)["operation_id"].(string)
	p.visit("#/operations/" + slow)
	for _, step := range [][2]string{{"Pause", "paused"}, {"Resume", "running"}, {"Stop", "stopped"}} {
		p.click(step[0])
		p.shows("This touches 1 operation.")
		p.click(step[0])
		p.await("document.querySelector('main .status').textContent.includes(" + quoted(step[1]) + ")")
	}
	p.visit("#/operations")
	p.shows("2 operations, newest first", "Delete jobs", "stopped")
	p.visit("#/operations/01M8J2NZKCZJTSEW2Y91X5V3MD")
	p.shows("not_found")
}

func retriesANode(t *testing.T, b *browser, r rest) {
	id := r.startETL()
	p := b.open(t, r.url+"/#/runs/"+id)
	p.shows("nodes refunds and reviews failed")
	p.click("refunds, dead")
	p.shows("attempt 1 was asked to fail")
	p.shoot("run-failed")
	p.click("Retry node")
	p.shows("This touches 3 nodes.")
	p.write("Reason", "mended")
	p.click("Retry refunds")
	p.await(named("refunds, succeeded, attempt 2"))
	p.shows("“mended”")
	p.click("reviews, dead")
	p.click("Complete node")
	p.write("Result, in JSON (may be empty)", "{no")
	p.click("Complete reviews")
	p.await("document.querySelector('dialog [role=alert]')")
	if typed := p.eval("document.querySelector('dialog textarea').value"); typed != "{no" {
		t.Errorf("a refusal has made %q of what was typed", typed)
	}
	p.click("Cancel")
	p.click("Skip node")
	p.shows("This touches 3 nodes.")
	p.click("Skip reviews")
	p.await(named("report, succeeded"))
	p.click("report, succeeded")
	p.shows("113 rows", "4 succeeded, 1 skipped")
	p.shoot("run-succeeded")
	if v := r.ask("GET", "/runs/"+id, ""); v["status"] != "SUCCEEDED" {
		t.Errorf("the run is %v", v["status"])
	}
}

// listsItems shows each item of a mapped node with what it was given, and why it failed.
func listsItems(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/tasks/extract", `{"executor":"echo","retry":{"max_attempts":1}}`)
	r.ask("PUT", "/dags/pages", `{"nodes":{"page":{"task":"extract","for_each":"${params.pages}","payload":"${item}"}},
		"params":{"pages":[{"url":"https://a.example"},{"url":"https://b.example","fail":9}]}}`)
	id := r.ask("POST", "/dags/pages/runs", `{}`)["run_id"].(string)
	if status := r.ended("/runs/" + id); status != "FAILED" {
		t.Fatalf("the run is %s, want FAILED", status)
	}
	p := b.open(t, r.url+"/#/runs/"+id+"/page")
	for _, width := range []int{1440, 390} {
		p.resize(width, false)
		p.shows(`{"url":"https://a.example"}`, `"https://b.example"`, "echo_failed: attempt 1 was asked to fail")
		what := fmt.Sprintf("items-%d", width)
		p.fits(what)
		p.shoot(what)
	}
	p.await("/^pages, \\w+, \\w+ \\d+, \\d\\d:\\d\\d$/.test(document.querySelector('h1').textContent)")
}

func previews(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/schedules/new!")
	p.await("document.querySelectorAll('.times li').length === 8")
	p.write("Cron expression", "0 9 * * x")
	p.shows("is not understood", "/calendar/cron", "invalid_value")
	p.write("Cron expression", "30 6 24 12 *")
	p.await("document.querySelector('.times time')?.textContent.includes('06:30')")
	p.shows("Dec 24")
	p.shoot("schedule-new")
	p.write("Name", "eve")
	p.click("Set the schedule")
	p.shows("Schedule eve", "30 6 24 12 *")
	v := r.ask("GET", "/schedules/eve", "")
	if zone := v["calendar"].(map[string]any)["timezone"]; zone != "Europe/Berlin" {
		t.Errorf("its zone is %v, want the browser's", zone)
	}
	p.write("Try another cron", "30 6 25 12 *")
	p.click("Change it…")
	p.shows("1 added, 1 lost", "This touches 2 times.")
	p.click("Change it")
	p.shows("30 6 25 12 *")
	p.await("document.querySelector('.facts code').textContent === '30 6 25 12 *'")
}

func showsALedger(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/schedules/beat", `{"calendar":{"every":"1s"},"job":{"task":"echo","payload":{}}}`)
	p := b.open(t, r.url+"/#/schedules/beat")
	p.await("document.querySelectorAll('.strip .cell.good').length >= 2")
	p.shows("ran", "succeeded")
	p.click("Pause")
	p.write("Reason", "too loud")
	p.click("Pause")
	p.shows("paused", "too loud – laptop")
	p.shoot("schedule")
	ranNow := false
	p.click("Run now")
	p.write("Changes of the payload, in JSON", `{"by":"a person"}`)
	p.click("Run now")
	p.shows("Run now: done.")
	for _, o := range r.ask("GET", "/schedules/beat/occurrences?limit=50", "")["items"].([]any) {
		if o := o.(map[string]any); o["manual"] == true {
			made := r.ask("GET", "/jobs/"+o["job_id"].(string), "")
			if fmt.Sprint(made["payload"]) != "map[by:a person]" {
				t.Errorf("the job is %v", made)
			}
			ranNow = true
		}
	}
	if !ranNow {
		t.Error("no job was made")
	}
	p.click("Delete")
	p.shows("This touches 1 schedule")
	p.click("Delete the schedule")
	p.shows("No schedules yet.")
	r.ask("PUT", "/schedules/slow", `{"calendar":{"every":"1s"},"overlap":"skip",
		"job":{"task":"echo","payload":{"sleep":"20s"}}}`)
	p = b.open(t, r.url+"/#/schedules/slow")
	for _, width := range []int{1440, 390} { // whole, not cut
		p.resize(width, false)
		p.await(`[...document.querySelectorAll('tbody td')].some((e) => e.checkVisibility() &&
			e.innerText.includes('of the schedule was not over, and overlap is skip') &&
			e.scrollWidth <= e.clientWidth)`)
		what := fmt.Sprintf("ledger-%d", width)
		p.fits(what)
		p.shoot(what)
	}
	r.ask("DELETE", "/schedules/slow", "")
	r.ask("PUT", "/schedules/both", `{"calendars":[{"cron":"0 9 * * *","timezone":"Asia/Tokyo","max_runs":5},
		{"every":"1d"}],"job":{"task":"echo"}}`)
	p = b.open(t, r.url+"/#/schedules/both")
	p.shows("Calendar 1", "Asia/Tokyo", "at most 5 runs", "Calendar 2", "every 1d")
	p = b.open(t, r.url+"/#/schedules")
	p.shows("0 9 * * *; every 1d")
	r.ask("PUT", "/schedules/often", `{"calendar":{"every":"1s"},"job":{"task":"echo","payload":{}}}`)
	p.await(`[...document.querySelectorAll('tr')].some((e) => /often[^]*succeeded/.test(e.innerText))`)
}

func backfills(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/schedules/hourly", `{"calendar":{"cron":"0 * * * *"},"job":{"task":"echo","payload":{"sleep":"2s"}}}`)
	p := b.open(t, r.url+"/#/schedules/hourly")
	p.click("Backfill…")
	p.shows("This touches 24 times.")
	p.write("Reason", "the source was down")
	p.click("Make them")
	p.shows("The backfill has begun.", "running", "of 24 times", "the source was down")
	p.click("Hold")
	p.shows("Hold the backfill")
	p.click("Hold")
	p.shows("paused")
	p.click("Resume")
	p.shows("Resume the backfill")
	p.click("Resume")
	p.await("[...document.querySelectorAll('button')].some((b) => b.textContent === 'Hold')")
	p.shoot("backfill")
	p.click("Stop")
	p.shows("Stop the backfill")
	p.click("Stop")
	p.shows("stopped", "made by a backfill")
	v := r.ask("GET", "/operations", "")["items"].([]any)[0].(map[string]any)
	if v["status"] != "STOPPED" || v["max_running"] != 1.0 || v["reason"] != "the source was down" {
		t.Errorf("the operation is %v", v)
	}
}

func pauses(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/schedules/daily", `{"calendar":{"cron":"0 9 * * *"},"job":{"task":"echo"}}`)
	r.post(`{"task":"echo","delay":"1h"}`)
	r.post(`{"task":"http","payload":{"url":"https://example.com"},"delay":"1h"}`)
	p := b.open(t, r.url+"/#/pauses")
	p.shows("Nothing is paused.")
	p.click("Pause…")
	p.shows("This touches 2 waiting jobs and 1 schedule.")
	p.eval(`(() => { const e = ` + named("What") + `; e.value = 'task:http'
		e.dispatchEvent(new Event('change', { bubbles: true })) })()`)
	p.shows("This touches 1 waiting job and 0 schedules.")
	p.write("Reason", "<b>The provider</b> is down")
	p.click("Pause")
	p.shows("task http", "<b>The provider</b> is down", "laptop")
	p.shoot("pauses")
	held := r.post(`{"task":"http","payload":{"url":"https://example.com"}}`)
	p.visit("#/jobs/" + held)
	p.shows("paused", "Held by the pause of the task http: “<b>The provider</b> is down”, by laptop")
	r.ask("PUT", "/schedules/web", `{"calendar":{"cron":"0 9 * * *"},
		"job":{"task":"http","payload":{"url":"https://example.com"}}}`)
	r.ask("POST", "/schedules/web/pause", `{}`)
	onRequest := r.ask("POST", "/schedules/web/run-now", `{}`)["job_id"].(string)
	p.visit("#/jobs/" + onRequest)
	p.shows("http …"+onRequest[len(onRequest)-8:], "Held by the pause of the task http")
	if text := p.eval("document.body.innerText").(string); strings.Contains(text, "the schedule web") {
		t.Errorf("a run on request is said to be held by the pause of its schedule:\n%s", text)
	}
	r.ask("DELETE", "/schedules/web", "")
	p.click("the task http")
	p.await("location.hash === '#/pauses'")
	p.visit("#/jobs?task=http")
	p.await(`[...document.querySelectorAll('tr')].some((e) => e.innerHTML.includes('` + held + `') &&
		/paused[^]*scheduled, held by a pause/.test(e.innerText))`)
	p.visit("#/pauses")
	p.click("Lift the pause of task:http")
	p.click("Lift it")
	p.shows("Nothing is paused.")
	if all := r.ask("GET", "/pauses", "")["items"].([]any); len(all) > 0 {
		t.Errorf("there is still %v", all)
	}
}

func showsRefusals(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/jobs/01M8J2NZKCZJTSEW2Y91X5V3MD")
	p.shows("not_found", "Request ")
	p.visit("#/jobs?task=no%20name")
	p.shows("invalid_value")
	p.shoot("refused")
	p.visit("#/nowhere")
	p.shows("There is no such view.")
}

func scrolls(t *testing.T, b *browser, r rest) {
	const all = 10_000
	one := strings.Repeat(`{"task":"echo","delay":"5h"},`, 100)
	for range all / 100 {
		r.ask("POST", "/jobs/batch", `{"jobs":[`+strings.TrimSuffix(one, ",")+`]}`)
	}
	p := b.open(t, r.url+"/#/jobs")
	p.shows("200 jobs so far")
	began := time.Now()
	most := p.eval(`new Promise((done) => { let most = 0, end = Date.now() + 40000
		const step = () => { scrollTo(0, document.body.scrollHeight)
			most = Math.max(most, document.querySelectorAll('tbody tr').length)
			const all = document.querySelector('main p').textContent.includes('10,000 jobs,')
			if (all || Date.now() > end) done(most); else setTimeout(step, 10) }
		step() })`).(float64)
	p.shows("10,000 jobs,")
	p.eval("scrollTo(0, document.body.scrollHeight)")
	p.await("document.querySelector('tbody tr:last-child').getAttribute('aria-rowindex') === '10001'")
	if most > 100 {
		t.Errorf("%v rows stood in the page at once, want at most 100", most)
	}
	t.Logf("10,000 jobs were loaded and scrolled through in %v, with at most %v rows in the page", time.Since(began),
		most)
	frame := p.eval(`new Promise((done) => { let worst = 0, n = 0, before = performance.now()
		const step = (now) => { worst = Math.max(worst, now - before); before = now
			scrollBy(0, -4000); if (++n === 60) done(worst); else requestAnimationFrame(step) }
		requestAnimationFrame(step) })`)
	t.Logf("the longest of 60 frames while scrolling took %v ms", frame)
}

func rests(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/jobs")
	p.shows("No jobs yet.")
	hide := func(hidden bool) {
		p.eval(fmt.Sprintf(`Object.defineProperty(document, 'hidden', { value: %t, configurable: true });
			document.dispatchEvent(new Event('visibilitychange'))`, hidden))
	}
	const asked = `performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/jobs')).length`
	hide(true)
	before := p.eval(asked)
	id := r.post(`{"task":"echo","delay":"1h"}`)
	p.eval("new Promise((done) => setTimeout(done, 5000))") // more than the longest wait between the first rounds
	if now := p.eval(asked); now != before {
		t.Errorf("a hidden tab asked %v times, then %v", before, now)
	}
	hide(false)
	p.shows(id)
}

func loadsLittle(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/")
	p.shows("Nothing is due in the next hour.")
	bytes := p.eval(`[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
		.filter((e) => !e.name.includes('/v1/')).reduce((n, e) => n + e.encodedBodySize, 0)`).(float64)
	if bytes > 150_000 || bytes < 50_000 {
		t.Errorf("the first load is %v bytes, want at most 150,000 (and some)", bytes)
	}
	before := p.eval(`(() => { const at = performance.getEntriesByName('interactive')[0].startTime
		const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
			.filter((e) => e.startTime <= at)
		return [all.length, all.reduce((n, e) => n + e.encodedBodySize, 0), at] })()`).([]any)
	if n := before[0].(float64); n > 30 || n < 10 {
		t.Errorf("%v requests are made before the page can be used, want at most 30 (and some)", n)
	}
	if n := before[1].(float64); n > 150_000 {
		t.Errorf("%v bytes are read before the page can be used, want at most 150,000", n)
	}
	t.Logf("the first load is %.1f KB; interactive after %.0f ms, %v requests and %.1f KB", bytes/1000, before[2],
		before[0], before[1].(float64)/1000)
}

func charts(t *testing.T, b *browser, r rest) {
	accept := func(n int) { // n jobs, due over 57 of the next 60 minutes
		for from := 0; from < n; from += 100 {
			var jobs []string
			for i := from; i < from+100; i++ {
				jobs = append(jobs, fmt.Sprintf(`{"task":"echo","delay":"%ds"}`, 90+i*57*60/n))
			}
			r.ask("POST", "/jobs/batch", `{"jobs":[`+strings.Join(jobs, ",")+`]}`)
		}
	}
	const bars = `[...document.querySelectorAll('.bars span')].map((e) => Number(e.title.split(': ')[1]))`
	accept(1500)
	p := b.open(t, r.url+"/")
	p.shows("1,500 firings in the next hour; most at", "1,500 scheduled")
	if n := p.eval(bars + ".filter((n) => n > 0).length").(float64); n < 55 {
		t.Errorf("%v minutes have a bar, want all that have jobs", n)
	}
	top := p.eval("document.querySelector('.scale span').textContent === String(Math.max(..." + bars + "))")
	if top != true {
		t.Error("the axis does not say what its top is")
	}
	if n := p.eval("document.querySelectorAll('.note').length"); n != 0.0 {
		t.Error("it says that it leaves something out, though it does not")
	}
	accept(600)
	asked := func(p *tab) any {
		return p.eval(`performance.getEntriesByType('resource').filter((e) => e.name.includes('status=SCHEDULED') &&
			e.name.includes('cursor')).length`)
	}
	before := asked(p)
	p.visit("#/pauses")
	p.visit("#/") // within half a minute, which reads nothing again
	p.shows("1,500 firings in the next hour")
	if n := asked(p); n != before {
		t.Errorf("coming back has read the further pages again: %v, then %v", before, n)
	}
	p = b.open(t, r.url+"/")
	const left = "Only the 2,000 jobs accepted last are counted: every minute may have more."
	p.shows("2,000 firings at least", left, "2,000+ or more scheduled")
	label := p.eval("document.querySelector('.chart').getAttribute('aria-label')").(string)
	if !strings.Contains(label, left) {
		t.Errorf("who cannot see the chart hears %q", label)
	}
	p.shoot("overview-many")
}

func showsWhatRuns(t *testing.T, b *browser, r rest) {
	id := r.post(`{"task":"echo","payload":{"sleep":"25s"}}`)
	p := b.open(t, r.url+"/")
	p.shows("1 running", id, "Was due", "1 of 6")
	if text := p.eval("document.querySelector('main').innerText").(string); strings.Contains(text, "0 ms") ||
		strings.Contains(text, "Started") {
		t.Errorf("it tells of a start that the API does not know:\n%s", text)
	}
}

func findsJobs(t *testing.T, b *browser, r rest) {
	mine := r.post(`{"task":"echo","delay":"1h","tags":{"team":"a=b"}}`)
	other := r.post(`{"task":"echo","delay":"1h","tags":{"team":"ops"}}`)
	dead := r.post(`{"task":"echo","payload":{"fail":1},"retry":{"max_attempts":1}}`)
	r.ended("/jobs/" + dead)
	p := b.open(t, r.url+"/#/jobs")
	p.shows(mine, other, dead)
	only := func(id string) {
		t.Helper()
		p.await(`[...document.querySelectorAll('tbody a.id')].map((e) => e.title).join() === ` + quoted(id))
	}
	p.write("Tag, NAME=VALUE", "team=a=b")
	p.press("Tab")
	only(mine)
	p.visit("#/jobs?code=echo_failed")
	only(dead)
	p.visit("#/jobs?id=" + strings.ToLower(other))
	only(other)
	p.shoot("jobs-found")
	p.visit("#/jobs?id=01")
	p.await("document.querySelector('[role=alert] code')")
}

func showsChanges(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/audit")
	p.shows("Nothing has been changed yet.")
	r.ask("PUT", "/schedules/daily", `{"calendar":{"cron":"0 9 * * *"},"job":{"task":"echo"}}`)
	r.ask("PATCH", "/schedules/daily", `{"calendar":{"cron":"0 10 * * *"}}`)
	r.ask("PUT", "/pauses/task:http", `{"reason":"The provider is down."}`)
	p = b.open(t, r.url+"/#/audit")
	p.shows("schedule.patch schedule/daily", `"0 9 * * *" → "0 10 * * *"`, "pause.put pause/task:http",
		"“The provider is down.”", "3 changes, newest first")
	if p.eval("document.body.innerText.includes('Older changes')") == true {
		t.Error("older changes are offered, and there are none")
	}
	p.shoot("audit")
	p.visit("#/audit?resource=schedule/daily")
	p.shows("2 changes, newest first")
	p.click("schedule/daily")
	p.await("location.hash === '#/schedules/daily'")
	p.visit("#/audit?action=schedule.nothing")
	p.shows("invalid_value")
}

func sumsUp(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/")
	p.shows("No job has failed for good in the last 24 hours.")
	for range 3 {
		r.ended("/jobs/" + r.post(`{"task":"echo","payload":{"fail":1},"retry":{"max_attempts":1}}`))
	}
	r.ended("/jobs/" + r.post(`{"task":"http","payload":{"url":"http://127.0.0.1:1"},"retry":{"max_attempts":1}}`))
	r.ask("PUT", "/pauses/task:http", `{"reason":"The provider is down."}`)
	r.ask("PUT", "/schedules/web", `{"calendar":{"cron":"0 9 * * *"},"job":{"task":"echo"},"paused":{"reason":"Not yet."}}`)
	p = b.open(t, r.url+"/")
	p.shows("task http The provider is down. laptop", "schedule web Not yet. laptop")
	p.await(`/echo: echo_failed\s*attempt 1 was asked to fail\s*3\s/.test(document.querySelector('main').innerText)`)
	p.await(`/http: \w+\s[^]*\s1\s/.test(document.querySelector('main').innerText)`)
	p.shoot("overview-sum")
	p.click("echo: echo_failed")
	p.await("location.hash === '#/dead-letters'")
}

func showsADay(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/")
	p.shows("No job was made, started or ended in the last 24 hours.", "No start is expected in the next 24 hours.")
	for fail := range 2 {
		r.ended("/jobs/" + r.post(fmt.Sprintf(`{"task":"echo","payload":{"fail":%d},
			"retry":{"max_attempts":1}}`, fail)))
	}
	r.ask("PUT", "/schedules/often", `{"calendar":{"every":"10m"},"job":{"task":"echo"}}`)
	r.post(`{"task":"echo","payload":{"sleep":"25s"},"priority":"high"}`)
	counted := func() bool { // the newest counts are missing for some seconds
		dead := r.ask("GET", "/stats", "")["series"].(map[string]any)["dead"].([]any)
		return dead[len(dead)-1] == 1.0 || dead[max(len(dead)-2, 0)] == 1.0
	}
	for end := time.Now().Add(patience); !counted() && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	p = b.open(t, r.url+"/")
	p.shows("1 failed for good", "1 succeeded", "late, the slowest 1%")
	p.await(`/^1[345]\d starts expected; most from \d\d:\d\d, with 6\.$/.test(
		document.querySelector('[aria-labelledby=next] p').textContent)`)
	bars := p.eval(`[...document.querySelectorAll('[aria-labelledby=past] svg')].map((e) =>
		e.getAttribute('aria-label') + ': ' +
		e.querySelectorAll('rect:not(.step):not([height="0"])').length).join(', ')`)
	const want = "Jobs failed for good in each of the last 24 hours: 1"
	if !strings.Contains(bars.(string), want) {
		t.Errorf("the chart has the bars %v, want %s", bars, want)
	}
	p.click("Calm minutes")
	p.await(`document.querySelectorAll('[aria-labelledby=next] tbody tr').length === 5`)
	p.shows("Workers and queues", "of 25")
	p.await(`[...document.querySelectorAll('[aria-labelledby=workers] tbody th')].map((e) => e.textContent.trim())
		.join().includes('critical,high,normal,low')`)
	p.shoot("overview-day")
	p.resize(390, true)
	p.click("As a table")
	p.click("Each worker")
	p.await("document.querySelectorAll('[aria-labelledby=past] tbody tr').length === 24")
	p.fits("overview-day-390")
	p.shoot("overview-day-390")
}

func holdsStill(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/jobs")
	p.shows("No jobs yet.", "Live")
	p.click("Pause refresh")
	p.shows("Refresh is paused", "Resume refresh")
	p.eval("new Promise((done) => setTimeout(done, 100))") // what was under way
	id := r.post(`{"task":"echo","delay":"1h"}`)
	p.eval("new Promise((done) => setTimeout(done, 3000))") // more than the wait between the first rounds
	p.shows("No jobs yet.")
	p.click("Resume refresh")
	p.shows(id, "Live", "Pause refresh")
}

func TestFreshness_TellsARefusalFromAnAPIThatIsDown(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	var down atomic.Bool
	proxy := proxyOf(t, serve(t))
	server := httptest.NewServer(console.Mount(console.Settings{},
		http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if down.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			proxy.ServeHTTP(w, q)
		})))
	t.Cleanup(server.Close)
	p := b.open(t, server.URL+"/console/#/jobs")
	p.shows("No jobs yet.", "Live")
	for hash, code := range map[string]string{
		"#/jobs/01M8J2NZKCZJTSEW2Y91X5V3MD": "not_found", "#/jobs?task=no%20name": "invalid_value",
	} {
		p.visit(hash)
		p.shows(code)
		p.await("document.querySelector('.pulse.on')")
		if text := p.eval("document.querySelector('.fresh').innerText").(string); strings.Contains(text, "No answer") {
			t.Errorf("%s: the header says %q of an API that has answered", code, text)
		}
	}
	p.visit("#/jobs")
	p.shows("No jobs yet.")
	down.Store(true)
	p.await("document.querySelector('.pulse.failing')")
	p.shows("No answer for")
	over := `(() => { const bar = document.querySelector('header').getBoundingClientRect()
		return [...document.querySelectorAll('header *')].filter((e) => e.getBoundingClientRect().right > bar.right)
			.map((e) => e.textContent).join(', ') })()`
	if text := p.eval(over); text != "" {
		t.Errorf("beyond the side of the page is %v", text)
	}
	p.shoot("no-answer")
	down.Store(false)
	p.await("document.querySelector('.pulse.on')")
	p.mu.Lock()
	p.said = nil // the browser says each 503, too
	p.mu.Unlock()
}

func TestClock_IsTheServers(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serveAt(t, time.Now().Add(118*24*time.Hour))
	id := r.post(`{"task":"echo","delay":"30m"}`)
	p := b.open(t, r.url+"/#/jobs/"+id)
	p.shows("in 29 min", "Waits for its due time", "Server time, 118 d ahead")
	p.visit("#/")
	p.shows("1 firing in the next hour")
	p.await("[...document.querySelectorAll('.facts .mute')].some((e) => /^in (29|30|31) min/.test(e.textContent))")
	if text := p.eval("document.body.innerText").(string); strings.Contains(text, " days") {
		t.Errorf("it reckons by the browser's clock:\n%s", text)
	}
	p.shoot("another-time")
}

func TestOverview_AsksMoreSeldomWhileNothingChanges(t *testing.T) {
	t.Parallel()
	p := chromium(t).open(t, serve(t).url+"/")
	p.shows("Nothing is due in the next hour.")
	// Each answer of /ready has another time in it, and once a minute the passes have come further.
	p.await(`performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/pauses'))
		.some((e, i, all) => i > 0 && e.startTime - all[i - 1].startTime > 5500)`)
}

// views are all of the page's, on a laptop where something happens in each.
func (r rest) views() map[string]string {
	r.t.Helper()
	run := r.startETL()
	r.ask("PUT", "/schedules/beat", `{"calendar":{"every":"2s"},"overlap":"skip",
		"job":{"task":"echo","payload":{"sleep":"3s"}}}`)
	r.ask("PUT", "/schedules/morning", `{"calendar":{"cron":"0 9 * * 1-5","timezone":"America/New_York"},
		"job":{"task":"http","payload":{"url":"https://example.com"}}}`)
	r.post(`{"task":"echo","payload":{"sleep":"25s"}}`)
	for i := range 30 {
		r.post(fmt.Sprintf(`{"task":"echo","payload":{},"delay":"%dm","tags":{"team":"billing"}}`, i*2))
	}
	dead := r.post(`{"task":"echo","payload":{"fail":2},"retry":{"max_attempts":2,"initial_delay":"100ms"}}`)
	r.ended("/jobs/" + dead)
	redrive := r.ask("POST", "/operations", `{"action":"redrive","filter":{"task":"echo"},"canary":{"count":10},
		"reason":"The provider is back."}`)
	r.ask("PUT", "/pauses/task:http", `{"reason":"The provider is down until noon."}`)
	held := r.post(`{"task":"http","payload":{"url":"https://example.com"}}`)
	r.ask("PUT", "/webhooks/ops", `{"url":"https://ops.example.com/punctual","events":["job.dead"]}`)
	r.ask("POST", "/webhooks/ops/test", "")
	r.ask("PUT", "/limits/github", `{"max_running":5,"rate":{"count":100,"per":"1m"}}`)
	return map[string]string{
		"overview": "#/", "jobs": "#/jobs", "job": "#/jobs/" + dead, "schedules": "#/schedules",
		"schedule": "#/schedules/beat", "schedule-new": "#/schedules/new!", "schedule-edit": "#/schedules/morning/edit",
		"job-new": "#/jobs/new!?like=" + dead, "tasks": "#/tasks", "task": "#/tasks/extract",
		"task-new": "#/tasks/new!", "dags": "#/dags", "dag": "#/dags/etl",
		"run": "#/runs/" + run + "/refunds", "deadletters": "#/dead-letters", "pauses": "#/pauses",
		"webhooks": "#/webhooks", "webhook": "#/webhooks/ops", "webhook-new": "#/webhooks/new!",
		"audit": "#/audit", "operations": "#/operations",
		"operation": "#/operations/" + redrive["operation_id"].(string),
		"held":      "#/jobs/" + held, "limits": "#/limits", "limit": "#/limits/github", "usage": "#/usage",
	}
}

//proof:of 195
func TestViews_AreAccessibleInLightAndDarkNarrowAndWide(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	source := axe(t)
	r := serve(t)
	views := r.views()
	for _, dark := range []bool{false, true} {
		for _, width := range []int{390, 1440} {
			t.Run(fmt.Sprintf("dark=%t, %d pixels", dark, width), func(t *testing.T) {
				t.Parallel()
				p := b.open(t, r.url+"/")
				p.resize(width, dark)
				p.settled()
				p.eval(source + "; 0")
				for name, hash := range views {
					p.visit(hash)
					what := fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{true: "dark", false: "light"}[dark])
					p.accessible(what)
					p.fits(what)
					p.shoot(what)
				}
				p.visit("#/jobs/" + strings.TrimPrefix(views["job"], "#/jobs/"))
				p.click("Delete")
				p.shows("This touches")
				p.accessible("dialog")
				p.press("Escape")
				for name, hash := range map[string]string{"bulk": "#/jobs", "bulk-runs": "#/dags"} {
					p.visit(hash)
					p.click("Act on all that match")
					p.shows("Cancel…")
					what := fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{true: "dark", false: "light"}[dark])
					p.accessible(what)
					p.fits(what)
					p.shoot(what)
				}
			})
		}
	}
}

func TestPage_IsReachedByKeyboard(t *testing.T) {
	t.Parallel()
	p := chromium(t).open(t, serve(t).url+"/")
	p.settled()
	p.press("Tab")
	p.await("document.activeElement.textContent === 'To the content'")
	p.press("Tab")
	p.press("Tab")
	p.press("Tab")
	p.await("document.activeElement.textContent === 'Jobs'")
	p.press("Enter")
	p.await("document.activeElement.matches('h1') && document.activeElement.textContent === 'Jobs'")
	p.await("document.title === 'Jobs – Punctual'")
	p.await("document.querySelector('nav a[aria-current=page]').textContent === 'Jobs'")
}

// crossed renders random graphs and returns how many edges there are, how many are expected, and the points at which
// an edge lies on a box that is none of its ends: its ends are the boxes at which it begins and ends.
const crossed = `(async () => {
	const [{ Graph }, { html, render }] = await Promise.all(['graph', 'html'].map((m) =>
		import(location.origin + '/core/' + m + '.js')))
	let seed = 7
	const random = (n) => { seed = (seed * 48271) % 2147483647; return seed % n }
	// points of a path of curves and level lines, computed: the browser takes a minute for as many.
	const points = (d) => {
		const all = []
		let [x, y] = [0, 0]
		for (const [, op, rest] of d.matchAll(/([MCH])([^MCH]*)/g)) {
			const n = rest.trim().split(/[ ,]+/).map(Number)
			if (op === 'M') [x, y] = n
			const [a, b, c, e, toX, toY] = op === 'C' ? n : op === 'H' ? [x, y, n[0], y, n[0], y] : [x, y, x, y, x, y]
			const steps = op === 'M' ? 1 : Math.ceil(Math.hypot(toX - x, toY - y) / 2)
			for (let i = op === 'M' ? 1 : 0; i <= steps; i++) {
				const t = i / steps, u = 1 - t
				const at = (p, q, r, s) => u * u * u * p + 3 * u * u * t * q + 3 * u * t * t * r + t * t * t * s
				all.push({ x: at(x, a, c, toX), y: at(y, b, e, toY) })
			}
			;[x, y] = [toX, toY]
		}
		return all
	}
	let [edges, wanted, bad] = [0, 0, []]
	for (let g = 0; g < 60; g++) {
		const nodes = { c: {}, e: { depends_on: ['c'] }, f: { depends_on: ['c', 'e'] } }
		for (let i = 0, n = random(24); i < n; i++) {
			const before = Object.keys(nodes)
			const some = [0, 1, 2].slice(random(4)).map(() => before[random(before.length)])
			nodes['n' + i] = { depends_on: [...new Set(some)] }
		}
		for (const n of Object.values(nodes)) {
			n.task = 'echo'
			wanted += n.depends_on?.length || 0
		}
		const into = document.createElement('div')
		document.body.append(into)
		render(html` + "`<${Graph} nodes=${nodes} label=${0} link=${(n) => n} />`" + `, into)
		const boxes = [...into.querySelectorAll('a')].map((a) => {
			const [x, y] = a.getAttribute('transform').match(/[0-9.]+/g).map(Number)
			const box = a.querySelector('rect')
			return { x, y, w: Number(box.getAttribute('width')), h: Number(box.getAttribute('height')) }
		})
		const on = (b, p, by) => p.x > b.x - by && p.x < b.x + b.w + by && p.y > b.y - by && p.y < b.y + b.h + by
		for (const path of into.querySelectorAll('path')) {
			edges++
			const all = points(path.getAttribute('d'))
			const ends = [all[0], all.at(-1)].map((p) => boxes.find((b) => on(b, p, 0.5)))
			if (!ends[0] || !ends[1] || ends[0] === ends[1]) bad.push(g + ': an edge has no end')
			for (const p of all) {
				if (boxes.some((b) => !ends.includes(b) && on(b, p, 2))) bad.push(g + ': ' + p.x + ' ' + p.y)
			}
		}
		render(null, into)
		into.remove()
	}
	return [edges, wanted, bad.length, bad.slice(0, 3).join('; ')]
})()`

func TestPicture_DrawsNoEdgeBehindAnotherNode(t *testing.T) {
	t.Parallel()
	p := chromium(t).open(t, serve(t).url+"/#/pauses")
	p.settled()
	found := p.eval(crossed).([]any)
	if found[0] != found[1] || found[0].(float64) < 500 {
		t.Errorf("%v edges are drawn, want %v, and some hundreds", found[0], found[1])
	}
	if found[2] != 0.0 {
		t.Errorf("%v points of edges lie on boxes of other nodes: %v", found[2], found[3])
	}
}

func TestPicture_ScrollsByKeyboardAndShowsThatItDoes(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	p := b.open(t, r.url+"/#/runs/"+r.startETL())
	p.resize(360, false)
	p.shows("Choose a node in the picture.")
	observe := p.eval("getComputedStyle(document.querySelector('.graph')).backgroundAttachment").(string)
	if !strings.Contains(observe, "local") {
		t.Errorf("nothing shows that there is more: %s", observe)
	}
	p.eval("document.querySelector('.graph').focus()")
	p.press("ArrowRight")
	p.await("document.querySelector('.graph').scrollLeft > 0")
}

//proof:of 195
func TestPolicy_StopsWhatIsNotThePages(t *testing.T) {
	t.Parallel()
	r := serve(t)
	id := r.post(`{"task":"echo","payload":{"<img src=x onerror=alert(1)>":"<script>alert(2)</script>"},"delay":"1h"}`)
	p := chromium(t).open(t, r.url+"/#/jobs/"+id)
	p.shows(`"<img src=x onerror=alert(1)>": "<script>alert(2)</script>"`)
	p.eval(`(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 1'
		document.head.append(s); document.body.setAttribute('style', 'color: red')
		new Image().src = 'https://example.com/x.png' })()`)
	if got := p.eval("fetch('https://example.com/').then(() => 'sent', () => 'stopped')"); got != "stopped" {
		t.Errorf("a request to another origin is %v", got)
	}
	if p.eval("window.broken") != nil {
		t.Error("a script in the document has run")
	}
	for _, want := range []string{"script-src-elem", "style-src-attr", "img-src", "connect-src"} {
		p.heard("POLICY " + want)
	}
	p.mu.Lock()
	p.said = nil // that was the point
	p.mu.Unlock()
}
