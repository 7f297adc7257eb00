package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// daily runs at ten each day, so at noon its next time is beyond the horizon.
const daily = `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":{"a":1,"b":[2]}}}`

func (b *bench) schedule(t *testing.T, name string) schedule.Schedule {
	t.Helper()
	s, err := b.Store.Schedule(context.Background(), schedule.Key{Tenant: b.who.Tenant, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (r reply) at(path ...string) string {
	var v any = r.body
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return fmt.Sprint(v)
}

//proof:of 9 10 26
func TestPutSchedule_ShowsTheNextTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 201, "PUT", "/v1/schedules/report",
		`{"calendar":{"cron":"0 9 * * 1-5","timezone":"Europe/Berlin","spread":"5m","max_runs":100},
		"job":{"task":"echo","payload":{"x":[1, 2]},"priority":"high","timeout":"2m","start_within":"10m",
			"expire_after":"1d","retry":{"max_attempts":3,"on_worker_lost":"fail"},"tags":{"team":"billing"}},
		"overlap":"skip","catch_up":{"policy":"all","window":"6h","cap":7},"pause_after_failures":5}`)
	want := `{"name":"report","calendar":{"cron":"0 9 * * 1-5","timezone":"Europe/Berlin","max_runs":100,"spread":"5m"},` +
		`"job":{"task":"echo","pool":"short","priority":"high","timeout":"2m","start_within":"10m","expire_after":"1d",` +
		`"retry":{"max_attempts":3,"initial_delay":"1s","factor":2,"max_delay":"5m","jitter":0.3,"on_worker_lost":"fail"},"tags":{"team":"billing"},"payload_size":11,"payload":{"x":[1,2]}},` +
		`"overlap":"skip","catch_up":{"policy":"all","window":"6h","cap":7,"after":"1m"},"pause_after_failures":5,` +
		`"version":1,"created_at":"2027-03-01T12:00:00.000Z","updated_at":"2027-03-01T12:00:00.000Z",` +
		`"next":["2027-03-02T08:00:00.000Z","2027-03-03T08:00:00.000Z","2027-03-04T08:00:00.000Z"],"last":null,"paused":null}`
	if strings.TrimSpace(r.text) != want || r.header.Get("ETag") != `"1"` {
		t.Errorf("ETag %s, the view is\n%s\nwant\n%s", r.header.Get("ETag"), r.text, want)
	}
	if g := b.want(t, 200, "GET", "/v1/schedules/report", ""); g.text != r.text || g.header.Get("ETag") != `"1"` {
		t.Errorf("GET answers %s", g.text)
	}
	least := b.want(t, 201, "PUT", "/v1/schedules/least", `{"calendar":{"every":"1d"},"job":{"task":"echo"}}`)
	if least.at("overlap") != "allow" || least.at("catch_up") != "map[after:1m cap:100 policy:last window:1h]" ||
		least.at("job", "timeout") != "30s" || least.at("pause_after_failures") != "0" {
		t.Errorf("the defaults are %s", least.text)
	}
	or := b.want(t, 201, "PUT", "/v1/schedules/friday-13", `{"calendar":{"cron":"0 0 13 * 5"},"job":{"task":"echo"}}`)
	if !strings.Contains(or.at("notes"), "either") {
		t.Errorf("the day fields are OR-ed without a word: %s", or.text)
	}
	if pages := b.pages(t, "/v1/schedules?limit=2", "name"); fmt.Sprint(pages) != "[[friday-13 least] [report]]" {
		t.Errorf("the list is %v", pages)
	}
	list := b.want(t, 200, "GET", "/v1/schedules", "")
	if v := list.items()[2]; v["next"] == nil || v["job"].(map[string]any)["payload"] != nil ||
		strings.Contains(list.text, `"last":`) {
		t.Errorf("the list shows %v", v)
	}
}

//proof:of 45
func TestPutSchedule_ChangesNothingWhenRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	stored := fmt.Sprint(b.schedule(t, "s").Item())
	b.clock.at = noon.Add(time.Hour)
	for name, body := range map[string]string{
		"as it was":         daily,
		"in other words":    `{ "job": {"payload":{"b":[2.0],"\u0061":1e0}, "task":"echo"}, "calendar": {"cron":"0 10 * * *"} }`,
		"with its defaults": `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":{"a":1,"b":[2]},"timeout":"30s"},"overlap":"allow","catch_up":{},"pause_after_failures":0}`,
	} {
		r := b.want(t, 200, "PUT", "/v1/schedules/s", body)
		if r.text != first.text || fmt.Sprint(b.schedule(t, "s").Item()) != stored {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	large := func(first, second string) string {
		return `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":{` + first + `,` + second + `}}}`
	}
	one, two := `"x":`+text(300<<10), `"y":[1]`
	b.want(t, 201, "PUT", "/v1/schedules/large", large(one, two))
	if r := b.want(t, 200, "PUT", "/v1/schedules/large", large(two, one)); r.body["version"] != 1.0 {
		t.Errorf("a large payload in other words: epoch %v", r.body["version"])
	}
	if r := b.want(t, 200, "PUT", "/v1/schedules/large",
		large(two, `"x":`+text(299<<10))); r.body["version"] != 2.0 || r.at("job", "payload") != "<nil>" {
		t.Errorf("another large payload: %.300s", r.text)
	}
	if r := b.want(t, 200, "PUT", "/v1/schedules/s", strings.Replace(daily, "10", "11", 1)); r.body["version"] != 2.0 ||
		r.body["created_at"] != first.body["created_at"] || r.str("updated_at") != "2027-03-01T13:00:00.000Z" {
		t.Errorf("another hour: %s", r.text)
	}
}

// payloads returns the payloads of a tenant's schedule that have no time to live.
func (b *bench) payloads(t *testing.T, k schedule.Key) (stay []string) {
	t.Helper()
	page, err := b.World.Table().Query(context.Background(),
		item.Query{Table: contract.Schedules, PK: k.PayloadHashRef("").PK, Consistent: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range page.Items {
		if i[contract.AttrExpiresAt] == nil {
			stay = append(stay, i.Str(contract.AttrSK))
		}
	}
	return stay
}

func TestPutSchedule_DeletesAReplacedPayloadAndJobsKeepTheirs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := func(payload, more string) string {
		return `{"calendar":{"cron":"*/10 * * * *"},"job":{"task":"echo","payload":` + payload + more + `}}`
	}
	small := func(letter string) string { return `"` + strings.Repeat(letter, 3000) + `"` }
	b.want(t, 201, "PUT", "/v1/schedules/s", body(small("a"), ""))
	first := b.schedule(t, "s")
	made := string(first.JobID(noon.Add(10 * time.Minute)))
	b.want(t, 200, "PUT", "/v1/schedules/s", body(small("a"), `,"priority":"high"`)) // the payload does not change
	if s := b.schedule(t, "s"); s.Epoch != 2 || s.Template.PayloadHash != first.Template.PayloadHash ||
		fmt.Sprint(b.payloads(t, s.Key)) != fmt.Sprint([]string{first.Template.PayloadHash}) {
		t.Errorf("epoch %d, payloads %v", s.Epoch, b.payloads(t, s.Key))
	}
	ran := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "").str("job_id")
	for _, letter := range []string{"b", "a", "b"} { // a payload may come back
		b.want(t, 200, "PUT", "/v1/schedules/s", body(small(letter), ""))
		s := b.schedule(t, "s")
		if fmt.Sprint(b.payloads(t, s.Key)) != fmt.Sprint([]string{s.Template.PayloadHash}) {
			t.Errorf("payloads that stay: %v, that of the schedule is %s", b.payloads(t, s.Key), s.Template.PayloadHash)
		}
	}
	b.clock.at = noon.Add(schedule.ReplacedKept + time.Minute)
	if n := b.World.Table().Expire(); n != 3 {
		t.Errorf("%d items went", n)
	}
	if g := b.want(t, 200, "GET", "/v1/schedules/s", ""); g.at("job", "payload") != strings.Repeat("b", 3000) {
		t.Errorf("the schedule's payload is %.80s", g.at("job", "payload"))
	}
	if g := b.want(t, 200, "GET", "/v1/jobs/"+ran, ""); g.at("payload") != strings.Repeat("a", 3000) {
		t.Errorf("the payload of a job made before is %.80s", g.at("payload"))
	}
	if g := b.want(t, 200, "GET", "/v1/jobs/"+made, ""); g.at("payload") == "<nil>" {
		t.Error("the job of a time has lost its payload")
	}

	large := func(letter string) string { return `"` + strings.Repeat(letter, 300<<10) + `"` }
	var keys []string
	b.want(t, 201, "PUT", "/v1/schedules/l", body(large("a"), ""))
	for _, letter := range []string{"b", "b", "a"} {
		s := b.schedule(t, "l")
		keys = append(keys, s.PayloadBlob(s.Template.PayloadHash))
		b.want(t, 200, "PUT", "/v1/schedules/l", body(large(letter), ""))
	}
	ran = b.want(t, 202, "POST", "/v1/schedules/l/run-now", "").str("job_id") // reads the current blob
	s := b.schedule(t, "l")
	b.want(t, 204, "DELETE", "/v1/schedules/l", "")
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if left := b.payloads(t, b.schedule(t, "s").Key); len(left) != 0 {
		t.Errorf("a deleted schedule leaves the payloads %v", left)
	}
	for _, key := range append(keys, s.PayloadBlob(s.Template.PayloadHash)) {
		if _, err := b.World.Blobs().Get(context.Background(), key); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s is still there, %v", key, err)
		}
	}
	if r := b.row(t, ran); r.PayloadIn != job.InBlob {
		t.Errorf("its payload is in %q", r.PayloadIn)
	} else if got, err := b.Store.Payload(context.Background(), r); err != nil || len(got) != 300<<10+2 {
		t.Errorf("the job of the deleted schedule has a payload of %d bytes, %v", len(got), err)
	}
}

func TestRunScheduleNow_RunsAPayloadThatIsJustReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := func(letter string) string {
		return `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":"` +
			strings.Repeat(letter, 300<<10) + `"}}`
	}
	b.want(t, 201, "PUT", "/v1/schedules/s", body("a"))
	b.Before(stagetest.Every(memory.BlobGet), func() { b.want(t, 200, "PUT", "/v1/schedules/s", body("b")) })
	id := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "").str("job_id")
	if got, err := b.Store.Payload(context.Background(), b.row(t, id)); err != nil ||
		!strings.HasPrefix(string(got), `"bb`) {
		t.Errorf("it runs %.5s, %v", got, err)
	}
}

