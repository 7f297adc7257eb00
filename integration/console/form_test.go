package console_test

import (
	"fmt"
	"strings"
	"testing"
)

// choose takes an option, by its value, of the field of that name.
func (p *tab) choose(name, value string) {
	p.t.Helper()
	p.await(named(name))
	got := p.eval(`(() => { const e = ` + named(name) + `; e.value = ` + quoted(value) + `
		e.dispatchEvent(new Event('input', { bubbles: true }))
		e.dispatchEvent(new Event('change', { bubbles: true })); return e.value })()`)
	if got != value {
		p.t.Fatalf("%s has no option %q", name, value)
	}
}

// refused waits until the field of that name is marked as refused and its refusal has each text.
func (p *tab) refused(name string, texts ...string) {
	p.t.Helper()
	p.await(named(name) + ".getAttribute('aria-invalid') === 'true'")
	for _, text := range texts {
		p.await(`document.getElementById('wrong-' + ` + named(name) + `.name)
			.textContent.includes(` + quoted(text) + `)`)
	}
}

func TestForms_SayWhatIsRefusedAtItsFieldAndKeepWhatTheyDoNotShow(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	for name, story := range map[string]func(*testing.T, *browser, rest){
		"makes a job with all that it may have":                  makesAJob,
		"makes another job like one that is there":               makesAnother,
		"makes one job of a request whose answer was lost":       makesOnce,
		"makes, changes, pauses and deletes a task":              changesATask,
		"makes a schedule of several calendars and a dag":        makesASchedule,
		"changes a schedule and keeps what it does not show":     changesASchedule,
		"makes no edit of a schedule that has changed meanwhile": refusesAStaleEdit,
		"makes, changes and tests a webhook":                     changesAWebhook,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, b, serve(t))
		})
	}
}

const counted = `{"executor":"echo","payload_schema":{"type":"object","required":["rows"],
	"properties":{"rows":{"type":"integer"}}}}`

func makesAJob(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/tasks/count", counted)
	r.ask("PUT", "/limits/github", `{"max_running":5}`)
	before := r.post(`{"task":"echo","delay":"1h"}`)
	p := b.open(t, r.url+"/#/jobs")
	p.click("New job")
	p.await("document.querySelector('main h1').textContent === 'New job'") // the list has a field of that name, too
	p.settled()
	p.write("Task", "count")
	p.write("Payload, in JSON", `{"rows": "ten"`)
	p.refused("Payload, in JSON", "This is no JSON")
	p.write("Payload, in JSON", `{"rows": "ten"}`)
	p.refused("Payload, in JSON", "/rows", "of another type", "Allowed: integer") // while it is typed
	p.click("Priority, pool, retries, limits")
	p.write("Timeout of an attempt", "soon")
	p.write("At most", "99")
	p.choose("Counts under", "own")
	p.write("Limits and keys", "github:acct:42")
	p.click("Priority, pool, retries, limits") // closed, which the refusal opens
	p.click("Tags, deadlines, unique key")
	p.write("Tags", "team")
	p.click("Make the job")
	p.refused("Tags", "“team” has no =.")
	p.write("Tags", "team=billing\nticket=a=b")
	p.click("Make the job")
	p.refused("Timeout of an attempt", "such as 90s")
	p.refused("At most", "1 to 50")
	p.await("document.activeElement.getAttribute('aria-invalid') === 'true'")
	p.shoot("job-new-refused")
	p.write("Payload, in JSON", `{"rows": 12345678901234567890}`)
	p.write("Timeout of an attempt", "90s")
	p.write("At most", "3")
	p.choose("Priority", "high")
	p.choose("Pool", "long")
	p.write("Key", "invoice-42")
	p.write("After the jobs", before)
	p.choose("If", "all_done")
	p.choose("Due", "in")
	p.click("Make the job")
	p.refused("In", "A length of time is missing.")
	p.write("In", "2h")
	p.shoot("job-new")
	p.click("Make the job")
	p.shows("is accepted.", "Waits for the jobs before it")
	v := r.ask("GET", "/jobs/"+p.eval("location.hash.split('/').pop()").(string), "")
	for name, want := range map[string]string{
		"task": "count", "priority": "high", "pool": "long", "timeout": "1m30s", "run_if": "all_done",
		"tags": "map[team:billing ticket:a=b]", "unique": "map[key:invoice-42 on_conflict:return until:done]",
		"limits": "[map[key:acct:42 name:github]]", "after": "[" + before + "]", "max_attempts": "3",
	} {
		if got := fmt.Sprint(v[name]); got != want {
			t.Errorf("its %s is %s, want %s", name, got, want)
		}
	}
	p.shows("12345678901234567890") // its digits, which JavaScript has no number for
}

