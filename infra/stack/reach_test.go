package stack

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// reach is the range of values that a metric can have in a period, by what the templates let happen. An infinite bound
// means that load alone decides.
type reach struct{ least, most float64 }

// unbounded is a count that load decides.
var unbounded = reach{0, math.Inf(1)}

// reaches says what each metric can be in a period of so many minutes. It lists every metric that an alarm of one
// metric asks for: one that is missing here fails the test.
func (d *synthesized) reaches(
	namespace, name, statistic string,
	dims map[string]string,
	minutes float64,
) (reach, bool) {
	if statistic == "SampleCount" {
		return unbounded, true
	}
	passes := reach{0, minutes} // each pass is called once a minute, and a failed call is not repeated
	switch namespace + " " + name {
	case "AWS/Lambda Invocations", "AWS/Lambda Errors":
		if d.ticks(dims["FunctionName"]) {
			return passes, true
		}
		return unbounded, true
	case "AWS/Lambda Duration":
		return reach{0, d.timeout(dims["FunctionName"])}, true
	case "AWS/Lambda IteratorAge":
		return reach{0, 24 * 60 * minuteMS}, true // DynamoDB keeps a stream's records for a day
	case "AWS/Lambda Throttles", "AWS/SQS ApproximateNumberOfMessagesVisible", "AWS/Scheduler InvocationThrottleCount",
		"AWS/Scheduler InvocationDroppedCount", "AWS/DynamoDB ReadThrottleEvents", "AWS/DynamoDB WriteThrottleEvents",
		"AWS/EventBridge/Pipes ExecutionFailed":
		return unbounded, true
	case "AWS/SQS ApproximateAgeOfOldestMessage":
		return reach{0, contract.DeadLetterKept.Seconds()}, true
	case "AWS/SQS ApproximateNumberOfMessagesNotVisible":
		return reach{0, 120_000}, true
	case "AWS/ApiGateway 5XXError":
		return reach{0, 1}, true // its average is a share
	}
	switch telemetry.Name(name) {
	case telemetry.PassesMade:
		return passes, true
	case telemetry.Heartbeats:
		return reach{0, minutes * float64(len(contract.Priorities))}, true
	case telemetry.TablesHeld:
		return reach{0, 4}, true
	case telemetry.DueAhead:
		return reach{0, contract.DueAheadMost + contract.DueAheadMost/5}, true
	case telemetry.SlotsWanted, telemetry.ZoneRulesAge, telemetry.Quarantined, telemetry.Swept, telemetry.RecordsFailed,
		telemetry.KeysUnfetched, telemetry.WebhooksDisabled, telemetry.ClaimsTakenOver, telemetry.WatermarkLag,
		telemetry.StartLateness,
		telemetry.UrgentLateness, telemetry.OperationsStill:
		return unbounded, true
	case telemetry.RunDuration:
		return reach{0, float64(contract.MaxTimeout.Milliseconds())}, true
	}
	return reach{}, false
}

const minuteMS = 60_000

// ticks reports whether a function is called once a minute by its schedule and by nothing else.
func (d *synthesized) ticks(name string) bool {
	found := false
	d.each("AWS::Scheduler::Schedule", func(_ template, _ string, r object) {
		found = found || strings.HasSuffix(name, "-"+strings.TrimPrefix(text(at(r, "Properties.Description")),
			"Each minute: "))
	})
	return found
}

// timeout is a function's, in milliseconds.
func (d *synthesized) timeout(name string) (ms float64) {
	d.each("AWS::Lambda::Function", func(_ template, _ string, r object) {
		if at(r, "Properties.FunctionName") == name {
			ms, _ = at(r, "Properties.Timeout").(float64)
		}
	})
	return ms * 1000
}

// shareIs finds expressions whose value is a percentage, or a difference of two.
var shareIs = regexp.MustCompile(`100\*`)

// flagIs finds expressions whose value is 0 or 1.
var flagIs = regexp.MustCompile(`^IF\(.*,1,0\)$`)

// largestIs finds expressions whose value is the largest of their metrics.
var largestIs = regexp.MustCompile(`^MAX\(\[`)

