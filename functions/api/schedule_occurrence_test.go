package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

// made writes the job of a nominal time, as promotion does.
func (b *bench) made(t *testing.T, s schedule.Schedule, nominal time.Time, change func(*job.Row)) job.Row {
	t.Helper()
	r, _ := s.Job(calendar.Occurrence{NominalAt: nominal, DueAt: nominal}, 4, nominal.Add(-time.Minute))
	if change != nil {
		change(&r)
	}
	if err := b.Store.Put(context.Background(), item.Write{Ref: r.Ref(), Put: r.Item()}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *bench) recorded(t *testing.T, entries ...schedule.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := b.Store.Put(context.Background(), e.Put()); err != nil {
			t.Fatal(err)
		}
	}
}

// history is a schedule at ten each day with a past. Of the days in February, 23 ran, 24 failed, 25 was excluded, 26 to
// 27 were lost in an outage, and 28 was skipped; today's job runs.
func history(t *testing.T) (*bench, schedule.Schedule) {
	t.Helper()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	s := b.schedule(t, "s")
	day := func(n int) time.Time { return time.Date(2027, 2, n, 10, 0, 0, 0, time.UTC) }
	ran := func(late int64) func(*job.Row) {
		return func(r *job.Row) {
			r.Status, r.StartedAt, r.FinishedAt, r.LatenessMS, r.WakeAt = job.Succeeded,
				r.DueAt.Add(time.Duration(late)*time.Millisecond), r.DueAt.Add(time.Second), late, time.Time{}
		}
	}
	b.made(t, s, day(23), ran(7))
	b.made(t, s, day(24), func(r *job.Row) {
		ran(0)(r)
		r.Status, r.Reason, r.DeadAt = job.Dead, job.Reason{Code: "http_400", Message: "the target said no"},
			r.FinishedAt
	})
	entry := func(from, to, count int, outcome, reason, why string, epoch int64) schedule.Entry {
		return schedule.Entry{Key: s.Key, Epoch: epoch, From: day(from), To: day(to), Count: count, Outcome: outcome,
			Reason: reason, Why: why, At: noon}
	}
	b.recorded(t,
		entry(23, 23, 1, schedule.Superseded, job.CodeEdited, "a word that its job overrules", 1),
		entry(25, 25, 1, schedule.Superseded, job.CodeEdited, "an older word", 9),
		entry(25, 25, 1, schedule.Skipped, calendar.SkipExcluded, `excluded by "x"`, 10),
		entry(26, 27, 2, schedule.Missed, schedule.ReasonOutage, "nobody was there", 1),
	)
	b.made(t, s, day(28), func(r *job.Row) {
		r.Status, r.FinishedAt, r.WakeAt = job.Skipped, r.DueAt, time.Time{}
		r.Reason = job.Reason{Code: job.CodeOverlap, Message: "an earlier run was not over"}
	})
	b.made(t, s, time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC),
		func(r *job.Row) { r.Status, r.StartedAt, r.LatenessMS = job.Running, r.DueAt, 1 })
	return b, s
}