func TestPutSchedule_KeepsDeclaredLiterals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":{"secret":"` + sentinel +
		`"},"allow_literals":["/payload/secret"]}}`
	r := b.want(t, 201, "PUT", "/v1/schedules/s", body)
	if r.at("job", "allow_literals") != "[/payload/secret]" {
		t.Errorf("the schedule is %s", r.text)
	}
	b.who.Subject = "another"
	if repeated := b.want(t, 200, "PUT", "/v1/schedules/s", body); repeated.body["version"] != 1.0 ||
		b.schedule(t, "s").Template.Literals.By != "tester" {
		t.Errorf("the same by another: %s", repeated.text)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/s",
		`{"job":{"task":"echo","payload":{"secret":"`+sentinel+`","token":"`+sentinel+
			`"},"allow_literals":["/payload/secret","/payload/token"]}}`)
	if l := b.schedule(t, "s").Template.Literals; l == nil || l.By != "another" || len(l.Pointers) != 2 {
		t.Errorf("replaced, it declares %+v", l)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"payload":1,"allow_literals":null}}`); r.at("job",
		"allow_literals") != "<nil>" {
		t.Errorf("without: %s", r.text)
	}
}

func TestDeleteSchedule_ListsWhatKeepsRunning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"*/10 * * * *"},"job":{"task":"echo"}}`)
	s := b.schedule(t, "s")
	one := b.made(t, s, noon.Add(-time.Hour), func(r *job.Row) { r.Status, r.StartedAt = job.Running, r.DueAt })
	two := b.made(t, s, noon.Add(-10*time.Minute), nil)
	b.claim(t, string(two.ID))
	// The write takes three seconds. Until then workers may have read the schedule as it was.
	b.Each(stagetest.Named(schedule.WriteDelete), func(memory.Call) {
		b.clock.at = noon.Add(3 * time.Second)
	})
	r := b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if got := r.header.Get("Punctual-In-Flight"); got != string(two.ID)+", "+string(one.ID) {
		t.Errorf("in flight: %q", got)
	}
	if got := r.header.Get("Punctual-Effective-At"); got != "2027-03-01T12:00:05.000Z" {
		t.Errorf("effective at %s", got)
	}
}

func TestDeleteSchedule_KeepsTheEpochOfTheName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	r := b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	if r.header.Get("Punctual-Effective-At") != "2027-03-01T12:00:02.000Z" {
		t.Errorf("effective at %q", r.header.Get("Punctual-Effective-At"))
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"DELETE", "", ""}, {"PATCH", "", `{"overlap":"skip"}`}, {"POST", "/pause", ""},
		{"POST", "/resume", ""}, {"POST", "/run-now", ""}, {"GET", "/preview", ""},
	} {
		if r := b.want(t, 404, c.method, "/v1/schedules/s"+c.path, c.body); r.str("code") != "not_found" {
			t.Errorf("%s %s: %s", c.method, c.path, r.text)
		}
	}
	b.want(t, 200, "GET", "/v1/schedules/s/occurrences", "")
	if r := b.want(t, 200, "GET", "/v1/schedules", ""); len(r.items()) != 0 {
		t.Errorf("the list shows %s", r.text)
	}
	if r := b.want(t, 201, "PUT", "/v1/schedules/s", daily); r.body["version"] != 3.0 {
		t.Errorf("a PUT after the delete: %s", r.text)
	}
}

//proof:of 4 S10 F26
func TestPatchSchedule_MergesTheNamedFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(
		t,
		201,
		"PUT",
		"/v1/schedules/s",
		`{"calendar":{"cron":"0 9 * * *","timezone":"America/Los_Angeles"},"job":{"task":"echo","payload":1,"tags":{"a":"b"}},"overlap":"skip","pause_after_failures":3}`,
	)
	// S10: the zone still counts after an edit of the payload.
	r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"task":"echo","payload":2}}`)
	if r.at("job", "payload") != "2" || r.at("job", "tags") != "map[a:b]" ||
		r.at("calendar", "timezone") != "America/Los_Angeles" || r.at("overlap") != "skip" || r.body["version"] != 2.0 {
		t.Errorf("after the job: %s", r.text)
	}
	if fmt.Sprint(r.body["next"]) != "[2027-03-01T17:00:00.000Z 2027-03-02T17:00:00.000Z 2027-03-03T17:00:00.000Z]" {
		t.Errorf("next is %v", r.body["next"])
	}
	r = b.want(t, 200, "PATCH", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *"},"pause_after_failures":0,"catch_up":{"policy":"none"}}`)
	if r.at("calendar") != "map[cron:0 10 * * * timezone:America/Los_Angeles]" ||
		r.at("pause_after_failures") != "0" || r.at("catch_up", "policy") != "none" || r.at("job", "payload") != "2" {
		t.Errorf("after the calendar: %s", r.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *"}}`); r.body["version"] != 3.0 {
		t.Errorf("the same body once more: %s", r.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s",
		`{"calendar":{"timezone":null}}`); r.at("calendar") != "map[cron:0 10 * * *]" {
		t.Errorf("without its zone: %s", r.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s",
		`{"calendar":{"every":"5m"}}`); r.at("calendar") != "map[every:5m]" {
		t.Errorf("another form: %s", r.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s",
		`{"overlap":null,"catch_up":null}`); r.at("overlap") != "allow" || r.at("catch_up", "policy") != "last" {
		t.Errorf("with what it did not say: %s", r.text)
	}
}

func TestPatchSchedule_NamesTheSameErrorFirstEachTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	for _, c := range []struct{ patch, pointers string }{
		{
			`{"catch_up":{"x":1},"job":{"task":"echo","task":"echo"},"calendar":{"y":1}}`,
			"/calendar/y /job/task /catch_up/x",
		},
		{`{"job":null,"calendar":null}`, "/calendar"},
	} {
		for range 40 { // the order of a map is another one each time
			r := b.want(t, 400, "PATCH", "/v1/schedules/s", c.patch)
			var got []string
			for _, e := range r.body["errors"].([]any) {
				got = append(got, e.(map[string]any)["pointer"].(string))
			}
			if strings.Join(got, " ") != c.pointers {
				t.Fatalf("%s: the errors are at %v, not at %s", c.patch, got, c.pointers)
			}
		}
	}
}

//proof:of F26
func TestPatchSchedule_MergesPayloadsByteForByteAndTasksBringTheirSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/tasks/slow", `{"executor":"go","pool":"long","timeout":"1h"}`)
	b.want(
		t,
		201,
		"PUT",
		"/v1/schedules/s",
		`{"calendar":{"cron":"0 9 * * *"},"job":{"task":"echo","payload":{"a":{"n":9007199254740993,"x":1.50},"b":1},"timeout":"7s","tags":{"k":"v"}}}`,
	)
	r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"payload":{"a":{"y":[1]},"b":null}}}`)
	if want := `"payload":{"a":{"n":9007199254740993,"x":1.50,"y":[1]}}`; !strings.Contains(r.text, want) ||
		r.at("job", "timeout") != "7s" {
		t.Errorf("merged: %s", r.text)
	}
	r = b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"task":"slow"}}`)
	if r.at("job", "pool") != "long" || r.at("job", "timeout") != "1h" || r.at("job", "tags") != "map[k:v]" {
		t.Errorf("with another task: %s", r.text)
	}
	for _, c := range []wrong{
		{"a field twice", `{"calendar":{"cron":"0 9 * * *","cron":"0 10 * * *"}}`, 400, "duplicate_field",
			"/calendar/cron"},
		{"a payload's field twice", `{"job":{"payload":{"a":{"z":1,"z":2}}}}`, 400, "duplicate_field",
			"/job/payload/a/z"},
		{"no calendar", `{"calendar":null}`, 400, "missing_field", "/calendar"},
		{"no task", `{"job":{"task":null}}`, 400, "missing_field", "/job/task"},
		{"an unknown field", `{"calendar":{"crn":"x"}}`, 400, "unknown_field", "/calendar/crn"},
	} {
		requireRefused(t, b, c, b.do(t, "PATCH", "/v1/schedules/s", c.body))
	}
	d := b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true",
		`{"calendar":{"timezone":"Europe/Berlin"},"job":{"payload":{"c":1}},"catch_up":{"cap":3}}`)
	if d.at("changed") != "[/calendar/timezone /catch_up/cap /job/payload]" {
		t.Errorf("a dry run says %s", d.text)
	}
}

