package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/shared/client/rest"
)

func TestStats_ShowWhatBecameOfJobs(t *testing.T) {
	t.Parallel()
	task := fresh("cli-stats")
	good(t, "task", "put", "-f", file(t, "name: "+task+"\nexecutor: http\n"))
	good(t, "run", task, "--in", "1h", "--payload", `{"url":"https://example.com"}`)
	var found rest.StatsView
	for range 30 { // the counts of a laptop are added every five seconds
		out := good(t, "stats", "--task", task, "--step", "1d", "-o", "json")
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatal(err)
		}
		if found.Series.Created[len(found.Series.Created)-1] > 0 {
			break
		}
		time.Sleep(time.Second)
	}
	out := good(t, "stats", "--task", task, "--last", "1m", "--step", "1d", "--wide")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	last := strings.Fields(rows[len(rows)-1])
	if !strings.HasPrefix(rows[0], "FROM") || last[1] != "1" || last[2] != "0" || last[len(last)-1] != "-" {
		t.Errorf("%s", out)
	}
	if out := good(t, "stats", "--last", "3m", "--step", "1m"); strings.Count(out, "\n") < 4 {
		t.Errorf("%s", out)
	}
	bad(t, exitUsage, "--step", "stats", "--step", "2m")
	bad(t, exitUsage, "out_of_range", "stats", "--last", "800h")
	bad(t, exitUsage, "5m, 1h, 1d", "stats", "--last", "48h", "--step", "1m")
	bad(t, exitUsage, "--from", "stats", "--from", "yesterday")
}
