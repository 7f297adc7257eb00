package main

import (
	"strings"
	"testing"
)

func TestOperation_ChangesManyJobs(t *testing.T) {
	t.Parallel()
	tag := fresh("cli-many")
	var ids []string
	for range 3 {
		ids = append(ids, name(t, "run", "echo", "--tag", "of="+tag, "--in", "3h", "--priority", "low"))
	}
	of := func(more ...string) []string { return append([]string{"operation", "create"}, more...) }
	out := good(t, of("reprioritize", "--tag", "of="+tag, "--set-priority", "high", "--dry-run", "-o", "json")...)
	if !strings.Contains(out, `"matched": 3`) || strings.Contains(out, "operation_id") {
		t.Errorf("dry run: %s", out)
	}
	out = good(t, of("reprioritize", "--tag", "of="+tag, "--set-priority", "high", "--rate", "100/1s", "--reason",
		"a test", "--wait")...)
	if !strings.Contains(out, "SUCCEEDED") || !strings.Contains(out, "reprioritize") {
		t.Errorf("done: %s", out)
	}
	if out := good(t, "get", ids[0], "-o", "json"); !strings.Contains(out, `"priority": "high"`) {
		t.Errorf("job: %s", out)
	}
	out = good(t, of("cancel", "--job", ids[0], "--job", ids[1], "--wait", "-o", "json")...)
	if !strings.Contains(out, `"done": 2`) {
		t.Errorf("cancelled: %s", out)
	}
	bad(t, exitUsage, "missing_field", of("cancel")...)
	bad(t, exitUsage, "not a number and a time", of("cancel", "--all", "--rate", "often")...)
	bad(t, exitUsage, "invalid_value", of("explode", "--all")...)
	bad(t, exitUsage, "conflicting_fields", of("cancel", "--all", "--canary", "3")...)
	bad(t, exitUsage, "neither a time of today", of("cancel", "--due-after", "soon")...)
}