//proof:of 25 34 45 192 S35 F37
func TestOccurrences_ShowEachTimeNewestFirst(t *testing.T) {
	t.Parallel()
	b, s := history(t)
	id := func(month time.Month, day int) string {
		return string(s.JobID(time.Date(2027, month, day, 10, 0, 0, 0, time.UTC)))
	}
	items := []string{
		`{"nominal_at":"2027-03-01T10:00:00.000Z","due_at":"2027-03-01T10:00:00.000Z","outcome":"pending","job_id":"` +
			id(3, 1) + `","status":"RUNNING","start_lateness_ms":1}`,
		`{"nominal_at":"2027-02-28T10:00:00.000Z","due_at":"2027-02-28T10:00:00.000Z","outcome":"skipped","reason":"overlap","why":"an earlier run was not over","job_id":"` + id(2, 28) + `","status":"SKIPPED"}`,
		`{"nominal_at":"2027-02-26T10:00:00.000Z","outcome":"missed","reason":"outage","why":"nobody was there","until":"2027-02-27T10:00:00.000Z","count":2}`,
		`{"nominal_at":"2027-02-25T10:00:00.000Z","outcome":"skipped","reason":"excluded","why":"excluded by \"x\""}`,
		`{"nominal_at":"2027-02-24T10:00:00.000Z","due_at":"2027-02-24T10:00:00.000Z","outcome":"ran","reason":"http_400","why":"it ran and failed for good: the target said no","job_id":"` + id(2, 24) + `","status":"DEAD","start_lateness_ms":0}`,
		`{"nominal_at":"2027-02-23T10:00:00.000Z","due_at":"2027-02-23T10:00:00.000Z","outcome":"ran","job_id":"` +
			id(2, 23) + `","status":"SUCCEEDED","start_lateness_ms":7}`,
	}
	if r := b.want(t, 200, "GET", "/v1/schedules/s/occurrences",
		""); strings.TrimSpace(r.text) != `{"items":[`+strings.Join(items, ",")+`],"next_cursor":null}` {
		t.Errorf("answered\n%s\nwant\n%s", r.text, strings.Join(items, ",\n"))
	}
	if g := b.want(t, 200, "GET", "/v1/schedules/s", ""); !strings.Contains(g.text, `"last":`+items[0]) {
		t.Errorf("the last is %v", g.body["last"])
	}
	for query, want := range map[string]string{
		"outcome=ran":                                            "[24 23]",
		"outcome=skipped":                                        "[28 25]",
		"outcome=missed":                                         "[26]",
		"outcome=pending":                                        "[01]",
		"outcome=superseded":                                     "[]",
		"after=2027-02-25T10:00:00Z":                             "[01 28 26 25]",
		"after=2027-02-27T00:00:00Z":                             "[01 28 26]",
		"after=2027-02-27T00:00:00Z&outcome=missed":              "[26]",
		"after=2027-02-27T10:00:00.001Z":                         "[01 28]",
		"before=2027-02-25T10:00:00Z":                            "[24 23]",
		"after=2027-02-24T10:00:00Z&before=2027-02-28T10:00:00Z": "[26 25 24]",
	} {
		for _, limit := range []string{"200", "1", "2", "5"} {
			var got []string
			for _, page := range b.pages(t, "/v1/schedules/s/occurrences?limit="+limit+"&"+query, "nominal_at") {
				for _, at := range page {
					got = append(got, at[8:10])
				}
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s by %s: %v, want %s", query, limit, got, want)
			}
		}
	}
	for _, c := range []wrong{
		{"an outcome", "outcome=done", 400, "invalid_value", "outcome"},
		{"two outcomes", "outcome=ran&outcome=skipped", 400, "duplicate_field", "outcome"},
		{"no time", "after=yesterday", 400, "invalid_value", "after"},
		{"a range backwards", "after=2027-02-25T10:00:00Z&before=2027-02-24T10:00:00Z", 400, "conflicting_fields",
			"before"},
		{"a limit", "limit=201", 400, "out_of_range", "limit"},
		{"a cursor of another list", "outcome=ran&cursor=" + fmt.Sprint(b.want(t, 200, "GET",
			"/v1/schedules/s/occurrences?limit=1", "").body["next_cursor"]), 400, "invalid_cursor", "cursor"},
		{"an unknown parameter", "reason=overlap", 400, "unknown_field", "reason"},
	} {
		requireRefused(t, b, c, b.do(t, "GET", "/v1/schedules/s/occurrences?"+c.body, ""))
	}
	b.want(t, 404, "GET", "/v1/schedules/none/occurrences", "")
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if r := b.want(t, 200, "GET", "/v1/schedules/s/occurrences", ""); len(r.items()) < len(items) {
		t.Errorf("once it is deleted: %s", r.text)
	}
}

