package main

import (
	"strings"
	"testing"
)

func TestLogs_AreShownAndFollowed(t *testing.T) {
	t.Parallel()
	id := name(t, "run", "greet", "-p", `{"name":"Ada"}`, "--wait")
	const line = ` INFO greeting name=Ada`
	for _, args := range [][]string{{id}, {id, "-f"}, {id, "--attempt", "1"}, {id, "-f", "--attempt", "1"}} {
		if out := good(t, append([]string{"logs"}, args...)...); !strings.Contains(out, line) ||
			!strings.Contains(out, `"attempt 1 began" start=1`) {
			t.Errorf("logs %v: %s", args, out)
		}
	}
	if got := object(t, "logs", id); got["job_id"] != id || !strings.Contains(got["log"].(string), line) {
		t.Errorf("%v", got)
	}
	silent := name(t, "run", "echo", "--wait")
	for _, args := range [][]string{{"logs", silent}, {"logs", silent, "-f"}} {
		s := typed(t.Context(), "", args...)
		if s.code != exitDone || s.out != "" || strings.Count(s.errs, "attempt 1 has written no lines") != 1 {
			t.Errorf("%v: %+v", args, s)
		}
	}
	bad(t, exitRefused, "no such attempt", "logs", id, "--attempt", "2")
	bad(t, exitUsage, "--attempt", "logs", id, "--attempt", "-1")
	bad(t, exitRefused, "not_found", "logs", "01JQ7Z3W9V5K2M8X4T6B1N0C9D")
}
