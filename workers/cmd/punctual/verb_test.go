package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

func TestSchedule_SaysWhatBecameOfATimeAndWhy(t *testing.T) {
	t.Parallel()
	greets := fresh("cli-why")
	good(t, "schedule", "apply", "-f", file(t,
		"name: "+greets+"\ncalendar: {every: 1s, phase: 0s}\njob: {task: greet}\n"))
	var a account
	for end := time.Now().Add(20 * time.Second); a.Job == nil || string(a.Job.Status) != "DEAD"; {
		if time.Now().After(end) {
			t.Fatalf("nothing became of it: %+v", a)
		}
		time.Sleep(100 * time.Millisecond)
		a = account{}
		if err := json.Unmarshal([]byte(good(t, "schedule", "why", greets, "-o", "json")), &a); err != nil {
			t.Fatal(err)
		}
	}
	at := a.Occurrence.NominalAt.Format(time.RFC3339)
	out := good(t, "schedule", "why", greets, "--at", at)
	if !strings.Contains(out, "ran, DEAD, started") || !strings.Contains(out, "names nobody to greet") ||
		!strings.Contains(out, "punctual attempts "+a.Job.JobID) {
		t.Errorf("%s", out)
	}
	name(t, "schedule", "pause", greets, "--reason", "seen enough")
	if out := good(t, "schedule", "why", greets, "-o", "name"); out == "" {
		t.Error("no outcome")
	}
	if out := good(t, "schedule", "why", greets); !strings.Contains(out, "paused since") ||
		!strings.Contains(out, "seen enough") {
		t.Errorf("%s", out)
	}
	good(t, "schedule", "apply", "-f", file(t,
		"name: cli-later\ncalendar: {cron: \"30 2 * * *\", timezone: UTC}\njob: {task: echo}\n"))
	tomorrow := time.Now().UTC().AddDate(0, 0, 1).Truncate(24 * time.Hour)
	due, none := tomorrow.Add(150*time.Minute), tomorrow.Add(3*time.Hour)
	out = good(t, "schedule", "why", "cli-later", "--at", due.Format(time.RFC3339))
	if !strings.Contains(out, due.Format(time.RFC3339)+": pending") ||
		!strings.Contains(out, "It will start a job of the task echo at "+due.Format(time.RFC3339)+", in ") {
		t.Errorf("%s", out)
	}
	out = good(t, "schedule", "why", "cli-later", "--at", none.Format(time.RFC3339))
	if !strings.Contains(out, "Nothing of cli-later will be due") ||
		!strings.Contains(out, "The next one: "+due.AddDate(0, 0, 1).Format(time.RFC3339)) ||
		!strings.Contains(out, "It will start a job of the task echo at "+due.AddDate(0, 0, 1).Format(time.RFC3339)) {
		t.Errorf("%s", out)
	}
	bad(t, exitRefused, "not_found", "schedule", "why", "nobody")
	bad(t, exitUsage, "--at", "schedule", "why", greets, "--at", "yesterday")
}

func TestSchedule_AppliesPaused(t *testing.T) {
	t.Parallel()
	doc := "name: cli-paused\ncalendar: {every: 1s}\njob: {task: echo}\n"
	if out := good(t, "schedule", "apply", "-f", file(t, doc), "--paused", "--dry-run"); !strings.Contains(out,
		"it is new, and begins paused") {
		t.Errorf("%s", out)
	}
	if out := good(t, "schedule", "apply", "-f", file(t, doc), "--paused"); !strings.Contains(out, "since ") {
		t.Errorf("%s", out)
	}
	if out := good(t, "schedule", "apply", "-f", file(t, doc)); !strings.Contains(out, "since ") {
		t.Errorf("a file that says nothing has resumed it: %s", out)
	}
	because := file(t, doc+"paused: {reason: the month ends}\n")
	if out := good(t, "schedule", "apply", "-f", because, "--paused"); !strings.Contains(out, ": the month ends") {
		t.Errorf("%s", out)
	}
	if out := good(t, "schedule", "apply", "-f", file(t, doc+"paused: false\n")); strings.Contains(out, "since ") {
		t.Errorf("%s", out)
	}
}