func TestOccurrences_ListManualRunsAtTheirTime(t *testing.T) {
	t.Parallel()
	b, s := history(t)
	day := func(n int) time.Time { return time.Date(2027, 2, n, 10, 0, 0, 0, time.UTC) }
	for n, at := range []time.Time{day(23), day(23), day(25), day(26), day(27).Add(time.Minute)} {
		r, _ := s.RunNow(job.NewID(at, [10]byte{9: byte(n)}), false, 4, at)
		r.Status, r.StartedAt, r.WakeAt = job.Succeeded, at, time.Time{}
		if err := b.Store.Put(context.Background(), item.Write{Ref: r.Ref(), Put: r.Item()}); err != nil {
			t.Fatal(err)
		}
	}
	want := "[01 28 27+4 26 26+3 25 25+2 24 23 23+0 23+1]"
	for _, limit := range []string{"200", "1", "2", "3", "5"} {
		var got []string
		for cursor := ""; ; {
			r := b.want(t, 200, "GET", "/v1/schedules/s/occurrences?limit="+limit+cursor, "")
			for _, o := range r.items() {
				mark := fmt.Sprint(o["nominal_at"])[8:10]
				if o["manual"] == true {
					mark += "+" + fmt.Sprint(o["job_id"])[25:]
				}
				got = append(got, mark)
			}
			if r.body["next_cursor"] == nil {
				break
			}
			cursor = "&cursor=" + r.str("next_cursor")
		}
		if fmt.Sprint(got) != want {
			t.Errorf("by %s: %v, want %s", limit, got, want)
		}
	}
}

func TestGetJob_ShowsWhyAJobIsQueuedBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo"},"overlap":"buffer_all"}`)
	r := b.made(t, b.schedule(t, "s"), noon.Add(-2*time.Hour),
		func(r *job.Row) { r.Parked, r.QueuedBehind = true, true })
	g := b.want(t, 200, "GET", "/v1/jobs/"+string(r.ID), "")
	if g.str("status") != "SCHEDULED" || g.str("waiting_for") != "worker" || g.at("status_reason",
		"code") != "overlap" || !strings.Contains(g.at("status_reason", "message"), "earlier run") {
		t.Errorf("the job is %s", g.text)
	}
	occurrence := func() map[string]any { return b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "").items()[0] }
	if o := occurrence(); o["outcome"] != "pending" || o["reason"] != "overlap" ||
		!strings.Contains(fmt.Sprint(o["why"]), "earlier run") {
		t.Errorf("the occurrence is %v", o)
	}
	b.want(t, 201, "PUT", "/v1/pauses/all", "")
	if g := b.want(t, 200, "GET", "/v1/jobs/"+string(r.ID), ""); g.str("waiting_for") != "pause" {
		t.Errorf("under a pause of everything: %s", g.text)
	}
	b.want(t, 200, "POST", "/v1/schedules/s/pause", "")
	if o := occurrence(); o["reason"] != "paused" {
		t.Errorf("under a pause of the schedule: %v", o)
	}
}

func TestOccurrences_ShowTimesThatAnEditOrPauseSkips(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := noon.Add(10 * time.Minute)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"10 12 * * *"},"job":{"task":"echo"}}`)
	occurrence := func() string {
		t.Helper()
		later := b.want(t, 200, "GET", "/v1/schedules/s/occurrences?outcome=pending", "").items()
		for _, o := range append(later, b.want(t, 200, "GET",
			"/v1/schedules/s/occurrences?outcome=superseded&before=2027-03-01T13:00:00Z", "").items()...) {
			if o["nominal_at"] == "2027-03-01T12:10:00.000Z" {
				return fmt.Sprint(o["outcome"], " ", o["reason"], " ", o["job_id"])
			}
		}
		return "none"
	}
	id := string(b.schedule(t, "s").JobID(at))
	if got := occurrence(); got != "pending <nil> "+id { // made at once, because it is within the horizon
		t.Errorf("made: %s", got)
	}
	b.want(t, 200, "POST", "/v1/schedules/s/pause", "")
	if got := occurrence(); got != "pending paused "+id {
		t.Errorf("paused: %s", got)
	}
	b.want(t, 200, "POST", "/v1/schedules/s/resume", "")
	if got := occurrence(); got != "pending <nil> "+id || b.row(t, id).Epoch != b.schedule(t, "s").Epoch {
		t.Errorf("resumed: %s", got)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/s", `{"calendar":{"cron":"20 12 * * *"}}`)
	if got := occurrence(); got != "superseded edited "+id {
		t.Errorf("edited: %s", got)
	}
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if got := occurrence(); got != "superseded deleted "+id {
		t.Errorf("deleted: %s", got)
	}
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"30 12 * * *"},"job":{"task":"echo"}}`)
	b.want(t, 200, "POST", "/v1/schedules/s/pause", "")
	b.want(t, 200, "POST", "/v1/schedules/s/resume", "")
	if got := occurrence(); got != "superseded edited "+id {
		t.Errorf("its name given to another schedule, which was paused for a moment: %s", got)
	}
}

