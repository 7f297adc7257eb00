package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/target"
	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// dashboards makes the one screen for the person on call.
func dashboards(stack awscdk.Stack, s target.Settings, f Flow) {
	onCall := awscloudwatch.NewDashboard(stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String(s.Prefix), DefaultInterval: awscdk.Duration_Hours(jsii.Number(3)),
	})
	for _, row := range rows(s) {
		onCall.AddWidgets(row...)
	}
	if s.Emulated {
		return // MiniStack has no saved queries
	}
	for _, q := range queries(f) {
		awslogs.NewCfnQueryDefinition(stack, jsii.String("Query-"+q.id), &awslogs.CfnQueryDefinitionProps{
			Name: jsii.String(s.Prefix + "/" + q.name), QueryString: jsii.String(strings.Join(q.lines, "\n| ")),
			LogGroupNames: &q.groups,
		})
	}
}

const height = 6

// graph shows metrics over time; width is in 24ths of the screen.
func graph(width int, title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Width: jsii.Number(width), Height: jsii.Number(height), Left: &metrics,
		LiveData:  jsii.Bool(true),
		LeftYAxis: &awscloudwatch.YAxisProps{Min: jsii.Number(0), ShowUnits: jsii.Bool(false)},
	})
}

func rows(s target.Settings) [][]awscloudwatch.IWidget {
	names, own := contract.Env{Prefix: s.Prefix}, oursOf(s).over
	label := construct.Labelled
	queue := func(logical, metric, as string) awscloudwatch.IMetric {
		return label(construct.Measure(sqs, metric, "Maximum", "QueueName", names.QueueName(logical)), as)
	}
	every := func(name telemetry.Name, dim string) awscloudwatch.IMetric {
		return construct.Search(oursOf(s).namespace, string(name), "Sum", dim)
	}
	var backlog, urgent, ahead, wanted, average, errors, runs []awscloudwatch.IMetric
	for _, pool := range contract.Pools {
		for _, priority := range contract.Priorities {
			q := contract.FiringQueue(pool, priority)
			backlog = append(backlog, queue(q, visible, pool+" "+priority))
		}
		urgent = append(urgent, label(own(1, telemetry.UrgentLateness, "p99", "pool", pool), pool+" p99"))
		runs = append(runs, label(own(1, telemetry.RunDuration, "p99", "pool", pool), pool+" p99"))
		ahead = append(ahead, label(own(1, telemetry.DueAhead, "Maximum", "pool", pool), pool+" due in 30 min"))
		wanted = append(wanted, label(own(1, telemetry.SlotsWanted, "Maximum", "pool", pool), pool+" slots wanted"),
			label(own(1, telemetry.SlotsBusy, "Sum", "pool", pool), pool+" slots busy"))
		average = append(average, label(own(1, telemetry.ForecastError, "Average", "pool", pool),
			pool+" came more than expected"))
	}
	for _, p := range partsOf(s) {
		errors = append(errors, label(construct.Measure(lambda, "Errors", "Sum", "FunctionName", s.Prefix+"-"+p.name),
			p.name))
	}
	late := func(pool, statistic string) awscloudwatch.IMetric {
		return label(own(1, telemetry.StartLateness, statistic, "pool", pool), pool+" "+statistic)
	}
	lag := func(pass string) awscloudwatch.IMetric {
		return label(own(1, telemetry.WatermarkLag, "Maximum", "pass", pass), pass)
	}
	throttle := func(table string) awscloudwatch.IMetric {
		return label(construct.Measure(dynamo, "WriteThrottleEvents", "Sum", "TableName", names.TableName(table)),
			table+" writes")
	}
	return [][]awscloudwatch.IWidget{
		{
			graph(8, "Jobs, per minute", every(telemetry.JobsSettled, "outcome"),
				label(own(1, telemetry.JobsAccepted, "Sum"), "accepted")),
			graph(8, "Start lateness, ms", late("short", "p50"), late("short", "p99"), late("long", "p50"),
				late("long", "p99")),
			graph(8, "Due ahead", ahead...),
		},
		{
			graph(8, "Backlog: due and waiting for a worker", backlog...),
			graph(8, "Start lateness of urgent jobs, ms", urgent...),
			graph(8, "Slots wanted and busy", wanted...),
		},
		{
			graph(6, "Dead letters and what was quarantined",
				queue(contract.DeadLetters, visible, "dead letters"), queue(contract.FiringDead, visible,
					"firing-dead"), queue(contract.RedriveQueue, visible, "redrive"),
				label(own(1, telemetry.DeadLetters, "Sum"), "sent per minute"),
				label(own(1, telemetry.Quarantined, "Sum"), "quarantined per minute"),
				label(own(1, telemetry.Overrun, "Sum"), "took too long, per minute"),
				label(own(1, telemetry.Redriven, "Sum"), "redriven per minute")),
			graph(6, "Firings, by lane, and timers", every(telemetry.FiringsSent, "lane"),
				label(own(1, telemetry.TimersArmed, "Sum"), "timers armed")),
			graph(6, "Claims", label(own(1, telemetry.ClaimsLost, "Sum"), "lost"),
				label(own(1, telemetry.ClaimsTakenOver, "Sum"), "taken over"),
				label(own(1, telemetry.Duplicates, "Sum"), "firings refused")),
			graph(6, "Watermarks behind, ms", lag(telemetry.PassPromoted), lag(telemetry.PassSwept)),
		},
		{
			graph(8, "What the sweeper did", every(telemetry.Swept, "step")),
			graph(8, "Times of schedules, by what came of them", every(telemetry.Promoted, "outcome")),
			graph(8, "Run duration, ms", runs...),
		},
		{
			graph(12, "Runs of graphs and jobs of their nodes, per minute",
				label(own(1, telemetry.RunsCreated, "Sum"), "created"),
				label(own(1, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeSucceeded), "succeeded"),
				label(own(1, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeFailed), "failed"),
				label(own(1, telemetry.RunsEnded, "Sum", "outcome", telemetry.OutcomeCancelled), "cancelled"),
				label(own(1, telemetry.NodesReleased, "Sum"), "nodes released")),
			graph(12, "Duration of runs of graphs, ms", label(own(1, telemetry.RunTook, "p50"), "p50"),
				label(own(1, telemetry.RunTook, "p99"), "p99")),
		},
		{
			graph(6, "API: requests, 4xx, 5xx",
				label(construct.Measure(gateway, "Count", "Sum", "ApiName", s.Prefix), "requests"),
				label(construct.Measure(gateway, "4XXError", "Sum", "ApiName", s.Prefix), "4xx"),
				label(construct.Measure(gateway, "5XXError", "Sum", "ApiName", s.Prefix), "5xx"),
				every(telemetry.Requests, "status")),
			graph(6, "Functions that failed, and what calls met", append(errors, every(telemetry.Faults, "kind"),
				every(telemetry.RecordsFailed, "stage"),
				label(own(1, telemetry.KeysUnfetched, "Sum"), "keys unfetched"))...),
			graph(6, "Throttles by service", throttle(contract.Jobs), throttle(contract.Claims),
				label(construct.Measure(dynamo, "WriteThrottleEvents", "Sum", "TableName",
					names.TableName(contract.Jobs), "GlobalSecondaryIndexName", contract.DueIndex), "due index"),
				label(construct.Measure(scheduler, "InvocationThrottleCount", "Sum", "ScheduleGroup", s.Prefix),
					"timers"), every(telemetry.Throttles, "service")),
			graph(6, "How far the forecast was off, jobs", average...),
		},
		{graph(24, "Dollars per million jobs: requests, table units and messages, at list price", spend(s))},
	}
}

