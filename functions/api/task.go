package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schema"
	"punctual/shared/span"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

func (s *stage) taskRoutes() {
	wire.Register(s.router, wire.Route{
		Method: http.MethodPut, Path: "/v1/tasks/{name}", ID: "putTask", Tag: tagTasks, Scope: mayManage,
		Body:    taskRequest{},
		Summary: "Create or replace a task", Errors: []int{http.StatusConflict},
		About: "201 when it is new. Jobs copy what they need of their task when they are accepted: those that wait " +
			"do not change.",
	}, s.putTask)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/tasks/{name}", ID: "getTask", Tag: tagTasks, Scope: mayRead,
		Summary: "Get a task", Errors: []int{http.StatusNotFound},
	}, s.getTask)
	wire.Register(s.router, wire.Route{
		Method: http.MethodDelete, Path: "/v1/tasks/{name}", ID: "deleteTask", Tag: tagTasks, Scope: mayManage,
		Summary: "Delete a task", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "Jobs that wait still run.",
	}, s.deleteTask)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/tasks", ID: "listTasks", Tag: tagTasks, Scope: mayRead,
		Summary: "List tasks", About: "By name, the built-in ones included.",
	}, s.listTasks)
}

type taskRequest struct {
	Executor      string        `json:"executor"`
	Pool          string        `json:"pool,omitempty" doc:"Default {=default_pool}"`
	Priority      string        `json:"priority,omitempty" doc:"Default normal. Strict: a lower one waits as long as there are jobs of a higher one"`
	Timeout       wire.Duration `json:"timeout,omitempty" doc:"Of one attempt; default {=default_timeout}"`
	Retry         retryRequest  `json:"retry,omitempty" doc:"Default: {=default_retry}"`
	MaxResult     string        `json:"max_result,omitempty" doc:"Bytes of a result, or of an HTTP answer's body, that are kept: a whole number and B, KB, KiB, MB or MiB, from {=min_max_result} to {=max_result}, which is the default"`
	OnLargeResult string        `json:"on_large_result,omitempty" doc:"Effect of a larger result. preview (default): the job succeeds and shows a preview, and whatever uses the value fails; fail: the attempt fails without a retry. The code is result_too_large"`
	PayloadSchema wire.Anything `json:"payload_schema,omitempty" doc:"A JSON Schema (2020-12 unless it says otherwise) that payloads are judged by; up to {=schema_kib} KiB, without references to other documents, $dynamicRef or $recursiveRef; formats are checked (date, date-time, duration, email, hostname, ipv4, ipv6, iri, iri-reference, json-pointer, period, regex, relative-json-pointer, semver, time, uri, uri-reference, uri-template, uuid), and others are not and get a note; patterns are RE2, with the white space of ECMA-262; what would be too dear to compile or to apply is refused"`
}

type taskView struct {
	Name          string          `json:"name"`
	Executor      string          `json:"executor"`
	Pool          string          `json:"pool"`
	Priority      job.Priority    `json:"priority"`
	Timeout       string          `json:"timeout"`
	Retry         *retryView      `json:"retry"`
	MaxResult     string          `json:"max_result" doc:"Bytes of a result that are kept"`
	OnLargeResult string          `json:"on_large_result" enum:"preview,fail"`
	PayloadSchema json.RawMessage `json:"payload_schema,omitempty"`
	Version       int64           `json:"version"`
	BuiltIn       bool            `json:"built_in,omitempty"`
	Notes         []string        `json:"notes,omitempty" doc:"Sentences about what the payload_schema says and nobody checks; not in lists"`
}

func viewTask(t job.Task) taskView {
	return taskView{
		Name: t.Name, Executor: t.Executor, Pool: t.Pool, Priority: t.Priority, Timeout: span.Format(t.Timeout),
		Retry: viewRetry(t.Retry), MaxResult: text.Bytes(cmp.Or(int(t.MaxResult), contract.MaxResult)),
		OnLargeResult: onLarge(t.FailLarge), PayloadSchema: t.PayloadSchema, Version: t.Version,
		BuiltIn: t.BuiltIn,
	}
}

// noted is a task's view with its notes.
func (s *stage) noted(t job.Task) taskView {
	v := viewTask(t)
	v.Notes = s.schemas.Notes(t.PayloadSchema)
	return v
}

// largeWords are the values of on_large_result: without and with a failure.
var largeWords = []string{"preview", "fail"}

func onLarge(fails bool) string {
	if fails {
		return largeWords[1]
	}
	return largeWords[0]
}

// keeping reads how large the results of a task may be.
func (r *reader) keeping(f wire.Fields) (k job.Keeping) {
	set(f, "max_result", &k.MaxResult, r.resultSize)
	if v, ok := f["on_large_result"]; ok {
		word, _ := r.OneOf(v, wire.CodeInvalidValue, largeWords)
		k.FailLarge = word == largeWords[1]
	}
	return k
}

