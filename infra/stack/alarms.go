package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"punctual/infra/construct"
	"punctual/infra/target"
	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// alarm is one alarm of a deployment.
type alarm struct {
	name    string // after the prefix
	runbook string // its page in infra/runbook, without .md
	means   string // a sentence
	metric  awscloudwatch.IMetric
	math    bool // an expression over several metrics, which emulators refuse
	pages   bool // it pages the person on call; others go by mail, and dev has none of them
	quiet   bool // it notifies nobody while the deployment is held, for what it watches is then turned off
	over    float64
	below   bool
	bad, of int // minutes, or periods where the metric has longer ones
	missing construct.Missing
}

const (
	sqs       = "AWS/SQS"
	lambda    = "AWS/Lambda"
	dynamo    = "AWS/DynamoDB"
	gateway   = "AWS/ApiGateway"
	scheduler = "AWS/Scheduler"
	visible   = "ApproximateNumberOfMessagesVisible"
	inFlight  = "ApproximateNumberOfMessagesNotVisible"
	age       = "ApproximateAgeOfOldestMessage"
)

// Thresholds, from CHECKLIST 153–167 where it names one. Depths are messages, times as named.
const (
	deadWarn, deadCritical = 100, 500
	shortBacklog           = 5_000
	longBacklog            = 1_000
	reportBacklog          = 5_000
	reportBreak            = 10_000
	overdue                = 100
	duplicatePercent       = 1
	deadPercent            = 5
	failedRunPercent       = 5
	shortRunMS             = 30_000
	lateMS, veryLateMS     = 100, 2_000
	urgentLateMS           = 60_000
	flightMost             = 90_000 // SQS goes silent at 120,000
	lagMS                  = 180_000
	passMS                 = 45_000
	apiMS                  = 500
	functionErrors         = 5
)

// The heartbeats of a pool in a window. Each queue has one a minute, and one more or less may fall into the window.
// With one queue's missing, the sum is below heartbeatsLeast.
const (
	heartbeatMinutes = 5
	heartbeatsLeast  = 18
)

// pass is a function that is called each minute, with its name in the metrics.
type pass struct{ function, name string }

var passes = []pass{{Promoter, telemetry.PassPromoted}, {Sweeper, telemetry.PassSwept},
	{Forecast, telemetry.PassForecast}}

// consumers are the functions that report which records of a batch failed, and succeed all the same.
var consumers = []string{Stream, Dispatch, Status, Redrive}

// letterAge is how long a dead letter may be in its queue before an alarm. SQS counts the age of a dead letter from its
// move into the DLQ, but its retention from the first send, up to four days before. Half of the retention leaves an
// operator three days at least.
const letterAge = contract.DeadLetterKept / 2

// ours gives the deployment's own metrics.
type ours struct{ namespace string }

func oursOf(s target.Settings) ours { return ours{contract.Env{Prefix: s.Prefix}.Namespace()} }

// over is one over some minutes.
func (o ours) over(minutes int, name telemetry.Name, statistic string, dims ...string) awscloudwatch.Metric {
	return construct.MeasureOver(minutes, o.namespace, string(name), statistic, dims...)
}

