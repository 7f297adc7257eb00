package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Name is a metric's name. Counts end in _total, durations in _ms, gauges in neither.
type Name string

// The metrics.
const (
	JobsAccepted    Name = "jobs_accepted_total"
	JobsSettled     Name = "jobs_settled_total" // by outcome
	StartLateness   Name = "start_lateness_ms"  // by pool
	UrgentLateness  Name = "urgent_lateness_ms" // the same of critical and high jobs alone, by pool
	RunDuration     Name = "run_duration_ms"    // by pool
	FiringsSent     Name = "firings_sent_total" // by lane
	TimersArmed     Name = "timers_armed_total"
	ClaimsLost      Name = "claims_lost_total"
	ClaimsTakenOver Name = "claims_taken_over_total"
	Duplicates      Name = "duplicate_firings_total" // refused at the claim
	Quarantined     Name = "messages_set_aside_total"
	Overrun         Name = "overrun_total"  // entries of a pass, or records, whose work did not end in time
	Swept           Name = "swept_total"    // by step
	Promoted        Name = "promoted_total" // nominal times of schedules, by outcome
	WatermarkLag    Name = "watermark_lag_ms"
	PassesMade      Name = "passes_made_total" // by pass: those that succeeded, and those that a restored table held
	DeadLetters     Name = "dead_letters_total"
	Redriven        Name = "redriven_total"
	// WebhooksDisabled counts the webhooks that were disabled because of their failures.
	WebhooksDisabled Name = "webhooks_disabled_total"
	Faults           Name = "faults_total"          // by kind
	RecordsFailed    Name = "records_failed_total"  // of queues and streams, by stage; such an answer is no error
	Throttles        Name = "throttles_total"       // by service
	KeysUnfetched    Name = "keys_unfetched_total"  // the issuer of tokens did not give its keys
	Requests         Name = "requests_total"        // by status class
	RequestsFailed   Name = "requests_failed_total" // by stage: answered with 5xx
	SlotsBusy        Name = "slots_busy"            // by pool
	SlotsWanted      Name = "slots_wanted"          // by pool: at once, in the next half hour
	DueAhead         Name = "due_ahead"             // by pool: jobs due in the next half hour
	ForecastError    Name = "forecast_error"        // by pool: jobs that came minus jobs that were expected
	RunsCreated      Name = "dag_runs_created_total"
	RunsEnded        Name = "dag_runs_ended_total" // by outcome
	RunTook          Name = "dag_run_duration_ms"  // from its due time to its end
	NodesReleased    Name = "nodes_released_total" // jobs of nodes and items
	Heartbeats       Name = "heartbeats_total"     // by pool: empty jobs of each minute and priority that succeeded
	TablesHeld       Name = "tables_held"          // restored, and not let run yet: nothing starts
	OperationsStill  Name = "operations_still_ms"  // longest time in which an operation has not come forward; 0: all do
	ZoneRulesAge     Name = "zone_rules_age_days"  // of the time zone rules in use, since their release
)

// Values of dimensions that alarms and panels ask for. They are written by words of other packages, to which a test of
// integration/layout holds them: a value that no code writes would make an alarm that never rings.
const (
	OutcomeSucceeded = "succeeded"
	OutcomeDead      = "dead"
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
	StepFire         = "fire"
	PassPromoted     = "promoted"
	PassSwept        = "swept"
	PassForecast     = "forecast"
	StageStream      = "stream"
	StageChanges     = "changes"
	StageDispatch    = "dispatch"
	StageStatus      = "status"
	StageRedrive     = "redrive"
	StageBulk        = "bulk"
	StageAPIRead     = "api-read"
	StageAPIWrite    = "api-write"
)

// Dim is one dimension of a metric: a key and a value from a small fixed set.
type Dim struct{ Key, Value string }

// maxSeries bounds what an error with a dimension can cost; further series are counted as one
// named "other".
const maxSeries = 300

// buckets are the upper bounds of a duration's histogram, in milliseconds.
var buckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 60000, math.Inf(1)}

type series struct {
	name   Name
	dims   []Dim
	value  float64 // counts and gauges
	gauge  bool
	set    bool    // a gauge that was set since the last flush
	counts []int64 // histogram
	sum    float64
	n      int64
	max    float64
	min    float64 // of n values
}

// Meter collects metrics in memory. The zero Meter is ready to use; a nil Meter drops everything.
type Meter struct {
	// Namespace is the namespace of embedded-metric lines, from contract.Env; "" where none are
	// written.
	Namespace string
	// Version is the version of the function that counts; "" elsewhere. Failures are counted by it as
	// well, so that a canary can compare a new version with the old one.
	//exhaustruct:optional
	Version string

	mu     sync.Mutex
	series map[string]*series
}

func (m *Meter) at(name Name, dims []Dim) *series {
	var key strings.Builder
	key.WriteString(string(name))
	for _, d := range dims {
		key.WriteString("|" + d.Key + "=" + d.Value)
	}
	k := key.String()
	if s := m.series[k]; s != nil {
		return s
	}
	if m.series == nil {
		m.series = map[string]*series{}
	}
	if len(m.series) >= maxSeries {
		k, dims = string(name)+"|other", []Dim{{"other", "true"}}
		if s := m.series[k]; s != nil {
			return s
		}
	}
	s := &series{name: name, dims: slices.Clone(dims)}
	m.series[k] = s
	return s
}

