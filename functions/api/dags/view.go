package dags

import (
	"encoding/json"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/store"
)

// DagView shows a dag: its definition, with the defaults filled in.
type DagView struct {
	Name           string                     `json:"name"`
	Version        int64                      `json:"version" doc:"From 1; a version never changes"`
	CreatedAt      rest.Instant               `json:"created_at"`
	UpdatedAt      rest.Instant               `json:"updated_at" doc:"When this version was made"`
	Nodes          map[string]dagNodeView     `json:"nodes"`
	Params         map[string]json.RawMessage `json:"params,omitempty"`
	ParamsSchema   json.RawMessage            `json:"params_schema,omitempty"`
	OnFailure      dag.Policy                 `json:"on_failure"`
	MaxConcurrency int                        `json:"max_concurrency,omitempty"`
	ExpireAfter    string                     `json:"expire_after,omitempty"`
	Priority       job.Priority               `json:"priority,omitempty"`
	Tags           map[string]string          `json:"tags,omitempty"`
	AllowLiterals  []string                   `json:"allow_literals,omitempty"`
	Notes          []string                   `json:"notes,omitempty" doc:"Sentences about formats that the params_schema names and that are not checked"`
}

type dagNodeView struct {
	Task        string            `json:"task"`
	Payload     json.RawMessage   `json:"payload,omitempty"`
	Priority    job.Priority      `json:"priority,omitempty"`
	Pool        string            `json:"pool,omitempty"`
	Timeout     string            `json:"timeout,omitempty"`
	StartWithin string            `json:"start_within,omitempty"`
	Retry       json.RawMessage   `json:"retry,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Literals    []string          `json:"allow_literals,omitempty"`
	DependsOn   []string          `json:"depends_on,omitempty"`
	RunIf       dag.Rule          `json:"run_if"`
	When        string            `json:"when,omitempty"`
	ForEach     string            `json:"for_each,omitempty"`
	MaxParallel int               `json:"max_parallel,omitempty"`
}

// dagItemView shows a dag, or one version of it, in a list.
type dagItemView struct {
	Name      string       `json:"name"`
	Version   int64        `json:"version"`
	CreatedAt rest.Instant `json:"created_at"`
	UpdatedAt rest.Instant `json:"updated_at" doc:"When this version was made"`
}

func (s *Handler) viewDag(d store.Dag, is dag.Definition) DagView {
	v := DagView{
		Name: d.Name, Version: d.Version, CreatedAt: rest.Instant{Time: d.CreatedAt},
		UpdatedAt: rest.Instant{Time: d.UpdatedAt},
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
		}
		if shown.RunIf == "" {
			shown.RunIf = dag.AllSucceeded
		}
		v.Nodes[name] = shown
	}
	return v
}

func viewDagItem(d store.Dag) dagItemView {
	return dagItemView{d.Name, d.Version, rest.Instant{Time: d.CreatedAt}, rest.Instant{Time: d.UpdatedAt}}
}
