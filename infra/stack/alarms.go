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
	quiet   bool // it notifies no one while the deployment is held, for what it watches is then turned off
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
	pipes     = "AWS/EventBridge/Pipes"
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
	searchMost             = 10_000    // what a search says it has
	followMost             = 3_600_000 // the stream keeps what happened for a day
	passMS                 = 45_000
	stillMS                = 600_000
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
var consumers = []string{Stream, Changes, Dispatch, Status, Redrive, Bulk}

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
	add(alarm{name: "dead-letters-warn", runbook: "dead-letters",
		means:  "Jobs of tenants have used all their attempts and are dead; they do not run until redriven.",
		metric: queue(contract.DeadLetters, visible, "Maximum"), over: deadWarn - 1, bad: 1, of: 1})
	add(alarm{name: "dead-letters-critical", runbook: "dead-letters",
		means:  "Over 500 jobs of tenants are dead; they do not run until redriven, and a common cause is likely.",
		metric: queue(contract.DeadLetters, visible, "Maximum"), over: deadCritical - 1, bad: 1, of: 1, pages: true})
	add(alarm{name: "firing-dead", runbook: "firing-dead",
		means:  "A message failed at every receive and is in a dead-letter queue; its job may start or end late.",
		metric: queue(contract.FiringDead, visible, "Maximum"), over: 0, bad: 1, of: 1})
	for _, dead := range []string{contract.DeadLetters, contract.FiringDead} {
		add(alarm{name: dead + "-old", runbook: "letters-old",
			means:  "Messages in the dead-letter queue are a week old; SQS deletes them in a few days.",
			metric: queue(dead, age, "Maximum"), over: letterAge.Seconds(), bad: 1, of: 1})
	}
	add(alarm{name: "set-aside", runbook: "set-aside",
		means:  "A row, pause or message of a tenant was quarantined: it cannot be read, or its work does not end.",
		metric: own(5, telemetry.Quarantined, "Sum"), over: 0, bad: 1, of: 1})
	add(alarm{name: "failure-rate", runbook: "failure-rate",
		means: "More than 5 % of the jobs that end are dead: a task, or what it calls, is failing.",
		math:  true, over: deadPercent, bad: 2, of: 3,
		metric: construct.Math(5, "dead of ended, %", "100*FILL(dead,0)/(FILL(dead,0)+FILL(ok,0)+1)",
			"dead", own(5, telemetry.JobsSettled, "Sum", "outcome", telemetry.OutcomeDead),
			"ok", own(5, telemetry.JobsSettled, "Sum", "outcome", telemetry.OutcomeSucceeded))})

	add(alarm{name: "runs-fail", runbook: "runs-fail", means: "More than 5 % of the dag runs that end have failed.",
		math: true, over: failedRunPercent, bad: 2, of: 3,
		metric: construct.Math(5, "failed of ended, %", "100*FILL(failed,0)/(FILL(failed,0)+FILL(ok,0)+1)",
			"failed", own(5, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeFailed),
			"ok", own(5, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeSucceeded))})

	add(alarm{name: "operation-still", runbook: "operation-still",
		means:  "An operation on many jobs of a tenant has not come forward for ten minutes.",
		metric: own(1, telemetry.OperationsStill, "Maximum"), over: stillMS, bad: 3, of: 5})

	// A restored table.
	add(alarm{name: "restored", runbook: "restored", pages: true,
		means:  "A table was restored, so no job of any tenant starts until an operator confirms the restored table.",
		metric: own(1, telemetry.TablesHeld, "Maximum"), over: 0, bad: 1, of: 1})

	add(alarm{name: "zone-rules-old", runbook: "zone-rules",
		means:  "The time zone rules are over 120 days old; schedules of all tenants may run at outdated hours.",
		metric: own(5, telemetry.ZoneRulesAge, "Maximum"), over: contract.MaxZoneRulesAge.Hours() / 24, bad: 1, of: 1})

	if s.Hold { // in dev, too: a person must remember to end it
		list = append(list, alarm{name: "held", runbook: "restore",
			means:  "The setting hold=yes holds the deployment: no job of any tenant starts until a deploy without it.",
			metric: fn(Promoter, "Invocations", "Sum"), over: 1, below: true, bad: 1, of: 1, missing: construct.Bad})
	}

	// The passes of each minute: the watermarks do not move without them.
	for _, pass := range passes {
		add(alarm{name: pass.function + "-silent", runbook: "pass-silent",
			means:  "The pass of each minute has not succeeded for three minutes; jobs of all tenants may start late.",
			metric: own(1, telemetry.PassesMade, "Sum", "pass", pass.name), over: 1, below: true, bad: 3, of: 3,
			missing: construct.Bad, pages: pass.function != Forecast, quiet: true})
		if pass.function == Forecast {
			continue // one that takes its whole minute is stopped, and does not succeed
		}
		add(alarm{name: pass.function + "-slow", runbook: "pass-slow",
			means:  "The pass of each minute takes most of its minute; jobs of all tenants may soon start late.",
			metric: fn(pass.function, "Duration", "p99"), over: passMS, bad: 3, of: 5})
	}
	// Heartbeats take the way of every scheduled job, so this one sees a fault that nothing else measures.
	for _, pool := range s.HeartbeatPools() {
		add(alarm{name: "heartbeat-" + pool, runbook: "heartbeat",
			means:  "The heartbeat jobs of the pool do not succeed; jobs of all tenants in this pool may not run.",
			metric: own(heartbeatMinutes, telemetry.Heartbeats, "Sum", "pool", pool), over: heartbeatsLeast,
			below: true, bad: 1, of: 1, missing: construct.Bad, pages: true, quiet: true})
	}
	for _, pass := range []string{telemetry.PassPromoted, telemetry.PassSwept} {
		add(alarm{name: pass + "-behind", runbook: "watermark-behind",
			means: "The pass is over three minutes behind the clock; due jobs of all tenants may start late.",
			metric: own(1, telemetry.WatermarkLag,
				"Maximum", "pass", pass), over: lagMS, bad: 5, of: 5, pages: true})
	}
	add(alarm{name: "overdue", runbook: "overdue",
		means:  "Many jobs were sent to the workers a second time because no worker took them; they start late.",
		metric: own(5, telemetry.Swept, "Sum", "step", telemetry.StepFire), over: overdue, bad: 1, of: 1, pages: true})
	add(alarm{name: "stream-late", runbook: "stream-late",
		means:  "Changes of the jobs table are processed over a minute late; jobs due soon start late by as much.",
		metric: fn(Stream, "IteratorAge", "Maximum"), over: 60_000, bad: 3, of: 3, pages: true})
	if !s.Emulated { // an emulator has no pipes
		add(alarm{name: "audit-pipe-fails", runbook: "audit-pipe",
			means:  "The pipe that copies the audit to its log group fails; entries wait in the stream for a day.",
			metric: construct.Measure(pipes, "ExecutionFailed", "Sum", "PipeName", auditPipe(s)), over: 0,
			bad: 3, of: 15})
	}
	add(alarm{name: "changes-stand-still", runbook: "changes-late",
		means:  "Nothing has followed the jobs table for an hour; after a day, events and counts of jobs are lost.",
		metric: fn(Changes, "IteratorAge", "Maximum"), over: followMost, bad: 3, of: 3})
	if s.Search {
		add(alarm{name: "search-late", runbook: "search-late",
			means:  "The index of jobs is more than ten seconds behind; searches miss what happened since then.",
			metric: fn(Changes, "IteratorAge", "Maximum"), over: searchMost, bad: 3, of: 3})
	}
	add(alarm{name: "webhook-disabled", runbook: "webhook-disabled",
		means:  "A webhook was disabled because of its failures; no events are sent there any more.",
		metric: own(5, telemetry.WebhooksDisabled, "Sum"), over: 0, bad: 1, of: 1})
	add(alarm{name: "timers-throttled", runbook: "timers",
		means:  "EventBridge Scheduler throttles timers; jobs accepted over 14 minutes ahead may start late.",
		metric: construct.Measure(scheduler, "InvocationThrottleCount", "Sum", "ScheduleGroup", s.Prefix), over: 0,
		bad: 1, of: 1})
	add(alarm{name: "timers-dropped", runbook: "timers",
		means:  "EventBridge Scheduler dropped timers; the jobs of their minutes start some minutes late.",
		metric: construct.Measure(scheduler, "InvocationDroppedCount", "Sum", "ScheduleGroup", s.Prefix), over: 0,
		bad: 1, of: 1})

	// Queues.
	for _, pool := range contract.Pools {
		backlog := float64(shortBacklog)
		if pool != contract.DefaultPool {
			backlog = longBacklog
		}
		add(alarm{name: "backlog-" + pool, runbook: "backlog",
			means:  "Many due jobs of the pool wait for a free worker and start late.",
			math:   true,
			metric: most(pool, visible), over: backlog, bad: 3, of: 3, pages: true, quiet: true})
		// The age of a queue's oldest message would count those that are delayed and those that run.
		add(alarm{name: "urgent-late-" + pool, runbook: "backlog",
			means:  "Critical and high-priority jobs of the pool start over a minute late.",
			metric: own(1, telemetry.UrgentLateness, "p99", "pool", pool), over: urgentLateMS, bad: 3, of: 3,
			pages: true})
		add(alarm{name: "in-flight-" + pool, runbook: "in-flight", math: true,
			means:  "A queue of the pool nears SQS's limit of messages in flight; beyond it, its jobs do not start.",
			metric: most(pool, inFlight), over: flightMost, bad: 1, of: 1, pages: true})
	}
	add(alarm{name: "reports-warn", runbook: "reports",
		means:  "Reports of workers wait in the queue; the status of jobs is updated late.",
		metric: queue(contract.ReportQueue, visible, "Maximum"), over: reportBacklog, bad: 2, of: 3, quiet: true})
	add(alarm{name: "reports-critical", runbook: "reports",
		means:  "Many reports of workers wait in the queue; status, retries and downstream nodes are minutes late.",
		metric: queue(contract.ReportQueue, visible, "Maximum"), over: reportBreak, bad: 2, of: 3, pages: true,
		quiet: true})

	// Workers.
	add(alarm{name: "starts-late", runbook: "starts-late",
		means:  "Jobs of the short pool start over 100 ms late, later than promised (99th percentile).",
		metric: own(5, telemetry.StartLateness, "p99", "pool", "short"), over: lateMS, bad: 3, of: 3})
	add(alarm{name: "starts-very-late", runbook: "starts-late",
		means:  "Jobs of the short pool start over 2 s late, much later than promised (99th percentile).",
		metric: own(5, telemetry.StartLateness, "p99", "pool", "short"), over: veryLateMS, bad: 2, of: 2, pages: true})
	add(alarm{name: "short-runs-long", runbook: "short-runs-long",
		means: "Jobs of the short pool run over 30 s (99th percentile); move their tasks to the long pool.",
		metric: own(5, telemetry.RunDuration,
			"p99", "pool", "short"), over: shortRunMS, bad: 3, of: 3})
	add(alarm{name: "taken-over", runbook: "taken-over",
		means: "Workers die or hang, and others take over their jobs, which may run a second time.",
		metric: own(5, telemetry.ClaimsTakenOver,
			"Sum"), over: 10, bad: 1, of: 1})
	add(alarm{name: "duplicates", runbook: "duplicates",
		means: "Over 1 % of the firings are duplicates, which workers refuse; no job runs twice for it.",
		math:  true, over: duplicatePercent,
		bad: 3, of: 3,
		metric: construct.Math(5, "refused of fired, %", "100*FILL(again,0)/(FILL(ok,0)+FILL(again,0)+100)",
			"again", own(5, telemetry.Duplicates, "Sum"),
			"ok", own(5, telemetry.JobsSettled, "Sum", "outcome", telemetry.OutcomeSucceeded))})
	for _, p := range s.Fleet.Pools() {
		if p.Least == 0 { // none may be there while there is nothing to do
			continue
		}
		add(alarm{name: "workers-silent-" + p.Name, runbook: "workers-silent",
			means:  "No worker of the pool reports metrics; jobs of all tenants in this pool do not run.",
			metric: own(1, telemetry.SlotsBusy, "SampleCount", "pool", p.Name), over: 1, below: true, bad: 5, of: 5,
			missing: construct.Bad, pages: true, quiet: true})
	}
	for _, p := range s.Fleet.Pools() {
		add(alarm{name: "fleet-too-small-" + p.Name, runbook: "fleet-too-small",
			means:  "The jobs of the next half hour need more slots than the pool may have; they will start late.",
			metric: own(1, telemetry.SlotsWanted, "Maximum", "pool", p.Name), over: float64(max(1, p.Most*p.Slots)),
			bad: 3, of: 3})
		add(alarm{name: "due-ahead-" + p.Name, runbook: "due-ahead",
			means: "More jobs are due within half an hour than the deployment is built for; they may start late.",
			metric: own(1, telemetry.DueAhead, "Maximum", "pool",
				p.Name), over: contract.DueAheadMost, bad: 1, of: 1})
	}

	// Services.
	add(alarm{name: "api-errors", runbook: "api-errors",
		means:  "The API answers more than 1 % of the requests of its clients with a server error.",
		metric: construct.Measure(gateway, "5XXError", "Average", "ApiName", s.Prefix), over: 0.01, bad: 3, of: 5,
		pages: true})
	add(alarm{name: "api-slow", runbook: "api-slow",
		means:  "The API takes over half a second for writes (99th percentile); its clients wait or time out.",
		metric: fn(APIWrite, "Duration", "p99"), over: apiMS, bad: 5, of: 5})
	if s.Tokens.Auth != target.ByIAM {
		add(alarm{name: "keys-unfetched", runbook: "keys-unfetched",
			means:  "The keys of the token issuer cannot be fetched; the API may refuse the requests of all clients.",
			metric: own(5, telemetry.KeysUnfetched, "Sum"),
			over:   0, bad: 2, of: 3, pages: true})
	}
	for _, p := range partsOf(s) {
		if p.name == Reindex { // who calls it sees its errors
			continue
		}
		if slices.ContainsFunc(passes, func(of pass) bool { return of.function == p.name }) {
			continue // *-silent counts the passes that succeed, whatever keeps the others from it
		}
		if p.name != Authorizer { // its errors are how it refuses a token
			add(alarm{name: p.name + "-errors", runbook: "function-errors",
				means:  "The function ends with errors; the work of its stage is delayed for all tenants.",
				metric: fn(p.name, "Errors", "Sum"), over: functionErrors, bad: 3, of: 5})
		}
		if slices.Contains(consumers, p.name) {
			add(alarm{name: p.name + "-records-failed", runbook: "records-failed",
				means:  "Messages or records fail in the function and are retried; the jobs they concern are delayed.",
				metric: own(1, telemetry.RecordsFailed, "Sum", "stage", p.name), over: 0, bad: 4, of: 5})
		}
		add(alarm{name: p.name + "-throttled", runbook: "function-throttled",
			means:  "Lambda throttles the function; the work of its stage is delayed for all tenants.",
			metric: fn(p.name, "Throttles", "Sum"),
			over:   0, bad: 3, of: 5})
	}
	schemas := contract.Schemas()
	if s.Search {
		schemas = contract.AllSchemas()
	}
	for _, t := range schemas {
		table := names.TableName(t.Name)
		for _, kind := range []string{"Write", "Read"} {
			add(alarm{name: fmt.Sprintf("%s-%s-throttled", t.Name, strings.ToLower(kind)), runbook: "table-throttled",
				means:  "DynamoDB throttles the table; the requests and jobs that use it are delayed.",
				metric: construct.Measure(dynamo, kind+"ThrottleEvents", "Sum", "TableName", table),
				over:   0, bad: 3, of: 5})
		}
		for _, index := range t.Indexes {
			a := alarm{name: fmt.Sprintf("%s-%s-index-throttled", t.Name, index.Name), runbook: "table-throttled",
				means: "DynamoDB throttles writes of the index and so of its table; requests and jobs are delayed.",
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