func TestSchedule_DeletesByTagWhatTheFileNoLongerHolds(t *testing.T) {
	t.Parallel()
	doc := func(name, tag string) string {
		return fmt.Sprintf("name: %s\ncalendar: {every: 1h}\njob: {task: echo, tags: {team: %s}}\n---\n", name, tag)
	}
	both := file(t, doc("cli-prune-a", "prune")+doc("cli-prune-b", "prune"))
	good(t, "schedule", "apply", "-f", both, "--prune", "--tag", "team=prune")
	good(t, "schedule", "apply", "-f", file(t, doc("cli-prune-other", "other")))
	good(t, "dag", "apply", "-f", file(t, "name: cli-prune\nnodes: {a: {task: echo}}\n"))
	good(t, "schedule", "apply", "-f", file(t,
		"name: cli-prune-dag\ncalendar: {every: 1h}\ndag: {name: cli-prune, tags: {team: prune}}\n"))
	one := file(t, doc("cli-prune-a", "prune"))
	names := func() string { return good(t, "schedule", "ls", "-o", "name") }
	s := typed(t.Context(), "", "schedule", "apply", "-f", one, "--prune", "--tag", "team=prune", "--dry-run")
	if s.code != exitDone || !strings.Contains(s.errs, "cli-prune-b: would be deleted") ||
		!strings.Contains(names(), "cli-prune-b\n") {
		t.Errorf("%+v", s)
	}
	// What is refused keeps everything.
	wrong := file(t, doc("cli-prune-a", "prune")+strings.ReplaceAll(doc("x", "prune"), "echo", "none"))
	bad(t, exitUsage, "/job/task", "schedule", "apply", "-f", wrong, "--prune", "--tag", "team=prune")
	if !strings.Contains(names(), "cli-prune-b\n") {
		t.Error("it was deleted although a document was refused")
	}
	// Where no person can be asked, so does what was not said to be meant.
	edited := file(t, strings.ReplaceAll(doc("cli-prune-a", "prune"), "1h", "2h"))
	bad(t, exitUsage, "2 schedules would be deleted: cli-prune-b, cli-prune-dag, and there is no terminal", "schedule",
		"apply", "-f", edited, "--prune", "--tag", "team=prune")
	if left := names(); !strings.Contains(left, "cli-prune-b\n") ||
		strings.Contains(good(t, "schedule", "ls", "-o", "json"), `"every": "2h"`) {
		t.Errorf("something was changed without --yes: %s", left)
	}
	s = typed(t.Context(), "", "schedule", "apply", "-f", one, "--prune", "--tag", "team=prune", "--yes")
	if s.code != exitDone || !strings.Contains(s.errs, "cli-prune-b: deleted") ||
		!strings.Contains(s.errs, "cli-prune-dag: deleted") {
		t.Errorf("%+v", s)
	}
	if left := names(); strings.Contains(left, "cli-prune-b") || strings.Contains(left, "cli-prune-dag") ||
		!strings.Contains(left, "cli-prune-a\n") || !strings.Contains(left, "cli-prune-other\n") {
		t.Errorf("left: %s", left)
	}
	bad(t, exitUsage, "go together", "schedule", "apply", "-f", one, "--prune")
	bad(t, exitUsage, "go together", "schedule", "apply", "-f", one, "--tag", "a=b")
	bad(t, exitUsage, "line 3, column 6: cli-prune-a has not the tag", "schedule", "apply", "-f", one, "--prune",
		"--tag", "team=x")
}

