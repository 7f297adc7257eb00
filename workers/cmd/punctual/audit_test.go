package main

import (
	"encoding/json"
	"strings"
	"testing"

	"punctual/shared/client/rest"
)

func TestAudit_IsListed(t *testing.T) {
	t.Parallel()
	limit := fresh("cli-audit")
	good(t, "limit", "put", limit, "--max-running", "5")
	good(t, "limit", "put", limit, "--max-running", "6")
	out := good(t, "audit", "ls", "--resource", "limit/"+limit)
	for _, want := range []string{"limit/" + limit, "/max_running 5 → 6", "laptop"} {
		if !strings.Contains(out, want) {
			t.Errorf("ls shows no %s: %s", want, out)
		}
	}
	var entries []rest.AuditView
	out = good(t, "audit", "ls", "--resource", "limit/"+limit, "--action", string(rest.ListAuditParamsActionLimitPut),
		"--actor", "laptop", "--after", "2020-01-01T00:00:00Z", "-o", "json")
	if err := json.Unmarshal([]byte(out), &entries); err != nil || len(entries) != 2 {
		t.Errorf("%v: %s", err, out)
	}
	out = good(t, "audit", "ls", "--resource", "limit/"+limit, "--before", "2020-01-01T00:00:00Z", "-o", "json")
	if strings.TrimSpace(out) != "[]" {
		t.Errorf("before there was any: %s", out)
	}
	bad(t, exitUsage, "action", "audit", "ls", "--action", "limit.make")
	bad(t, exitUsage, "--after", "audit", "ls", "--after", "yesterday")
}

func TestWhyAndWhat_IsOneCell(t *testing.T) {
	t.Parallel()
	change := []rest.AuditChange{{Pointer: "/a", To: "high"}}
	for want, e := range map[string]rest.AuditView{
		"":                {},
		"a move":          {Reason: "a move"},
		"/a high":         {Changes: change},
		"a move; /a high": {Reason: "a move", Changes: change},
	} {
		if got := whyAndWhat(e); got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}

func TestChangesInWords_NamesWhatChanged(t *testing.T) {
	t.Parallel()
	more := int64(3)
	got := changesInWords(rest.AuditView{MoreChanges: &more, Changes: []rest.AuditChange{
		{Pointer: "/a", From: "low", To: "high"}, {Pointer: "/b", From: 1.0}, {Pointer: "/c", To: []any{"x"}},
		{Pointer: "/payload", Omitted: new(true)},
	}})
	if want := `/a low → high, /b 1 removed, /c ["x"], /payload, 3 more`; got != want {
		t.Errorf("says %s, want %s", got, want)
	}
}
