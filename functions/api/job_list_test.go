package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/store"
)

// pages reads a whole list and returns the values of one field, page by page.
func (b *bench) pages(t *testing.T, path, field string) [][]string {
	t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	var pages [][]string
	for cursor := ""; ; {
		r := b.want(t, 200, "GET", path+cursor, "")
		page := []string{}
		for _, i := range r.items() {
			page = append(page, fmt.Sprint(i[field]))
		}
		pages = append(pages, page)
		next, more := r.body["next_cursor"].(string)
		if !more {
			if v, ok := r.body["next_cursor"]; !ok || v != nil {
				t.Errorf("next_cursor at the end is %v", v)
			}
			return pages
		}
		if len(pages) > 200 {
			t.Fatal("the list does not end")
		}
		cursor = sep + "cursor=" + next
	}
}

func flat(pages [][]string) []string { return slices.Concat(pages...) }

//proof:of 25 27
func TestListJobs_BeginsWithTheNewest(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*memory.Options, *api.Deps){
		"lists the newest first":                  func(*memory.Options, *api.Deps) {},
		"lists the newest first over empty pages": func(o *memory.Options, _ *api.Deps) { o.EmptyPages = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, change)
			var ids []string
			for range 150 {
				b.clock.at = b.clock.at.Add(time.Second)
				ids = append(ids, b.post(t, `{"task":"echo","delay":"1h"}`))
			}
			slices.Reverse(ids)
			for _, limit := range []int{1, 7, 50, 200} {
				if limit == 1 && strings.HasSuffix(name, "pages") {
					continue
				}
				if got := flat(b.pages(t, fmt.Sprintf("/v1/jobs?limit=%d", limit), "job_id")); !slices.Equal(got, ids) {
					t.Errorf("in pages of %d: %d jobs, or in another order", limit, len(got))
				}
			}
			after, before := noon.Add(20*time.Second), noon.Add(30*time.Second)
			path := "/v1/jobs?limit=3&created_after=" + after.Format(time.RFC3339) + "&created_before=" +
				url.QueryEscape(before.In(time.FixedZone("", 3600)).Format(time.RFC3339))
			if got := flat(b.pages(t, path, "created_at")); len(got) != 10 || got[9] != "2027-03-01T12:00:20.000Z" ||
				got[0] != "2027-03-01T12:00:29.000Z" {
				t.Errorf("half-open range: %v", got)
			}
		})
	}
}

//proof:of 26
func TestListJobs_ShowsTheStatusOfRowAndClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/other", `{"executor":"go"}`)
	want := map[string]string{}
	post := func(status, body string) string {
		b.clock.at = b.clock.at.Add(time.Millisecond)
		id := b.post(t, body)
		want[id] = status
		return id
	}
	for range 5 {
		post("SCHEDULED", `{"task":"echo","delay":"1h"}`)
		post("QUEUED", `{"task":"echo"}`)
		b.claim(t, post("RUNNING", `{"task":"other"}`))
		b.end(t, post("SUCCEEDED", `{"task":"echo"}`), job.Outcome{Kind: job.OutcomeSucceeded})
		b.end(t, post("DEAD", `{"task":"other"}`), job.Outcome{Kind: job.OutcomeFailed, Permanent: true})
		b.want(t, 200, "POST", "/v1/jobs/"+post("CANCELLED", `{"task":"echo","delay":"1h"}`)+"/cancel", "")
	}
	for _, r := range b.want(t, 200, "GET", "/v1/jobs", "").items() {
		if id := r["job_id"].(string); r["status"] != want[id] {
			t.Errorf("job %s is shown as %v, want %s", id, r["status"], want[id])
		}
	}
	for _, status := range []string{"SCHEDULED", "QUEUED", "RUNNING", "SUCCEEDED", "DEAD", "CANCELLED"} {
		got := flat(b.pages(t, "/v1/jobs?limit=2&status="+status, "job_id"))
		for _, id := range got {
			if want[id] != status {
				t.Errorf("among %s: one that is %s", status, want[id])
			}
		}
		if len(got) != 5 {
			t.Errorf("%d are %s, want 5", len(got), status)
		}
	}
	if got := flat(b.pages(t, "/v1/jobs?status=EXPIRED", "job_id")); len(got) != 0 {
		t.Errorf("EXPIRED: %v", got)
	}
	if got := flat(b.pages(t, "/v1/jobs?task=other&status=DEAD", "job_id")); len(got) != 5 {
		t.Errorf("dead ones of a task: %v", got)
	}
}