func TestDead_AreCountedByCause(t *testing.T) {
	t.Parallel()
	for _, fail := range []string{"first 17", "second 18"} {
		name(t, "run", "echo", "-p", `{"fail":1,"seen":"`+fail+`"}`, "--tag", "a=b")
	}
	for range 3 {
		if s := typed(t.Context(), "", "run", "greet", "--wait"); s.code != exitFailed {
			t.Fatalf("%+v", s)
		}
	}
	var groups []rest.GroupView
	out := ""
	for end := time.Now().Add(20 * time.Second); len(groups) != 1 || groups[0].Count < 3; {
		if time.Now().After(end) { // the index follows the jobs
			t.Fatalf("%s", out)
		}
		time.Sleep(50 * time.Millisecond)
		out = good(t, "dead", "groups", "--task", "greet", "-o", "json")
		if err := json.Unmarshal([]byte(out), &groups); err != nil {
			t.Fatal(err)
		}
	}
	if groups[0].Task != "greet" || groups[0].ExampleJobID == "" ||
		!strings.Contains(groups[0].Message, "names nobody") {
		t.Fatalf("%s", out)
	}
	if out := good(t, "dead", "groups", "--task", "greet"); !strings.Contains(out, groups[0].Group) {
		t.Errorf("%s", out)
	}
	later := good(t, "dead", "groups", "--after", "2100-01-01T00:00:00Z", "-o", "json")
	if strings.TrimSpace(later) != "[]" {
		t.Errorf("%s", later)
	}
	example := groups[0].ExampleJobID
	ls := []string{"dead", "ls", "--group", groups[0].Group, "--code", groups[0].Code, "-o", "name"}
	if out := good(t, ls...); !strings.Contains(out, example) {
		t.Errorf("%s", out)
	}
	if out := good(t, append(ls, "--before", "2020-01-01T00:00:00Z")...); strings.Contains(out, example) {
		t.Errorf("%s", out)
	}
}

func TestDag_IsCancelled(t *testing.T) {
	t.Parallel()
	good(t, "dag", "apply", "-f", file(t, "name: cli-slow\nnodes: {a: {task: echo, payload: {sleep: 1h}}}\n"))
	id := name(t, "dag", "run", "cli-slow", "--in", "1h")
	good(t, "dag", "cancel", id, "--reason", "a test")
	if s := typed(t.Context(), "", "dag", "watch", id); s.code != exitCancelled {
		t.Errorf("%+v", s)
	}
	bad(t, exitRefused, "wrong_state", "dag", "cancel", id)
}

func TestSchedule_AppliesAListOfCalendars(t *testing.T) {
	t.Parallel()
	doc := "name: cli-both\ncalendars:\n- {cron: \"0 2 1 1 *\", timezone: Europe/Berlin}\n- {every: 9h}\n" +
		"job: {task: echo}\n"
	if out := good(t, "schedule", "apply", "-f", file(t, doc)); !strings.Contains(out,
		"0 2 1 1 * Europe/Berlin; 9h") {
		t.Errorf("it is shown as %s", out)
	}
	if out := good(t, "schedule", "apply", "-f", file(t, doc), "--dry-run"); !strings.Contains(out, "nothing changes") {
		t.Errorf("the same file changes %s", out)
	}
	if out := good(t, "schedule", "preview", "cli-both", "-n", "3"); strings.Count(out, "\n") != 4 {
		t.Errorf("the preview is %s", out)
	}
	bad(t, exitUsage, "line 4, column 11: /calendars/1/every", "schedule", "apply", "-f",
		file(t, strings.Replace(doc, "9h", "9", 1)))
	out := good(t, "schedule", "apply", "-f", file(t, "name: cli-both\ncalendar: {every: 9h}\njob: {task: echo}\n"))
	if strings.Contains(out, "Berlin") {
		t.Errorf("with one calendar it is shown as %s", out)
	}
}

