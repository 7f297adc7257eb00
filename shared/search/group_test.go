package search_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/search"
)

func TestGroup_IsTheSameForWhatVaries(t *testing.T) {
	t.Parallel()
	for name, alike := range map[string][]string{
		"numbers":   {"customer 42 has no address", "customer 7 has no address", "customer 123456789 has no address"},
		"ids":       {"job 01KZXQ4T5V6W7X8Y9ZABCDEFGH lost", "job 01J00000000000000000000000 lost"},
		"uuids":     {"no 3f2b8c1e-0a1b-4c5d-8e9f-001122334455 here", "no 00000000-0a1b-4c5d-8e9f-001122334455 here"},
		"times":     {"late since 2027-03-01T12:00:00Z", "late since 2028-04-02T01:30:00.5+02:00"},
		"durations": {"no answer in 1.5s", "no answer in 2m30s"},
		"addresses": {"dial tcp 10.0.0.7:5432: refused", "dial tcp [2001:db8::1]:5432: refused"},
		"hosts":     {"cannot reach db-a.internal", "cannot reach cache.example.org:6379"},
		"urls":      {"GET https://example.org/a failed", "GET http://other.example/b?c=d failed"},
		"mail":      {"no mailbox ann@example.org here", "no mailbox bob@example.net here"},
		"quotes":    {`no table "users" in sight`, "no table `orders` in sight", "no table 'a b c' in sight"},
		"lists":     {"missing rows 1, 2, 3 in it", "missing rows 4 in it"},
		"a long end": {"cannot read the whole of the file because of an error, see it",
			"cannot read the whole of the file because of an error and more"},
		"cuts": {"the row 1 of the import has no value for the first of its columns, and" + "…",
			"the row 123456 of the import has no value for the first of its colu" + "…"},
		"an open quote": {`unexpected "start of something`, `unexpected "another`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := search.Group("load", "handler_failed", alike[0])
			for _, message := range alike[1:] {
				if got := search.Group("load", "handler_failed", message); got != want {
					t.Errorf("%q is %s and %q %s", alike[0], want, message, got)
				}
			}
		})
	}
}

func TestGroup_DiffersByTaskCodeAndWords(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, c := range [][3]string{
		{"load", "handler_failed", "connection refused"}, {"send", "handler_failed", "connection refused"},
		{"load", "timeout", "connection refused"}, {"load", "handler_failed", "connection reset"},
		{"load", "handler_failed", "can't connect"}, {"load", "handler_failed", "can't authenticate"},
		{"load", "handler_failed", ""}, {"loadhandler_failed", "", "connection refused"},
	} {
		name := c[0] + "|" + c[1] + "|" + c[2]
		g := search.Group(c[0], c[1], c[2])
		if other, twice := seen[g]; twice {
			t.Errorf("%s and %s are one group", name, other)
		}
		seen[g] = name
	}
}

// TestGroup_IsTheSameForEver compares with what earlier versions gave. Never change a line of the file: users keep the
// names of groups.
func TestGroup_IsTheSameForEver(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/groups.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Task, Code, Message, Group string }
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 8 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		if got := search.Group(c.Task, c.Code, c.Message); got != c.Group {
			t.Errorf("%q is %s, was %s", c.Message, got, c.Group)
		}
	}
}

func TestTally_CountsByCause(t *testing.T) {
	t.Parallel()
	tally := search.NewTally(noon)
	ids := []job.ID{jobtest.Key(1).ID, jobtest.Key(2).ID, jobtest.Key(3).ID, jobtest.Key(4).ID, jobtest.Key(5).ID}
	tally.Add("b", "load", "timeout", ids[0], noon.Add(-30*time.Minute))
	tally.Add("a", "load", "timeout", ids[1], noon.Add(-25*time.Hour))
	tally.Add("a", "load", "timeout", ids[2], noon.Add(-time.Hour))
	tally.Add("a", "load", "timeout", ids[3], noon.Add(-time.Hour-time.Minute))
	tally.Add("b", "load", "timeout", ids[4], noon.Add(time.Second)) // by another clock
	got := tally.Groups()
	if len(got) != 2 || got[0].Group != "a" || got[0].Count != 3 || got[1].Count != 2 {
		t.Fatalf("%+v", got)
	}
	a, b := got[0], got[1]
	if !a.FirstAt.Equal(noon.Add(-25*time.Hour)) || !a.LastAt.Equal(noon.Add(-time.Hour)) || a.Example != ids[2] {
		t.Errorf("%+v", a)
	}
	if a.Hourly[22] != 2 || a.Hourly[0] != 0 || b.Hourly[23] != 2 {
		t.Errorf("%v %v", a.Hourly, b.Hourly)
	}
}
