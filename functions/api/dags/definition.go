package dags

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Fields of a dag.
var (
	dagNodes = field.Value("nodes", "Nodes by name", field.MapOf(1, dag.MaxNodes, spec.EntryName, nodeRequest.Schema)).
			Required()
	dagParams = spec.Params.About("Defaults of the params by name, any JSON values. A run may give other values for " +
		"these names only.")
	paramsSchema = field.Value("params_schema", "JSON Schema that the merged params of a run must match",
		spec.JSONSchema)
	onFailure = field.Word[dag.Policy]("on_failure", "Effect of a failed node. With cancel_downstream (default) "+
		"the rules of the downstream nodes apply, and other branches continue; with cancel_run nothing more starts "+
		"but nodes with run_if always; with continue the node counts as succeeded for the default rule; with hold "+
		"the nodes that would be cancelled wait for an operator.",
		rest.CodeInvalidValue, dag.Policies)
	maxConcurrency = field.Whole("max_concurrency", "Maximum number of jobs of one run at a time; default: no limit",
		1, dag.MaxJobs)
	dagExpireAfter = spec.ExpireAfter.About("Maximum time from due_at to the end of a run; default: no limit")
	dagPriority    = spec.Priority.About("Priority of the nodes that have none of their own; default: that of their " +
		"tasks")
	dagTags = spec.Tags.About("Tags as of a job. Each job of a run has the tags of the dag, of the run and of " +
		"its node; for equal names, the node wins over the run, and the run over the dag.")
	dagLiterals = spec.AllowLiterals.About("JSON pointers of strings in params and tags that look like secrets and " +
		"are not")

	dagRequest = field.NewObject("DagRequest", "Definition of a dag", dagNodes, dagParams, paramsSchema, onFailure,
		maxConcurrency, dagExpireAfter, dagPriority, dagTags, dagLiterals)
)

// Fields of a node: a job without a time, and what it waits for.
var (
	nodePayload = spec.Payload.Shaped(field.Anything).About("Payload as in POST /v1/jobs, whose strings may hold " +
		"expressions: ${…}. The value of an expression is text: it names no secret, and it chooses the host of a URL " +
		"only if it is the whole URL. The payload is checked against the payload_schema of the task when the node is " +
		"released; the node is DEAD with invalid_payload if it does not match.")
	nodeStartWithin = spec.StartWithin.About("Maximum time from the node's release to the start of its first " +
		"attempt, after which it is EXPIRED; default: no limit")
	dependsOn = field.List("depends_on", "Names of the nodes that must end first", 0, dag.MaxNodes,
		field.Text("", "", spec.NameForm, func(r *rest.Reader, v rest.Value) (string, bool) {
			name, _ := r.Name(v)
			return name, true // a wrong one keeps its index, because errors name it
		}))
	nodeRunIf = spec.RunIf("Rule that the outcomes of the nodes in depends_on must match; default: all_succeeded. " +
		"always is all_done for a node that also runs in a run that was cancelled, has expired, or fails under " +
		"on_failure cancel_run.")
	when = expression("when", "CEL expression; the node is SKIPPED if it is false. A name with a dash is written "+
		"nodes[\"my-node\"].")
	forEach = expression("for_each", "Expression ${…} of a list: the node has one job for each item, and its payload "+
		"can refer to item and index")
	maxParallel = field.Whole("max_parallel", "Maximum number of items at a time, with for_each; default: no limit", 1,
		dag.MaxItems)

	maxFailed = field.Value("max_failed", "Maximum number of items that may fail, or their share of all items as a "+
		"text such as 10%, with for_each: with more, the node is DEAD, and otherwise SUCCEEDED. Items that are DEAD, "+
		"EXPIRED or CANCELLED count. Default: 0", maxFailedSchema)

	nodeRequest = field.NewObject("NodeRequest", "Node of a dag", spec.Task, nodePayload,
		spec.Priority.About("Priority; default: that of the run, then of the dag, then of the task"),
		spec.Pool, spec.Timeout, nodeStartWithin, spec.Retry, spec.NodeLimits, spec.Tags.About("Tags as of a job"),
		spec.AllowLiterals.About("JSON pointers of strings in payload and tags that look like secrets and are not"),
		dependsOn, nodeRunIf, when, forEach, maxParallel, maxFailed)
)

// expression is a field with a CEL expression, whose content dag.Compile checks.
func expression(name, about string) field.Field[string] {
	bound := field.Matching(`\S`, dag.MaxExpression)
	return field.Text(name, about, bound, func(r *rest.Reader, v rest.Value) (string, bool) {
		s, ok := r.Text(v)
		if ok && strings.TrimSpace(s) == "" {
			r.Violation(v.Pointer, dag.CodeInvalidExpression, "a CEL expression",
				"line 1, column 1: the expression is empty")
			return "", false
		}
		return s, ok
	})
}