// S48: the first and the second version never run.
func TestPutSchedule_RunsOnlyTheLastOfSeveralEdits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.clock.at = time.Date(2027, 3, 1, 9, 45, 0, 0, time.UTC)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	etag := ""
	for _, calendar := range []string{`{"cron":"0 15 * * *"}`, `{"timezone":"Asia/Tokyo"}`,
		`{"cron":"0 16 * * *","timezone":null}`} {
		r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"calendar":`+calendar+`}`)
		etag = r.header.Get("ETag")
		b.clock.at = b.clock.at.Add(time.Minute)
	}
	if s := b.schedule(t, "s"); s.Epoch != 4 || etag != `"4"` ||
		!s.Next.Equal(time.Date(2027, 3, 1, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("epoch %d, ETag %s, next %v", s.Epoch, etag, s.Next)
	}
	if r := b.want(t, 412, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`, "If-Match",
		`"3"`); r.str("code") != "stale_version" {
		t.Errorf("an old ETag: %s", r.text)
	}
	for method, path := range map[string]string{"DELETE": "", "POST": "/pause", "PUT": ""} {
		body := ""
		if method == "PUT" {
			body = daily
		}
		b.want(t, 412, method, "/v1/schedules/s"+path, body, "If-Match", `"3"`)
	}
	b.want(t, 412, "PUT", "/v1/schedules/none", daily, "If-Match", `"1"`)
	b.want(t, 400, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`, "If-Match", `4`)
	b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`, "If-Match", `"4"`)
}

func TestPutSchedule_MakesConcurrentEditsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	var wg sync.WaitGroup
	for n := range 5 {
		wg.Go(func() { b.do(t, "PATCH", "/v1/schedules/s", fmt.Sprintf(`{"pause_after_failures":%d}`, n+1)) })
	}
	wg.Wait()
	if r := b.want(t, 200, "GET", "/v1/schedules/s", ""); r.body["version"] != 6.0 {
		t.Errorf("after five: %s", r.text)
	}
	// All edits here are in one millisecond, and an edit cannot distinguish an equal write from its own.
	answers := map[int]int{}
	var mu sync.Mutex
	for range 5 {
		wg.Go(func() {
			r := b.do(t, "PUT", "/v1/schedules/new", daily)
			mu.Lock()
			defer mu.Unlock()
			answers[r.status]++
		})
	}
	wg.Wait()
	if answers[200]+answers[201] != 5 || answers[201] == 0 || b.schedule(t, "new").Epoch != 1 {
		t.Errorf("five who create the same: %v at epoch %d", answers, b.schedule(t, "new").Epoch)
	}
}

func TestDryRun_WritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 1-7 * *"},"job":{"task":"echo"}}`)
	before := fmt.Sprint(b.schedule(t, "s").Item())
	r := b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true", `{"calendar":{"cron":"0 12 3-5,9 * *"}}`)
	want := `{"added":[{"nominal_at":"2027-03-09T12:00:00.000Z","due_at":"2027-03-09T12:00:00.000Z","local":"2027-03-09T12:00:00Z","flags":[]}],` +
		`"lost":[{"nominal_at":"2027-03-02T10:00:00.000Z","due_at":"2027-03-02T10:00:00.000Z","local":"2027-03-02T10:00:00Z","flags":[]},` +
		`{"nominal_at":"2027-03-06T10:00:00.000Z","due_at":"2027-03-06T10:00:00.000Z","local":"2027-03-06T10:00:00Z","flags":[]},` +
		`{"nominal_at":"2027-03-07T10:00:00.000Z","due_at":"2027-03-07T10:00:00.000Z","local":"2027-03-07T10:00:00Z","flags":[]}],` +
		`"moved":[{"from":"2027-03-03T10:00:00.000Z","to":"2027-03-03T12:00:00.000Z"},{"from":"2027-03-04T10:00:00.000Z","to":"2027-03-04T12:00:00.000Z"},{"from":"2027-03-05T10:00:00.000Z","to":"2027-03-05T12:00:00.000Z"}],` +
		`"through":"2027-03-31T12:00:00.000Z","changed":["/calendar/cron"],"paused":false,"cut":false}`
	if strings.TrimSpace(r.text) != want || r.header.Get("ETag") != `"1"` {
		t.Errorf("ETag %s:\n%s\nwant\n%s", r.header.Get("ETag"), r.text, want)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true",
		`{"overlap":"skip"}`); r.at("added")+r.at("lost")+r.at("moved") != "[][][]" {
		t.Errorf("what moves nothing: %s", r.text)
	}
	b.want(t, 400, "PATCH", "/v1/schedules/s?dry_run=true", `{"calendar":{"cron":"0 0 31 4 *"}}`)
	b.want(t, 400, "PATCH", "/v1/schedules/s?dry_run=yes", `{"overlap":"skip"}`)
	b.want(t, 412, "PATCH", "/v1/schedules/s?dry_run=true", `{"overlap":"skip"}`, "If-Match", `"2"`)
	if after := fmt.Sprint(b.schedule(t, "s").Item()); after != before {
		t.Errorf("written: %s", after)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=false", `{"overlap":"skip"}`); r.str("overlap") != "skip" {
		t.Errorf("dry_run=false: %s", r.text)
	}
}

//proof:of S06 S07 F22
func TestPutSchedule_RefusesBadSchedules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/there", daily)
	for _, c := range badCalendars {
		t.Run("refuses a schedule with a bad calendar: "+c.name, func(t *testing.T) {
			t.Parallel()
			w := wrong{c.name, "", 400, c.code, "/calendar" + c.pointer}
			requireRefused(t, b, w, b.do(t, "PUT", "/v1/schedules/bad",
				`{"calendar":`+c.calendar+`,"job":{"task":"echo"}}`))
			// In a patch these two change or remove something.
			if c.calendar != "{}" && !strings.Contains(c.calendar, "null") {
				requireRefused(t, b, w, b.do(t, "PATCH", "/v1/schedules/there", `{"calendar":`+c.calendar+`}`))
			}
		})
	}
	with := func(more string) string { return `{"calendar":{"every":"5m"},"job":{"task":"echo"},` + more + `}` }
	job := func(job string) string { return `{"calendar":{"every":"5m"},"job":` + job + `}` }
	for _, c := range []wrong{
		{"no body", "", 400, "missing_field", ""},
		{"nothing", `{}`, 400, "missing_field", "/calendar"},
		{"no job", `{"calendar":{"every":"5m"}}`, 400, "missing_field", "/job"},
		{"a job and a dag", `{"calendar":{"every":"5m"},"job":{"task":"echo"},"dag":{"name":"etl"}}`, 400,
			"conflicting_fields", "/dag"},
		{"null", `null`, 400, "invalid_value", ""},
		{"an unknown field", with(`"enabled":true`), 400, "unknown_field", "/enabled"},
		{"a field twice", with(`"job":{"task":"echo"}`), 400, "duplicate_field", "/job"},
		{"all times past", `{"calendar":{"dates":["2027-03-01T11:59:59Z"]},"job":{"task":"echo"}}`, 400,
			"never_fires", "/calendar/dates"},
		{"a window that is past", `{"calendar":{"every":"5m","end_at":"2027-03-01T12:00:00Z"},"job":{"task":"echo"}}`,
			400, "never_fires", "/calendar/every"},
		{"a job with a time", job(`{"task":"echo","run_at":"2027-03-02T00:00:00Z"}`), 400, "unknown_field",
			"/job/run_at"},
		{"a job with a delay", job(`{"task":"echo","delay":"1h"}`), 400, "unknown_field", "/job/delay"},
		{"a job without a task", job(`{}`), 400, "missing_field", "/job/task"},
		{"an unknown task", job(`{"task":"ecko"}`), 400, "unknown_task", "/job/task"},
		{"a job's timeout", job(`{"task":"echo","timeout":"13h"}`), 400, "out_of_range", "/job/timeout"},
		{"a secret", job(`{"task":"echo","payload":{"password":"` + sentinel + `"}}`), 400, "secret_in_payload",
			"/job/payload/password"},
		{"a target inside", job(`{"task":"http","payload":{"url":"http://169.254.169.254/"}}`), 400, "target_refused",
			"/job/payload/url"},
		{"a payload too large", job(`{"task":"echo","payload":` + text(1<<20+1) + `}`), 400, "too_large",
			"/job/payload"},
		{"an overlap policy", with(`"overlap":"queue"`), 400, "invalid_value", "/overlap"},
		{"a catch-up policy", with(`"catch_up":{"policy":"some"}`), 400, "invalid_value", "/catch_up/policy"},
		{"a catch-up as a word", with(`"catch_up":"all"`), 400, "invalid_value", "/catch_up"},
		{"a window of nothing", with(`"catch_up":{"window":"0s"}`), 400, "out_of_range", "/catch_up/window"},
		{"a window over 30 days", with(`"catch_up":{"window":"31d"}`), 400, "out_of_range", "/catch_up/window"},
		{"a cap of nothing", with(`"catch_up":{"cap":0}`), 400, "out_of_range", "/catch_up/cap"},
		{"a cap over 1000", with(`"catch_up":{"cap":1001}`), 400, "out_of_range", "/catch_up/cap"},
		{"failures below none", with(`"pause_after_failures":-1`), 400, "out_of_range", "/pause_after_failures"},
	} {
		t.Run("refuses a schedule: "+c.name, func(t *testing.T) {
			t.Parallel()
			r := b.do(t, "PUT", "/v1/schedules/bad", c.body)
			c.status = map[bool]int{true: 413, false: 400}[c.code == "too_large"]
			requireRefused(t, b, c, r)
		})
	}
	for _, c := range []wrong{
		{"nothing to change", `{}`, 400, "missing_field", ""},
		{"no body", "", 400, "missing_field", ""},
	} {
		requireRefused(t, b, c, b.do(t, "PATCH", "/v1/schedules/there", c.body))
	}
	b.want(t, 400, "PUT", "/v1/schedules/a%20b", daily)
	b.want(t, 404, "GET", "/v1/schedules/a%20b", "")
	t.Cleanup(func() {
		if s := b.schedule(t, "there"); s.Epoch != 1 {
			t.Errorf("a refused edit was made: %+v", s)
		}
		if _, err := b.Store.Schedule(context.Background(),
			schedule.Key{Tenant: "acme", Name: "bad"}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a refused schedule is there: %v", err)
		}
	})
}

