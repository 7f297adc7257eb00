package operations

import (
	"slices"

	"punctual/functions/api/field"
	"punctual/functions/api/spec"
	"punctual/functions/engine/operate"
	"punctual/shared/operation"
)

// Fields of a filter.
var (
	jobIDs = field.Value("job_ids", "Identifiers of jobs. It excludes all other fields.",
		field.ArrayOf(1, maxNamed, field.TextSchema(spec.IDForm)))
	runIDs = field.Value("run_ids", "Identifiers of runs. It excludes all other fields.",
		field.ArrayOf(1, maxNamed, field.TextSchema(spec.IDForm)))
	status   = field.Value("status", "Status of the job or run", field.TextSchema(field.OneOf(allStatuses())))
	task     = spec.Name("task", "Name of the task")
	schedule = spec.Name("schedule", "Name of the schedule that made the job or run")
	dag      = spec.Name("dag", "Name of the dag")
	runID    = spec.RunIDFilter.Field("Identifier of the run of which the job is a node")
	code     = spec.CodeFilter.Field("Code of the reason for the status of the job")
	group    = spec.GroupFilter.Field("Group of dead letters with the same cause")
	idPrefix = spec.IDFilter.Field("Beginning of the identifier of the job")
	tags     = spec.TagsFilter

	createdAfter   = spec.Instant("created_after", "Earliest time of creation")
	createdBefore  = spec.Instant("created_before", "Time before which they were created")
	dueAfter       = spec.Instant("due_after", "Earliest due time")
	dueBefore      = spec.Instant("due_before", "Time before which they are due")
	finishedAfter  = spec.Instant("finished_after", "Earliest end")
	finishedBefore = spec.Instant("finished_before", "Time before which they ended")
	deadAfter      = spec.Instant("dead_after", "Earliest time at which the job became DEAD")
	deadBefore     = spec.Instant("dead_before", "Time before which the job became DEAD")

	filterRequest = field.NewObject("OperationFilterRequest", "Filter of jobs or runs: all fields have to match.",
		jobIDs, runIDs, status, task, schedule, dag, runID, spec.Pool.About("Pool of the job"),
		spec.Priority.About("Priority of the job"), code, group, idPrefix, tags, createdAfter, createdBefore,
		dueAfter, dueBefore, finishedAfter, finishedBefore, deadAfter, deadBefore)
)

func kindOf(a operation.Action) string { return operate.Kind(a) }

// listedBy are the fields by which the rows of an action can be selected without the index.
func (s *Handler) listedBy(a operation.Action) []string {
	ids := jobIDs.Name()
	if a.OnRuns() {
		ids = runIDs.Name()
	}
	return append([]string{ids}, operate.ListedBy(a)...)
}

func allStatuses() []string {
	all := append(statuses(operation.CancelJobs), statuses(operation.CancelRuns)...)
	slices.Sort(all)
	return slices.Compact(all)
}
