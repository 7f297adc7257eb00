package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"punctual/shared/client/rest"
)

func TestDead_AreCountedHereWhereTheyAreNotIndexed(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/groups") {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":400,"code":"not_indexed","detail":"there is no index"}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"items":[
			{"job_id":"c","task":"a","dead_at":"2027-03-03T00:00:00Z","status_reason":{"code":"x","message":"no 17"}},
			{"job_id":"b","task":"a","dead_at":"2027-03-02T00:00:00Z","status_reason":{"code":"y","message":"no 18"}},
			{"job_id":"a","task":"a","dead_at":"2027-03-01T00:00:00Z",
				"status_reason":{"code":"x","message":"no 19"}}]}`))
	}))
	t.Cleanup(plain.Close)
	s := typed(t.Context(), "", "--url", plain.URL, "dead", "groups", "-o", "json")
	var groups []rest.GroupView
	if err := json.Unmarshal([]byte(s.out), &groups); err != nil || s.code != exitDone || s.errs != "" {
		t.Fatalf("%+v, %v", s, err)
	}
	if len(groups) != 2 || groups[0].Code != "x" || groups[0].Count != 2 || groups[0].ExampleJobID != "c" ||
		groups[0].FirstAt.Day() != 1 || groups[0].LastAt.Day() != 3 || groups[1].Count != 1 {
		t.Errorf("%+v", groups)
	}
	s = typed(t.Context(), "", "--url", plain.URL, "dead", "groups", "--limit", "2")
	if s.code != exitDone || !strings.Contains(s.errs, "of the newest 2") {
		t.Errorf("%+v", s)
	}
}

func TestList_FindsJobsByTheirFilters(t *testing.T) {
	t.Parallel()
	tag := fresh("cli-tag")
	id := name(t, "run", "echo", "--tag", "of="+tag, "--in", "1h")
	name(t, "run", "echo", "--tag", "of="+tag, "--in", "3h")
	in2h := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	ls := []string{"ls", "-o", "name", "--tag", "of=" + tag, "--due-before", in2h}
	out := ""
	for end := time.Now().Add(20 * time.Second); !strings.Contains(out, id); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) { // the index follows the jobs
			t.Fatalf("%s is not found: %q", id, out)
		}
		out = good(t, ls...)
	}
	for want, flags := range map[string][]string{
		id + "\n": {"--pool", "short", "--priority", "normal", "--id", id[:12], "--order", "oldest"},
		"":        {"--pool", "long"},
	} {
		if out := good(t, append(ls, flags...)...); out != want {
			t.Errorf("%v: %q, want %q", flags, out, want)
		}
	}
	if out := good(t, append(ls, "--due-after", in2h)...); out != "" {
		t.Errorf("%q is due before and after one time", out)
	}
	bad(t, exitUsage, "neither a time of today", "ls", "--due-after", "soon")
	bad(t, exitUsage, "order", "ls", "--order", "best")
	bad(t, exitUsage, "neither a time of today", "dead", "ls", "--after", "soon")
}