// S40: a tenant's schedules have a quota, also for edits.
//
//proof:of S40
func TestQuota_BoundsTheSchedulesOfOneTenant(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) { d.ScheduleQuota = 70 })
	put := func(status int, name, calendar string) reply {
		t.Helper()
		return b.want(t, status, "PUT", "/v1/schedules/"+name, `{"calendar":`+calendar+`,"job":{"task":"echo"}}`)
	}
	const minutely, secondly = `{"cron":"0 10 * * *"}`, `{"cron":"* 0 10 * * *"}`
	for n := range 10 {
		put(201, fmt.Sprintf("m%d", n), minutely)
	}
	put(201, "s", secondly)
	r := put(429, "one-more", minutely)
	if r.str("code") != "rate_limited" || r.header.Get("Retry-After") != "" ||
		!strings.Contains(r.str("detail"), "70") {
		t.Errorf("one too many: %s with %v", r.text, r.header)
	}
	b.want(t, 404, "GET", "/v1/schedules/one-more", "")
	put(200, "s", secondly)
	put(429, "m0", `{"cron":"*/30 0 10 * * *"}`)
	b.want(t, 429, "PATCH", "/v1/schedules/m0", `{"calendar":`+secondly+`}`)
	if s := b.schedule(t, "m0"); s.Epoch != 1 {
		t.Errorf("a refused edit was made: epoch %d", s.Epoch)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/m0", `{"overlap":"skip"}`)
	b.who = all("globex")
	put(201, "theirs", minutely)
	b.who = all("acme")
	put(200, "s", `{"cron":"*/10 0 10 * * *"}`) // 60 become 6
	b.want(t, 204, "DELETE", "/v1/schedules/m1", "")
	for n := range 55 {
		put(201, fmt.Sprintf("n%d", n), minutely)
	}
	put(429, "one-more", minutely)
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	put(201, "m1", minutely)
	dates := `"2027-03-02T00:00:00Z","2027-03-09T00:00:00Z",` + manyDates(200)
	b.want(t, 429, "PUT", "/v1/schedules/dates", `{"calendar":{"dates":[`+dates+`]},"job":{"task":"echo"}}`)
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"dates":["2027-04-01"]}`)
	b.want(t, 429, "PUT", "/v1/schedules/dates",
		`{"calendar":{"dates":[`+dates+`],"exclude":["x"]},"job":{"task":"echo"}}`)
}

func manyDates(n int) string {
	var dates []string
	for i := range n {
		dates = append(dates, fmt.Sprintf(`"2027-04-01T00:00:01.%03dZ"`, i))
	}
	return strings.Join(dates, ",")
}

//proof:of 36
func TestPauseSchedule_HoldsItUntilItIsResumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	r := b.want(t, 200, "POST", "/v1/schedules/s/pause",
		`{"reason":"a freeze","until":"2027-03-03T00:00:00Z","missed":"drop"}`)
	if r.at("paused") != "map[by:tester effective_at:2027-03-01T12:00:02.000Z missed:drop reason:a freeze "+
		"since:2027-03-01T12:00:00.000Z until:2027-03-03T00:00:00.000Z]" || r.body["version"] != 2.0 {
		t.Errorf("paused: %s", r.text)
	}
	if fmt.Sprint(r.body["next"]) != "[2027-03-03T10:00:00.000Z 2027-03-04T10:00:00.000Z 2027-03-05T10:00:00.000Z]" {
		t.Errorf("next is %v", r.body["next"])
	}
	if r := b.want(t, 200, "POST", "/v1/schedules/s/pause",
		`{"reason":"a freeze","until":"2027-03-03T00:00:00Z","missed":"drop"}`); r.body["version"] != 2.0 {
		t.Errorf("the same pause once more: %s", r.text)
	}
	r = b.want(t, 200, "POST", "/v1/schedules/s/pause", "")
	if r.at("paused", "missed") != "<nil>" || r.at("paused", "until") != "<nil>" || r.at("next") != "[]" ||
		r.body["version"] != 3.0 {
		t.Errorf("paused without an end: %s", r.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`); r.at("paused", "missed") != "<nil>" ||
		r.body["version"] != 4.0 {
		t.Errorf("an edit lifts no pause: %s", r.text)
	}
	r = b.want(t, 200, "POST", "/v1/schedules/s/resume", `{"missed":"all"}`)
	if r.at("paused") != "<nil>" || len(r.body["next"].([]any)) != 3 || r.body["version"] != 5.0 {
		t.Errorf("resumed: %s", r.text)
	}
	if r := b.want(t, 200, "POST", "/v1/schedules/s/resume", ""); r.body["version"] != 5.0 {
		t.Errorf("resumed once more: %s", r.text)
	}
	for _, c := range []wrong{
		{"an end that is past", `{"until":"2027-03-01T11:59:59Z"}`, 400, "in_the_past", "/until"},
		{"a word for what is missed", `{"missed":"some"}`, 400, "invalid_value", "/missed"},
		{"an unknown field", `{"for":"1h"}`, 400, "unknown_field", "/for"},
	} {
		requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/s/pause", c.body))
	}
	b.want(t, 400, "POST", "/v1/schedules/s/resume", `{"missed":"some"}`)
	b.want(t, 404, "POST", "/v1/schedules/none/pause", "")
}

