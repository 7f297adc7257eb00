package api

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/spec"
)

// This file gives the document the descriptions that no struct tag and no field states.

// schemaTexts describe the schemas of answers, by name.
var schemaTexts = map[string]string{
	"AttemptView":              "Attempt of a job that has ended.",
	"AuditActor":               "Caller that made a change.",
	"AuditChange":              "Value that changed.",
	"AuditView":                "Change that a caller made.",
	"BatchAnswer":              "Outcomes of the jobs of a batch.",
	"BatchItem":                "Outcome of one job of a batch: the job, or a problem.",
	"CalendarView":             "Calendar of a schedule.",
	"CalmAnswer":               "Minutes with the least load.",
	"CalmView":                 "Minute and its load.",
	"CatchUpView":              "Catch-up policy of a schedule.",
	"CronCalendarRequest":      "Calendar by a cron expression.",
	"DagItemView":              "Version of a dag in a list.",
	"DagNodeView":              "Node of a dag.",
	"DagTemplateView":          "Run that a schedule makes at each nominal time.",
	"DagView":                  "Version of a dag, with its defaults filled in.",
	"DatesCalendarRequest":     "Calendar by a list of times.",
	"DeadLetter":               "DEAD job with its newest attempts.",
	"DeadLetterOutcome":        "Outcome of the operation on one dead letter.",
	"DeadLetterOutcomesAnswer": "Outcomes of the operation on several dead letters.",
	"EveryCalendarRequest":     "Calendar by an interval.",
	"ExclusionView":            "Days and stretches of time on which schedules do not run.",
	"Explanation":              "Explanation of the code of a problem.",
	"ForecastView":             "Starts of jobs that are expected.",
	"GraphNodeView":            "Node of the drawing of a run.",
	"GraphView":                "Nodes and edges of the drawing of a run.",
	"GroupView":                "Dead letters that died for the same cause.",
	"HTTPAuth":                 "Credentials of an HTTP request.",
	"HealthAnswer":             "Health of the API.",
	"JobPauseView":             "Pause of one job.",
	"JobTemplateView":          "Job that a schedule makes at each nominal time.",
	"JobView":                  "Job. Fields without a value are absent.",
	"LimitKeyView":             "Use of a key of a limit.",
	"LimitUse":                 "Limit of work under which a job counts.",
	"DeliveryView":             "Job that delivers an event. Fields without a value are absent.",
	"DisabledView":             "Reason for which Punctual has disabled a webhook.",
	"FilterView":               "Selection of events.",
	"WebhookView":              "Webhook: an address that is sent events.",
	"LimitView":                "Limit of work.",
	"LimitWait":                "Limit of work for which a job waits.",
	"MovedOccurrence":          "Nominal time whose due time an edit moves.",
	"OccurrenceTime":           "Time at which a schedule runs.",
	"OccurrenceView":           "Outcome of a nominal time of a schedule, or of several in a row.",
	"CanaryView":               "Outcome of the first jobs of an operation.",
	"OperationError":           "Error of a job that an operation made.",
	"OperationView":            "Operation on many jobs or runs. Fields without a value are absent.",
	"PauseView":                "Pause of all jobs or of one task.",
	"PeakView":                 "Step of a forecast with the most starts.",
	"PreviewAnswer":            "Next times of a calendar.",
	"Problem":                  "Problem of RFC 9457: the reason why a request failed.",
	"ProblemError":             "Error in a request.",
	"ProgressView":             "Progress that the handler of a job has reported.",
	"QuotaView":                "Use of a quota of the tenant.",
	"QueueView":                "Queue of a pool and a priority.",
	"RRuleCalendarRequest":     "Calendar by a recurrence rule of RFC 5545.",
	"Range":                    "Stretch of time on which schedules do not run.",
	"SeriesView":               "Counts of each step of a range, in lists of one length.",
	"StatsView":                "Counts of what became of jobs, step by step.",
	"RateView":                 "Maximum number of starts in any window of time.",
	"ReadyAnswer":              "Readiness of the API, and how far its passes have come.",
	"Reason":                   "Reason for a status.",
	"RetryView":                "Retry policy.",
	"RunCounts":                "Numbers of nodes, or of the items of a node, by status.",
	"RunEventView":             "Operation on a run.",
	"RunItemView":              "Item of a node with for_each.",
	"RunNodeDetail":            "Node of a run with all its details.",
	"RunNodeView":              "Node of a run.",
	"RunView":                  "Run of a dag. Fields without a value are absent.",
	"ScheduleDiff":             "Difference that an edit of a schedule would make.",
	"SchedulePauseView":        "Pause of a schedule.",
	"ScheduleView":             "Schedule. Fields without a value are absent.",
	"SkippedTime":              "Time at which a schedule does not run, and the reason.",
	"TaskView":                 "Task.",
	"UsageView":                "Use of the services by the jobs of a key.",
	"UniqueView":               "Key that one open job of the tenant holds at a time.",
	"ValidateAnswer":           "Shape of a valid dag.",
	"WhoamiAnswer":             "Identity of the caller.",
	"WorkerView":               "Worker, and what it does.",
	"WorkersAnswer":            "Workers and queues.",
	"ZoneRulesView":            "Time zone rules in use.",
}

// statedIn names the request whose fields describe the equal fields of an answer, where it is not the answer's own
// name with Request in place of View.
var statedIn = map[string]string{
	"DagNodeView": "NodeRequest", "DeadLetter": "JobRequest", "DeliveryView": "JobRequest",
	"Range":         "ExclusionRangeRequest",
	"RunNodeDetail": "NodeRequest", "RunNodeView": "NodeRequest", "SchedulePauseView": "PauseRequest",
}