func makesAnother(t *testing.T, b *browser, r rest) {
	id := r.post(`{"task":"echo","payload":{"rows":12345678901234567890,"of":null},"delay":"3h","priority":"low",
		"tags":{"a":"b","c=d":"e"},"metadata":{"by":"hand"},"start_within":"5m","retry":{"max_attempts":2}}`)
	p := b.open(t, r.url+"/#/jobs/"+id)
	p.click("Make another")
	p.shows("Like echo …" + id[len(id)-8:])
	p.choose("Due", "at")
	p.click("Make the job")
	p.refused("At", "A time is missing.")
	p.eval(`(() => { const e = ` + named("At") + `; e.value = '2027-03-28T01:02:03'
		e.dispatchEvent(new Event('input', { bubbles: true })) })()`)
	p.click("Make the job")
	p.await("/^#.jobs.[0-9A-Z]{26}$/.test(location.hash) && !location.hash.endsWith(" + quoted(id) + ")")
	was := r.ask("GET", "/jobs/"+id, "")
	is := r.ask("GET", "/jobs/"+p.eval("location.hash.split('/').pop()").(string), "")
	for _, name := range []string{"task", "priority", "tags", "metadata", "start_within", "retry", "payload_size"} {
		if fmt.Sprint(was[name]) != fmt.Sprint(is[name]) {
			t.Errorf("its %s is %v, want %v", name, is[name], was[name])
		}
	}
	if is["due_at"] != "2027-03-28T00:02:03.000Z" { // the browser is in Berlin, and it is winter there
		t.Errorf("it is due at %v", is["due_at"])
	}
}

func makesOnce(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/jobs/new!?task=echo")
	p.write("Payload, in JSON", `{"one":1}`)
	p.eval(`(() => { const send = fetch; window.fetch = async (to, o) => { const said = await send(to, o)
		if (o.method === 'POST' && to.endsWith('/jobs')) { window.fetch = send; throw new TypeError('lost') }
		return said } })()`)
	p.click("Make the job")
	p.shows("The API cannot be reached.")
	p.click("Make the job")
	p.shows("Settled: succeeded")
	if n := len(r.ask("GET", "/jobs", "")["items"].([]any)); n != 1 {
		t.Errorf("there are %d jobs, want 1", n)
	}
}

func changesATask(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/limits/github", `{"max_running":5}`)
	p := b.open(t, r.url+"/#/tasks")
	p.shows("http", "built in")
	p.click("New task")
	p.write("Name", "no name")
	p.click("Set the task")
	p.refused("Name", "This is no name.")
	p.write("Name", "report")
	p.choose("Run by", "echo")
	p.write("JSON Schema of its payloads", `{"type":"objekt"}`)
	p.write("Jitter, 0 to 1", "much")
	p.click("Set the task")
	p.refused("Jitter, 0 to 1", "“much” is no number.")
	p.write("Jitter, 0 to 1", "0.5")
	p.click("Set the task")
	p.refused("JSON Schema of its payloads")
	p.shoot("task-new-refused")
	p.write("JSON Schema of its payloads", `{"type":"object"}`)
	p.choose("Counts under", "own")
	p.write("Limits and keys", "github")
	p.click("Results")
	p.write("Largest result", "16KiB")
	p.click("Set the task")
	p.shows("The task report is set.", "Task report", "16KiB", "No schedule makes jobs of it.")
	want := r.ask("GET", "/tasks/report", "")
	p.click("Edit")
	p.write("Timeout of an attempt", "45s")
	p.click("Set the task")
	p.shows("45s")
	is := r.ask("GET", "/tasks/report", "")
	want["timeout"], want["version"] = "45s", is["version"]
	if fmt.Sprint(is) != fmt.Sprint(want) {
		t.Errorf("the task is\n%v, want\n%v", is, want)
	}
	p.click("Edit")
	p.await(named("Timeout of an attempt") + ".value === '45s'")
	r.ask("PUT", "/tasks/report", `{"executor":"echo","timeout":"50s"}`)
	p.click("Set the task")
	p.shows("It has changed meanwhile", "stale_version")
	p.visit("#/tasks/report")
	p.click("Pause")
	p.shows("This touches 0 waiting jobs and 0 schedules.")
	p.write("Reason", "the numbers are wrong")
	p.click("Pause the task")
	p.shows("paused", "the numbers are wrong – laptop")
	p.shoot("task")
	p.visit("#/tasks")
	p.await(`[...document.querySelectorAll('tr')].some((e) => /report\s[^]*paused/.test(e.innerText))`)
	p.visit("#/tasks/report")
	p.click("Resume")
	p.click("Lift it")
	p.await(named("Pause"))
	p.click("Delete")
	p.click("Delete the task")
	p.shows("The task is deleted.")
	p.await("location.hash === '#/tasks' && !document.querySelector('main').innerText.includes('report')")
}