// unreachable lists the alarms of a deployment that can never go off, or never be good, each with the reason.
func (d *synthesized) unreachable() (all []string) {
	d.each("AWS::CloudWatch::Alarm", func(_ template, id string, r object) {
		p := r["Properties"]
		threshold, _ := at(p, "Threshold").(float64)
		below := at(p, "ComparisonOperator") == "LessThanThreshold"
		can, known := d.reachOf(p)
		switch {
		case !known:
			all = append(all, fmt.Sprintf("%s: nothing says what its metric can be: %s", id, compact(p)))
		case !below && can.most <= threshold:
			all = append(all, fmt.Sprintf("%s rings over %g, and its metric is at most %g", id, threshold, can.most))
		case !below && can.least > threshold:
			all = append(all, fmt.Sprintf("%s rings over %g, and its metric is at least %g", id, threshold, can.least))
		case below && can.least >= threshold:
			all = append(all, fmt.Sprintf("%s rings below %g, and its metric is at least %g", id, threshold, can.least))
		case below && can.most < threshold:
			all = append(all, fmt.Sprintf("%s rings below %g, and its metric is at most %g", id, threshold, can.most))
		}
	})
	return all
}

// reachOf is the range of what an alarm looks at.
func (d *synthesized) reachOf(p any) (reach, bool) {
	of := func(metric any, namespace, name, statistic string, period float64) (reach, bool) {
		dims := map[string]string{}
		for _, dim := range list(at(metric, "Dimensions")) {
			dims[text(at(dim, "Name"))] = text(at(dim, "Value"))
		}
		return d.reaches(namespace, name, statistic, dims, period/60)
	}
	if name := text(at(p, "MetricName")); name != "" {
		period, _ := at(p, "Period").(float64)
		statistic := text(at(p, "Statistic")) + text(at(p, "ExtendedStatistic"))
		return of(p, text(at(p, "Namespace")), name, statistic, period)
	}
	largest, isLargest := reach{}, false
	for _, m := range list(at(p, "Metrics")) {
		switch e := text(at(m, "Expression")); {
		case flagIs.MatchString(e):
			return reach{0, 1}, true
		case shareIs.MatchString(e):
			return reach{0, 100}, true
		case largestIs.MatchString(e):
			isLargest = true
		case e == "":
			period, _ := at(m, "MetricStat.Period").(float64)
			can, known := of(at(m, "MetricStat.Metric"), text(at(m, "MetricStat.Metric.Namespace")),
				text(at(m, "MetricStat.Metric.MetricName")), text(at(m, "MetricStat.Stat")), period)
			if known {
				largest.most = max(largest.most, can.most)
			}
		}
	}
	return largest, isLargest
}

// An alarm whose threshold lies beyond what its metric can be rings for nothing, however bad it is.
//
//proof:of F83
func TestAlarms_CanRing(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{dev(), prod(), held(), signed(), ownTokens()} {
		for _, found := range d.unreachable() {
			t.Errorf("%s: %s", d.settings.Prefix, found)
		}
	}
}

func TestAlarms_ThatCannotRingAreFound(t *testing.T) {
	t.Parallel()
	promoter := object{"Type": "AWS::Scheduler::Schedule", "Properties": object{"Description": "Each minute: promoter"}}
	d := &synthesized{settings: prod().settings, templates: []template{{name: "watch", resources: map[string]object{
		"tick": promoter,
		"errors": {"Type": "AWS::CloudWatch::Alarm", "Properties": object{"Namespace": "AWS/Lambda",
			"MetricName": "Errors", "Statistic": "Sum", "Period": 60.0, "Threshold": 5.0,
			"ComparisonOperator": "GreaterThanThreshold",
			"Dimensions":         []any{object{"Name": "FunctionName", "Value": "punctual-promoter"}}}},
		"silent": {"Type": "AWS::CloudWatch::Alarm", "Properties": object{"Namespace": "Punctual/punctual",
			"MetricName": "passes_made_total", "Statistic": "Sum", "Period": 60.0, "Threshold": 2.0,
			"ComparisonOperator": "LessThanThreshold"}},
		"share": {"Type": "AWS::CloudWatch::Alarm", "Properties": object{"Threshold": 100.0,
			"ComparisonOperator": "GreaterThanThreshold", "Metrics": []any{object{"Expression": "100*a/b"}}}},
	}}}}
	want := []string{
		"errors rings over 5, and its metric is at most 1",
		"share rings over 100, and its metric is at most 100",
		"silent rings below 2, and its metric is at most 1",
	}
	if got := d.unreachable(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the check finds %q; want %q", got, want)
	}
}