//proof:of 36
func TestRunScheduleNow_MakesAJobInAdditionToTheTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":`+text(2000)+
			`,"tags":{"a":"b"},"priority":"high","expire_after":"1h"}}`)
	b.want(t, 200, "POST", "/v1/schedules/s/pause", "")
	r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "")
	if r.str("status") != "QUEUED" || r.header.Get("Location") != "/v1/jobs/"+r.str("job_id") ||
		r.str("due_at") != "2027-03-01T12:00:00.000Z" {
		t.Errorf("the job is %s with %v", r.text, r.header)
	}
	if sent := b.Received(contract.FiringQueue("short", "high")); len(sent) != 1 {
		t.Errorf("%d firings were sent", len(sent))
	}
	j := b.want(t, 200, "GET", "/v1/jobs/"+r.str("job_id"), "")
	if j.at("payload") != strings.Repeat("a", 1998) || j.at("tags") != "map[a:b]" || j.at("expire_after") != "1h" ||
		j.at("schedule") != "s" || j.at("manual") != "true" || j.body["nominal_at"] != nil {
		t.Errorf("GET answers %s", j.text)
	}
	if row := b.row(t, r.str("job_id")); row.ScheduleID != "" || row.Epoch != 0 {
		t.Errorf("the schedule has a say in it: %+v", row)
	}
	if got := flat(b.pages(t, "/v1/jobs?schedule=s", "job_id")); fmt.Sprint(got) != "["+r.str("job_id")+"]" {
		t.Errorf("the schedule's jobs are %v", got)
	}
	manual := `{"nominal_at":"2027-03-01T12:00:00.000Z","due_at":"2027-03-01T12:00:00.000Z","outcome":"pending","manual":true,"job_id":"` + r.str(
		"job_id",
	) + `","status":"SCHEDULED"}`
	if o := b.want(t, 200, "GET", "/v1/schedules/s/occurrences",
		""); strings.TrimSpace(o.text) != `{"items":[`+manual+`],"next_cursor":null}` {
		t.Errorf("its occurrences are %s", o.text)
	}
	if g := b.want(t, 200, "GET", "/v1/schedules/s", ""); !strings.Contains(g.text, `"last":null`) {
		t.Errorf("it counts as a time of the schedule: %s", g.text)
	}
	b.claim(t, r.str("job_id"))
	if p := b.want(t, 200, "POST", "/v1/schedules/s/pause", `{"reason":"no more of it"}`); p.at("in_flight") != "[]" {
		t.Errorf("the pause says that it touches %s", p.at("in_flight"))
	}
	b.end(t, r.str("job_id"), job.Outcome{Kind: job.OutcomeSucceeded, StartedAt: b.clock.at})
	if o := b.want(t, 200, "GET", "/v1/schedules/s/occurrences?outcome=ran", ""); len(o.items()) != 1 ||
		o.items()[0]["manual"] != true {
		t.Errorf("it ran, but: %s", o.text)
	}
	if repeated := b.want(t, 202, "POST", "/v1/schedules/s/run-now", ""); repeated.str("job_id") == r.str("job_id") {
		t.Error("twice asked is one job")
	}
	if s := b.schedule(t, "s"); s.Epoch != 3 { // after two pauses
		t.Errorf("epoch %d", s.Epoch)
	}
}

//proof:of S39
func TestSchedules_OfAnotherTenantAreNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	before := fmt.Sprint(b.schedule(t, "s").Item())
	b.who = all("globex")
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"PATCH", "", `{"overlap":"skip"}`}, {"DELETE", "", ""}, {"POST", "/pause", ""},
		{"POST", "/resume", ""}, {"POST", "/run-now", ""}, {"GET", "/occurrences", ""}, {"GET", "/preview", ""},
	} {
		theirs := b.want(t, 404, c.method, "/v1/schedules/s"+c.path, c.body, "X-Request-Id", "r")
		none := b.want(t, 404, c.method, "/v1/schedules/none"+c.path, c.body, "X-Request-Id", "r")
		if theirs.text != none.text {
			t.Errorf("%s %s tells a schedule of others from none:\n%s%s", c.method, c.path, theirs.text, none.text)
		}
	}
	if r := b.want(t, 200, "GET", "/v1/schedules", ""); len(r.items()) != 0 {
		t.Errorf("the list shows %s", r.text)
	}
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	b.who = all("acme")
	if after := fmt.Sprint(b.schedule(t, "s").Item()); after != before {
		t.Errorf("the schedule was changed from outside: %s", after)
	}
}

func TestGetSchedule_ShowsAStoredScheduleWithABadCalendar(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	b.want(t, 201, "PUT", "/v1/schedules/t", daily)
	s := b.schedule(t, "s")
	zone := "America/New_Yrok"
	s.Spec.Timezone = &zone
	if err := b.Store.Put(context.Background(), item.Write{Ref: s.Ref(), Put: s.Item()}); err != nil {
		t.Fatal(err)
	}
	broken := b.schedule(t, "t").Item()
	broken["body"] = "{"
	if err := b.Store.Put(context.Background(),
		item.Write{Ref: schedule.Key{Tenant: "acme", Name: "t"}.Ref(), Put: broken}); err != nil {
		t.Fatal(err)
	}
	r := b.want(t, 200, "GET", "/v1/schedules/s", "")
	if r.at("next") != "[]" || !strings.Contains(r.at("notes"), "America/New_York") {
		t.Errorf("it shows as %s", r.text)
	}
	b.want(t, 400, "GET", "/v1/schedules/s/preview", "")
	if list := b.want(t, 200, "GET", "/v1/schedules", ""); len(list.items()) != 1 ||
		!strings.Contains(b.log.String(), "could not be read") {
		t.Errorf("the list shows %s", list.text)
	}
	if r := b.want(t, 200, "PATCH", "/v1/schedules/s",
		`{"calendar":{"cron":"0 10 * * *","timezone":"America/New_York"}}`); len(r.body["next"].([]any)) != 3 {
		t.Errorf("mended it is %s", r.text)
	}
}

func TestPutSchedule_WritesNothingWithoutItsPayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Fail(stagetest.Writes(store.WriteSchedulePayload))
	body := `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo","payload":` + text(5000) + `}}`
	b.want(t, 503, "PUT", "/v1/schedules/s", body)
	b.World.SetFaults(nil)
	b.want(t, 404, "GET", "/v1/schedules/s", "")
	if r := b.want(t, 201, "PUT", "/v1/schedules/s", body); len(r.at("job", "payload")) != 4998 ||
		b.schedule(t, "s").Template.PayloadIn != job.InItem {
		t.Errorf("the payload is %.100s", r.text)
	}
}

func TestPutSchedule_ReadsAnExclusionOnceMoreIfItChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sat"]}`)
	b.Before(stagetest.Every(memory.TableCommit), func() {
		_, err := b.Store.UpdateExclusion(context.Background(), "acme", "x",
			func(e *store.Exclusion) (store.Exclusion, error) {
				next := *e
				next.Weekly = []string{"tue"}
				return next, nil
			})
		if err != nil {
			t.Error(err)
		}
	})
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 10 * * *","exclude":["x"]},"job":{"task":"echo"}}`)
	if got := b.schedule(t, "s").Exclusions["x"].Weekly; fmt.Sprint(got) != "[tue]" {
		t.Errorf("it follows %v", got)
	}
}

func TestPutSchedule_IsAcceptedWhenNearJobsCannotBeMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Fail(stagetest.Named(schedule.WriteAdvance))
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"*/5 * * * *"},"job":{"task":"echo"}}`)
	if s := b.schedule(t, "s"); s.WakeAt.After(noon) || strings.Contains(b.log.String(), "wait for the sweeper") {
		t.Errorf("it wakes at %v, logged %s", s.WakeAt, b.log)
	}
	b.World.SetFaults(nil)
	asked, err := b.World.Queues().Receive(t.Context(), contract.DispatchQueue, 10, 0, 0)
	if err != nil || len(asked) != 1 || !strings.Contains(asked[0].Body, "promote#acme#s") {
		t.Errorf("dispatch is asked for %+v, %v", asked, err)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`)
	if s := b.schedule(t, "s"); !s.WakeAt.After(noon) {
		t.Errorf("once they are made it wakes at %v", s.WakeAt)
	}
}

func TestPutSchedule_IsWrittenOnceAndWhole(t *testing.T) {
	t.Parallel()
	for _, op := range []string{memory.TableCommit, memory.TableGet} {
		for _, kind := range []fault.Kind{fault.Throttled, fault.Unavailable} {
			b := setup(t)
			b.Fault(stagetest.Every(op), memory.Fault{Fail: kind})
			if r := b.want(t, 503, "PUT", "/v1/schedules/s", daily); r.header.Get("Retry-After") == "" {
				t.Errorf("%s: %s", op, r.text)
			}
			b.World.SetFaults(nil)
			b.want(t, 404, "GET", "/v1/schedules/s", "")
			b.want(t, 201, "PUT", "/v1/schedules/s", daily)
		}
	}
}

