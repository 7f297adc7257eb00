package stack

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageIs finds the page that a description names.
var pageIs = regexp.MustCompile(`infra/runbook/([a-z-]+)\.md`)

// parts of every page.
var sections = []string{"## What it means", "## How to see", "## What to do", "## How to know it has ended"}

// pages without an alarm of their own.
var more = []string{"redrive", "restore", "README"}

//proof:of M2
func TestAlarms_HaveARunbookPageEach(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	searching().each("AWS::CloudWatch::Alarm", func(_ template, id string, r object) {
		found := pageIs.FindStringSubmatch(text(at(r, "Properties.AlarmDescription")))
		if found == nil {
			t.Errorf("%s names no page: %v", id, at(r, "Properties.AlarmDescription"))
			return
		}
		named[found[1]] = true
	})
	for _, page := range append(sorted(named), "redrive") {
		body, err := os.ReadFile(filepath.Join(root, Runbook, page+".md"))
		if err != nil {
			t.Errorf("page %s: %v", page, err)
			continue
		}
		for _, s := range sections {
			if page != "redrive" && !strings.Contains(string(body), "\n"+s+"\n") {
				t.Errorf("page %s does not say %q", page, s)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(root, Runbook, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		page := strings.TrimSuffix(filepath.Base(f), ".md")
		if !named[page] && !slices.Contains(more, page) {
			t.Errorf("page %s belongs to no alarm", page)
		}
	}
}

// thresholds are those of the checklist's lines 153–167, by the alarm that holds them. A line
// that is met another way, or not at all, is answered in integration/CHECKLIST.md.
var thresholds = map[string]float64{
	"dead-letters-warn": 99, "dead-letters-critical": 499, // 153: 100 and 500
	"dead-letters-old": 604_800, "firing-dead-old": 604_800, // 75: half of the two weeks of retention
	"promoter-silent": 1, "sweeper-silent": 1, // 154
	"promoter-slow": 45_000, "sweeper-slow": 45_000, // 155
	"overdue":       100,                          // 156
	"backlog-short": 5_000, "backlog-long": 1_000, // 157
	"reports-warn": 5_000, "reports-critical": 10_000, // 158
	"duplicates":      1,       // 160
	"short-runs-long": 30_000,  // 161
	"due-ahead-short": 500_000, // 163
	"failure-rate":    5,       // 164
	"runs-fail":       5,       // 159
	"taken-over":      10,      // 164: stuck jobs
	"timers-dropped":  0,       // 167
}

//proof:of 107 141 153 154 155 156 157 158 159 160 161 163 164 S24
func TestAlarms_HaveTheChecklistsThresholds(t *testing.T) {
	t.Parallel()
	have := map[string]float64{}
	prod().each("AWS::CloudWatch::Alarm", func(_ template, _ string, r object) {
		name := strings.TrimPrefix(text(at(r, "Properties.AlarmName")), prod().settings.Prefix+"-")
		have[name], _ = at(r, "Properties.Threshold").(float64)
	})
	for _, name := range sorted(thresholds) {
		if got, ok := have[name]; !ok || got != thresholds[name] {
			t.Errorf("%s goes off at %v (there: %v); want %v", name, got, ok, thresholds[name])
		}
	}
}

// SQS counts the retention of a message in a DLQ from its first send, and its age from the move.
//
//proof:of 75 S24
func TestAlarms_RingBeforeADeadLetterIsLost(t *testing.T) {
	t.Parallel()
	const day, twoDays = 24 * 60 * 60.0, 2 * 24 * 60 * 60.0
	d := prod()
	waited := map[string]float64{} // DLQ, by id → the longest that a message may have been elsewhere
	d.each("AWS::SQS::Queue", func(_ template, _ string, r object) {
		if dead := text(at(r, "Properties.RedrivePolicy.deadLetterTargetArn.Fn::GetAtt.0")); dead != "" {
			kept, _ := at(r, "Properties.MessageRetentionPeriod").(float64)
			waited[dead] = max(waited[dead], kept)
		}
	})
	if len(waited) != 2 {
		t.Fatalf("the DLQs are %v", waited)
	}
	alarmed := map[string]float64{}
	d.each("AWS::CloudWatch::Alarm", func(_ template, _ string, r object) {
		if at(r, "Properties.MetricName") == age {
			alarmed[text(at(r, "Properties.Dimensions.0.Value"))], _ = at(r, "Properties.Threshold").(float64)
		}
	})
	for _, id := range sorted(waited) {
		r := d.template("data").resources[id]
		kept, _ := at(r, "Properties.MessageRetentionPeriod").(float64)
		name := text(at(r, "Properties.QueueName"))
		switch alarmsAt, ok := alarmed[name]; {
		case !ok:
			t.Errorf("there is no alarm for old messages in %s", name)
		case alarmsAt+waited[id]+twoDays > kept:
			t.Errorf("%s alarms at %g days; a message may be lost after %g", name, alarmsAt/day, (kept-waited[id])/day)
		}
	}
}

// Two deployments of an account must not see each other's numbers.
//
//proof:of M1
func TestMetrics_HaveANamespaceForEachDeployment(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{prod(), emulator(), other()} {
		want, found := "Punctual/"+d.settings.Prefix, 0
		for _, s := range d.templates {
			body := strings.ReplaceAll(compact(s.resources), `\`, "")
			for _, m := range namespaceIs.FindAllStringSubmatch(body, -1) {
				if found++; m[1] != want {
					t.Errorf("%s of %s measures in %q; want %q", s.name, d.settings.Prefix, m[1], want)
				}
			}
		}
		if found < 20 {
			t.Errorf("%s has %d metrics of ours", d.settings.Prefix, found)
		}
	}
	if !strings.Contains(compact(prod().template("fleet").resources), "Punctual/punctual") {
		t.Error("the fleet is not scaled by a metric of its deployment")
	}
}

// namespaceIs finds our namespaces in alarms ("Namespace":"…"), boards (["…","name"…) and scalers.
var namespaceIs = regexp.MustCompile(`(?:"[Nn]amespace":|\[)"(Punctual(?:/[^"]*)?)"`)

//proof:of 167
func TestAlarms_WatchExistingResources(t *testing.T) {
	t.Parallel()
	d := prod()
	there := map[string]bool{}
	for _, kind := range []string{"TableName", "QueueName", "FunctionName", "Name"} {
		d.each("", func(_ template, _ string, r object) {
			if name := text(at(r, "Properties."+kind)); name != "" {
				there[name] = true
			}
		})
	}
	var check func(id string, v any)
	check = func(id string, v any) {
		switch x := v.(type) {
		case []any:
			for _, e := range x {
				check(id, e)
			}
		case object:
			for _, dim := range list(x["Dimensions"]) {
				switch at(dim, "Name") {
				case "TableName", "QueueName", "FunctionName", "ApiName", "ScheduleGroup":
					if name := text(at(dim, "Value")); !there[name] {
						t.Errorf("%s watches %s, which is not there", id, compact(dim))
					}
				}
			}
			for _, k := range sorted(x) {
				check(id, x[k])
			}
		}
	}
	d.each("AWS::CloudWatch::Alarm", func(_ template, id string, r object) { check(id, r["Properties"]) })
}

//proof:of 164 167 S31
func TestAlarms_CoverEveryFunctionAndQueue(t *testing.T) {
	t.Parallel()
	d := prod()
	var alarms strings.Builder
	d.each("AWS::CloudWatch::Alarm", func(_ template, _ string, r object) { alarms.WriteString(compact(r)) })
	d.each("AWS::Lambda::Function", func(s template, _ string, r object) {
		if name := text(at(r, "Properties.FunctionName")); s.name == "flow" && !strings.Contains(alarms.String(),
			`"Value":"`+name+`"`) {
			t.Errorf("nobody watches %s", name)
		}
	})
	d.each("AWS::SQS::Queue", func(_ template, _ string, r object) {
		name := text(at(r, "Properties.QueueName"))
		// their failed messages end in queues that have alarms
		if strings.HasSuffix(name, "-redrive") || strings.HasSuffix(name, "-dispatch") {
			return
		}
		if !strings.Contains(alarms.String(), `"Value":"`+name+`"`) {
			t.Errorf("nobody watches %s", name)
		}
	})
}

func TestThrottles_OfEveryTableAndIndexAreSeen(t *testing.T) {
	t.Parallel()
	d, alarmed := prod(), map[string]bool{}
	for _, q := range d.questions(t) {
		if q.namespace == dynamo && strings.HasSuffix(q.name, "ThrottleEvents") {
			alarmed[q.name+" "+strings.Join(q.dims, " ")] = true
		}
	}
	d.each("AWS::DynamoDB::GlobalTable", func(_ template, id string, r object) {
		name := text(at(r, "Properties.TableName"))
		for _, want := range []string{"ReadThrottleEvents", "WriteThrottleEvents"} {
			if !alarmed[want+" TableName "+name] {
				t.Errorf("nobody sees %s of %s", want, name)
			}
		}
		for _, index := range list(at(r, "Properties.GlobalSecondaryIndexes")) {
			index := text(at(index, "IndexName"))
			if !alarmed["WriteThrottleEvents GlobalSecondaryIndexName "+index+" TableName "+name] {
				t.Errorf("nobody sees throttled writes of %s of %s", index, name)
			}
		}
	})
}

//proof:of 113 154
func TestAlarm_NotifiesByItself(t *testing.T) {
	t.Parallel()
	d := prod()
	d.each("AWS::CloudWatch::CompositeAlarm", func(_ template, id string, _ object) {
		t.Errorf("%s is one alarm for several: while it is on, it hides the next", id)
	})
	d.each("AWS::CloudWatch::Alarm", func(s template, id string, r object) {
		if s.name == "flow" { // it ends a canary, and notifies no one
			return
		}
		if len(list(at(r, "Properties.AlarmActions"))) != 1 || len(list(at(r, "Properties.OKActions"))) != 1 {
			t.Errorf("%s tells %v, and when it is over %v", id, at(r, "Properties.AlarmActions"),
				at(r, "Properties.OKActions"))
		}
		life := strings.Contains(id, "silent") || strings.Contains(id, "heartbeat")
		if missing := at(r, "Properties.TreatMissingData"); life != (missing == "breaching") {
			t.Errorf("%s takes missing values as %v", id, missing)
		}
	})
}

func TestAlarms_OfDevAreThoseThatPage(t *testing.T) {
	t.Parallel()
	d, all, want := ownTokens(), prod().settings, map[string]bool{}
	one.Lock()
	listed := alarms(all)
	one.Unlock()
	for _, a := range listed {
		if a.pages && a.name != "workers-silent-long" && a.name != "heartbeat-long" { // dev may have none of these
			want[a.name] = true
		}
	}
	have := map[string]bool{}
	d.each("AWS::CloudWatch::Alarm", func(_ template, _ string, r object) {
		have[strings.TrimPrefix(text(at(r, "Properties.AlarmName")), d.settings.Prefix+"-")] = true
	})
	if compact(have) != compact(want) {
		t.Errorf("dev has %s; want %s", compact(sorted(have)), compact(sorted(want)))
	}
}

func TestObservability_IsDeployedAfterTheWorkers(t *testing.T) {
	t.Parallel()
	d := prod()
	one.Lock()
	defer one.Unlock()
	found := false
	for _, on := range *d.stacks.Observability.Dependencies() {
		found = found || *on.StackName() == d.settings.Prefix+"-fleet"
	}
	if !found {
		t.Error("workers that are not deployed yet are taken for silent")
	}
}

//proof:of S44
func TestMetrics_HaveNoTenant(t *testing.T) {
	t.Parallel()
	for _, r := range prod().template("watch").resources {
		if body := text(at(r, "Properties.DashboardBody")) +
			compact(at(r, "Properties.DashboardBody")); strings.Contains(body, `\"tenant_id\",`) &&
			!strings.Contains(body, "SOURCE") {
			t.Errorf("a dashboard has a tenant as a dimension")
		}
		if strings.Contains(compact(at(r, "Properties.Dimensions")), "tenant") {
			t.Errorf("an alarm has a tenant as a dimension: %s", compact(r))
		}
	}
}
