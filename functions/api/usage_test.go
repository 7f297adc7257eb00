package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/memory"
	"punctual/shared/usage"
)

// uses adds what values used to what is stored.
func (b *bench) uses(t *testing.T, by usage.By, day time.Time, values map[string]usage.Use) {
	t.Helper()
	for _, a := range (usage.Sum{{Tenant: b.who.Tenant, By: by, Day: usage.DayOf(day)}: values}).Additions() {
		b.Must(b.Store.Put(t.Context(), a.Write))
	}
}

func withTags(_ *memory.Options, d *api.Deps) { d.Counted, d.UsageTags = true, []string{"team"} }

func TestUsage_ListsWhatJobsUsed(t *testing.T) {
	t.Parallel()
	b := setup(t, withTags)
	mail := usage.Use{Jobs: 2, Attempts: 3, RunningMS: 1500, Bytes: 4096, Requests: 2}
	b.uses(t, usage.ByTask, noon, map[string]usage.Use{"mail": mail, "load": {Jobs: 1, Attempts: 1, Bytes: 900}})
	b.uses(t, usage.ByTask, noon.AddDate(0, 0, -1), map[string]usage.Use{"mail": mail})
	b.uses(t, usage.ByTask, noon.AddDate(0, 0, -40), map[string]usage.Use{"old": mail})
	b.uses(t, usage.TagPrefix+"team", noon, map[string]usage.Use{"red": mail})
	b.uses(t, usage.ByDag, noon, map[string]usage.Use{"etl": mail})

	keys := func(query string) string {
		var all []string
		for _, i := range b.want(t, 200, "GET", "/v1/usage?"+query, "").items() {
			all = append(all, fmt.Sprint(i["key"], " ", i["jobs"], " ", i["running_s"]))
		}
		return strings.Join(all, ", ")
	}
	for query, want := range map[string]string{
		"":                          "mail 4 3, load 1 0",
		"from=2027-03-01T00:00:00Z": "mail 2 1.5, load 1 0",
		"to=2027-03-01T00:00:00Z":   "mail 2 1.5",
		"from=2027-02-28T23:59:59Z": "mail 4 3, load 1 0",
		"by=tag.team":               "red 2 1.5",
		"by=dag":                    "etl 2 1.5",
		"by=schedule":               "",
		"limit=1":                   "mail 4 3",
		"by=task&from=2027-03-01T12:00:00%2B00:00&to=2027-03-01T12:00:01Z": "mail 2 1.5, load 1 0",
	} {
		if got := keys(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	first := b.want(t, 200, "GET", "/v1/usage?limit=1", "")
	if got := keys("limit=1&cursor=" + first.str("next_cursor")); got != "load 1 0" {
		t.Errorf("the second page has %s", got)
	}
	item := first.items()[0]
	if item["attempts"] != 6.0 || item["bytes"] != 8192.0 || item["requests"] != 4.0 || item["dollars"].(float64) <= 0 {
		t.Errorf("the item is %v", item)
	}
	b.who.Tenant = "globex"
	if got := keys(""); got != "" {
		t.Errorf("another tenant reads %s", got)
	}
}

func TestUsage_ShowsABoundedNumberOfKeys(t *testing.T) {
	t.Parallel()
	b := setup(t, withTags)
	many := map[string]usage.Use{}
	for n := range usage.MaxValues + 50 {
		many[fmt.Sprint("v", n)] = usage.Use{Jobs: 1}
	}
	b.uses(t, usage.TagPrefix+"team", noon, many)
	keys, jobs := 0, 0.0
	for next := ""; ; {
		r := b.want(t, 200, "GET", "/v1/usage?by=tag.team&limit=200"+next, "")
		for _, i := range r.items() {
			keys, jobs = keys+1, jobs+i["jobs"].(float64)
		}
		if r.str("next_cursor") == "" {
			break
		}
		next = "&cursor=" + r.str("next_cursor")
	}
	if keys != usage.MaxValues+1 || jobs != usage.MaxValues+50 {
		t.Errorf("%d keys have %v jobs", keys, jobs)
	}
}

func TestUsage_RefusesWhatIsNotCounted(t *testing.T) {
	t.Parallel()
	b := setup(t, withTags)
	for _, c := range []wrong{
		{"a tag that the setting does not name", "by=tag.color", 400, "not_indexed", "by"},
		{"another word", "by=pool", 400, "invalid_value", "by"},
		{"a tag without a name", "by=tag.", 400, "invalid_value", "by"},
		{"no time", "from=yesterday", 400, "invalid_value", "from"},
		{"an end before the start", "from=2027-03-01T00:00:00Z&to=2027-02-01T00:00:00Z", 400, "conflicting_fields",
			"to"},
		{"a long range", "from=2027-01-01T00:00:00Z&to=2027-02-01T00:00:01Z", 400, "out_of_range", "from"},
		{"an unknown parameter", "step=1h", 400, "unknown_field", "step"},
	} {
		t.Run("refuses "+c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "GET", "/v1/usage?"+c.body, ""))
		})
	}
	b.want(t, 200, "GET", "/v1/usage?from=2027-01-01T00:00:00Z&to=2027-02-01T00:00:00Z", "")
	if r := setup(t).want(t, 400, "GET", "/v1/usage", ""); r.str("code") != "not_indexed" {
		t.Errorf("%s", r.text)
	}
}