//proof:of F23
func TestDeleteSchedule_ShowsItsJobsAsSkippedAndUnchangeable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"10 12 * * *"},"job":{"task":"echo"}}`)
	b.want(t, 201, "PUT", "/v1/schedules/e", `{"calendar":{"cron":"10 12 * * *"},"job":{"task":"echo"}}`)
	at := noon.Add(10 * time.Minute)
	deleted, edited := "/v1/jobs/"+string(b.schedule(t, "s").JobID(at)),
		"/v1/jobs/"+string(b.schedule(t, "e").JobID(at))
	b.want(t, 204, "DELETE", "/v1/schedules/s", "")
	b.want(t, 200, "PATCH", "/v1/schedules/e", `{"calendar":{"cron":"20 12 * * *"}}`)
	for path, code := range map[string]string{deleted: "deleted", edited: "edited"} {
		r := b.want(t, 200, "GET", path, "")
		if r.str("status") != "SKIPPED" || r.at("status_reason", "code") != code || r.str("waiting_for") != "" ||
			r.str("finished_at") == "" {
			t.Errorf("it reads %s", r.text)
		}
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/run-now", ""}, {"POST", "/cancel", ""}, {"PATCH", "", `{"priority":"high"}`},
			{"POST", "/redrive", ""},
		} {
			b.want(t, 409, c.method, path+c.path, c.body)
		}
	}
	if got := b.want(t, 200, "GET", "/v1/jobs?schedule=s&status=SKIPPED", ""); len(got.items()) != 1 {
		t.Errorf("the list of what was skipped: %s", got.text)
	}
	if got := b.want(t, 200, "GET", "/v1/jobs?schedule=s&status=SCHEDULED", ""); len(got.items()) != 0 {
		t.Errorf("the list of what waits: %s", got.text)
	}
}

func TestDryRunSchedule_SaysWhatPuttingWouldDo(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) { d.ScheduleQuota = 70 })
	const path = "/v1/schedules/s"
	counts := func(r reply) string {
		n := func(name string) int { list, _ := r.body[name].([]any); return len(list) }
		return fmt.Sprintf("%d added, %d lost, %d moved, changed %v", n("added"), n("lost"), n("moved"),
			r.body["changed"])
	}
	r := b.want(t, 200, "POST", path+"/dry-run", daily)
	if got := counts(r); got != "30 added, 0 lost, 0 moved, changed []" || len(r.body["changed"].([]any)) != 1 {
		t.Errorf("a new one: %s", got)
	}
	b.want(t, 404, "GET", path, "")
	b.want(t, 201, "PUT", path, daily)
	r = b.want(t, 200, "POST", path+"/dry-run", `{"calendar":{"cron":"0 10 * * 1"},"job":{"task":"echo"}}`)
	if got := counts(r); got != "0 added, 26 lost, 0 moved, changed [/calendar/cron /job/payload]" {
		t.Errorf("one in the place of another: %s", got)
	}
	if r := b.want(t, 200, "GET", path, ""); r.at("calendar", "cron") != "0 10 * * *" || r.at("version") != "1" {
		t.Errorf("trying has changed it: %s", r.text)
	}
	b.want(t, 204, "DELETE", path, "")
	r = b.want(t, 200, "POST", path+"/dry-run", daily)
	if got := counts(r); got != "30 added, 0 lost, 0 moved, changed []" {
		t.Errorf("in the place of one that was deleted: %s", got)
	}
	b.want(t, 404, "GET", path, "")
}

// A trial that lets through what the change does not is worse than none.
//
//proof:of F54
func TestDryRunSchedule_RefusesWhatPuttingWould(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ *memory.Options, d *api.Deps) { d.ScheduleQuota = 70 })
	b.want(t, 201, "PUT", "/v1/schedules/old", daily)
	for name, c := range map[string]struct{ path, body, match string }{
		"an unknown task":       {"new", `{"calendar":{"every":"1h"},"job":{"task":"nosuch"}}`, ""},
		"unknown fields":        {"new", `{"calendar":{"every":"1h"},"job":{"task":"echo","payloud":1},"colour":"red"}`, ""},
		"no calendar":           {"new", `{"job":{"task":"echo"}}`, ""},
		"a time that never is":  {"new", `{"calendar":{"cron":"0 0 31 4 *"},"job":{"task":"echo"}}`, ""},
		"a bad name":            {"a%20b", daily, ""},
		"no exclusion":          {"new", `{"calendar":{"every":"1h","exclude":["x"]},"job":{"task":"echo"}}`, ""},
		"no dag":                {"new", `{"calendar":{"every":"1h"},"dag":{"name":"x"}}`, ""},
		"no body":               {"new", "", ""},
		"too many runs":         {"new", `{"calendar":{"every":"500ms"},"job":{"task":"echo"}}`, ""},
		"more than the quota":   {"new", `{"calendar":{"cron":"*/1 * * * * *"},"job":{"task":"echo"}}`, ""},
		"what it grows by":      {"old", `{"calendar":{"dates":["2027-04-01T00:00:00Z"]},"job":{"task":"nosuch"}}`, ""},
		"another version":       {"old", daily, `"7"`},
		"a version of none":     {"new", daily, `"1"`},
		"a version that is odd": {"old", daily, `seven`},
	} {
		var headers []string
		if c.match != "" {
			headers = []string{"If-Match", c.match}
		}
		if name == "more than the quota" {
			b.want(t, 201, "PUT", "/v1/schedules/much", `{"calendar":{"cron":"0-29 * * * * *"},"job":{"task":"echo"}}`)
		}
		trial := b.do(t, "POST", "/v1/schedules/"+c.path+"/dry-run", c.body, headers...)
		done := b.do(t, "PUT", "/v1/schedules/"+c.path, c.body, headers...)
		delete(trial.body, "request_id")
		delete(done.body, "request_id")
		if done.status < 400 || trial.status != done.status || fmt.Sprint(trial.body) != fmt.Sprint(done.body) {
			t.Errorf("%s: tried it gets %d %v\ndone it gets %d %v", name, trial.status, trial.body, done.status,
				done.body)
		}
	}
}

// What an edit or a pause finds due already is not its to decide.
func TestSchedules_AnswerFromWhenAnEditCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"* * * * *"},"job":{"task":"echo"}}`)
	b.clock.at = noon.Add(time.Minute + 1500*time.Millisecond)
	first := b.schedule(t, "s").JobID(noon.Add(time.Minute))
	r := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip","catch_up":{"policy":"all","after":"5m"}}`)
	if r.str("effective_at") != "2027-03-01T12:01:01.500Z" || !strings.Contains(r.text, `"after":"5m"`) {
		t.Errorf("answered %s", r.text)
	}
	if repeated := b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`); repeated.body["effective_at"] != nil {
		t.Errorf("an edit that changes nothing answers %s", repeated.text)
	}
	s, row := b.schedule(t, "s"), b.row(t, string(first))
	if row.Epoch != 1 || s.ValidityOf(row, false) != schedule.Current || s.For(row).Overlap != schedule.OverlapAllow {
		t.Errorf("the job that was due is of epoch %d, %s", row.Epoch, s.ValidityOf(row, false))
	}
	if v := b.want(t, 200, "GET", "/v1/jobs/"+string(first), ""); v.str("status") != "QUEUED" {
		t.Errorf("it is shown as %s", v.text)
	}
	next := b.row(t, string(s.JobID(noon.Add(2*time.Minute))))
	if next.Epoch != s.Epoch || s.For(next).CatchUp.After != 5*time.Minute {
		t.Errorf("the next job is of epoch %d, %q", next.Epoch, next.Rule)
	}
	for _, c := range []wrong{
		{"less than a minute", `{"catch_up":{"after":"59s"}}`, 400, "out_of_range", "/catch_up/after"},
		{"more than a day", `{"catch_up":{"after":"25h"}}`, 400, "out_of_range", "/catch_up/after"},
	} {
		requireRefused(t, b, c, b.do(t, "PATCH", "/v1/schedules/s", c.body))
	}
}

// After an outage of the promoter an edit comes before it: the times that were due are decided by the catch-up of then.
//
//proof:of F73
func TestSchedules_PromoteWhatWasDueBeforeAnEdit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench){
		"a patch": func(b *bench) { b.want(t, 200, "PATCH", "/v1/schedules/s", `{"overlap":"skip"}`) },
		"a put": func(b *bench) {
			b.want(t, 200, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"0 15 * * *"},"job":{"task":"echo"}}`)
		},
		"a pause": func(b *bench) { b.want(t, 200, "POST", "/v1/schedules/s/pause", `{"missed":"drop"}`) },
	} {
		b := setup(t)
		b.want(t, 201, "PUT", "/v1/schedules/s",
			`{"calendar":{"cron":"*/10 * * * *"},"job":{"task":"echo"},"catch_up":{"policy":"all"}}`)
		b.clock.at = noon.Add(time.Hour + time.Second)
		change(b)
		entries, _, err := b.Store.Recorded(
			context.Background(),
			b.schedule(t, "s").Key,
			time.Time{},
			time.Time{},
			false,
			0,
			"",
		)
		if err != nil || len(entries) != 0 {
			t.Errorf("%s recorded %+v, %v", name, entries, err)
		}
		for at := noon.Add(10 * time.Minute); !at.After(b.clock.at); at = at.Add(10 * time.Minute) {
			if row := b.row(t, string(b.schedule(t, "s").JobID(at))); row.Status != job.Scheduled || row.Epoch != 1 {
				t.Errorf("%s: the job of %s is %s, of epoch %d", name, at, row.Status, row.Epoch)
			}
		}
	}
}

