package operations

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/operate"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/search"
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
	runID    = field.Text("run_id", "Identifier of the run of which the job is a node", spec.IDForm, readRunID)
	code     = field.Text("code", "Code of the reason for the status of the job",
		field.Characters(1, contract.MaxName), readCode)
	group = field.Text("group", "Group of dead letters with the same cause",
		field.Matching(search.GroupPattern, search.GroupLength), readGroup)
	idPrefix = field.Text("id", "Beginning of the identifier of the job",
		field.Matching(spec.IDPrefixPattern, spec.JobIDLength), readIDPrefix)
	tags = spec.Tags.About("Tags by name, with their values").Shaped(field.MapOf(0, search.MaxTags, spec.EntryName,
		field.TextSchema(field.Characters(0, contract.MaxTagValue))))

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

// readRunID reads the id of a run.
func readRunID(r *rest.Reader, v rest.Value) (id string, ok bool) {
	if id, ok = r.Text(v); !ok {
		return "", false
	}
	if _, err := job.ParseID(id); err != nil {
		r.Violation(v.Pointer, rest.CodeInvalidValue, fmt.Sprintf("an id: %d characters of a ULID", spec.JobIDLength),
			"this is not an id")
		return "", false
	}
	return id, true
}

// readCode reads the code of a reason.
func readCode(r *rest.Reader, v rest.Value) (code string, ok bool) {
	if code, ok = r.Text(v); ok && (code == "" || utf8.RuneCountInString(code) > contract.MaxName) {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("1 to %d characters", contract.MaxName),
			"the code has no such length")
		return "", false
	}
	return code, ok
}

var idPrefixForm = regexp.MustCompile(spec.IDPrefixPattern)

// readIDPrefix reads the beginning of an id.
func readIDPrefix(r *rest.Reader, v rest.Value) (prefix string, ok bool) {
	if prefix, ok = r.Text(v); ok && !idPrefixForm.MatchString(prefix) {
		r.Violation(v.Pointer, rest.CodeInvalidValue, fmt.Sprintf("the first %d to %d characters of an id, in capital "+
			"letters", search.MinIDPrefix, spec.JobIDLength), "this is not the beginning of an id")
		return "", false
	}
	return prefix, ok
}

var groupForm = regexp.MustCompile(search.GroupPattern)

// readGroup reads the name of a group.
func readGroup(r *rest.Reader, v rest.Value) (group string, ok bool) {
	if group, ok = r.Text(v); ok && !groupForm.MatchString(group) {
		r.Violation(v.Pointer, rest.CodeInvalidValue, "a group of GET /v1/dead-letters/groups", "this is no group")
		return "", false
	}
	return group, ok
}

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