// alarms lists every alarm of a deployment. Each notifies by itself, so that one that stays on for days, such as that
// of dead letters, does not hide another. Metrics that one cause moves together have one alarm: all queues of a pool,
// not each of them.
func alarms(s target.Settings) []alarm {
	names, own := contract.Env{Prefix: s.Prefix}, oursOf(s).over
	queue := func(logical, metric, statistic string) awscloudwatch.Metric {
		return construct.Measure(sqs, metric, statistic, "QueueName", names.QueueName(logical))
	}
	fn := func(name, metric, statistic string) awscloudwatch.Metric {
		return construct.Measure(lambda, metric, statistic, "FunctionName", s.Prefix+"-"+name)
	}
	var list []alarm
	add := func(a alarm) {
		if a.pages || s.Keep || s.Emulated {
			list = append(list, a)
		}
	}
	// most is the largest value of all queues of a pool.
	most := func(pool, metric string) awscloudwatch.IMetric {
		var using []any
		var names []string
		for _, priority := range contract.Priorities {
			using = append(using, priority, queue(contract.FiringQueue(pool, priority), metric, "Maximum"))
			names = append(names, priority)
		}
		return construct.Math(1, pool, "MAX(["+strings.Join(names, ",")+"])", using...)
	}

	// What has failed for good.
	add(alarm{name: "dead-letters-warn", runbook: "dead-letters", means: "Jobs have failed for good.",
		metric: queue(contract.DeadLetters, visible, "Maximum"), over: deadWarn - 1, bad: 1, of: 1})
	add(alarm{name: "dead-letters-critical", runbook: "dead-letters", means: "Many jobs have failed for good.",
		metric: queue(contract.DeadLetters, visible, "Maximum"), over: deadCritical - 1, bad: 1, of: 1, pages: true})
	add(alarm{name: "firing-dead", runbook: "firing-dead", means: "A message that nobody could handle was put aside.",
		metric: queue(contract.FiringDead, visible, "Maximum"), over: 0, bad: 1, of: 1})
	for _, dead := range []string{contract.DeadLetters, contract.FiringDead} {
		add(alarm{name: dead + "-old", runbook: "letters-old",
			means:  "What was put aside has lain there for a week; in a few days it is lost.",
			metric: queue(dead, age, "Maximum"), over: letterAge.Seconds(), bad: 1, of: 1})
	}
	add(alarm{name: "set-aside", runbook: "set-aside",
		means:  "Something that cannot be read, or whose work does not end, was put aside.",
		metric: own(5, telemetry.SetAside, "Sum"), over: 0, bad: 1, of: 1})
	add(alarm{name: "failure-rate", runbook: "failure-rate", means: "Of the jobs that end, too many fail for good.",
		math: true, over: deadPercent, bad: 2, of: 3,
		metric: construct.Math(5, "dead of ended, %", "100*FILL(dead,0)/(FILL(dead,0)+FILL(ok,0)+1)",
			"dead", own(5, telemetry.JobsSettled, "Sum", "outcome", telemetry.OutcomeDead),
			"ok", own(5, telemetry.JobsSettled, "Sum", "outcome", telemetry.OutcomeSucceeded))})

	add(alarm{name: "runs-fail", runbook: "runs-fail", means: "Of the runs of graphs that end, too many fail.",
		math: true, over: failedRunPercent, bad: 2, of: 3,
		metric: construct.Math(5, "failed of ended, %", "100*FILL(failed,0)/(FILL(failed,0)+FILL(ok,0)+1)",
			"failed", own(5, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeFailed),
			"ok", own(5, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeSucceeded))})

	// A restored table.
	add(alarm{name: "restored", runbook: "restored", pages: true,
		means:  "A table was restored: nothing starts until an operator lets it run.",
		metric: own(1, telemetry.TablesHeld, "Maximum"), over: 0, bad: 1, of: 1})

	add(alarm{name: "zone-rules-old", runbook: "zone-rules",
		means:  "The time zone rules are old: a country may have changed its clock since.",
		metric: own(5, telemetry.ZoneRulesAge, "Maximum"), over: contract.MaxZoneRulesAge.Hours() / 24, bad: 1, of: 1})

	if s.Hold { // in dev, too: somebody must remember to end it
		list = append(list, alarm{name: "held", runbook: "restore",
			means:  "The deployment is held by its setting hold=yes: nothing starts until a deploy without it.",
			metric: fn(Promoter, "Invocations", "Sum"), over: 1, below: true, bad: 1, of: 1, missing: construct.Bad})
	}

	// The passes of each minute: the watermarks stand still without them.
	for _, pass := range passes {
		add(alarm{name: pass.function + "-silent", runbook: "pass-silent",
			means:  "The pass of each minute does not succeed any more.",
			metric: own(1, telemetry.PassesMade, "Sum", "pass", pass.name), over: 1, below: true, bad: 3, of: 3,
			missing: construct.Bad, pages: pass.function != Forecast, quiet: true})
		if pass.function == Forecast {
			continue // one that takes its whole minute is stopped, and does not succeed
		}
		add(alarm{name: pass.function + "-slow", runbook: "pass-slow", means: "A pass takes most of its minute.",
			metric: fn(pass.function, "Duration", "p99"), over: passMS, bad: 3, of: 5})
	}
	// Heartbeats take the way of every scheduled job, so this one sees a fault that nothing else measures.
	for _, pool := range s.HeartbeatPools() {
		add(alarm{name: "heartbeat-" + pool, runbook: "heartbeat",
			means:  "The empty job of each minute does not succeed, in one of the pool's queues or in all.",
			metric: own(heartbeatMinutes, telemetry.Heartbeats, "Sum", "pool", pool), over: heartbeatsLeast,
			below: true, bad: 1, of: 1, missing: construct.Bad, pages: true, quiet: true})
	}
	for _, pass := range []string{telemetry.PassPromoted, telemetry.PassSwept} {
		add(alarm{name: pass + "-behind", runbook: "watermark-behind",
			means: "A watermark stays behind: slices cannot be passed.", metric: own(1, telemetry.WatermarkLag,
				"Maximum", "pass", pass), over: lagMS, bad: 5, of: 5, pages: true})
	}
	add(alarm{name: "overdue", runbook: "overdue",
		means:  "Many jobs had to be fired again because nothing came of their first firing.",
		metric: own(5, telemetry.Swept, "Sum", "step", telemetry.StepFire), over: overdue, bad: 1, of: 1, pages: true})
	add(alarm{name: "stream-late", runbook: "stream-late", means: "Changes of the jobs table are seen late.",
		metric: fn(Stream, "IteratorAge", "Maximum"), over: 60_000, bad: 3, of: 3, pages: true})
	add(alarm{name: "timers-throttled", runbook: "timers", means: "Scheduler fires fewer timers than are due.",
		metric: construct.Measure(scheduler, "InvocationThrottleCount", "Sum", "ScheduleGroup", s.Prefix), over: 0,
		bad: 1, of: 1})
	add(alarm{name: "timers-dropped", runbook: "timers", means: "Scheduler gave up timers.",
		metric: construct.Measure(scheduler, "InvocationDroppedCount", "Sum", "ScheduleGroup", s.Prefix), over: 0,
		bad: 1, of: 1})

	// Queues.
	for _, pool := range contract.Pools {
		backlog := float64(shortBacklog)
		if pool != contract.DefaultPool {
			backlog = longBacklog
		}
		add(alarm{name: "backlog-" + pool, runbook: "backlog", means: "Jobs are due and wait for workers.", math: true,
			metric: most(pool, visible), over: backlog, bad: 3, of: 3, pages: true, quiet: true})
		// The age of a queue's oldest message would count those that are delayed and those that run.
		add(alarm{name: "urgent-late-" + pool, runbook: "backlog", means: "Urgent jobs start over a minute late.",
			metric: own(1, telemetry.UrgentLateness, "p99", "pool", pool), over: urgentLateMS, bad: 3, of: 3,
			pages: true})
		add(alarm{name: "in-flight-" + pool, runbook: "in-flight", math: true,
			means:  "A queue is near the most messages it lets out at once; beyond it, it goes silent.",
			metric: most(pool, inFlight), over: flightMost, bad: 1, of: 1, pages: true})
	}
	add(alarm{name: "reports-warn", runbook: "reports", means: "Reports of workers wait to be settled.",
		metric: queue(contract.ReportQueue, visible, "Maximum"), over: reportBacklog, bad: 2, of: 3, quiet: true})
	add(alarm{name: "reports-critical", runbook: "reports", means: "Many reports of workers wait to be settled.",
		metric: queue(contract.ReportQueue, visible, "Maximum"), over: reportBreak, bad: 2, of: 3, pages: true,
		quiet: true})

	// Workers.
	add(alarm{name: "starts-late", runbook: "starts-late", means: "Jobs start later than is promised.",
		metric: own(5, telemetry.StartLateness, "p99", "pool", "short"), over: lateMS, bad: 3, of: 3})
	add(alarm{name: "starts-very-late", runbook: "starts-late", means: "Jobs start much later than is promised.",
		metric: own(5, telemetry.StartLateness, "p99", "pool", "short"), over: veryLateMS, bad: 2, of: 2, pages: true})
	add(alarm{name: "short-runs-long", runbook: "short-runs-long",
		means: "Jobs of the short pool run long; they belong into the long one.", metric: own(5, telemetry.RunDuration,
			"p99", "pool", "short"), over: shortRunMS, bad: 3, of: 3})
	add(alarm{name: "taken-over", runbook: "taken-over",
		means: "Workers die, or are stuck, and others take their jobs over.", metric: own(5, telemetry.ClaimsTakenOver,
			"Sum"), over: 10, bad: 1, of: 1})
	add(alarm{name: "duplicates", runbook: "duplicates",
		means: "Too many firings are refused because the attempt is another's.", math: true, over: duplicatePercent,
		bad: 3, of: 3,
		metric: construct.Math(5, "refused of fired, %", "100*FILL(again,0)/(FILL(ok,0)+FILL(again,0)+100)",
			"again", own(5, telemetry.Duplicates, "Sum"),
			"ok", own(5, telemetry.JobsSettled, "Sum", "outcome", telemetry.OutcomeSucceeded))})
	for _, p := range s.Fleet.Pools() {
		if p.Least == 0 { // none may be there while there is nothing to do
			continue
		}
		add(alarm{name: "workers-silent-" + p.Name, runbook: "workers-silent", means: "No worker gives a sign of life.",
			metric: own(1, telemetry.SlotsBusy, "SampleCount", "pool", p.Name), over: 1, below: true, bad: 5, of: 5,
			missing: construct.Bad, pages: true, quiet: true})
	}
	for _, p := range s.Fleet.Pools() {
		add(alarm{name: "fleet-too-small-" + p.Name, runbook: "fleet-too-small",
			means:  "The next half hour wants more slots than the pool can ever have.",
			metric: own(1, telemetry.SlotsWanted, "Maximum", "pool", p.Name), over: float64(max(1, p.Most*p.Slots)),
			bad: 3, of: 3})
		add(alarm{name: "due-ahead-" + p.Name, runbook: "due-ahead",
			means: "Very many jobs are due within half an hour.", metric: own(1, telemetry.DueAhead, "Maximum", "pool",
				p.Name), over: contract.DueAheadMost, bad: 1, of: 1})
	}

	// Services.
	add(alarm{name: "api-errors", runbook: "api-errors", means: "The API fails for more than one request in a hundred.",
		metric: construct.Measure(gateway, "5XXError", "Average", "ApiName", s.Prefix), over: 0.01, bad: 3, of: 5,
		pages: true})
	add(alarm{name: "api-slow", runbook: "api-slow", means: "Writes by the API take long.",
		metric: fn(APIWrite, "Duration", "p99"), over: apiMS, bad: 5, of: 5})
	if s.Tokens.Auth != target.ByIAM {
		add(alarm{name: "keys-unfetched", runbook: "keys-unfetched",
			means: "The issuer of tokens does not give its keys.", metric: own(5, telemetry.KeysUnfetched, "Sum"),
			over: 0, bad: 2, of: 3, pages: true})
	}
	for _, p := range partsOf(s) {
		if slices.ContainsFunc(passes, func(of pass) bool { return of.function == p.name }) {
			continue // *-silent counts the passes that succeed, whatever keeps the others from it
		}
		if p.name != Authorizer { // its errors are how it refuses a token
			add(alarm{name: p.name + "-errors", runbook: "function-errors", means: "The function fails.",
				metric: fn(p.name, "Errors", "Sum"), over: functionErrors, bad: 3, of: 5})
		}
		if slices.Contains(consumers, p.name) {
			add(alarm{name: p.name + "-records-failed", runbook: "records-failed",
				means:  "Records fail and are tried again; the function itself succeeds.",
				metric: own(1, telemetry.RecordsFailed, "Sum", "stage", p.name), over: 0, bad: 4, of: 5})
		}
		add(alarm{name: p.name + "-throttled", runbook: "function-throttled",
			means: "The function is not let run as often as it is called.", metric: fn(p.name, "Throttles", "Sum"),
			over: 0, bad: 3, of: 5})
	}
	for _, t := range contract.Schemas() {
		table := names.TableName(t.Name)
		for _, kind := range []string{"Write", "Read"} {
			add(alarm{name: fmt.Sprintf("%s-%s-throttled", t.Name, strings.ToLower(kind)), runbook: "table-throttled",
				means:  "The table is asked faster than it may answer.",
				metric: construct.Measure(dynamo, kind+"ThrottleEvents", "Sum", "TableName", table),
				over:   0, bad: 3, of: 5})
		}
		for _, index := range t.Indexes {
			a := alarm{name: fmt.Sprintf("%s-%s-index-throttled", t.Name, index.Name), runbook: "table-throttled",
				means: "The index is written faster than it may be; it holds up the table's writes.",
				metric: construct.Measure(dynamo, "WriteThrottleEvents", "Sum", "TableName", table,
					"GlobalSecondaryIndexName", index.Name), over: 0, bad: 3, of: 5}
			if t.Name == contract.Jobs && index.Name == contract.DueIndex { // it holds up every job
				a.name, a.bad, a.pages = "due-index-throttled", 2, true
			}
			add(a)
		}
	}
	return list
}