func TestRunNow_ObeysOverlapWhenAsked(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"job", "dag"} {
		for overlap, want := range map[string]string{"skip": "SKIPPED overlap", "buffer_all": "QUEUED overlap",
			"allow": "", "buffer_one": "QUEUED overlap"} {
			b := setup(t)
			body := `{"calendar":{"cron":"0 10 * * *"},"job":{"task":"echo"},"overlap":"` + overlap + `"}`
			if kind == "dag" {
				b.want(t, 201, "PUT", "/v1/dags/d", `{"nodes":{"a":{"task":"echo"}}}`)
				body = `{"calendar":{"cron":"0 10 * * *"},"dag":{"name":"d"},"overlap":"` + overlap + `"}`
			}
			b.want(t, 201, "PUT", "/v1/schedules/s", body)
			s := b.schedule(t, "s")
			holder := b.made(t, s, noon.Add(-time.Hour), func(r *job.Row) { r.Status = job.Running })
			if err := b.Store.Put(context.Background(), s.TakeSlot(holder.ID)); err != nil {
				t.Fatal(err)
			}
			r := b.want(t, 202, "POST", "/v1/schedules/s/run-now", `{"overlap":"obey"}`)
			got := r.str("status") + " " + r.at("status_reason", "code")
			id := r.str("job_id")
			if want != "" && (id == "" || b.row(t, id).ManualOf != "s") {
				t.Errorf("a %s under %s answers %s", kind, overlap, r.text)
			}
			if want != "" && !strings.HasSuffix(got, strings.Fields(want)[1]) {
				t.Errorf("a %s under %s is %q", kind, overlap, got)
			}
			if want != "" {
				row := b.row(t, id)
				if (row.Status == job.Skipped) != (overlap == "skip") || row.QueuedBehind == (overlap == "skip") {
					t.Errorf("a %s under %s is %s, queued %v", kind, overlap, row.Status, row.QueuedBehind)
				}
			}
			other := b.want(t, 202, "POST", "/v1/schedules/s/run-now", "")
			if other.str("status") == "SKIPPED" {
				t.Errorf("one that does not obey answers %s", other.text)
			}
		}
	}
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	requireRefused(t, b, wrong{"another word", "", 400, "invalid_value", "/overlap"},
		b.do(t, "POST", "/v1/schedules/s/run-now", `{"overlap":"skip"}`))
	requireRefused(t, b, wrong{"another field", "", 400, "unknown_field", "/x"},
		b.do(t, "POST", "/v1/schedules/s/run-now", `{"x":1}`))
}

// A pause holds times of which some became jobs before it and some never did. An edit during the pause decides about
// none of them: the pause does, by its missed, and those that run keep the job of then.
func TestSchedules_DecideWhatAPauseHoldsBeforeAnEdit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		missed, catchUp string
		runs            []int // minutes after noon
	}{
		"drop":                         {`{"missed":"drop"}`, `{"policy":"all"}`, nil},
		"last":                         {`{"missed":"last"}`, `{"policy":"none"}`, []int{60}},
		"all":                          {`{"missed":"all"}`, `{"policy":"none"}`, []int{10, 20, 30, 40, 50, 60}},
		"all, with a cap":              {`{"missed":"all"}`, `{"policy":"all","cap":4}`, []int{30, 40, 50, 60}},
		"the schedule's own, none":     {`{}`, `{"policy":"none"}`, nil},
		"the schedule's own, a window": {`{}`, `{"policy":"all","window":"25m"}`, []int{40, 50, 60}},
	} {
		for kind, change := range map[string]func(b *bench, t *testing.T){
			"a patch": func(b *bench, t *testing.T) {
				b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"payload":"new"}}`)
			},
			"a put": func(b *bench, t *testing.T) {
				b.want(t, 200, "PUT", "/v1/schedules/s",
					`{"calendar":{"cron":"0 15 * * *"},"job":{"task":"echo","payload":"new"}}`)
			},
			"an exclusion": func(b *bench, t *testing.T) { b.want(t, 200, "PUT", "/v1/exclusions/x", `{"weekly":["mon"]}`) },
		} {
			t.Run(name+", before "+kind, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.want(t, 201, "PUT", "/v1/exclusions/x", `{"weekly":["sun"]}`)
				b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"*/10 * * * *","exclude":["x"]},`+
					`"job":{"task":"echo","payload":"old"},"catch_up":`+c.catchUp+`}`)
				b.clock.at = noon.Add(time.Second)
				b.want(t, 200, "POST", "/v1/schedules/s/pause", c.missed)
				b.clock.at = noon.Add(time.Hour + time.Second)
				change(b, t)
				b.clock.at = noon.Add(time.Hour + 5*time.Second)
				b.want(t, 200, "POST", "/v1/schedules/s/resume", "")
				b.heldTimesAre(t, c.runs)
			})
		}
	}
}

// heldTimesAre verifies which of the times every ten minutes of an hour run, with the payload "old", and that the
// others are shown as skipped by a pause.
func (b *bench) heldTimesAre(t *testing.T, runs []int) {
	t.Helper()
	shown := map[time.Time]string{}
	for _, list := range []string{"pending", "skipped", "missed", "superseded"} {
		for _, o := range b.want(t, 200, "GET", "/v1/schedules/s/occurrences?outcome="+list, "").items() {
			first, err := time.Parse(time.RFC3339, fmt.Sprint(o["nominal_at"]))
			if err != nil {
				t.Fatal(err)
			}
			count, _ := o["count"].(float64)
			for n := range int(max(count, 1)) {
				shown[first.Add(time.Duration(n)*10*time.Minute)] += fmt.Sprint(o["outcome"], " ", o["reason"])
			}
		}
	}
	for at := 10; at <= 60; at += 10 {
		nominal := noon.Add(time.Duration(at) * time.Minute)
		want := "skipped " + job.CodePaused
		if slices.Contains(runs, at) {
			want = "pending <nil>"
			row := b.row(t, string(b.schedule(t, "s").JobID(nominal)))
			if row.Payload != `"old"` || b.schedule(t, "s").ValidityOf(row, false) != schedule.Current {
				t.Errorf("the job of minute %d is %s with payload %s", at, row.Status, row.Payload)
			}
		}
		if got := shown[nominal]; got != want {
			t.Errorf("minute %d is shown as %q, want %q; all: %v", at, got, want, shown)
		}
	}
}

func TestSchedules_DecideWhatAPauseOfTheTaskHoldsBeforeAnEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s", `{"calendar":{"cron":"*/10 * * * *"},"job":{"task":"echo","payload":"old"}}`)
	b.clock.at = noon.Add(time.Second)
	b.want(t, 201, "PUT", "/v1/pauses/task:echo", `{"missed":"last"}`)
	b.clock.at = noon.Add(time.Hour + time.Second)
	b.want(t, 200, "PATCH", "/v1/schedules/s", `{"job":{"payload":"new"}}`)
	if row := b.row(t, string(b.schedule(t, "s").JobID(noon.Add(time.Hour)))); row.Payload != `"old"` {
		t.Errorf("the job of 13:00 has payload %s", row.Payload)
	}
	skipped := b.want(t, 200, "GET", "/v1/schedules/s/occurrences?outcome=skipped", "").items()
	if len(skipped) != 1 || skipped[0]["nominal_at"] != "2027-03-01T12:40:00.000Z" || skipped[0]["count"] != 2.0 {
		t.Errorf("skipped are %v, want 12:40 and 12:50", skipped)
	}
}

// Each edit decides about the times before it; what changes nothing must not, or a "last" would keep one each time.
func TestSchedules_DecideNothingThatAPauseHoldsIfNothingChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const body = `{"calendar":{"cron":"*/10 * * * *"},"job":{"task":"echo"}}`
	b.want(t, 201, "PUT", "/v1/schedules/s", body)
	b.want(t, 200, "POST", "/v1/schedules/s/pause", `{"missed":"last"}`)
	before := b.schedule(t, "s")
	b.clock.at = noon.Add(time.Hour + time.Second)
	b.want(t, 200, "PUT", "/v1/schedules/s", body)
	b.want(t, 200, "PATCH", "/v1/schedules/s?dry_run=true", `{"overlap":"skip"}`)
	b.want(t, 200, "POST", "/v1/schedules/s/dry-run", `{"calendar":{"cron":"0 15 * * *"},"job":{"task":"echo"}}`)
	b.do(t, "PATCH", "/v1/schedules/s", `{"overlap":"never"}`)
	if after := b.schedule(t, "s"); !after.Next.Equal(before.Next) || after.Epoch != before.Epoch {
		t.Errorf("next is %s, before %s", after.Next, before.Next)
	}
}

