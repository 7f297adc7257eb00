package spec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"punctual/functions/api/rest"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// ReadParams reads an object with any values. allowed are the pointers of strings that look like secrets and are none.
func ReadParams(r *rest.Reader, v rest.Value, allowed []string) map[string]json.RawMessage {
	if !r.Is(v, rest.KindObject) {
		return nil
	}
	if TooDeep(r, v, "the params are") {
		return nil
	}
	r.AllDuplicates(v.Node)
	r.NoSecrets(v, allowed)
	params := map[string]json.RawMessage{}
	for name, n := range r.Doc.Members(v.Node) {
		if !rest.IsName(name) {
			r.Mistake(v.Pointer+"/"+text.EscapePointer(name), rest.CodeInvalidValue, rest.NameAllowed,
				"this is not a name for a param")
			continue
		}
		params[name] = slices.Clone(r.Doc.Compact(n))
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
	RunTags        = Tags.About("Tags as of a job, which win over those of the dag.")
)

// JudgeParams reports each part of a run's params that does not fit the dag's schema.
func (s *Core) JudgeParams(ctx context.Context, r *rest.Reader, by json.RawMessage, params []byte) error {
	merged := NewReader(r.Doc)
	use := schema.Use{Schema: by, Owner: "dag", Field: "params_schema"}
	if err := s.judge(ctx, merged, "/params", params, use); err != nil {
		return err
	}
	for _, m := range merged.Wrong {
		r.Mistake(m.Pointer, rest.CodeInvalidValue, m.Allowed, "%s", m.Detail)
	}
	return nil
}

// NamedMost is how many nodes a sentence names.
const NamedMost = 3

// RunView shows a run. Absent values are left out.
type RunView struct {
	RunID        job.ID                 `json:"run_id" example:"01KB4YJ2V0S6Y3Q4M5N6P7R8T9"`
	Dag          *string                `json:"dag" doc:"null for a run of a definition of its own"`
	DagVersion   *int64                 `json:"dag_version"`
	Status       run.Status             `json:"status" enum:"BUILDING,RUNNING,PAUSED,HELD,SUCCEEDED,FAILED,CANCELLED" doc:"HELD: nothing can go on without an operator"`
	StatusReason *job.Reason            `json:"status_reason,omitempty"`
	CreatedAt    rest.Instant           `json:"created_at"`
	DueAt        rest.Instant           `json:"due_at"`
	StartedAt    rest.Instant           `json:"started_at,omitzero" doc:"When the first of its jobs started"`
	FinishedAt   rest.Instant           `json:"finished_at,omitzero"`
	NominalAt    rest.Instant           `json:"nominal_at,omitzero" doc:"What the schedule's calendar says"`
	Schedule     string                 `json:"schedule,omitempty"`
	Priority     job.Priority           `json:"priority,omitempty"`
	Params       json.RawMessage        `json:"params,omitempty" doc:"Merged with the dag's defaults"`
	Tags         map[string]string      `json:"tags,omitempty"`
	Counts       *RunCounts             `json:"counts,omitempty" doc:"Of nodes; one with for_each counts once"`
	CriticalPath []string               `json:"critical_path,omitempty" doc:"The chain of nodes that took longest so far"`
	Nodes        map[string]RunNodeView `json:"nodes,omitempty" doc:"Lists leave them out"`
}

// RunCounts counts the nodes of a run, or the items of a node, by status.
type RunCounts struct {
	Total     int `json:"total"`
	Blocked   int `json:"blocked"`
	Waiting   int `json:"waiting" doc:"SCHEDULED and QUEUED"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed" doc:"DEAD and EXPIRED"`
	Cancelled int `json:"cancelled"`
	Skipped   int `json:"skipped"`
}

// Ended says how many of the items have ended.
func (c *RunCounts) Ended() string {
	return fmt.Sprintf("%d of %d items", c.Total-c.Blocked-c.Waiting-c.Running, c.Total)
}

// Add counts one more with that status.
func (c *RunCounts) Add(s job.Status) {
	c.Total++
	switch s {
	case job.Scheduled, job.Queued:
		c.Waiting++
	case job.Running:
		c.Running++
	case job.Succeeded:
		c.Succeeded++
	case job.Dead, job.Expired:
		c.Failed++
	case job.Cancelled:
		c.Cancelled++
	case job.Skipped:
		c.Skipped++
	default:
		c.Blocked++
	}
}

// NodeState is the part that every view of a node has.
type NodeState struct {
	Status       job.Status   `json:"status" enum:"BLOCKED,SCHEDULED,QUEUED,RUNNING,SUCCEEDED,DEAD,CANCELLED,SKIPPED,EXPIRED"`
	JobID        job.ID       `json:"job_id,omitempty" doc:"Absent until the node is released"`
	Attempt      int64        `json:"attempt,omitempty" doc:"From 1"`
	Generation   int64        `json:"generation" doc:"From 1; grows when the node is run again"`
	DependsOn    []string     `json:"depends_on"`
	ParentsDone  int          `json:"parents_done"`
	Parents      int          `json:"parents"`
	WaitingFor   string       `json:"waiting_for,omitempty" enum:"parents,due,retry,worker,pause,limit,operator"`
	Why          string       `json:"why,omitempty" doc:"What it waits for, as a sentence"`
	StatusReason *job.Reason  `json:"status_reason,omitempty"`
	StartedAt    rest.Instant `json:"started_at,omitzero"`
	FinishedAt   rest.Instant `json:"finished_at,omitzero"`
	DurationMS   *int64       `json:"duration_ms,omitempty" doc:"From start to end; until now while it runs"`
	Forced       bool         `json:"forced,omitempty" doc:"An operator skipped or completed it"`
}

// RunNodeView shows a node in the view of its run.
type RunNodeView struct {
	NodeState
	Items *RunCounts `json:"items,omitempty" doc:"Of a node with for_each that has been released"`
}
