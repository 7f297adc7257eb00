package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"punctual/shared/client/rest"
)

func TestRun_TakesTheSettingsOfAJob(t *testing.T) {
	t.Parallel()
	limit := fresh("cli-run-limit")
	good(t, "limit", "put", limit, "--max-running", "5")
	first := name(t, "run", "echo", "--in", "1h")
	var j rest.JobView
	out := good(t, "run", "echo", "--in", "1h", "--pool", "long", "--timeout", "20m", "--max-attempts", "3",
		"--start-within", "1h", "--expire-after", "2h", "--limit", limit+":acct=42", "--limit", limit+"=a:b",
		"-o", "json")
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		t.Fatal(err)
	}
	for what, is := range map[string]bool{
		"pool":          j.Pool == "long",
		"timeout":       of(j.Timeout) == "20m",
		"max attempts":  j.MaxAttempts == 3,
		"start within":  of(j.StartWithin) == "1h",
		"expire after":  of(j.ExpireAfter) == "2h",
		"key after :":   of((*j.Limits)[0].Key) == "acct=42",
		"key after =":   of((*j.Limits)[1].Key) == "a:b",
		"name of limit": (*j.Limits)[0].Name == limit && (*j.Limits)[1].Name == limit,
	} {
		if !is {
			t.Errorf("the %s: %s", what, out)
		}
	}
	after := object(t, "run", "echo", "--after", first, "--run-if", "all_done")
	if after["status"] != "BLOCKED" || after["run_if"] != "all_done" || fmt.Sprint(after["after"]) != "["+first+"]" {
		t.Errorf("after another: %v", after)
	}
	good(t, "cancel", j.JobID, first)
	bad(t, exitUsage, "/timeout", "run", "echo", "--timeout", "soon")
	bad(t, exitUsage, "/pool", "run", "echo", "--pool", "deep")
	bad(t, exitUsage, "/retry/max_attempts", "run", "echo", "--max-attempts", "51")
	bad(t, exitUsage, "/start_within", "run", "echo", "--start-within", "0s")
	bad(t, exitUsage, "/after/0", "run", "echo", "--after", "nobody")
	bad(t, exitUsage, "(/after)", "run", "echo", "--run-if", "all_done")
}

func TestDag_ARunIsShownPausedResumedAndDeleted(t *testing.T) {
	t.Parallel()
	dag := fresh("cli-run-verbs")
	good(t, "dag", "apply", "-f", file(t, "name: "+dag+"\nnodes:\n  a: {task: echo, for_each: \"${[1,2]}\", "+
		"payload: \"${item}\"}\n  b: {task: echo, depends_on: [a], payload: {n: 1}}\n"))
	run := name(t, "dag", "run", dag, "--in", "1h")
	for verb, status := range map[string]string{"pause": "PAUSED", "resume": "RUNNING"} {
		_ = good(t, "dag", "pause", run, "--reason", "the source is down")
		if r := object(t, "dag", verb, run); r["status"] != status {
			t.Errorf("%s: %v", verb, r["status"])
		}
		if r := object(t, "dag", "status", run); r["status"] != status {
			t.Errorf("after %s: %v", verb, r["status"])
		}
	}
	if out := good(t, "dag", "events", run); !strings.Contains(out, "the source is down") ||
		!strings.Contains(out, "pause ") {
		t.Errorf("events: %s", out)
	}
	bad(t, exitRefused, "not_finished", "dag", "delete-run", run)
	good(t, "dag", "cancel", run)
	good(t, "dag", "delete-run", run)
	bad(t, exitRefused, "not_found", "dag", "status", run)
	for _, verb := range []string{"status", "events", "pause", "resume", "delete-run"} {
		bad(t, exitRefused, "not_found", "dag", verb, "nobody")
	}
	done := name(t, "dag", "run", dag, "--wait")
	if out := good(t, "dag", "node", done, "b"); !strings.Contains(out, "1/1") || !strings.Contains(out, `{"n":1}`) {
		t.Errorf("node: %s", out)
	}
	if out := good(t, "dag", "node", done, "a", "--items"); strings.Count(out, "SUCCEEDED") != 2 {
		t.Errorf("items: %s", out)
	}
	bad(t, exitRefused, "no such node", "dag", "node", done, "c")
}

func TestOperation_ProceedsOnlyWithACanary(t *testing.T) {
	t.Parallel()
	bad(t, exitRefused, "not_found", "operation", "proceed", "nobody")
	schedule := fresh("cli-proceed")
	good(t, "schedule", "apply", "-f", file(t, "name: "+schedule+"\ncalendar: {every: 1h}\njob: {task: echo}\n"))
	o := name(t, "schedule", "backfill", schedule, "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T03:00:00Z",
		"--again")
	bad(t, exitRefused, "wrong_state", "operation", "proceed", o)
}

func TestCommand_NamesTheNearestVerbAndFlag(t *testing.T) {
	t.Parallel()
	for typo, meant := range map[string]string{
		"shedule": `did you mean "schedule"?`, "task lst": `did you mean one of "ls"`,
		"dag evnts": `did you mean "events"?`, "operation proced x": `did you mean "proceed"?`,
		"ls --tasks echo": `did you mean "--task"?`,
	} {
		bad(t, exitUsage, meant, strings.Fields(typo)...)
	}
}
