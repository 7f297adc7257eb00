package main

import (
	"strings"
	"testing"
	"time"
)

func TestBackfill_IsTriedMadeAndShown(t *testing.T) {
	t.Parallel()
	name := fresh("cli-backfill")
	putHourly(t, name)
	to := time.Now().UTC().Truncate(time.Hour)
	from := to.Add(-3 * time.Hour).Format(time.RFC3339)
	between := []string{"schedule", "backfill", name, "--from", from, "--to", to.Format(time.RFC3339)}
	run := func(more ...string) []string { return append(append([]string{}, between...), more...) }
	if out := good(t, run("--dry-run", "-o", "json")...); !strings.Contains(out, `"matched": 3`) ||
		strings.Contains(out, "operation_id") {
		t.Errorf("dry run: %s", out)
	}
	out := good(t, run("--max-running", "2", "--reason", "a test", "--wait")...)
	if !strings.Contains(out, name) || !strings.Contains(out, "SUCCEEDED") {
		t.Errorf("made: %s", out)
	}
	id := strings.TrimSpace(good(t, run("--again", "--order", "newest", "--wait", "-o", "name")...))
	if out := good(t, "operation", "get", id, "--wait", "-o", "json"); !strings.Contains(out, `"done": 3`) ||
		!strings.Contains(out, `"order": "newest"`) {
		t.Errorf("get: %s", out)
	}
	if out := good(t, "operation", "ls", "--limit", "0", "-o", "name"); !strings.Contains(out, id+"\n") {
		t.Errorf("ls: %s", out)
	}
	bad(t, exitRefused, "wrong_state", "operation", "pause", id)
	bad(t, exitRefused, "not_found", "operation", "get", "01JQ7Z3W9V5K2M8X4T6B1N0C9D")
	bad(t, exitUsage, "--from", "schedule", "backfill", name, "--to", from)
	bad(t, exitUsage, "out_of_range", "schedule", "backfill", name, "--to", from, "--from", from)
	bad(t, exitUsage, "invalid_value", run("--order", "random")...)
}

func TestOperation_IsPausedResumedAndStopped(t *testing.T) {
	t.Parallel()
	name := fresh("cli-operation")
	putHourly(t, name)
	to := time.Now().UTC().Truncate(time.Hour)
	id := strings.TrimSpace(good(t, "schedule", "backfill", name, "--from", to.Add(-700*time.Hour).Format(time.RFC3339),
		"--to", to.Format(time.RFC3339), "-o", "name"))
	for _, step := range []struct{ verb, status string }{
		{"pause", "PAUSED"}, {"resume", "RUNNING"}, {"stop", "STOPPED"},
	} {
		if out := good(t, "operation", step.verb, id); !strings.Contains(out, step.status) {
			t.Errorf("%s: %s", step.verb, out)
		}
	}
	bad(t, exitRefused, "wrong_state", "operation", "resume", id)
}

// putHourly makes an hourly schedule.
func putHourly(t *testing.T, name string) {
	t.Helper()
	good(t, "schedule", "apply", "-f", file(t, "name: "+name+"\ncalendar: {cron: \"0 * * * *\"}\njob: {task: echo}\n"))
}