func makesASchedule(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/dags/etl", `{"params":{"rows":1},"nodes":{"a":{"task":"echo","payload":"${params.rows}"}}}`)
	r.ask("PUT", "/exclusions/holidays", `{"yearly":["12-25"]}`)
	p := b.open(t, r.url+"/#/schedules/new!")
	p.await("document.querySelectorAll('.times li').length === 8")
	p.write("Name", "nightly")
	p.choose("Each time makes", "dag")
	p.write("DAG", "etl")
	p.write("Params, in JSON", `{"nope":2}`)
	p.refused("Params, in JSON", "nope") // while it is typed
	p.write("Params, in JSON", `{"rows":2}`)
	p.choose("Overlap", "buffer_one")
	p.choose("Begins", "yes")
	p.write("Reason of the pause", "not yet")
	p.write("Cron expression", "0 2 25 12 *")
	p.click("Exclusions, spread, beginning and end")
	p.write("Exclusions", "holidays")
	p.shows("never")
	p.write("Cron expression", "0 2 24-26 12 *")
	p.shows("is skipped:", "holidays")
	p.click("Add a calendar")
	p.choose("Rule", "cron") // of the first, which stays
	p.shows("Calendar 2")
	p.eval(`(() => { const all = [...document.querySelectorAll('fieldset')]; const set = (e, v) => { e.value = v
		e.dispatchEvent(new Event('input', { bubbles: true })) }
		set(all[1].querySelector('select'), 'every') })()`)
	p.write("Every", "x")
	p.click("Set the schedule")
	p.refused("Every", "is no duration")
	p.write("Every", "12h")
	p.click("Late times and failures")
	p.write("Pause after failures in a row", "3")
	p.shoot("schedule-new-whole")
	p.click("Set the schedule")
	p.shows("The schedule nightly is set.", "paused", "not yet – laptop")
	v := r.ask("GET", "/schedules/nightly", "")
	const second = "map[every:12h timezone:Europe/Berlin]"
	for name, want := range map[string]string{
		"calendars": "[map[cron:0 2 24-26 12 * exclude:[holidays] timezone:Europe/Berlin] " + second + "]",
		"overlap":   "buffer_one", "pause_after_failures": "3",
	} {
		if got := fmt.Sprint(v[name]); got != want {
			t.Errorf("its %s is %s, want %s", name, got, want)
		}
	}
	if got := fmt.Sprint(v["dag"].(map[string]any)["params"]); got != "map[rows:2]" {
		t.Errorf("its params are %s", got)
	}
	p.click("Edit")
	p.click("Remove calendar 1")
	p.click("Change the schedule…")
	p.shows("It changes /calendars .")
	p.click("Change it")
	p.shows("The schedule nightly is changed.")
	if got := fmt.Sprint(r.ask("GET", "/schedules/nightly", "")["calendars"]); got != "["+second+"]" {
		t.Errorf("its calendars are %s", got)
	}
}