// resultSize reads max_result; the default reads as none.
func (r *reader) resultSize(v wire.Value) (int64, bool) {
	const least, most = contract.MinMaxResult, contract.MaxResult
	allowed := "a size such as 16KiB, from " + text.Bytes(least) + " to " + text.Bytes(most)
	s, ok := r.Text(v)
	if !ok {
		return 0, false
	}
	switch n, err := text.ParseBytes(s); {
	case err != nil:
		r.Mistake(v.Pointer, wire.CodeInvalidValue, allowed, "%s", err.Error())
		return 0, false
	case n < least || n > most:
		r.Mistake(v.Pointer, wire.CodeOutOfRange, allowed, "the size is out of range")
		return 0, false
	case n == most:
		return 0, true
	default:
		return int64(n), true
	}
}

func (s *stage) putTask(ctx context.Context, who tenant.Identity, in *namedInput) (*statusAnswer[taskView], error) {
	if err := checkName(in.Name, "a task"); err != nil {
		return nil, err
	}
	task, err := s.readTask(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	after, err := s.Store.UpdateTask(ctx, who.Tenant, in.Name, func(old *job.Task) (job.Task, error) {
		switch {
		case old == nil:
			status = http.StatusCreated
		case old.BuiltIn:
			return task, wire.NewProblem(codeWrongState, "task %s is built in and cannot be changed", in.Name)
		default:
			status = http.StatusOK
		}
		return task, nil
	})
	if err != nil {
		return nil, err
	}
	return &statusAnswer[taskView]{status, s.noted(after)}, nil
}

func (s *stage) readTask(ctx context.Context, name string) (job.Task, error) {
	task := defaultTask
	task.Name = name
	doc, err := neededBody(ctx, contract.MaxBody, "an object", "a task is needed in the body")
	if err != nil {
		return task, err
	}
	r := newReader(doc)
	f := r.Object(0, "", wire.NamesOf[taskRequest]())
	if v, ok := f["executor"]; ok {
		task.Executor, _ = r.OneOf(v, wire.CodeInvalidValue, executor.Names())
	} else if f != nil {
		r.Missing("", "executor")
	}
	row := job.Row{Pool: task.Pool, Priority: task.Priority, Timeout: task.Timeout, Retry: task.Retry}
	r.running(f, &row)
	task.Pool, task.Priority, task.Timeout, task.Retry = row.Pool, row.Priority, row.Timeout, row.Retry
	task.Keeping = r.keeping(f)
	if v, ok := f["payload_schema"]; ok {
		task.PayloadSchema = r.schema(v, s.schemas)
	}
	return task, r.Wrong.Err()
}

// schema reads a payload schema, which must compile.
func (r *reader) schema(v wire.Value, schemas *schema.Cache) json.RawMessage {
	if k := r.Doc.Kind(v.Node); k != wire.KindObject && k != wire.KindBool {
		r.Mistake(v.Pointer, wire.CodeInvalidValue, "a JSON Schema", "%s is given where a schema belongs", k)
		return nil
	}
	r.AllDuplicates(v.Node)
	raw := r.Doc.Compact(v.Node)
	var wrong fault.Mistakes
	if errors.As(schemas.Check(raw), &wrong) {
		r.allWrong(v.Pointer, wrong)
		return nil
	}
	return slices.Clone(raw)
}

// allWrong adds mistakes about the value at a pointer.
func (r *reader) allWrong(pointer string, wrong fault.Mistakes) {
	for _, m := range wrong {
		r.Mistake(pointer+m.Pointer, m.Code, m.Allowed, "%s", m.Detail)
	}
}

func (s *stage) getTask(ctx context.Context, who tenant.Identity, in *namedInput) (*statusAnswer[taskView], error) {
	t, err := s.Store.Task(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, absent(err, "task")
	}
	return &statusAnswer[taskView]{http.StatusOK, s.noted(t)}, nil
}

func (s *stage) deleteTask(ctx context.Context, who tenant.Identity, in *namedInput) (*empty, error) {
	for _, b := range job.BuiltInTasks() {
		if b.Name == in.Name {
			return nil, wire.NewProblem(codeWrongState, "task %s is built in and cannot be deleted", b.Name)
		}
	}
	return &empty{}, absent(s.Store.DeleteTask(ctx, who.Tenant, in.Name), "task")
}

func (s *stage) listTasks(ctx context.Context, who tenant.Identity, in *pageInput) (*page[taskView], error) {
	l := wire.NewList(who.Tenant, "tasks")
	limit, after, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	tasks, more, err := s.Store.Tasks(ctx, who.Tenant, after, limit)
	if err != nil {
		return nil, err
	}
	// The built-in tasks are in no table. Those with names between after and the end of the page join it.
	own := tasks
	for _, b := range job.BuiltInTasks() {
		if b.Name > after && (!more || b.Name < own[len(own)-1].Name) {
			tasks = append(tasks, b)
		}
	}
	slices.SortFunc(tasks, func(a, b job.Task) int { return strings.Compare(a.Name, b.Name) })
	if len(tasks) > limit {
		tasks, more = tasks[:limit], true
	}
	return &page[taskView]{wire.PageOf(l, tasks, more, viewTask, func(t job.Task) string { return t.Name })}, nil
}
