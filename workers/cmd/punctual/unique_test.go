package main

import (
	"encoding/json"
	"testing"

	"punctual/shared/client/rest"
)

func TestRun_TakesAUniqueKey(t *testing.T) {
	t.Parallel()
	key := fresh("cli unique")
	run := func(more ...string) (j rest.JobView) {
		t.Helper()
		out := good(t, append([]string{"run", "echo", "--in", "1h", "--unique", key, "-o", "json"}, more...)...)
		if err := json.Unmarshal([]byte(out), &j); err != nil {
			t.Fatal(err)
		}
		return j
	}
	first := run("--until", "started", "-p", "1")
	if u := first.Unique; u == nil || u.Key != key || u.Until != "started" || u.OnConflict != "return" {
		t.Errorf("the job has the key %+v", u)
	}
	if second := run("-p", "2"); second.JobID != first.JobID || second.Version != 1 {
		t.Errorf("the second is %s at version %d", second.JobID, second.Version)
	}
	if replaced := run("-p", "2", "--on-conflict", "replace"); replaced.JobID != first.JobID || replaced.Version != 2 {
		t.Errorf("the third is %s at version %d", replaced.JobID, replaced.Version)
	}
	bad(t, exitRefused, "not_unique", "run", "echo", "--unique", key, "--on-conflict", "reject")
	bad(t, exitUsage, "/unique/key", "run", "echo", "--until", "started")
	bad(t, exitUsage, "/unique/until", "run", "echo", "--unique", key, "--until", "dawn")
	good(t, "cancel", first.JobID)
}