// A pause moves the schedule's next time back to times that may already have jobs.
func TestSchedules_RecordNoTimeThatHasAJob(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *memory.Options, _ *api.Deps) { o.IndexLag = memory.LagUpTo(time.Hour) })
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sat"]}`)
	minutely := `{"calendar":{"cron":"* * * * *","exclude":["x"]},"job":{"task":"echo"}}`
	for name, change := range map[string]struct{ method, path, body string }{
		"patched": {"PATCH", "/v1/schedules/patched", `{"overlap":"skip"}`},
		"replaced": {"PUT", "/v1/schedules/replaced",
			`{"calendar":{"cron":"0 10 * * *","exclude":["x"]},"job":{"task":"echo"}}`},
		"deleted": {"DELETE", "/v1/schedules/deleted", ""},
		"follows": {"PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`},
	} {
		b.clock.at = noon
		b.want(t, 201, "PUT", "/v1/schedules/"+name, minutely)
		b.clock.at = noon.Add(3*time.Minute + 30*time.Second)
		b.want(t, 200, "POST", "/v1/schedules/"+name+"/pause", "")
		b.clock.at = noon.Add(5*time.Minute + 30*time.Second)
		s := b.schedule(t, name)
		if left := s.Leaves(b.clock.at); len(left) != 2 || !left[0].Equal(noon.Add(4*time.Minute)) {
			t.Fatalf("%s: it would leave %v", name, left)
		}
		// The job of one of these times was never made.
		if err := b.Store.Put(context.Background(), item.Write{Ref: job.Key{Tenant: s.Tenant,
			ID: s.JobID(noon.Add(4 * time.Minute))}.Ref(), Delete: true}); err != nil {
			t.Fatal(err)
		}
		b.do(t, change.method, change.path, change.body)
		entries, _, err := b.Store.Recorded(context.Background(), s.Key, time.Time{}, time.Time{}, false, 0, "")
		if err != nil || len(entries) != 1 || !entries[0].From.Equal(noon.Add(4*time.Minute)) ||
			entries[0].Count != 1 || b.schedule(t, name).Epoch != s.Epoch+1 {
			t.Errorf("%s: recorded %+v, %v", name, entries, err)
		}
	}
}

