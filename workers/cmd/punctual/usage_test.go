package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/shared/client/rest"
)

func TestUsage_ListsWhatJobsUsed(t *testing.T) {
	t.Parallel()
	task := fresh("cli-usage")
	good(t, "task", "put", "-f", file(t, "name: "+task+"\nexecutor: echo\n"))
	good(t, "run", task, "--wait")
	var found rest.UsageView
	for range 30 { // a laptop adds what it counted every five seconds
		var all []rest.UsageView
		if err := json.Unmarshal([]byte(good(t, "usage", "--limit", "0", "-o", "json")), &all); err != nil {
			t.Fatal(err)
		}
		for _, u := range all {
			if u.Key == task {
				found = u
			}
		}
		if found.Jobs > 0 {
			break
		}
		time.Sleep(time.Second)
	}
	if found.Jobs != 1 || found.Attempts != 1 || found.Requests != 1 || found.Bytes == 0 || found.Dollars <= 0 {
		t.Errorf("%+v", found)
	}
	if out := good(t, "usage", "--by", "task", "--last", "1h", "--wide"); !strings.HasPrefix(out, "KEY") {
		t.Errorf("%s", out)
	}
	bad(t, exitUsage, "not_indexed", "usage", "--by", "tag.color")
	bad(t, exitUsage, "invalid_value", "usage", "--by", "pool")
	bad(t, exitUsage, "out_of_range", "usage", "--last", "800h")
	bad(t, exitUsage, "--from", "usage", "--from", "yesterday")
}
