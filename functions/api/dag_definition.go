package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// dagRequest documents what PUT /v1/dags/{name} takes.
type dagRequest struct {
	Nodes          map[string]nodeRequest `json:"nodes" doc:"By name"`
	Params         wire.Anything          `json:"params,omitempty" doc:"Defaults by name, any JSON values. A run may give others, of these names only"`
	ParamsSchema   wire.Anything          `json:"params_schema,omitempty" doc:"A JSON Schema that a run's merged params are judged by"`
	OnFailure      string                 `json:"on_failure,omitempty" doc:"What a failed node means for those after it: cancel_downstream (default): their rules decide, and other branches go on; cancel_run: nothing more starts; continue: it counts as done for the default rule; hold: what would be cancelled waits for an operator"`
	MaxConcurrency int                    `json:"max_concurrency,omitempty" doc:"Jobs of one run at a time; default: no limit"`
	ExpireAfter    wire.Duration          `json:"expire_after,omitempty" doc:"A run ends if it is not over this long after due_at; default: no limit"`
	Priority       string                 `json:"priority,omitempty" doc:"Of nodes that have none; default: their tasks'"`
	Tags           map[string]string      `json:"tags,omitempty" doc:"As of a job. Each job of a run has those of the dag, of the run and of its node; the nearest counts"`
	AllowLiterals  []string               `json:"allow_literals,omitempty" doc:"As of a job, for params and tags"`
}

// nodeRequest documents a node: a job without a time, and what it waits for.
type nodeRequest struct {
	Task        string            `json:"task" example:"echo"`
	Payload     wire.Anything     `json:"payload,omitempty" doc:"Payload as in POST /v1/jobs. Strings may hold expressions: ${…}. What an expression gives is text: it names no secret, and chooses no host of a URL unless it is the whole URL. What these make is judged by the task's payload_schema when the node is released: DEAD invalid_payload if it does not fit"`
	Priority    string            `json:"priority,omitempty" doc:"Default: the run's, then the dag's, then the task's"`
	Pool        string            `json:"pool,omitempty" doc:"Default: the task's"`
	Timeout     wire.Duration     `json:"timeout,omitempty" doc:"Of one attempt; default: the task's"`
	StartWithin wire.Duration     `json:"start_within,omitempty" doc:"EXPIRED if no attempt started this long after the node was released; default: no limit"`
	Retry       retryRequest      `json:"retry,omitempty" doc:"What is left out is the task's"`
	Tags        map[string]string `json:"tags,omitempty" doc:"As of a job"`
	Literals    []string          `json:"allow_literals,omitempty" doc:"As of a job, for payload and tags"`
	DependsOn   []string          `json:"depends_on,omitempty" doc:"Nodes that must have ended before"`
	RunIf       string            `json:"run_if,omitempty" doc:"What must have become of them; default all_succeeded"`
	When        string            `json:"when,omitempty" doc:"CEL expression; the node is SKIPPED if it is false. A name with a dash is written nodes[\"my-node\"]"`
	ForEach     string            `json:"for_each,omitempty" doc:"${…} of a list: one job for each of its items, which the payload sees as item and index"`
	MaxParallel int               `json:"max_parallel,omitempty" doc:"Items at a time, together with for_each; default: no limit"`
}

var (
	dagFields  = wire.NamesOf[dagRequest]()
	nodeFields = wire.NamesOf[nodeRequest]()
)

// longestCheck bounds the check of a definition's expressions. Their number and size are bounded so that it takes less
// than a second on an idle processor.
const longestCheck = 2 * time.Second

// readDefinition reads a dag and checks all of it. Mistakes go to r; the error is for a failed look-up. With mistakes
// the graph is nil.
func (s *stage) readDefinition(ctx context.Context, r *reader, at wire.Value, t tenant.ID) (*dag.Graph, error) {
	before := len(r.Wrong)
	f := r.Object(at.Node, at.Pointer, dagFields)
	if f == nil {
		return nil, nil
	}
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	if v, ok := f["allow_literals"]; ok {
		d.AllowLiterals = r.literals(v)
	}
	allowed := under(at.Pointer, d.AllowLiterals)
	book := s.taskBook(t)
	if v, ok := f["nodes"]; !ok {
		r.Missing(at.Pointer, "nodes")
	} else if err := s.readNodes(ctx, r, v, book, d.Nodes); err != nil {
		return nil, err
	}
	if v, ok := f["params"]; ok {
		d.Params = unlessEmpty(r.params(v, allowed))
	}
	if v, ok := f["params_schema"]; ok {
		d.ParamsSchema = r.schema(v, s.schemas)
	}
	set(f, "on_failure", &d.OnFailure, wordOf[dag.Policy](r, dag.Policies))
	set(f, "max_concurrency", &d.MaxConcurrency, r.whole(1, dag.MaxJobs))
	set(f, "expire_after", &d.ExpireAfter, r.window)
	set(f, "priority", &d.Priority, wordOf[job.Priority](r, contract.Priorities))
	if v, ok := f["tags"]; ok {
		d.Tags = unlessEmpty(r.tags(v))
		r.NoSecrets(v, allowed)
	}
	if len(d.Nodes) == 0 || len(r.Wrong) >= wire.MaxMistakes {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	g, err := dag.CompileContext(limited, d)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.Mistake(at.Pointer+"/nodes", dag.CodeInvalidExpression, "fewer or shorter expressions",
			"checking the expressions takes more than %s", longestCheck)
		return nil, nil
	}
	var mistakes fault.Mistakes
	if err != nil && !errors.As(err, &mistakes) {
		return nil, err
	}
	r.alsoWrong(at.Pointer, before, mistakes)
	if g != nil {
		r.constants(at.Pointer, g)
	}
	if len(r.Wrong) > before {
		return nil, nil
	}
	return g, nil
}