// crowd writes n jobs in a final status, newer than all others.
func (b *bench) crowd(t *testing.T, like job.Row, n int) {
	t.Helper()
	for i := range n {
		r := like
		r.ID = job.NewID(like.CreatedAt.Add(time.Duration(i+1)*time.Millisecond), [10]byte{byte(i), byte(i >> 8)})
		r.Status, r.DeadAt, r.PendingEffects, r.WakeAt = job.Cancelled, time.Time{}, job.NoPendingEffects, time.Time{}
		if err := b.Store.Put(context.Background(), job.Accept(r)); err != nil {
			t.Fatal(err)
		}
	}
}

//proof:of F27
func TestListJobs_FindsDeadJobsAtOnceAmongManyOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var dead []string
	for range 5 {
		b.clock.at = b.clock.at.Add(time.Millisecond)
		dead = append([]string{b.dead(t, `{"task":"echo"}`)}, dead...)
	}
	b.crowd(t, b.row(t, dead[0]), 5000)
	before := b.World.Counts()
	first := b.want(t, 200, "GET", "/v1/jobs?status=DEAD&limit=2", "")
	if len(first.items()) != 2 || first.items()[0]["job_id"] != dead[0] || first.body["next_cursor"] == nil {
		t.Errorf("the first page: %.300s", first.text)
	}
	if units := b.World.Counts().Total().Read - before.Total().Read; units > 30 {
		t.Errorf("one page cost %v read units", units)
	}
	if got := flat(b.pages(t, "/v1/jobs?status=DEAD&limit=2", "job_id")); !slices.Equal(got, dead) {
		t.Errorf("pages: %v", got)
	}
	if got := flat(b.pages(t, "/v1/jobs?status=DEAD&limit=2&task=http", "job_id")); len(got) != 0 {
		t.Errorf("of another task: %v", got)
	}
}

//proof:of F27
func TestListJobs_FindsRunningJobsAtOnceAmongManyOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long, short, waits := b.post(t, `{"task":"echo"}`), b.post(t, `{"task":"echo"}`), b.post(t, `{"task":"echo"}`)
	b.claim(t, long)
	b.claim(t, short)
	r := b.row(t, long)
	if err := b.Store.Put(t.Context(), job.MarkRunning(r.Key, r.Version, r.Attempt, noon, 0)); err != nil {
		t.Fatal(err)
	}
	b.crowd(t, r, 5000)
	first := b.want(t, 200, "GET", "/v1/jobs?status=RUNNING", "")
	want := []string{long, short}
	slices.Sort(want)
	slices.Reverse(want)
	var got []string
	for _, i := range first.items() {
		got = append(got, fmt.Sprint(i["job_id"]))
	}
	if !slices.Equal(got, want) || first.body["next_cursor"] != nil {
		t.Errorf("the first page (%s waits): %.300s", waits, first.text)
	}
	if got := flat(b.pages(t, "/v1/jobs?status=RUNNING&limit=1", "job_id")); !slices.Equal(got, want) {
		t.Errorf("pages: %v", got)
	}
	b.who = all("globex")
	if r := b.want(t, 200, "GET", "/v1/jobs?status=RUNNING", ""); len(r.items()) != 0 {
		t.Errorf("another tenant sees %s", r.text)
	}
}

//proof:of S33 F27
func TestListJobs_BoundsWhatAPageReadsAndReachesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *memory.Options, d *api.Deps) { o.Clock, d.Clock = clock.System{}, clock.System{} })
		needle := b.post(t, `{"task":"echo"}`)
		b.end(t, needle, job.Outcome{Kind: job.OutcomeSucceeded})
		b.crowd(t, b.row(t, needle), 5000)
		time.Sleep(time.Minute) // so that no job of the crowd is later than now
		b.Each(stagetest.Every(memory.TableQuery), func(memory.Call) {
			time.Sleep(50 * time.Millisecond) // of virtual time
		})
		began := time.Now()
		first := b.want(t, 200, "GET", "/v1/jobs?status=SUCCEEDED", "")
		if took := time.Since(began); took < contract.MaxListRead || took > 2*contract.MaxListRead ||
			first.body["next_cursor"] == nil {
			t.Errorf("the first page took %v: %.300s", took, first.text)
		}
		if got := flat(b.pages(t, "/v1/jobs?status=SUCCEEDED", "job_id")); !slices.Equal(got, []string{needle}) {
			t.Errorf("pages: %v", got)
		}
	})
}

