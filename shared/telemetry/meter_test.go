package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func flushed(t *testing.T, m *Meter) []map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := m.Flush(&b, time.UnixMilli(1800000000123)); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for line := range strings.Lines(b.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, v)
	}
	return all
}

//proof:of S44
func TestMeter_BoundsTheSeriesOfADimension(t *testing.T) {
	t.Parallel()
	m := new(Meter)
	for n := range 5000 {
		m.Count(Faults, 1, Dim{"kind", fmt.Sprint("job-", n)})
	}
	if got := len(flushed(t, m)); got > maxSeries+1 {
		t.Errorf("%d series", got)
	}
	for n := range 5000 {
		m.Count(Faults, 1, Dim{"kind", fmt.Sprint("other-", n)})
	}
	if got := m.Total(Faults); got != 5000 {
		t.Errorf("%v of 5000 were counted", got)
	}
}

//proof:of M1
func TestMeter_FlushesWhatHappenedSinceTheLastFlush(t *testing.T) {
	t.Parallel()
	m := &Meter{Namespace: "Punctual/dev"}
	m.Count(JobsSettled, 3, Dim{"outcome", "dead"})
	m.Gauge(SlotsBusy, 7)
	m.Observe(StartLateness, 4*time.Millisecond, Dim{"pool", "short"})
	m.Observe(StartLateness, 30*time.Second, Dim{"pool", "short"})
	lines := flushed(t, m)
	if len(lines) != 3 {
		t.Fatalf("%d lines: %v", len(lines), lines)
	}
	const want = `{"Timestamp":1800000000123,"CloudWatchMetrics":[{"Dimensions":[["outcome"]],` +
		`"Metrics":[{"Name":"jobs_settled_total","Unit":"Count"}],"Namespace":"Punctual/dev"}]}`
	var head any
	if err := json.Unmarshal([]byte(want), &head); err != nil {
		t.Fatal(err)
	}
	if settled := lines[0]; settled["jobs_settled_total"] != 3.0 || settled["outcome"] != "dead" ||
		fmt.Sprint(settled["_aws"]) != fmt.Sprint(head) {
		t.Errorf("a count is written as %v", settled)
	}
	late, _ := lines[2]["start_lateness_ms"].(map[string]any)
	if fmt.Sprint(late["Values"]) != "[5 30000]" || fmt.Sprint(late["Counts"]) != "[1 1]" || late["Max"] != 30000.0 ||
		late["Min"] != 4.0 ||
		late["Sum"] != 30004.0 || late["Count"] != 2.0 {
		t.Errorf("durations are written as %v; no value may lie beyond the longest", late)
	}
}

func TestMeter_FlushesAGaugeOnlyAfterItWasSet(t *testing.T) {
	t.Parallel()
	m := new(Meter)
	m.Gauge(SlotsBusy, 7)
	if first := flushed(t, m); len(first) != 1 || first[0]["slots_busy"] != 7.0 {
		t.Errorf("the first flush: %v", first)
	}
	if second := flushed(t, m); len(second) != 0 {
		t.Errorf("a gauge that was not set again is repeated: %v", second)
	}
	m.Gauge(SlotsBusy, 0)
	if third := flushed(t, m); len(third) != 1 || third[0]["slots_busy"] != 0.0 {
		t.Errorf("a gauge that was set to 0: %v", third)
	}
}

func TestMeter_NilDropsEverything(t *testing.T) {
	t.Parallel()
	var m *Meter
	m.Count(Faults, 1)
	m.Gauge(SlotsBusy, 1)
	m.Observe(RunDuration, time.Second)
}