// spend is what the last hour cost per million jobs accepted, by what is metered. Prices are those
// of infra/cost; see there for what is left out.
func spend(s target.Settings) awscloudwatch.IMetric {
	names := contract.Env{Prefix: s.Prefix}
	const hour = 60
	var using []any
	var writes, reads string
	for i, t := range []string{contract.Jobs, contract.Claims, contract.Tasks} {
		w, r := string(rune('a'+i))+"w", string(rune('a'+i))+"r"
		using = append(using,
			w, construct.MeasureOver(hour, dynamo, "ConsumedWriteCapacityUnits", "Sum", "TableName",
				names.TableName(t)),
			r, construct.MeasureOver(hour, dynamo, "ConsumedReadCapacityUnits", "Sum", "TableName", names.TableName(t)))
		writes, reads = writes+"+FILL("+w+",0)", reads+"+FILL("+r+",0)"
	}
	using = append(using,
		"calls", construct.MeasureOver(hour, gateway, "Count", "Sum", "ApiName", s.Prefix),
		"jobs", oursOf(s).over(hour, telemetry.JobsAccepted, "Sum"))
	return construct.Math(hour, "$ per million jobs", "(3.5*FILL(calls,0)+0.625*(0"+writes+")+0.125*(0"+reads+"))/jobs",
		using...)
}

// savedQuery is a query of Logs Insights.
type savedQuery struct {
	id, name string
	groups   []any
	lines    []string
}

// queries ask the logs whose the load is and what went wrong for whom: a tenant as a dimension of metrics would cost a
// metric each. A saved query costs nothing until it is run; a dashboard of them is billed each month.
func queries(f Flow) []savedQuery {
	access := []any{f.API.Log.LogGroupName()}
	settled := []any{f.Function(Status).Log.LogGroupName(), f.Function(Sweeper).Log.LogGroupName()}
	return []savedQuery{
		{"requests", "requests by tenant", access, []string{"filter ispresent(tenant_id)",
			"stats count(*) as requests, sum(status>=400) as refused, avg(ms) as ms by tenant_id",
			"sort requests desc", "limit 50"}},
		{"over-time", "requests over time", access, []string{"filter ispresent(tenant_id)",
			"stats count(*) by bin(5m)"}},
		{"wrong", "what went wrong, by tenant", settled, []string{`filter level = "ERROR" or level = "WARN"`,
			"stats count(*) as lines by tenant_id, msg", "sort lines desc", "limit 50"}},
		{"refused", "requests refused by the API", access, []string{"filter status >= 400",
			"stats count(*) as refused by tenant_id, status, path", "sort refused desc", "limit 50"}},
	}
}