func TestPauseSchedule_NamesTheJobsInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"*/10 * * * *"},"job":{"task":"echo"}}`)
	s := b.schedule(t, "s")
	running := b.made(t, s, noon.Add(-time.Hour), func(r *job.Row) { r.Status, r.StartedAt = job.Running, r.DueAt })
	b.made(t, s, noon.Add(-2*time.Hour), func(r *job.Row) { r.Status, r.WakeAt = job.Succeeded, time.Time{} })
	claimed := b.made(t, s, noon.Add(-10*time.Minute), nil)
	b.claim(t, string(claimed.ID))
	r := b.want(t, 200, "POST", "/v1/schedules/s/pause", `{"reason":"maintenance"}`)
	if got := r.at("in_flight"); got != fmt.Sprintf("[%s %s]", claimed.ID, running.ID) {
		t.Errorf("in flight: %s, want %s and %s", got, claimed.ID, running.ID)
	}
	if r.str("effective_at") != "2027-03-01T12:00:02.000Z" {
		t.Errorf("effective at %q", r.str("effective_at"))
	}
	b.want(t, 201, "PUT", "/v1/schedules/idle", daily)
	if r := b.want(t, 200, "POST", "/v1/schedules/idle/pause", ""); r.at("in_flight") != "[]" {
		t.Errorf("of an idle one: %s", r.text)
	}
	if g := b.want(t, 200, "GET", "/v1/schedules/s", ""); g.body["in_flight"] != nil {
		t.Errorf("GET names them, too: %s", g.text)
	}
	b.want(t, 201, "PUT", "/v1/schedules/busy", `{"calendar":{"every":"1s"},"job":{"task":"echo"}}`) // 1,800 times ahead
	now := b.made(t, b.schedule(t, "busy"), noon, nil)
	b.claim(t, string(now.ID))
	if r := b.want(t, 200, "POST", "/v1/schedules/busy/pause", ""); r.at("in_flight") != fmt.Sprintf("[%s]", now.ID) {
		t.Errorf("of a busy one: %s", r.at("in_flight"))
	}
}

//proof:of F40
func TestPauseSchedule_ResumesAtItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	b.want(t, 200, "POST", "/v1/schedules/s/pause", `{"until":"2027-03-01T12:05:00Z"}`)
	promotion := "promote#acme#s"
	if n := len(b.Received(contract.DispatchQueue)); n != 0 {
		t.Errorf("%d came before the pause ends", n)
	}
	b.clock.at = noon.Add(5 * time.Minute)
	var bodies []string
	for _, m := range b.Received(contract.DispatchQueue) {
		bodies = append(bodies, m.Body)
	}
	if len(bodies) != contract.ParkShards+1 || !strings.Contains(strings.Join(bodies, " "), promotion) {
		t.Errorf("sent %v", bodies)
	}
	b.want(t, 200, "POST", "/v1/schedules/s/resume", "")
	if n := len(b.Received(contract.DispatchQueue)); n != contract.ParkShards {
		t.Errorf("resuming sent %d", n)
	}
}

//proof:of 4 14 S10
func TestPreview_TakesAScheduleByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 9 * * *","timezone":"Europe/Berlin","spread":"30m","max_runs":2},"job":{"task":"echo"}}`)
	r := b.want(t, 200, "GET", "/v1/schedules/s/preview?after=2027-03-26T12:00:00%2B01:00&count=10", "")
	if items := r.items(); len(items) != 2 || items[0]["local"] != "2027-03-27T09:00:00+01:00" ||
		items[1]["nominal_at"] != "2027-03-28T07:00:00.000Z" || fmt.Sprint(items[1]["flags"]) != "[change_over_day]" {
		t.Errorf("answered %s", r.text)
	}
	draft := b.want(t, 200, "POST", "/v1/schedules/preview",
		`{"calendar":{"cron":"0 9 * * *","timezone":"Europe/Berlin","spread":"30m","max_runs":2},"name":"s","after":"2027-03-26T11:00:00Z"}`)
	if draft.text != r.text || r.items()[0]["due_at"] == r.items()[0]["nominal_at"] {
		t.Errorf("as a draft it is %s", draft.text)
	}
	for _, c := range []wrong{
		{"no time", "after=now", 400, "invalid_value", "after"},
		{"no number", "count=few", 400, "invalid_value", "count"},
		{"too many", "count=1001", 400, "out_of_range", "count"},
	} {
		requireRefused(t, b, c, b.do(t, "GET", "/v1/schedules/s/preview?"+c.body, ""))
	}
}

//proof:of F25
func TestOccurrences_ShowExcludedTimesBeforeTheyAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/exclusions/holidays", `{"dates":["2027-03-02"]}`)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *","exclude":["holidays"]},"job":{"task":"echo"}}`)
	list := func() string {
		var lines []string
		for _, o := range b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "").items() {
			lines = append(lines, fmt.Sprint(o["nominal_at"], " ", o["outcome"], " ", o["reason"], " ", o["why"]))
		}
		return strings.Join(lines, "\n")
	}
	b.clock.at = time.Date(2027, 3, 2, 9, 59, 0, 0, time.UTC)
	if got := list(); got != "" {
		t.Errorf("a minute before the excluded time it lists %s", got)
	}
	b.clock.at = time.Date(2027, 3, 2, 10, 0, 1, 0, time.UTC)
	if got := list(); got != `2027-03-02T10:00:00.000Z skipped excluded excluded by "holidays"` {
		t.Errorf("a second after the excluded time it lists %q", got)
	}
}
