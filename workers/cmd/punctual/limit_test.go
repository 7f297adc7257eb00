package main

import (
	"encoding/json"
	"strings"
	"testing"

	"punctual/shared/client/rest"
)

func TestLimit_IsPutShownListedAndDeleted(t *testing.T) {
	t.Parallel()
	limit := fresh("cli-limit")
	out := good(t, "limit", "put", limit, "--max-running", "5", "--rate", "100/1m", "--when-full", "skip")
	for _, want := range []string{limit, "5", "100/1m", "skip"} {
		if !strings.Contains(out, want) {
			t.Errorf("put shows no %s: %s", want, out)
		}
	}
	if shown := good(t, "limit", "get", limit); shown != out {
		t.Errorf("show: %s", shown)
	}
	if listed := good(t, "limit", "ls", "-o", "name"); !strings.Contains(listed, limit+"\n") {
		t.Errorf("ls: %s", listed)
	}
	if keys := good(t, "limit", "keys", limit, "-o", "json"); strings.TrimSpace(keys) != "[]" {
		t.Errorf("keys: %s", keys)
	}
	var j rest.JobView
	out = good(t, "run", "echo", "--in", "1h", "--limit", limit+"=acct=42", "--limit", limit, "-o", "json")
	if err := json.Unmarshal([]byte(out), &j); err != nil {
		t.Fatal(err)
	}
	if l := *j.Limits; len(l) != 2 || *l[0].Key != "acct=42" || l[1].Key != nil || l[1].Name != limit {
		t.Errorf("the job: %s", out)
	}
	good(t, "cancel", j.JobID)
	bad(t, exitUsage, "unknown_limit", "run", "echo", "--limit", limit+"-none")
	bad(t, exitUsage, "--rate", "limit", "put", limit, "--rate", "100")
	bad(t, exitUsage, "--rate", "limit", "put", limit, "--rate", "many/1m")
	bad(t, exitUsage, "missing_field", "limit", "put", limit)
	good(t, "limit", "delete", limit)
	bad(t, exitRefused, "not_found", "limit", "get", limit)
	bad(t, exitRefused, "not_found", "limit", "delete", limit)
}

func TestWaitsFor_SaysHowManyAreAhead(t *testing.T) {
	t.Parallel()
	key := "acct-42"
	limit := rest.JobViewWaitingForLimit
	for want, j := range map[string]rest.JobView{
		"limit github/acct-42, 12 ahead": {WaitingFor: &limit,
			Limit: &rest.LimitWait{Name: "github", Key: &key, Ahead: 12}},
		"limit github, 0 ahead": {WaitingFor: &limit, Limit: &rest.LimitWait{Name: "github"}},
		"limit":                 {WaitingFor: &limit},
	} {
		if got := waitsFor(j); got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}
