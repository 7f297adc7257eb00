package console_test

import (
	"fmt"
	"testing"
)

// changesMany does to all that a filter matches what one job or run may be done to, by clicks.
func changesMany(t *testing.T, b *browser, r rest) {
	for range 5 {
		r.post(`{"task":"echo","delay":"1h","tags":{"team":"ops"}}`)
	}
	other := r.post(`{"task":"echo","delay":"1h","tags":{"team":"data"}}`)
	run := r.startETL()
	p := b.open(t, r.url+"/#/jobs?tag=team=ops")
	p.shows("5 jobs, newest first")
	const open = "Act on all that match"
	begin := func(action string, ask func()) {
		t.Helper()
		p.visit("#/operations") // the card of the list is closed where the list is opened anew
		p.visit("#/jobs?tag=team=ops")
		p.click(open)
		p.shows("All jobs of tag team=ops.")
		p.click(action + "…")
		p.shows("This touches 5 jobs.")
		ask()
		p.click(action + ": begin")
		p.shows("The operation has begun.", "5 of 5 jobs.")
		p.await("location.hash.startsWith('#/operations/')")
	}
	begin("Pause", func() { p.write("Reason", "not today"); p.shoot("bulk-ask") })
	p.shows("Pause jobs", "not today")
	p.shoot("bulk-operation")
	p.visit("#/jobs?tag=team=ops")
	p.shows("5 jobs, newest first")
	p.click(open)
	p.click("Pause…")
	p.shows("Pause: no job that matches allows it.")
	begin("Give a priority", func() { p.choose("Priority", "critical") })
	begin("Resume", func() {})
	begin("Reschedule", func() { p.write("Due in", "2h") })
	begin("Cancel", func() { p.write("At most so many a second", "100") })
	begin("Delete", func() {})
	p.visit("#/jobs?tag=team=ops")
	p.shows("No job matches.")
	if v := r.ask("GET", "/jobs/"+other, ""); v["priority"] != "normal" || v["status"] != "SCHEDULED" {
		t.Errorf("a job that does not match is %v", v)
	}
	p.visit("#/dags?status=FAILED")
	p.click(open)
	p.click("Retry…")
	p.shows("All runs of status FAILED.", "This touches 1 run.")
	p.click("Retry: begin")
	p.shows("Retry runs", "1 of 1 run.")
	if r.ended("/runs/"+run) == "" {
		t.Error("the run has no status")
	}
	changes := r.ask("GET", "/audit?action=operation.create", "")["items"].([]any)
	if len(changes) != 7 {
		t.Errorf("%d operations are in the audit, want 7", len(changes))
	}
}

// showsUse reads what jobs used, and what that costs about.
func showsUse(t *testing.T, b *browser, r rest) {
	p := b.open(t, r.url+"/#/usage")
	p.shows("Nothing was used.")
	for range 3 {
		r.ended("/jobs/" + r.post(`{"task":"echo","payload":{"hello":"world"}}`))
	}
	p.shows("Dollars, estimated", "echo", "100 %", "no basis of an invoice") // the counts follow within ten seconds
	p.shoot("usage")
	p.choose("Days, of UTC", "1")
	p.await("location.hash.includes('range=1')")
	p.shows("100 %")
	p.visit("#/usage?by=schedule")
	p.shows("Jobs without a schedule are not in this list.")
	p.visit("#/usage?by=tag.team")
	p.shows("not_indexed", "usage_tags")
	p.visit("#/usage")
	p.click("echo")
	p.await("location.hash === '#/tasks/echo'")
}

// The text of a view is found by what the view computes: these are the actions that a list offers.
func TestBulk_OffersWhatAStatusAllows(t *testing.T) {
	t.Parallel()
	p := chromium(t).open(t, serve(t).url+"/#/pauses")
	p.settled()
	for _, c := range []struct{ kind, status, scopes, want string }{
		{"jobs", "", "admin write", "cancel,pause,resume,run_now,reschedule,reprioritize,redrive,purge,delete"},
		{"jobs", "", "write", "cancel,pause,resume,run_now,reschedule,reprioritize"},
		{"jobs", "RUNNING", "admin write", "cancel"},
		{"jobs", "BLOCKED", "write", "cancel,pause,resume,reschedule,reprioritize"},
		{"jobs", "DEAD", "admin write", "redrive,purge,delete"},
		{"jobs", "SUCCEEDED", "write", ""},
		{"runs", "", "write", "retry_runs,cancel_runs"},
		{"runs", "HELD", "write", "retry_runs,cancel_runs"},
		{"runs", "SUCCEEDED", "write", ""},
		{"runs", "FAILED", "read", ""},
	} {
		got := p.eval(fmt.Sprintf(`import(location.origin + '/views/bulk.js').then((m) =>
			m.offered(%q, %q, (s) => %q.includes(s)).map(([action]) => action).join())`, c.kind, c.status, c.scopes))
		if got != c.want {
			t.Errorf("%s of status %q with %s: %v, want %s", c.kind, c.status, c.scopes, got, c.want)
		}
	}
}