// propertyTexts describe the properties that mean the same in all answers and are in no request.
var propertyTexts = map[string]string{
	"code":          "Stable code, by which a program decides",
	"created_at":    "Time of creation",
	"dag_version":   "Version of the dag",
	"due_at":        "Time at which it is due",
	"duration_ms":   "Milliseconds from start to end; until now while it runs",
	"finished_at":   "Time of the end",
	"items":         "Items in order",
	"job_id":        "Identifier of the job",
	"message":       "Sentence that explains the code",
	"name":          "Name",
	"next_cursor":   "Cursor of the next page; null at the end. A page can be short, even empty, and have a cursor.",
	"node":          "Name of the node",
	"nominal_at":    "Time by the calendar of the schedule",
	"problem":       "Problem for which the operation failed",
	"run_id":        "Identifier of the run",
	"schedule":      "Name of the schedule",
	"started_at":    "Time of the start",
	"status":        "Status",
	"status_reason": "Reason for the status",
	"updated_at":    "Time of the last change",
	"version":       "Version, from 1, which grows with every change",
}

// parameterTexts describe the parameters whose inputs do not. The texts for name and id say of what by the path.
var parameterTexts = map[string]string{
	"code": "Code of a problem", "dag": "Filter: name of the dag", "node": "Name of the node",
	"schedule": "Filter: name of the schedule", "status": "Filter: status", "task": "Filter: name of the task",
}

// headerTexts describe the headers whose answers do not.
var headerTexts = map[string]string{
	"Content-Type": "Media type of the answer", "Location": "Address of the resource",
	"Idempotency-Replayed": "Mark true: an earlier request with the same key made the resource",
	"Vary":                 "Header of the request on which the form of the answer depends",
}

// tags describe the groups of operations, in the order of the document.
var tags = []*huma.Tag{
	{Name: spec.TagJobs, Description: "Jobs: single pieces of work, each with a time."},
	{Name: spec.TagDead, Description: "Dead letters: jobs that failed finally."},
	{Name: spec.TagSchedules, Description: "Schedules: jobs or runs at the times of a calendar."},
	{Name: spec.TagExclusions, Description: "Exclusions: days and stretches of time on which schedules do not run."},
	{Name: spec.TagLimits, Description: "Limits of work: how many jobs of a key run at a time, and start in a time."},
	{Name: spec.TagForecast, Description: "Forecast of the starts of jobs."},
	{Name: spec.TagWebhooks, Description: "Webhooks: addresses that are sent events."},
	{Name: spec.TagDags, Description: "Dags: graphs of jobs that depend on each other."},
	{Name: spec.TagRuns, Description: "Runs of dags, and operations on them."},
	{Name: spec.TagTasks, Description: "Tasks: settings that jobs share."},
	{Name: spec.TagPauses, Description: "Pauses of all jobs, or of one task."},
	{Name: spec.TagAudit, Description: "Audit: who changed what, when and why."},
	{Name: spec.TagSystem, Description: "State of the API, its document and its problems."},
}

// describe gives a description to each schema, and to each property that has none.
func describe(schemas map[string]*huma.Schema) {
	for name, s := range schemas {
		whole, isPatch := strings.CutSuffix(name, "PatchRequest")
		request := cmp.Or(statedIn[name], strings.TrimSuffix(whole, "View")+"Request")
		stated := schemas[request]
		switch {
		case s.Description != "":
		case schemaTexts[name] != "":
			s.Description = schemaTexts[name]
		case strings.HasSuffix(name, "Page"):
			s.Description = "Page of a list."
		case isPatch && stated != nil:
			s.Description = "Changes, as a merge patch (RFC 7396). " + stated.Description
		}
		for property, is := range s.Properties {
			if is.Description != "" || is.Extensions["description"] != nil { // the latter is of an executor
				continue
			}
			if stated != nil && stated.Properties[property] != nil {
				is.Description = stated.Properties[property].Description
				if !isPatch {
					is.Description = subject(is.Description)
				}
			}
			is.Description = cmp.Or(is.Description, propertyTexts[property])
		}
	}
}

// subject returns the part of a field's description that is true of the field in an answer too: the first sentence,
// without the default.
func subject(description string) string {
	first, _, _ := strings.Cut(description, ". ")
	first, _, _ = strings.Cut(first, "; ")
	return strings.TrimSuffix(first, ".")
}

// describeOperation describes parameters, and the headers of answers, which huma describes in their schemas.
func describeOperation(path string, op *huma.Operation) {
	for _, p := range op.Parameters {
		if p.Description == "" {
			p.Description = parameterTexts[p.Name]
		}
		switch of := owner(path); {
		case of != "" && p.Name == "id":
			p.Description = "Identifier of the " + of
		case of != "" && p.Name == "name":
			p.Description = "Name of the " + of
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		for name, h := range op.Responses[status].Headers {
			if h.Description == "" { // answers of two statuses share it
				h.Description = cmp.Or(h.Schema.Description, headerTexts[name])
				h.Schema.Description = ""
			}
		}
	}
}

// owner returns what a parameter of a path names: "dag" for /v1/dags/{name}/runs.
func owner(path string) string {
	before, _, ok := strings.Cut(path, "s/{")
	if !ok {
		return ""
	}
	return before[strings.LastIndexByte(before, '/')+1:]
}