// Count adds n to a count.
func (m *Meter) Count(name Name, n int64, dims ...Dim) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(name, dims).value += float64(n)
	if m.Version != "" && CountedByVersion(name) {
		m.at(name, append(slices.Clone(dims), Dim{VersionDim, m.Version})).value += float64(n)
	}
}

// VersionDim is the dimension of a function's version.
const VersionDim = "version"

// CountedByVersion reports whether a count is also written by the version of the function. Only failures are: a series
// for each version of what always happens would be billed after each deploy.
func CountedByVersion(name Name) bool { return name == RecordsFailed || name == RequestsFailed }

// Gauge sets a value.
func (m *Meter) Gauge(name Name, v float64, dims ...Dim) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.at(name, dims)
	s.gauge, s.set, s.value = true, true, v
}

// Observe adds one duration to a histogram.
func (m *Meter) Observe(name Name, d time.Duration, dims ...Dim) {
	if m == nil {
		return
	}
	ms := float64(d) / float64(time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.at(name, dims)
	if s.counts == nil {
		s.counts = make([]int64, len(buckets))
	}
	for b, bound := range buckets {
		if ms <= bound {
			s.counts[b]++
			break
		}
	}
	if s.n == 0 || ms < s.min {
		s.min = ms
	}
	s.n++
	s.sum += ms
	s.max = max(s.max, ms)
}

// Total returns a count's or gauge's value, summed over its dimensions; for a histogram the number
// of observations.
func (m *Meter) Total(name Name) float64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	total := 0.0
	for _, s := range m.series {
		byVersion := slices.ContainsFunc(s.dims, func(d Dim) bool { return d.Key == VersionDim }) // counted twice
		if s.name == name && !byVersion {
			total += s.value + float64(s.n)
		}
	}
	return total
}

func (m *Meter) sorted() []*series {
	keys := make([]string, 0, len(m.series))
	for k := range m.series {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	all := make([]*series, len(keys))
	for i, k := range keys {
		all[i] = m.series[k]
	}
	return all
}

// WriteText writes everything in the Prometheus text format, under the prefix punctual_.
func (m *Meter) WriteText(w io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	typed := map[Name]bool{}
	for _, s := range m.sorted() {
		kind := "counter"
		if s.gauge {
			kind = "gauge"
		} else if s.counts != nil {
			kind = "histogram"
		}
		if !typed[s.name] {
			typed[s.name] = true
			fmt.Fprintf(&b, "# TYPE punctual_%s %s\n", s.name, kind)
		}
		if s.counts == nil {
			fmt.Fprintf(&b, "punctual_%s%s %g\n", s.name, labels(s.dims), s.value)
			continue
		}
		sum := int64(0)
		for i, n := range s.counts {
			sum += n
			le := "+Inf"
			if !math.IsInf(buckets[i], 1) {
				le = fmt.Sprintf("%g", buckets[i])
			}
			fmt.Fprintf(&b, "punctual_%s_bucket%s %d\n", s.name, labels(append(slices.Clone(s.dims), Dim{"le", le})),
				sum)
		}
		fmt.Fprintf(&b, "punctual_%s_sum%s %g\npunctual_%s_count%s %d\n", s.name, labels(s.dims), s.sum, s.name,
			labels(s.dims), s.n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func labels(dims []Dim) string {
	if len(dims) == 0 {
		return ""
	}
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = fmt.Sprintf("%s=%q", d.Key, d.Value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Flush writes one embedded-metric line per series to w and resets counts. A gauge is written only
// if it was set since the last flush: a process that fails must not repeat an old value, which would
// hide its failure. A duration's line holds the bounds and counts of its buckets, so that CloudWatch
// can compute percentiles.
func (m *Meter) Flush(w io.Writer, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	enc := json.NewEncoder(w)
	for _, s := range m.sorted() {
		line := map[string]any{}
		keys := make([]string, len(s.dims))
		for i, d := range s.dims {
			keys[i], line[d.Key] = d.Key, d.Value
		}
		unit := "Count"
		switch {
		case s.counts != nil && s.n == 0, s.counts == nil && !s.gauge && s.value == 0, s.gauge && !s.set:
			continue
		case s.counts != nil:
			unit = "Milliseconds"
			values, counts := []float64{}, []int64{}
			for i, n := range s.counts {
				if n > 0 {
					values, counts = append(values, max(min(buckets[i], s.max), s.min)), append(counts, n)
				}
			}
			line[string(s.name)] = map[string]any{"Values": values, "Counts": counts, "Min": s.min, "Max": s.max,
				"Count": s.n,
				"Sum":   s.sum}
			s.counts, s.sum, s.n, s.max, s.min = make([]int64, len(buckets)), 0, 0, 0, 0
		default:
			if s.gauge {
				unit = "None"
			}
			line[string(s.name)] = s.value
			if !s.gauge {
				s.value = 0
			}
			s.set = false
		}
		line["_aws"] = map[string]any{
			"Timestamp": now.UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": m.Namespace, "Dimensions": [][]string{keys},
				"Metrics": []any{map[string]string{"Name": string(s.name), "Unit": unit}},
			}},
		}
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("writing metric lines: %w", err)
		}
	}
	return nil
}