func changesASchedule(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/tasks/count", counted)
	large := strings.Repeat("x", 300_000) // which no view of it shows
	r.ask("PUT", "/schedules/big", `{"calendar":{"every":"1d","phase":"2h","max_runs":9,"start_at":"2026-01-01T00:00:00+01:00"},
		"job":{"task":"echo","payload":{"text":"`+large+`","n":1},"tags":{"a":"b"},"retry":{"max_attempts":3,"jitter":0},
		"unique":{"key":"k","until":"started"},"metadata":{"x":1},"limits":[]},"catch_up":{"policy":"all","cap":7}}`)
	was := r.ask("GET", "/schedules/big", "")
	p := b.open(t, r.url+"/#/schedules/big/edit")
	p.shows("is not shown")
	p.click("Change the schedule…")
	p.shows("Nothing has changed.")
	p.click("Edit")
	p.choose("Overlap", "skip")
	p.write("Changes of the payload, in JSON", `{"n":null,"m":2}`)
	p.click("Change the schedule…")
	p.refused("Changes of the payload, in JSON", "/n", "cannot write one")
	p.write("Changes of the payload, in JSON", `{"n":2}`)
	p.click("Change the schedule…")
	p.shows("It changes /job/payload /overlap .", "0 added, 0 lost, 0 moved")
	p.shoot("schedule-edit")
	p.click("Change it")
	p.shows("The schedule big is changed.")
	is := r.ask("GET", "/schedules/big", "")
	for _, name := range []string{"calendar", "catch_up", "pause_after_failures", "job"} {
		if fmt.Sprint(is[name]) != fmt.Sprint(was[name]) {
			t.Errorf("its %s is\n%v, want\n%v", name, is[name], was[name])
		}
	}
	if is["overlap"] != "skip" {
		t.Errorf("its overlap is %v", is["overlap"])
	}
	made := r.ask("POST", "/schedules/big/run-now", `{}`)["job_id"].(string)
	if size := r.ask("GET", "/jobs/"+made, "")["payload_size"]; size.(float64) < 300_000 {
		t.Errorf("the payload of its job has %v bytes: the edit has lost what it did not show", size)
	}
	p.click("Edit")
	p.write("Task", "count") // whose schema the payload does not match
	p.click("Change the schedule…")
	p.refused("Changes of the payload, in JSON", "rows")
}

func refusesAStaleEdit(t *testing.T, b *browser, r rest) {
	r.ask("PUT", "/schedules/hourly", `{"calendar":{"cron":"0 * * * *"},"job":{"task":"echo"}}`)
	p := b.open(t, r.url+"/#/schedules/hourly/edit")
	p.write("Cron expression", "30 * * * *")
	r.ask("PATCH", "/schedules/hourly", `{"overlap":"skip"}`)
	p.click("Change the schedule…")
	p.shows("stale_version")
	if rule := r.ask("GET", "/schedules/hourly", "")["calendar"].(map[string]any)["cron"]; rule != "0 * * * *" {
		t.Errorf("its rule is %v", rule)
	}
}

func changesAWebhook(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/webhooks")
	p.shows("There are no webhooks.")
	p.click("New webhook")
	p.write("Name", "ops")
	p.write("Address", "nowhere")
	p.write("Events", "job.born")
	p.click("Set the webhook")
	p.refused("Address")
	p.refused("Events", "/0")
	p.write("Address", "https://ops.example.com/punctual")
	p.write("Events", "job.dead\njob.expired")
	p.write("Tags", "team=billing")
	p.click("Signature and headers")
	p.write("Headers, in JSON", `{"X-Team":"billing"}`)
	p.click("Set the webhook")
	p.shows("The webhook ops is set.", "job.dead, job.expired", "team=billing", "Nothing has been sent yet.")
	want := r.ask("GET", "/webhooks/ops", "")
	p.click("Edit")
	p.choose("Events are", "no")
	p.click("Set the webhook")
	p.shows("paused")
	is := r.ask("GET", "/webhooks/ops", "")
	for _, name := range []string{"url", "events", "filter", "headers"} {
		if fmt.Sprint(is[name]) != fmt.Sprint(want[name]) {
			t.Errorf("its %s is %v, want %v", name, is[name], want[name])
		}
	}
	if is["enabled"] != false {
		t.Error("it is enabled still")
	}
	p.click("Send a test")
	p.shows("This touches 1 new delivery.")
	p.click("Send the event")
	p.shows("A test event is on its way.")
	made := r.ask("GET", "/webhooks/ops/deliveries", "")["items"].([]any)[0].(map[string]any)["job_id"].(string)
	p.shows(made)
	p.click("Redeliver " + made)
	p.click("Deliver it")
	p.await("[...document.querySelectorAll('button')].filter((e) => e.textContent === 'Redeliver').length === 2")
	p.shoot("webhook")
	p.click("Delete")
	p.click("Delete the webhook")
	p.shows("There are no webhooks.")
}