func TestScheduleRun_StartsAJobOrARunWithAnotherInput(t *testing.T) {
	t.Parallel()
	jobs, runs := "cli-run-jobs", "cli-run-dag"
	good(t, "schedule", "apply", "-f", file(t, "name: "+jobs+"\ncalendar: {cron: \"0 2 1 1 *\"}\noverlap: skip\n"+
		"job: {task: echo, payload: {report: sales, n: 1}}\n"))
	good(t, "dag", "apply", "-f", file(t, "name: "+runs+"\nparams: {day: today, n: 1}\nnodes: {a: {task: echo, "+
		"payload: \"${params.day} ${params.n}\"}}\n"))
	good(t, "schedule", "apply", "-f", file(t, "name: "+runs+"\ncalendar: {cron: \"0 2 1 1 *\"}\n"+
		"dag: {name: "+runs+", params: {n: 2}}\n"))
	for want, args := range map[string][]string{
		"map[n:1 report:sales]": nil,
		"map[n:1 report:stock]": {"--payload-patch", `{"report":"stock"}`},
		"map[n:3]":              {"--payload", `{"n":3}`, "--overlap", "ignore"},
	} {
		j := object(t, append([]string{"schedule", "run", jobs, "--wait"}, args...)...)
		if fmt.Sprint(j["result"]) != want || j["status"] != "SUCCEEDED" {
			t.Errorf("%v ended as %v", args, j)
		}
	}
	r := object(t, "schedule", "run", runs, "--params", `{"day":"monday"}`, "--wait")
	if fmt.Sprint(r["params"]) != "map[day:monday n:2]" || r["status"] != "SUCCEEDED" {
		t.Errorf("the run is %v", r)
	}
	long := name(t, "schedule", "run", jobs, "--payload", `{"sleep":"20s"}`, "--overlap", "obey")
	for range 200 {
		if object(t, "get", long)["status"] == "RUNNING" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s := typed(t.Context(), "", "schedule", "run", jobs, "--overlap", "obey", "--wait")
	if s.code != exitSkipped || !strings.Contains(s.out, "SKIPPED") {
		t.Errorf("a run during another ended with %d: %s%s", s.code, s.out, s.errs)
	}
	good(t, "cancel", long)
	bad(t, exitUsage, "/params", "schedule", "run", jobs, "--params", "{}")
	bad(t, exitUsage, "/payload", "schedule", "run", runs, "--payload", "{}")
	bad(t, exitUsage, "is no JSON", "schedule", "run", jobs, "--payload-patch", "{")
	bad(t, exitUsage, "want an object", "schedule", "run", runs, "--params", "[]")
	bad(t, exitUsage, "--overlap", "schedule", "run", jobs, "--overlap", "skip")
	bad(t, exitRefused, "not_found", "schedule", "run", "nobody")
}

func TestSchedule_SaysWhichTimesToComeAreSkippedAndWhy(t *testing.T) {
	t.Parallel()
	daily, holidays := fresh("cli-skips"), fresh("cli-holidays")
	day := time.Now().UTC().AddDate(0, 0, 2).Truncate(24 * time.Hour)
	skipped, runs := day.Add(9*time.Hour), day.Add(33*time.Hour)
	c, err := client.New(address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutExclusion(t.Context(), holidays, rest.ExclusionRequest{
		Dates: &[]string{day.Format(time.DateOnly)}}); err != nil {
		t.Fatal(err)
	}
	good(t, "schedule", "apply", "-f", file(t, "name: "+daily+"\ncalendar: {cron: \"0 9 * * *\", exclude: ["+holidays+
		"]}\njob: {task: echo}\n"))
	out := good(t, "schedule", "preview", daily, "-n", "3")
	before, after, found := strings.Cut(out, skipped.Format("2006-01-02T15:04"))
	if !found || !strings.HasPrefix(out, "DUE ") || !strings.Contains(strings.SplitN(after, "\n", 2)[0], holidays) ||
		!strings.Contains(after, runs.Format(time.RFC3339)) || strings.Contains(before, runs.Format(time.RFC3339)) {
		t.Errorf("%s", out)
	}
	if names := good(t, "schedule", "preview", daily, "-n", "3", "-o", "name"); strings.Count(names, "\n") != 3 ||
		strings.Contains(names, "-\n") {
		t.Errorf("%s", names)
	}
	out = good(t, "schedule", "why", daily, "--at", skipped.Format(time.RFC3339))
	if !strings.Contains(out, "The time "+skipped.Format(time.RFC3339)+" of "+daily+" will be skipped: ") ||
		!strings.Contains(out, holidays) {
		t.Errorf("%s", out)
	}
	typed(t.Context(), "", "schedule", "pause", daily)
	out = good(t, "schedule", "why", daily, "--at", runs.Format(time.RFC3339))
	if !strings.Contains(out, "It will start a job of the task echo at "+runs.Format(time.RFC3339)+", in ") ||
		!strings.Contains(out, ", if the schedule is resumed before.") {
		t.Errorf("%s", out)
	}
}
