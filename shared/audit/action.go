package audit

import "strings"

// Action is a kind of change that a caller can make.
type Action string

// The actions, each with the kind of what it changes.
const (
	JobCancel  Action = "job.cancel"
	JobPause   Action = "job.pause"
	JobResume  Action = "job.resume"
	JobPatch   Action = "job.patch"
	JobRunNow  Action = "job.run_now"
	JobRedrive Action = "job.redrive"
	JobDelete  Action = "job.delete"

	TaskPut    Action = "task.put"
	TaskDelete Action = "task.delete"

	SchedulePut      Action = "schedule.put"
	SchedulePatch    Action = "schedule.patch"
	ScheduleDelete   Action = "schedule.delete"
	SchedulePause    Action = "schedule.pause"
	ScheduleResume   Action = "schedule.resume"
	ScheduleRunNow   Action = "schedule.run_now"
	ScheduleBackfill Action = "schedule.backfill"

	ExclusionPut    Action = "exclusion.put"
	ExclusionDelete Action = "exclusion.delete"

	PausePut    Action = "pause.put"
	PauseDelete Action = "pause.delete"

	DagPut    Action = "dag.put"
	DagDelete Action = "dag.delete"

	RunPause  Action = "run.pause"
	RunResume Action = "run.resume"
	RunCancel Action = "run.cancel"
	RunRetry  Action = "run.retry"
	RunDelete Action = "run.delete"

	NodeRetry    Action = "node.retry"
	NodeSkip     Action = "node.skip"
	NodeComplete Action = "node.complete"

	DeadLettersRedrive Action = "dead_letters.redrive"
	DeadLettersPurge   Action = "dead_letters.purge"

	LimitPut    Action = "limit.put"
	LimitDelete Action = "limit.delete"

	WebhookPut    Action = "webhook.put"
	WebhookDelete Action = "webhook.delete"

	OperationCreate  Action = "operation.create"
	OperationPause   Action = "operation.pause"
	OperationResume  Action = "operation.resume"
	OperationStop    Action = "operation.stop"
	OperationProceed Action = "operation.proceed"
)

// Actions lists all actions.
func Actions() []Action {
	return []Action{
		JobCancel, JobPause, JobResume, JobPatch, JobRunNow, JobRedrive, JobDelete,
		TaskPut, TaskDelete,
		SchedulePut, SchedulePatch, ScheduleDelete, SchedulePause, ScheduleResume, ScheduleRunNow, ScheduleBackfill,
		ExclusionPut, ExclusionDelete,
		PausePut, PauseDelete,
		DagPut, DagDelete,
		RunPause, RunResume, RunCancel, RunRetry, RunDelete,
		NodeRetry, NodeSkip, NodeComplete,
		DeadLettersRedrive, DeadLettersPurge,
		LimitPut, LimitDelete,
		WebhookPut, WebhookDelete,
		OperationCreate, OperationPause, OperationResume, OperationStop, OperationProceed,
	}
}

// Resource names what an action changes, by the parameters of the request's path in their order.
func (a Action) Resource(parameters ...string) string {
	kind, _, _ := strings.Cut(string(a), ".")
	if kind == "node" && len(parameters) == 2 {
		return "run/" + parameters[0] + "/node/" + parameters[1]
	}
	return strings.Join(append([]string{kind}, parameters...), "/")
}
