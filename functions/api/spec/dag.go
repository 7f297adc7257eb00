package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"punctual/functions/api/rest"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// ReadParams reads an object with any values. allowed are the pointers of strings that look like secrets and are none.
func ReadParams(r *rest.Reader, v rest.Value, allowed []string) map[string]json.RawMessage {
	if !r.Is(v, document.KindObject) {
		return nil
	}
	if TooDeep(r, v, "the params are") {
		return nil
	}
	r.AllDuplicates(v.Node)
	r.NoSecrets(v, allowed)
	params := map[string]json.RawMessage{}
	for name, at := range r.Members(v) {
		if !rest.IsName(name) {
			r.Violation(at.Pointer, rest.CodeInvalidValue, rest.NameAllowed,
				"this is not a name for a param")
			continue
		}
		params[name] = slices.Clone(r.Doc.Compact(at.Node))
	}
	return params
}

// AbsentDag turns fault.NotFound into the problem of an absent dag.
func AbsentDag(err error) error { return rest.Absent(err, "dag, or no such version of it") }

// Dag reads the newest version of a dag, or the given one if version is not 0, with its graph.
func (s *Core) Dag(ctx context.Context, t tenant.ID, name string, version int64) (store.Dag, *dag.Graph, error) {
	read := func() (store.Dag, error) {
		if version > 0 {
			return s.Store.DagVersion(ctx, t, name, version)
		}
		return s.Store.Dag(ctx, t, name)
	}
	d, err := read()
	if err != nil {
		return d, nil, AbsentDag(err)
	}
	g, err := s.Runs.Compiled(ctx, t, d.Definition)
	return d, g, err
}

// MaxVersion is the highest version that a request may name.
const MaxVersion = 999_999_999

// Fields of every run.
var (
	RunPriority    = Priority.About("Priority of the nodes that have none of their own; default: that of the dag.")
	RunExpireAfter = ExpireAfter.About("Maximum time from due_at to the end of the run; default: that of the dag.")
	RunTags        = Tags.About("Tags by name, which override those of the dag.")
)

// MergedParams reads params, and merges them over those of a dag, which the dag's schema must admit. pointer is that of
// the object with the params. Without a dag it only reads them; nil is no params.
func (s *Core) MergedParams(
	ctx context.Context, r *rest.Reader, v rest.Value, pointer string, allowed []string, g *dag.Graph,
) (given map[string]json.RawMessage, merged json.RawMessage, err error) {
	before := len(r.Wrong)
	if v.Pointer != "" {
		given = ReadParams(r, v, allowed)
	}
	if g == nil {
		return given, nil, nil
	}
	merged, err = s.overParams(ctx, r, pointer, given, g, before)
	return given, merged, err
}

// OverParams merges params over those of a dag, which the dag's schema must admit. pointer is that of the object with
// the params.
func (s *Core) OverParams(
	ctx context.Context, r *rest.Reader, pointer string, given map[string]json.RawMessage, g *dag.Graph,
) (json.RawMessage, error) {
	return s.overParams(ctx, r, pointer, given, g, len(r.Wrong))
}

// overParams is OverParams for params of which violations were found: those after the first before ones. With any, the
// schema is not asked.
func (s *Core) overParams(ctx context.Context, r *rest.Reader, pointer string, given map[string]json.RawMessage,
	g *dag.Graph, before int) (merged json.RawMessage, err error) {
	merged, unknown := g.MergeParams(given)
	for _, name := range unknown[:min(len(unknown), rest.MaxViolations)] {
		r.Violation(pointer+"/params/"+text.EscapePointer(name), rest.CodeUnknownField, "the params of the dag",
			"the dag has no param %s", text.Quoted(name))
	}
	if len(merged) > dag.MaxDefinition {
		r.Violation(pointer+"/params", rest.CodeTooLarge, fmt.Sprintf("at most %d bytes", dag.MaxDefinition),
			"the params have %d bytes", len(merged))
	}
	if len(r.Wrong) > before || len(g.ParamsSchema) == 0 {
		return merged, nil
	}
	if merged == nil {
		merged = json.RawMessage("{}")
	}
	found := NewReader(r.Doc)
	use := schema.Use{Schema: g.ParamsSchema, Owner: "dag", Field: "params_schema"}
	err = s.checkSchema(ctx, found, pointer+"/params", merged, use)
	for _, m := range found.Wrong {
		r.Violation(m.Pointer, rest.CodeInvalidValue, m.Allowed, "%s", m.Detail)
	}
	return merged, err
}