// longestCheck bounds the check of a definition's expressions. Their number and size are bounded so that it takes less
// than a second on an idle processor.
const longestCheck = 2 * time.Second

// readDefinition reads a dag and checks all of it. Violations go to r, and then the graph is nil; the error is for a
// failed look-up.
func (s *Handler) readDefinition(ctx context.Context, r *rest.Reader, at rest.Value, t tenant.ID) (*dag.Graph, error) {
	before := len(r.Wrong)
	f := dagRequest.Read(r, at)
	if f == nil {
		return nil, nil
	}
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	dagLiterals.Into(r, f, &d.AllowLiterals)
	allowed := spec.Under(at.Pointer, d.AllowLiterals)
	book := s.TaskBook(t)
	if v, ok := f[dagNodes.Name()]; !ok {
		r.Missing(at.Pointer, "nodes")
	} else if err := s.readNodes(ctx, r, v, book, d.Nodes); err != nil {
		return nil, err
	}
	if v, ok := f[dagParams.Name()]; ok {
		d.Params = unlessEmpty(spec.ReadParams(r, v, allowed))
	}
	if v, ok := f[paramsSchema.Name()]; ok {
		d.ParamsSchema = spec.ReadSchema(r, v, s.Schemas)
	}
	onFailure.Into(r, f, &d.OnFailure)
	maxConcurrency.Into(r, f, &d.MaxConcurrency)
	dagExpireAfter.Into(r, f, &d.ExpireAfter)
	dagPriority.Into(r, f, &d.Priority)
	if dagTags.Into(r, f, &d.Tags) {
		d.Tags = unlessEmpty(d.Tags)
		r.NoSecrets(f[dagTags.Name()], allowed)
	}
	if len(d.Nodes) == 0 || len(r.Wrong) >= rest.MaxViolations {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	g, err := dag.CompileContext(limited, d)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.Violation(at.Pointer+"/nodes", dag.CodeInvalidExpression, "fewer or shorter expressions",
			"checking the expressions takes more than %s", longestCheck)
		return nil, nil
	}
	var violations fault.Violations
	if err != nil && !errors.As(err, &violations) {
		return nil, err
	}
	alsoWrong(r, at.Pointer, before, violations)
	if g != nil {
		constants(r, at.Pointer, g)
	}
	if len(r.Wrong) > before {
		return nil, nil
	}
	return g, nil
}

// constants reports secrets in the expressions of a definition, and in the texts around them.
func constants(r *rest.Reader, pointer string, g *dag.Graph) {
	for _, c := range g.Constants() {
		if len(r.Wrong) >= rest.MaxViolations {
			return
		}
		at, name := pointer+c.Pointer, c.Name
		hidden := r.HiddenTemplates[at]
		if c.Inner {
			hidden, name = false, ""
		}
		node := pointer + "/nodes/" + text.EscapePointer(c.Node)
		r.NoSecretText(at, hidden, name, c.Text, spec.Under(node, g.Nodes[c.Node].AllowLiterals))
	}
}