// The times whose jobs wait under buffer_all go first after an edit, also after one that changes the policy.
func TestEdit_KeepsTheTimesThatWaitUnderBufferAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/s",
		`{"calendar":{"cron":"* * * * *"},"job":{"task":"echo"},"overlap":"buffer_all"}`)
	s := b.schedule(t, "s")
	var rows []job.Row
	for n := range 4 {
		rows = append(rows, b.made(t, s, noon.Add(time.Duration(n+1)*time.Minute), func(r *job.Row) {
			if n == 0 {
				r.Status = job.Running
			}
		}))
	}
	if err := b.Store.Put(context.Background(), s.TakeSlot(rows[0].ID)); err != nil {
		t.Fatal(err)
	}
	b.clock.at = noon.Add(3*time.Minute + 30*time.Second)
	waiting := []time.Time{rows[1].NominalAt, rows[2].NominalAt}
	for _, edit := range []string{`{"calendar":{"cron":"0 10 * * *"}}`, `{"overlap":"skip"}`, `{"job":{"priority":"high"}}`} {
		b.want(t, 200, "PATCH", "/v1/schedules/s", edit)
		if got := b.schedule(t, "s").Before; !slices.EqualFunc(got, waiting, time.Time.Equal) {
			t.Errorf("after %s %v go first, want %v", edit, got, waiting)
		}
	}
}

// paused is the schedule of daily, with the field paused.
func paused(value string) string {
	return `{"paused":` + value + "," + daily[1:]
}

//proof:of 36
func TestPutSchedule_BeginsPausedAndFiresNothing(t *testing.T) {
	t.Parallel()
	for value, reason := range map[string]string{"true": "<nil>", "{}": "<nil>", `{"reason":"a freeze"}`: "a freeze"} {
		b := setup(t)
		body := strings.Replace(paused(value), "0 10 * * *", "* * * * *", 1)
		r := b.want(t, 201, "PUT", "/v1/schedules/s", body)
		if r.at("paused", "reason") != reason || r.at("paused", "by") != "tester" || r.at("next") != "[]" ||
			r.body["version"] != 1.0 {
			t.Errorf("%s: %s", value, r.text)
		}
		if jobs := b.pages(t, "/v1/schedules/s/occurrences?outcome=pending", "job_id"); len(flat(jobs)) != 0 {
			t.Errorf("%s: it has made jobs: %v", value, jobs)
		}
		if s := b.schedule(t, "s"); !s.WakeAt.IsZero() || s.Next.IsZero() {
			t.Errorf("%s: it wakes up at %s, and its next time is %s", value, s.WakeAt, s.Next)
		}
		r = b.want(t, 200, "PUT", "/v1/schedules/s", body)
		if r.body["version"] != 1.0 || r.at("effective_at") != "<nil>" {
			t.Errorf("%s once more: %s", value, r.text)
		}
		b.want(t, 200, "PUT", "/v1/schedules/s", strings.Replace(body, value, "false", 1))
		if jobs := b.pages(t, "/v1/schedules/s/occurrences?outcome=pending", "job_id"); len(flat(jobs)) == 0 {
			t.Errorf("%s: no jobs after it is resumed", value)
		}
	}
}

//proof:of 36
func TestPutSchedule_PausesAndResumes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	edited := func(value string) string { return strings.Replace(paused(value), `"a":1`, `"a":2`, 1) }
	const freeze, later = `{"reason":"a freeze"}`, "2027-03-01T12:00:02.000Z"
	version := 1
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	for _, step := range []struct {
		name, body string
		writes     int    // by how much the version grows
		reason     string // after it; "none" is no pause
		effective  string
	}{
		{"false of one that is not paused", paused("false"), 0, "none", "<nil>"},
		{"true", paused("true"), 1, "<nil>", later},
		{"true once more", paused("true"), 0, "<nil>", "<nil>"},
		{"a reason", paused(freeze), 1, "a freeze", later},
		{"true keeps the reason", paused("true"), 0, "a freeze", "<nil>"},
		{"absent", daily, 0, "a freeze", "<nil>"},
		{"false", paused("false"), 1, "none", "2027-03-01T12:00:00.000Z"},
		{"an edit and a pause in one write", edited(freeze), 1, "a freeze", later},
		{"an edit and a resumption in one write", paused("false"), 1, "none", "2027-03-01T12:00:00.000Z"},
		{"absent of one that is not paused", daily, 0, "none", "<nil>"},
	} {
		r := b.want(t, 200, "PUT", "/v1/schedules/s", step.body)
		version += step.writes
		reason := r.at("paused", "reason")
		if r.at("paused") == "<nil>" {
			reason = "none"
		}
		if r.body["version"] != float64(version) || reason != step.reason || r.at("effective_at") != step.effective {
			t.Errorf("%s: %s, want version %d", step.name, r.text, version)
		}
	}
	b.want(t, 200, "POST", "/v1/schedules/s/pause", `{"reason":"r","until":"2027-03-03T00:00:00Z","missed":"drop"}`)
	r := b.want(t, 200, "PUT", "/v1/schedules/s", paused("true"))
	if r.at("paused", "until") != "<nil>" || r.at("paused", "missed") != "drop" || r.at("paused", "reason") != "r" {
		t.Errorf("true does not remove until alone: %s", r.text)
	}
}

//proof:of 36
func TestPutSchedule_RefusesABadPaused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/schedules/old", daily)
	for _, c := range []wrong{
		{"null", paused("null"), 400, "invalid_value", "/paused"},
		{"a text", paused(`"yes"`), 400, "invalid_value", "/paused"},
		{"an end", paused(`{"until":"2027-03-03T00:00:00Z"}`), 400, "unknown_field", "/paused/until"},
		{"a reason that is no text", paused(`{"reason":1}`), 400, "invalid_value", "/paused/reason"},
		{"a long reason", paused(`{"reason":` + text(3000) + `}`), 400, "out_of_range", "/paused/reason"},
	} {
		for _, name := range []string{"new", "old"} {
			requireRefused(t, b, c, b.do(t, "PUT", "/v1/schedules/"+name, c.body))
			requireRefused(t, b, c, b.do(t, "POST", "/v1/schedules/"+name+"/dry-run", c.body))
		}
	}
	requireRefused(t, b, wrong{"a patch", "", 400, "unknown_field", "/paused"},
		b.do(t, "PATCH", "/v1/schedules/old", `{"paused":true}`))
	b.want(t, 404, "GET", "/v1/schedules/new", "")
}

//proof:of 36
func TestDryRunSchedule_SaysWhetherItWouldBePaused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	says := func(body, changed, paused string) {
		t.Helper()
		r := b.want(t, 200, "POST", "/v1/schedules/s/dry-run", body)
		if r.at("changed") != changed || r.at("paused") != paused {
			t.Errorf("%s changes %s, paused %s", body, r.at("changed"), r.at("paused"))
		}
	}
	says(paused("true"), "[]", "true") // the pointer to the whole is the empty text
	b.want(t, 201, "PUT", "/v1/schedules/s", daily)
	says(paused("true"), "[/paused]", "true")
	says(paused("false"), "[]", "false")
	b.want(t, 200, "PUT", "/v1/schedules/s", paused("true"))
	says(daily, "[]", "true")
	says(paused("false"), "[/paused]", "false")
	if r := b.want(t, 200, "GET", "/v1/schedules/s/preview", ""); !strings.Contains(r.at("notes"), "is paused") {
		t.Errorf("its preview says nothing of the pause: %s", r.at("notes"))
	}
}

// What is due before an edit that pauses keeps the job of then, and what is due under the pause of an edit that resumes
// is decided by that pause.
//
//proof:of 36
func TestPutSchedule_KeepsTheTimesBeforeAPauseAndDecidesThoseUnderIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	minutely := func(value string) string { return strings.Replace(paused(value), "0 10 * * *", "* * * * *", 1) }
	b.want(t, 201, "PUT", "/v1/schedules/s", minutely("false"))
	b.clock.at = b.clock.at.Add(90 * time.Second)
	b.want(t, 200, "PUT", "/v1/schedules/s", strings.Replace(minutely("true"), `"a":1`, `"a":2`, 1))
	s := b.schedule(t, "s")
	if next := time.Date(2027, 3, 1, 12, 2, 0, 0, time.UTC); !s.Next.Equal(next) || s.Paused == nil {
		t.Fatalf("next is %s", s.Next)
	}
	b.clock.at = b.clock.at.Add(2 * time.Minute) // 12:02 and 12:03 fall due under the pause
	b.want(t, 200, "PUT", "/v1/schedules/s", strings.Replace(minutely("false"), `"a":1`, `"a":3`, 1))
	var got []string
	for _, at := range []string{"12:01", "12:02", "12:03", "12:04"} {
		for _, o := range b.want(t, 200, "GET", "/v1/schedules/s/occurrences?before=2027-03-01T12:05:00Z", "").items() {
			if !strings.Contains(fmt.Sprint(o["nominal_at"]), at) {
				continue
			}
			what := fmt.Sprint(o["outcome"], " ", o["reason"])
			if id, made := o["job_id"]; made {
				what += " a=" + b.want(t, 200, "GET", "/v1/jobs/"+fmt.Sprint(id), "").at("payload", "a")
			}
			got = append(got, at+" "+what)
		}
	}
	want := "[12:01 pending <nil> a=1 12:02 skipped paused a=1 12:03 pending <nil> a=2 12:04 pending <nil> a=3]"
	if fmt.Sprint(got) != want {
		t.Errorf("the times are %v, want %s", got, want)
	}
}