//proof:of F20
func TestListJobs_EndsAtNowAndFiltersByCreatedAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// This makes the jobs of the next half hour.
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"every":"10s"},"job":{"task":"echo"}}`)
	posted := b.post(t, `{"task":"echo"}`)
	list := func(query string) []string { return flat(b.pages(t, "/v1/jobs?limit=50"+query, "job_id")) }
	if got := list(""); len(got) == 0 || got[0] != posted {
		t.Errorf("the newest of %d is not the job just posted", len(got))
	}
	if got := list("&schedule=s"); len(got) < 150 {
		t.Errorf("the schedule shows %d of the jobs that it has made ahead", len(got))
	}
	b.clock.at = b.clock.at.Add(5 * time.Minute)
	later := b.post(t, `{"task":"echo"}`)
	if got := list("&created_after=" + b.clock.at.Format(time.RFC3339)); !slices.Equal(got, []string{later}) {
		t.Errorf("created since then are %v, want only %s", got, later)
	}
	before := list("&created_before=" + b.clock.at.Format(time.RFC3339))
	// The first job, and thirty jobs that were made before they were due.
	if len(before) != 31 || slices.Contains(before, later) {
		t.Errorf("%d jobs were created before", len(before))
	}
	all := list("")
	for _, old := range []string{"0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z"} {
		if got := list("&created_after=" + old); !slices.Equal(got, all) {
			t.Errorf("since %s there are %d jobs, want all %d", old, len(got), len(all))
		}
		if got := list("&created_before=" + old); len(got) > 0 {
			t.Errorf("before %s there are %v", old, got)
		}
		for _, path := range []string{
			"/v1/dead-letters?dead_after=", "/v1/schedules/s/occurrences?before=", "/v1/runs?created_after=",
		} {
			b.want(t, 200, "GET", path+old, "")
		}
	}
}

func TestListJobs_LeavesOutOnlyARowThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.post(t, `{"task":"echo","delay":"1h"}`), b.post(t, `{"task":"echo","delay":"1h"}`)
	bad := b.row(t, first)
	if _, err := b.World.Table().Write(context.Background(),
		item.Write{Ref: bad.Ref(), Name: "spoil", Set: map[string]any{"status": "NONSENSE"}}); err != nil {
		t.Fatal(err)
	}
	if got := flat(b.pages(t, "/v1/jobs", "job_id")); !slices.Equal(got, []string{second}) {
		t.Errorf("the list: %v", got)
	}
	b.want(t, 500, "GET", "/v1/jobs/"+first, "")
}

func TestCursor_IsRefusedForAnotherListOrFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 5 {
		b.dead(t, `{"task":"echo"}`)
	}
	cursor := b.want(t, 200, "GET", "/v1/jobs?limit=2&status=DEAD", "").str("next_cursor")
	b.want(t, 200, "GET", "/v1/jobs?limit=3&status=DEAD&cursor="+cursor, "") // a limit is not a filter
	flipped := []byte(cursor)
	flipped[len(flipped)-3] ^= 1
	for _, path := range []string{
		"/v1/jobs?limit=2&cursor=" + cursor, "/v1/jobs?status=QUEUED&cursor=" + cursor,
		"/v1/jobs?status=DEAD&task=echo&cursor=" + cursor, "/v1/dead-letters?cursor=" + cursor,
		"/v1/tasks?cursor=" + cursor, "/v1/jobs?status=DEAD&cursor=" + string(flipped),
		"/v1/jobs?status=DEAD&cursor=" + cursor[:len(cursor)-1], "/v1/jobs?status=DEAD&cursor=" + cursor + "A",
		"/v1/jobs?status=DEAD&cursor=" + strings.Repeat("A", 5000),
	} {
		if r := b.want(t, 400, "GET", path, ""); r.str("code") != "invalid_cursor" {
			t.Errorf("%.80s: %s", path, r.text)
		}
	}
	b.who = all("zeta")
	if r := b.want(t, 400, "GET", "/v1/jobs?status=DEAD&cursor="+cursor, ""); r.str("code") != "invalid_cursor" {
		t.Errorf("for another tenant: %s", r.text)
	}
}

//proof:of 27 28 73 106
func TestListDeadLetters_ShowsContextNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/other", `{"executor":"go"}`)
	var ids []string
	for i := range 40 {
		if i%3 == 0 { // some die in the same millisecond
			b.clock.at = b.clock.at.Add(time.Second)
		}
		ids = append(ids, b.dead(t, fmt.Sprintf(`{"task":"%s","payload":{"n":%d}}`, []string{"echo", "other"}[i%2], i)))
	}
	for _, limit := range []int{1, 4, 50} {
		got := flat(b.pages(t, fmt.Sprintf("/v1/dead-letters?limit=%d", limit), "job_id"))
		if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, slices.Sorted(slices.Values(ids))) {
			t.Errorf("in pages of %d: %d of %d dead letters, or some twice", limit, len(got), len(ids))
		}
		died := flat(b.pages(t, fmt.Sprintf("/v1/dead-letters?limit=%d", limit), "dead_at"))
		if !slices.IsSortedFunc(died, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("not newest first: %v", died)
		}
	}
	if got := flat(b.pages(t, "/v1/dead-letters?limit=3&task=other", "task")); len(got) != 20 ||
		slices.Contains(got, "echo") {
		t.Errorf("of one task: %v", got)
	}
	if got := flat(b.pages(t, "/v1/dead-letters?dead_after=2027-03-01T12:00:02Z&dead_before=2027-03-01T12:00:04Z",
		"dead_at")); len(got) != 6 {
		t.Errorf("half-open range: %v", got)
	}
	letter := b.want(t, 200, "GET", "/v1/dead-letters?limit=1", "").items()[0]
	attempts := letter["attempts"].([]any)
	if letter["status"] != "DEAD" || letter["payload_size"] == nil ||
		fmt.Sprint(letter["status_reason"]) != "map[code:http_400 message:the target said no]" || len(attempts) != 1 ||
		attempts[0].(map[string]any)["worker"] != "w1" {
		t.Errorf("a dead letter: %v", letter)
	}
}

//proof:of 107 180
func TestRedriveDeadLetters_TakesIDsOrAFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for range 5 {
		b.clock.at = b.clock.at.Add(time.Second)
		ids = append(ids, b.dead(t, `{"task":"echo"}`))
	}
	alive := b.post(t, `{"task":"echo","delay":"1h"}`)
	dry := b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"filter":{},"limit":2,"dry_run":true}`)
	if dry.body["matched"] != 2.0 || dry.items()[0]["job_id"] != ids[4] || dry.items()[0]["new_job_id"] != nil ||
		b.row(t, ids[4]).RedrivenBy != "" {
		t.Errorf("the dry run: %s", dry.text)
	}
	first := b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"filter":{"task":"echo"},"limit":2}`)
	second := b.want(t, 200, "POST", "/v1/dead-letters/redrive",
		`{"filter":{"task":"echo"},"limit":10,"cursor":"`+first.str("next_cursor")+`"}`)
	if first.body["matched"] != 2.0 || second.body["matched"] != 3.0 || second.body["next_cursor"] != nil {
		t.Errorf("by filter: %s%s", first.text, second.text)
	}
	for _, i := range append(first.items(), second.items()...) {
		if row := b.row(t, i["new_job_id"].(string)); string(row.RedriveOf) != i["job_id"] {
			t.Errorf("%v became %s, which is of %s", i["job_id"], row.ID, row.RedriveOf)
		}
	}
	repeated := b.want(t, 200, "POST", "/v1/dead-letters/redrive",
		`{"job_ids":["`+ids[4]+`","`+ids[4]+`","`+alive+`","01ARZ3NDEKTSV4RRFFQ69G5FAV"]}`)
	if repeated.body["matched"] != 1.0 || repeated.items()[0]["new_job_id"] != first.items()[0]["new_job_id"] {
		t.Errorf("by id once more: %s", repeated.text)
	}
	for i, code := range map[int]string{1: "not_finished", 2: "not_found"} {
		if p, _ := repeated.items()[i]["problem"].(map[string]any); p["code"] != code {
			t.Errorf("item %d: %v, want %s", i, repeated.items()[i], code)
		}
	}
	// Five when they were accepted, five when they were redriven, and one when that was repeated: no worker has claimed
	// it.
	if n := len(b.Received(stagetest.FiringQueue)); n != 11 {
		t.Errorf("%d firings", n)
	}
	purged := b.want(t, 200, "POST", "/v1/dead-letters/purge", `{"filter":{"dead_before":"2027-03-01T12:00:03Z"}}`)
	if purged.body["matched"] != 2.0 {
		t.Errorf("purge: %s", purged.text)
	}
	b.want(t, 404, "GET", "/v1/jobs/"+ids[0], "")
	if got := flat(b.pages(t, "/v1/dead-letters", "job_id")); len(got) != 3 {
		t.Errorf("left: %v", got)
	}
}

//proof:of F27
func TestListJobs_FindsJobsOfATaskAtOnceAmongManyOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.clock.at = noon.Add(-5 * time.Hour)
	var rare []string
	for range 3 { // an hour apart, with two jobs in one of them
		b.clock.at = b.clock.at.Add(time.Hour)
		for range 2 {
			b.clock.at = b.clock.at.Add(time.Minute)
			rare = append([]string{b.post(t, `{"task":"lambda","payload":{"function":"f"},"delay":"30d"}`)}, rare...)
		}
	}
	b.clock.at = noon
	b.crowd(t, b.row(t, b.post(t, `{"task":"echo"}`)), 5000)
	before := b.World.Counts()
	first := b.want(t, 200, "GET", "/v1/jobs?task=lambda&limit=4", "")
	if len(first.items()) != 4 || first.items()[0]["job_id"] != rare[0] {
		t.Errorf("the first page: %.300s", first.text)
	}
	if units := b.World.Counts().Total().Read - before.Total().Read; units > 120 { // 5,000 rows would cost over 250
		t.Errorf("one page cost %v read units", units)
	}
	for _, limit := range []string{"1", "4", "5", "200"} {
		if got := flat(b.pages(t, "/v1/jobs?task=lambda&limit="+limit, "job_id")); !slices.Equal(got, rare) {
			t.Errorf("pages of %s: %v, want %v", limit, got, rare)
		}
	}
	between := "&created_after=2027-03-01T09:00:00Z&created_before=" +
		b.want(t, 200, "GET", "/v1/jobs/"+rare[0], "").str("created_at")
	if got := flat(b.pages(t, "/v1/jobs?task=lambda"+between, "job_id")); !slices.Equal(got, rare[1:4]) {
		t.Errorf("between two times: %v, want %v", got, rare[1:4])
	}
	if got := flat(b.pages(t, "/v1/jobs?task=http", "job_id")); len(got) != 0 {
		t.Errorf("of a task without jobs: %v", got)
	}
}

//proof:of F27
func TestCreateJob_RecordsATaskOncePerStretchOfTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	notes := 0
	b.Each(stagetest.Named(store.WriteTaskNote), func(memory.Call) { notes++ })
	for range 2 {
		notes = 0
		b.clock.at = b.clock.at.Add(contract.TaskStretch)
		for range 500 {
			b.post(t, `{"task":"echo"}`)
		}
		if notes == 0 || notes > contract.Partitions {
			t.Errorf("%d notes were written for 500 jobs, want at most one for each partition", notes)
		}
	}
	b.Fail(stagetest.Named(store.WriteTaskNote))
	b.clock.at = b.clock.at.Add(contract.TaskStretch)
	b.want(t, 503, "POST", "/v1/jobs", `{"task":"echo"}`)
	b.World.SetFaults(nil)
	b.post(t, `{"task":"echo"}`)
	if got := flat(b.pages(t, "/v1/jobs?task=echo&created_after="+b.clock.at.Format(time.RFC3339),
		"job_id")); len(got) != 1 {
		t.Errorf("what was accepted after the note failed: %v", got)
	}
}
