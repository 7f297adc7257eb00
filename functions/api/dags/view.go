package dags

import (
	"encoding/json"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/store"
)

// dagView shows a dag: its definition, with the defaults filled in.
type dagView struct {
	Name           string                     `json:"name" doc:"Name of the dag"`
	Version        int64                      `json:"version" doc:"Version of the dag, from 1; a version never changes"`
	CreatedAt      rest.Instant               `json:"created_at" doc:"Time at which the dag was created"`
	UpdatedAt      rest.Instant               `json:"updated_at" doc:"Time at which this version was made"`
	Nodes          map[string]dagNodeView     `json:"nodes" doc:"Nodes by name"`
	Params         map[string]json.RawMessage `json:"params,omitempty" doc:"Defaults of the params by name"`
	ParamsSchema   json.RawMessage            `json:"params_schema,omitempty" doc:"JSON Schema that the merged params of a run must match"`
	OnFailure      dag.Policy                 `json:"on_failure" doc:"Effect of a failed node: cancel_downstream, cancel_run, continue or hold"`
	MaxConcurrency int                        `json:"max_concurrency,omitempty" doc:"Maximum number of jobs of one run at a time; absent if there is no limit"`
	ExpireAfter    string                     `json:"expire_after,omitempty" doc:"Maximum time from due_at to the end of a run; absent if there is no limit"`
	Priority       job.Priority               `json:"priority,omitempty" doc:"Priority of the nodes that have none of their own; absent if it is that of their tasks"`
	Tags           map[string]string          `json:"tags,omitempty" doc:"Tags of the jobs of each run"`
	AllowLiterals  []string                   `json:"allow_literals,omitempty" doc:"JSON pointers of the strings that were declared not to be secrets"`
	Notes          []string                   `json:"notes,omitempty" doc:"Notes about formats that params_schema names and that are not checked"`
}

type dagNodeView struct {
	Task        string            `json:"task" doc:"Name of the task"`
	Payload     json.RawMessage   `json:"payload,omitempty" doc:"Payload, whose strings may hold expressions"`
	Priority    job.Priority      `json:"priority,omitempty" doc:"Priority of the node; absent if it has none of its own"`
	Pool        string            `json:"pool,omitempty" doc:"Pool of workers that runs the job; absent if it is that of the task"`
	Timeout     string            `json:"timeout,omitempty" doc:"Maximum duration of one attempt; absent if it is that of the task"`
	StartWithin string            `json:"start_within,omitempty" doc:"Maximum time from the node's release to the start of its first attempt; absent if there is no limit"`
	Retry       json.RawMessage   `json:"retry,omitempty" doc:"Retry policy as given; fields that are left out have the values of the task"`
	Limits      []spec.LimitUse   `json:"limits,omitzero" doc:"Limits of work under which each job of the node counts; absent if they are those of the task"`
	Tags        map[string]string `json:"tags,omitempty" doc:"Tags of the node's jobs"`
	Literals    []string          `json:"allow_literals,omitempty" doc:"JSON pointers of the strings that were declared not to be secrets"`
	DependsOn   []string          `json:"depends_on,omitempty" doc:"Names of the nodes that must end first"`
	RunIf       dag.Rule          `json:"run_if" doc:"Rule that the outcomes of the nodes in depends_on must match"`
	When        string            `json:"when,omitempty" doc:"CEL expression; the node is SKIPPED if it is false"`
	ForEach     string            `json:"for_each,omitempty" doc:"Expression of a list, for each item of which the node has one job"`
	MaxParallel int               `json:"max_parallel,omitempty" doc:"Maximum number of items at a time; absent if there is no limit"`
	MaxFailed   maxFailedView     `json:"max_failed,omitzero" doc:"Maximum number of items that may fail, or their share of all items as a text such as 10%; absent if none may"`
}

// dagItemView shows a dag, or one version of it, in a list.
type dagItemView struct {
	Name      string       `json:"name" doc:"Name of the dag"`
	Version   int64        `json:"version" doc:"Version of the dag, from 1"`
	CreatedAt rest.Instant `json:"created_at" doc:"Time at which the dag was created"`
	UpdatedAt rest.Instant `json:"updated_at" doc:"Time at which this version was made"`
}

func (s *Handler) viewDag(d store.Dag, is dag.Definition) dagView {
	v := dagView{
		Name: d.Name, Version: d.Version, CreatedAt: rest.At(d.CreatedAt),
		UpdatedAt: rest.At(d.UpdatedAt),
		Nodes:     map[string]dagNodeView{}, Params: is.Params, ParamsSchema: is.ParamsSchema,
		OnFailure: is.OnFailure, MaxConcurrency: is.MaxConcurrency, ExpireAfter: spec.SpanOf(is.ExpireAfter),
		Priority: is.Priority, Tags: is.Tags, AllowLiterals: is.AllowLiterals,
		Notes: s.Schemas.Notes(is.ParamsSchema),
	}
	if v.OnFailure == "" {
		v.OnFailure = dag.CancelDownstream
	}
	for name, n := range is.Nodes {
		shown := dagNodeView{
			Task: n.Task, Payload: n.Payload, Priority: n.Priority, Pool: n.Pool, Timeout: spec.SpanOf(n.Timeout),
			StartWithin: spec.SpanOf(n.StartWithin), Retry: n.Retry, Tags: n.Tags, Literals: n.AllowLiterals,
			DependsOn: n.DependsOn, RunIf: n.RunIf, When: n.When, ForEach: n.ForEach, MaxParallel: n.MaxParallel,
			MaxFailed: maxFailedView(n.MaxFailed),
		}
		if n.Limits != nil {
			shown.Limits = append([]spec.LimitUse{}, spec.ViewLimits(job.LimitsOf(*n.Limits...))...)
		}
		if shown.RunIf == "" {
			shown.RunIf = dag.AllSucceeded
		}
		v.Nodes[name] = shown
	}
	return v
}

func viewDagItem(d store.Dag) dagItemView {
	return dagItemView{d.Name, d.Version, rest.At(d.CreatedAt), rest.At(d.UpdatedAt)}
}
