package api_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/stats"
)

// counted counts all that the table's stream shows.
func (b *bench) counted(t *testing.T) {
	t.Helper()
	changes, err := b.World.Table().Stream(t.Context(), "", 1000, 0)
	b.Must(err)
	var sum stats.Sum
	for _, c := range changes {
		sum.Change(c, b.clock.Now())
	}
	for _, a := range sum.Additions() {
		b.Must(b.Store.Put(t.Context(), a.Write))
	}
}

func counting(_ *memory.Options, d *api.Deps) { d.Counted = true }

func TestStats_AreRefusedWhereNothingCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if r := b.want(t, 400, "GET", query(), ""); r.str("code") != "not_indexed" {
		t.Errorf("%s", r.text)
	}
}

func query(pairs ...string) string {
	q := url.Values{}
	for n := 0; n < len(pairs); n += 2 {
		q.Set(pairs[n], pairs[n+1])
	}
	return "/v1/stats?" + q.Encode()
}

func TestStats_CountWhatBecameOfJobs(t *testing.T) {
	t.Parallel()
	b := setup(t, counting)
	b.want(t, 201, "PUT", "/v1/tasks/once", `{"executor":"go","retry":{"max_attempts":1}}`)
	good := b.post(t, `{"task":"echo"}`)
	b.dead(t, `{"task":"once"}`)
	b.post(t, `{"task":"echo","delay":"1h"}`)
	b.clock.set(noon.Add(time.Minute))
	b.end(t, good, job.Outcome{Kind: job.OutcomeSucceeded, LatenessMS: 60_000})

	b.counted(t)
	from := noon.Format(time.RFC3339)
	to := noon.Add(3 * time.Minute).Format(time.RFC3339)
	r := b.want(t, 200, "GET", query("from", from, "to", to, "step", "1m"), "")
	if r.str("step") != "1m" || r.str("from") != noon.Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("steps of %q from %q", r.str("step"), r.str("from"))
	}
	series := func(r reply, name string) string { return fmt.Sprint(r.body["series"].(map[string]any)[name]) }
	for name, want := range map[string]string{
		"created": "[3 0 0]", "succeeded": "[0 1 0]", "dead": "[1 0 0]", "failed_attempts": "[1 0 0]",
		"expired": "[0 0 0]", "skipped": "[0 0 0]",
	} {
		if got := series(r, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	lateness := r.body["series"].(map[string]any)["lateness_p99_ms"].([]any)
	if ms, _ := lateness[1].(float64); ms < 57_000 || ms > 63_000 || lateness[2] != nil {
		t.Errorf("the lateness is %v", lateness)
	}
	one := b.want(t, 200, "GET", query("from", from, "to", to, "step", "1h", "task", "once"), "")
	if series(one, "created") != "[1]" || series(one, "dead") != "[1]" || series(one, "succeeded") != "[0]" {
		t.Errorf("of one task: %s", one.text)
	}
	if one := b.want(t, 200, "GET", query("task", "nobody"), ""); series(one, "created") == "[]" {
		t.Errorf("of no task: %s", one.text)
	}
	b.who = all("globex")
	other := b.want(t, 200, "GET", query("from", from, "to", to, "step", "1d"), "")
	if series(other, "created") != "[0]" {
		t.Errorf("another tenant has %s", other.text)
	}
}

func TestStats_RefuseBadRanges(t *testing.T) {
	t.Parallel()
	b := setup(t, counting)
	const day = "2027-01-02T00:00:00Z"
	for _, c := range []struct{ path, code, at, allowed string }{
		{query("from", "yesterday"), "invalid_value", "from", ""},
		{query("to", "2026-11-30"), "invalid_value", "to", ""},
		{query("step", "2m"), "invalid_value", "step", "1m, 5m, 1h, 1d"},
		{query("task", "a b"), "invalid_value", "task", ""},
		{query("from", day, "to", "2027-01-01T00:00:00Z"), "conflicting_fields", "to", ""},
		{query("from", day, "to", day), "conflicting_fields", "to", "a time after 2027-01-02T00:00:00.000Z"},
		{query("from", "2300-01-01T00:00:00Z"), "conflicting_fields", "from", ""},
		{query("from", day, "to", "2027-02-01T00:00:01Z"), "out_of_range", "from", "at most 30 days before the end"},
		{query("from", day, "to", "2027-01-04T00:00:00Z", "step", "1m"), "out_of_range", "step", "5m, 1h, 1d"},
	} {
		m := violationOf(b.want(t, 400, "GET", c.path, ""))
		at := m["pointer"] == c.at || m["parameter"] == c.at
		if !at || m["code"] != c.code || c.allowed != "" && m["allowed"] != c.allowed {
			t.Errorf("%s: %v", c.path, m)
		}
	}
	b.want(t, 200, "GET", query("from", day, "to", "2027-02-01T00:00:00Z", "step", "1h"), "")
	b.want(t, 200, "GET", query("from", day, "to", "2027-01-03T01:00:00Z", "step", "1m"), "")
}