// unlessEmpty returns nil for an empty map: it means what an absent field means, and makes no other definition.
func unlessEmpty[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

// alsoWrong adds the violations that dag.Compile found, except at pointers that the reader has reported already.
func alsoWrong(r *rest.Reader, pointer string, before int, violations fault.Violations) {
	blamed := map[string]bool{}
	for _, m := range r.Wrong[before:] {
		blamed[m.Pointer] = true
	}
	for _, m := range violations {
		if at := pointer + m.Pointer; !blamed[at] {
			r.Violation(at, m.Code, m.Allowed, "%s", m.Detail)
		}
	}
}

func (s *Handler) readNodes(
	ctx context.Context, r *rest.Reader, v rest.Value, book *spec.TaskBook, into map[string]dag.Node,
) error {
	if !r.Is(v, document.KindObject) {
		return nil
	}
	count := 0
	for range r.Doc.Members(v.Node) {
		count++
	}
	switch {
	case count == 0:
		r.Violation(v.Pointer, rest.CodeMissingField, fmt.Sprintf("1 to %d nodes", dag.MaxNodes),
			"a dag needs at least one node")
		return nil
	case count > dag.MaxNodes:
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("1 to %d nodes", dag.MaxNodes), "there are %d nodes",
			count)
		return nil
	}
	repeated := r.Repeated(v)
	for name, at := range r.Members(v) {
		switch {
		case len(r.Wrong) >= rest.MaxViolations:
			return nil
		case repeated(at):
			r.Violation(at.Pointer, rest.CodeDuplicateField, "", "the node %s is given more than once",
				text.Quoted(name))
			continue
		case !rest.IsName(name):
			r.Violation(at.Pointer, rest.CodeInvalidValue, rest.NameAllowed, "this is not a valid name of a node")
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
func (s *Handler) readNode(
	ctx context.Context, r *rest.Reader, at rest.Value, book *spec.TaskBook,
) (n dag.Node, err error) {
	f := nodeRequest.Read(r, at)
	if f == nil {
		return n, nil
	}
	name, task, _, err := book.Read(ctx, r, f, at.Pointer)
	if err != nil {
		return n, err
	}
	n.Task = name
	runningNode(r, f, task, &n)
	limits, given, err := book.NodeLimits(ctx, r, f)
	if err != nil {
		return n, err
	}
	if given {
		n.Limits = &limits
	}
	dependsOn.Into(r, f, &n.DependsOn)
	nodeRunIf.Into(r, f, &n.RunIf)
	when.Into(r, f, &n.When)
	forEach.Into(r, f, &n.ForEach)
	maxParallel.Into(r, f, &n.MaxParallel)
	if v, ok := f[maxFailed.Name()]; ok {
		n.MaxFailed = readMaxFailed(r, v)
	}
	spec.AllowLiterals.Into(r, f, &n.AllowLiterals)
	if spec.Tags.Into(r, f, &n.Tags) {
		n.Tags = unlessEmpty(n.Tags)
		r.NoSecrets(f[spec.Tags.Name()], spec.Under(at.Pointer, n.AllowLiterals))
	}
	v, given := f[nodePayload.Name()]
	n.Payload, err = s.readTemplate(ctx, r, v, given, at.Pointer, task, book.Tenant, n.AllowLiterals)
	return n, err
}

// runningNode reads how the node's job runs. What is left out comes from the task when the job is made.
func runningNode(r *rest.Reader, f rest.Fields, task job.Task, n *dag.Node) {
	settings := task.Settings()
	spec.Running(r, f, &settings)
	if _, ok := f["pool"]; ok {
		n.Pool = settings.Pool
	}
	if _, ok := f["priority"]; ok {
		n.Priority = settings.Priority
	}
	if _, ok := f["timeout"]; ok {
		n.Timeout = settings.Timeout
	}
	if v, ok := f["retry"]; ok {
		if n.Retry = slices.Clone(r.Doc.Compact(v.Node)); string(n.Retry) == "{}" {
			n.Retry = nil
		}
	}
	nodeStartWithin.Into(r, f, &n.StartWithin)
}

// readTemplate checks a node's payload like a job's, except strings with expressions: their values are known only when
// the node is released, and then the task's schema is applied.
func (s *Handler) readTemplate(
	ctx context.Context, r *rest.Reader, v rest.Value, given bool, pointer string, task job.Task, t tenant.ID,
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
	found := map[int]bool{}
	r.Templates(found)
	if len(templates) > 0 {
		task.PayloadSchema = nil
	}
	before := len(r.Wrong)
	payload, err := s.ReadPayload(ctx, r, v, given, pointer, task, t, literals)
	for n, hidden := range found {
		if hidden {
			r.HiddenTemplates[pointers[n]] = true
		}
	}
	r.Templates(nil)
	r.Wrong = append(r.Wrong[:before], slices.DeleteFunc(slices.Clone(r.Wrong[before:]), func(m fault.Field) bool {
		return templates[m.Pointer]
	})...)
	if task.Executor == executor.HTTP {
		httpTemplates(r, pointer+"/payload", v, templates)
	}
	return slices.Clone(payload), err
}

// httpTemplates refuses expressions where an HTTP request takes none. What an expression renders is text: it names no
// secret, and it does not choose the host of a URL that is written around it.
func httpTemplates(r *rest.Reader, pointer string, v rest.Value, templates map[string]bool) {
	for _, field := range []string{"/auth/bearer", "/sign_with"} {
		if templates[pointer+field] {
			r.Violation(pointer+field, dag.CodeInvalidExpression, "the ARN of a secret, written out",
				"a secret is named by its ARN; the value of an expression is text, and names no secret")
		}
	}
	at := pointer + "/url"
	if !templates[at] {
		return
	}
	for name, n := range r.Doc.Members(v.Node) {
		if name == "url" && dag.ChoosesHost(r.Doc.Text(n)) {
			r.Violation(at, dag.CodeInvalidExpression,
				`a host that is written out, or one expression for the whole URL, such as ${params.base + "/orders"}`,
				"an expression in this URL can change its host")
		}
	}
}