// constants reports secrets in the expressions of a definition, and in the texts around them.
func (r *reader) constants(pointer string, g *dag.Graph) {
	for _, c := range g.Constants() {
		if len(r.Wrong) >= wire.MaxMistakes {
			return
		}
		at, name := pointer+c.Pointer, c.Name
		hidden := r.hiddenTemplates[at]
		if c.Inner {
			hidden, name = false, ""
		}
		node := pointer + "/nodes/" + text.EscapePointer(c.Node)
		r.NoSecretText(at, hidden, name, c.Text, under(node, g.Nodes[c.Node].AllowLiterals))
	}
}

// unlessEmpty returns nil for an empty map: it means what an absent field means, and makes no other definition.
func unlessEmpty[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

// alsoWrong adds the mistakes of dag.Compile, except those at pointers that the reader has blamed already.
func (r *reader) alsoWrong(pointer string, before int, mistakes fault.Mistakes) {
	blamed := map[string]bool{}
	for _, m := range r.Wrong[before:] {
		blamed[m.Pointer] = true
	}
	for _, m := range mistakes {
		if at := pointer + m.Pointer; !blamed[at] {
			r.Mistake(at, m.Code, m.Allowed, "%s", m.Detail)
		}
	}
}

func (s *stage) readNodes(
	ctx context.Context, r *reader, v wire.Value, book *taskBook, into map[string]dag.Node,
) error {
	if !r.Is(v, wire.KindObject) {
		return nil
	}
	count := 0
	for range r.Doc.Members(v.Node) {
		count++
	}
	switch {
	case count == 0:
		r.Mistake(v.Pointer, wire.CodeMissingField, fmt.Sprintf("1 to %d nodes", dag.MaxNodes),
			"a dag has at least one node")
		return nil
	case count > dag.MaxNodes:
		r.Mistake(v.Pointer, wire.CodeOutOfRange, fmt.Sprintf("1 to %d nodes", dag.MaxNodes), "there are %d nodes",
			count)
		return nil
	}
	twice := r.Doc.Repeated(v.Node)
	for name, n := range r.Doc.Members(v.Node) {
		at := wire.Value{Node: n, Pointer: v.Pointer + "/" + text.EscapePointer(name)}
		switch {
		case len(r.Wrong) >= wire.MaxMistakes:
			return nil
		case twice[int32(n-1)]:
			r.Mistake(at.Pointer, wire.CodeDuplicateField, "", "the node %s is given more than once", text.Quoted(name))
			continue
		case !wire.IsName(name):
			r.Mistake(at.Pointer, wire.CodeInvalidValue, wire.NameAllowed, "this is not a name for a node")
			continue
		}
		node, err := s.readNode(ctx, r, at, book)
		if err != nil {
			return err
		}
		into[name] = node
	}
	return nil
}

// readNode reads one node. dag.Compile checks it as part of the graph.
func (s *stage) readNode(ctx context.Context, r *reader, at wire.Value, book *taskBook) (n dag.Node, err error) {
	f := r.Object(at.Node, at.Pointer, nodeFields)
	if f == nil {
		return n, nil
	}
	name, task, _, err := book.read(ctx, r, f, at.Pointer)
	if err != nil {
		return n, err
	}
	n.Task = name
	r.runningNode(f, task, &n)
	r.edges(f, &n)
	if v, ok := f["allow_literals"]; ok {
		n.AllowLiterals = r.literals(v)
	}
	if v, ok := f["tags"]; ok {
		n.Tags = unlessEmpty(r.tags(v))
		r.NoSecrets(v, under(at.Pointer, n.AllowLiterals))
	}
	v, given := f["payload"]
	n.Payload, err = s.readTemplate(ctx, r, v, given, at.Pointer, task, book.tenant, n.AllowLiterals)
	return n, err
}

// runningNode reads how the node's job runs. What is left out comes from the task when the job is made.
func (r *reader) runningNode(f wire.Fields, task job.Task, n *dag.Node) {
	row := job.Row{Pool: task.Pool, Priority: task.Priority, Timeout: task.Timeout, Retry: task.Retry}
	r.running(f, &row)
	if _, ok := f["pool"]; ok {
		n.Pool = row.Pool
	}
	if _, ok := f["priority"]; ok {
		n.Priority = row.Priority
	}
	if _, ok := f["timeout"]; ok {
		n.Timeout = row.Timeout
	}
	if v, ok := f["retry"]; ok {
		if n.Retry = slices.Clone(r.Doc.Compact(v.Node)); string(n.Retry) == "{}" {
			n.Retry = nil
		}
	}
	set(f, "start_within", &n.StartWithin, r.window)
}

// edges reads what a node waits for.
func (r *reader) edges(f wire.Fields, n *dag.Node) {
	if v, ok := f["depends_on"]; ok {
		for _, each := range r.List(v, dag.MaxNodes) {
			name, _ := r.Name(each) // keeps its index, because mistakes name it
			n.DependsOn = append(n.DependsOn, name)
		}
	}
	set(f, "run_if", &n.RunIf, wordOf[dag.Rule](r, dag.Rules))
	set(f, "when", &n.When, r.expression)
	set(f, "for_each", &n.ForEach, r.expression)
	set(f, "max_parallel", &n.MaxParallel, r.whole(1, dag.MaxItems))
}

// expression reads the text of an expression; dag.Compile checks it.
func (r *reader) expression(v wire.Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && strings.TrimSpace(s) == "" {
		r.Mistake(v.Pointer, dag.CodeInvalidExpression, "a CEL expression", "line 1, column 1: the expression is empty")
		return "", false
	}
	return s, ok
}

// params reads an object with any values. allowed are the pointers of strings that look like secrets and are none.
func (r *reader) params(v wire.Value, allowed []string) map[string]json.RawMessage {
	if !r.Is(v, wire.KindObject) {
		return nil
	}
	if r.tooDeep(v, "the params are") {
		return nil
	}
	r.AllDuplicates(v.Node)
	r.NoSecrets(v, allowed)
	params := map[string]json.RawMessage{}
	for name, n := range r.Doc.Members(v.Node) {
		if !wire.IsName(name) {
			r.Mistake(v.Pointer+"/"+text.EscapePointer(name), wire.CodeInvalidValue, wire.NameAllowed,
				"this is not a name for a param")
			continue
		}
		params[name] = slices.Clone(r.Doc.Compact(n))
	}
	return params
}

// readTemplate checks a node's payload like a job's, except strings with expressions: their values are known only when
// the node is released, and then the task's schema is applied.
func (s *stage) readTemplate(
	ctx context.Context, r *reader, v wire.Value, given bool, pointer string, task job.Task, t tenant.ID,
	literals []string,
) (json.RawMessage, error) {
	templates, pointers := map[string]bool{}, map[int]string{}
	if given {
		for n, raw := range r.Doc.Strings(v.Node) {
			if len(templates) > dag.MaxExpressions { // the graph refuses more
				break
			}
			if strings.Contains(raw, "${") {
				pointers[n] = r.Doc.Pointer(n)
				templates[pointers[n]] = true
			}
		}
	}
	r.Templates = map[int]bool{}
	if len(templates) > 0 {
		task.PayloadSchema = nil
	}
	before := len(r.Wrong)
	payload, err := s.readPayload(ctx, r, v, given, pointer, task, t, literals)
	for n, hidden := range r.Templates {
		if hidden {
			r.hiddenTemplates[pointers[n]] = true
		}
	}
	r.Templates = nil
	r.Wrong = append(r.Wrong[:before], slices.DeleteFunc(slices.Clone(r.Wrong[before:]), func(m fault.Field) bool {
		return templates[m.Pointer]
	})...)
	if task.Executor == executor.HTTP {
		r.httpTemplates(pointer+"/payload", v, templates)
	}
	return slices.Clone(payload), err
}

// httpTemplates refuses expressions where an HTTP request takes none. What an expression renders is text: it names no
// secret, and it does not choose the host of a URL that is written around it.
func (r *reader) httpTemplates(pointer string, v wire.Value, templates map[string]bool) {
	for _, field := range []string{"/auth/bearer", "/sign_with"} {
		if templates[pointer+field] {
			r.Mistake(pointer+field, dag.CodeInvalidExpression, "the ARN of a secret, written out",
				"a secret is named by its ARN; what an expression gives is text, and names none")
		}
	}
	at := pointer + "/url"
	if !templates[at] {
		return
	}
	for name, n := range r.Doc.Members(v.Node) {
		if name == "url" && dag.ChoosesHost(r.Doc.Text(n)) {
			r.Mistake(at, dag.CodeInvalidExpression,
				`a host that is written out, or one expression for the whole URL, such as ${params.base + "/orders"}`,
				"an expression in this URL can change its host")
		}
	}
}