// RunView shows a run. Absent values are left out.
type RunView struct {
	RunID        job.ID                 `json:"run_id" example:"01KB4YJ2V0S6Y3Q4M5N6P7R8T9"`
	Dag          *string                `json:"dag" doc:"Name of the dag; null for a run of a definition in the request"`
	DagVersion   *int64                 `json:"dag_version" doc:"Version of the dag; null without a dag"`
	Status       run.Status             `json:"status" enum:"BUILDING,RUNNING,PAUSED,HELD,SUCCEEDED,FAILED,CANCELLED" doc:"Status; HELD: nothing continues without an operator"`
	StatusReason *job.Reason            `json:"status_reason,omitempty"`
	CreatedAt    rest.Instant           `json:"created_at"`
	DueAt        rest.Instant           `json:"due_at" doc:"Time at which the run is due"`
	StartedAt    rest.Instant           `json:"started_at,omitzero" doc:"Start of the first job of the run"`
	FinishedAt   rest.Instant           `json:"finished_at,omitzero"`
	StoppedAt    rest.Instant           `json:"cancel_requested_at,omitzero" doc:"Time at which the run was cancelled, expired, or failed under on_failure cancel_run. Nodes with run_if always still run before the run ends."`
	NominalAt    rest.Instant           `json:"nominal_at,omitzero" doc:"Time by the calendar of the schedule"`
	Schedule     string                 `json:"schedule,omitempty" doc:"Name of the schedule that made the run"`
	Backfill     job.ID                 `json:"backfill,omitempty" doc:"Identifier of the operation that made the run of a nominal time that had passed"`
	Priority     job.Priority           `json:"priority,omitempty"`
	Params       json.RawMessage        `json:"params,omitempty" doc:"Params, merged over the defaults of the dag"`
	Tags         map[string]string      `json:"tags,omitempty"`
	Counts       *dag.RunCounts         `json:"counts,omitempty" doc:"Numbers of nodes by status; a node with for_each counts once"`
	CriticalPath []string               `json:"critical_path,omitempty" doc:"Names of the nodes on the chain that took longest so far"`
	Nodes        map[string]RunNodeView `json:"nodes,omitempty" doc:"Nodes by name; not in lists"`
}

// JobState is the part of its job that the views of a node and of an item have.
type JobState struct {
	Status       job.Status   `json:"status" enum:"BLOCKED,SCHEDULED,QUEUED,RUNNING,SUCCEEDED,DEAD,CANCELLED,SKIPPED,EXPIRED"`
	JobID        job.ID       `json:"job_id,omitempty" doc:"Identifier of the job; absent until the node is released, and while max_parallel keeps an item waiting"`
	Attempt      int64        `json:"attempt,omitempty" doc:"Number of the current attempt, from 1"`
	StatusReason *job.Reason  `json:"status_reason,omitempty"`
	StartedAt    rest.Instant `json:"started_at,omitzero"`
	FinishedAt   rest.Instant `json:"finished_at,omitzero"`
	DurationMS   *int64       `json:"duration_ms,omitempty"`
}

// NodeState is the part that every view of a node has.
type NodeState struct {
	JobState
	Generation  int64    `json:"generation" doc:"Generation of the node, from 1, which grows with each retry of the node"`
	DependsOn   []string `json:"depends_on" doc:"Names of the nodes that must end first"`
	ParentsDone int      `json:"parents_done" doc:"Number of these nodes that have ended"`
	Parents     int      `json:"parents" doc:"Number of nodes that must end first"`
	WaitingFor  string   `json:"waiting_for,omitempty" enum:"parents,due,retry,worker,pause,limit,operator" doc:"Kind of event that the node waits for"`
	Why         string   `json:"why,omitempty" doc:"Sentence that explains the wait"`
	Forced      bool     `json:"forced,omitempty" doc:"Whether an operator skipped or completed the node"`
}

// RunNodeView shows a node in the view of its run.
type RunNodeView struct {
	NodeState
	Items *dag.RunCounts `json:"items,omitempty" doc:"Numbers of items by status, of a node with for_each that has been released"`
}
