package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/span"
	"punctual/shared/tenant"
)

func (s *stage) taskRoutes() {
	register(s, route{
		method: http.MethodPut, path: "/v1/tasks/{name}", id: "putTask", tag: tagTasks, scope: mayManage, body: taskRequest{},
		summary: "Create or replace a task", errors: []int{http.StatusConflict},
		about: "201 when it is new. Jobs copy what they need of their task when they are accepted: those that wait do not change.",
	}, s.putTask)
	register(s, route{
		method: http.MethodGet, path: "/v1/tasks/{name}", id: "getTask", tag: tagTasks, scope: mayRead,
		summary: "Get a task", errors: []int{http.StatusNotFound},
	}, s.getTask)
	register(s, route{
		method: http.MethodDelete, path: "/v1/tasks/{name}", id: "deleteTask", tag: tagTasks, scope: mayManage,
		summary: "Delete a task", errors: []int{http.StatusNotFound, http.StatusConflict},
		about: "Jobs that wait still run.",
	}, s.deleteTask)
	register(s, route{
		method: http.MethodGet, path: "/v1/tasks", id: "listTasks", tag: tagTasks, scope: mayRead,
		summary: "List tasks", about: "By name, the built-in ones included.",
	}, s.listTasks)
}

type taskRequest struct {
	Executor      string       `json:"executor"`
	Pool          string       `json:"pool,omitempty" doc:"Default short"`
	Priority      string       `json:"priority,omitempty" doc:"Default normal. Strict: a lower one waits as long as there are jobs of a higher one"`
	Timeout       duration     `json:"timeout,omitempty" doc:"Of one attempt; default 30s"`
	Retry         retryRequest `json:"retry,omitempty" doc:"Default: 6 attempts, 1s × 2 up to 5m, jitter 0.3"`
	PayloadSchema anything     `json:"payload_schema,omitempty" doc:"A JSON Schema (2020-12 unless it says otherwise) that payloads are judged by; up to 32 KiB, without references to other documents, $dynamicRef or $recursiveRef; what would be too dear to compile or to apply is refused"`
}

type taskView struct {
	Name          string          `json:"name"`
	Executor      string          `json:"executor"`
	Pool          string          `json:"pool"`
	Priority      job.Priority    `json:"priority"`
	Timeout       string          `json:"timeout"`
	Retry         *retryView      `json:"retry"`
	PayloadSchema json.RawMessage `json:"payload_schema,omitempty"`
	Version       int64           `json:"version"`
	BuiltIn       bool            `json:"built_in,omitempty"`
}

func viewTask(t job.Task) taskView {
	return taskView{t.Name, t.Executor, t.Pool, t.Priority, span.Format(t.Timeout), viewRetry(t.Retry), t.PayloadSchema, t.Version, t.BuiltIn}
}

type taskInput struct {
	Name string `path:"name"`
}

type taskAnswer struct {
	Status int
	Body   taskView
}

func (s *stage) putTask(ctx context.Context, who tenant.Identity, in *taskInput) (*taskAnswer, error) {
	if !namePattern.MatchString(in.Name) {
		return nil, oneMistake("name", codeInvalidValue, nameAllowed, "this is not a name for a task")
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
			return task, newProblem(codeWrongState, "task %s is built in and cannot be changed", in.Name)
		default:
			status = http.StatusOK
		}
		return task, nil
	})
	if err != nil {
		return nil, err
	}
	return &taskAnswer{status, viewTask(after)}, nil
}

func (s *stage) readTask(ctx context.Context, name string) (job.Task, error) {
	task := job.Task{Name: name, Pool: contract.DefaultPool, Priority: job.Normal, Timeout: contract.DefaultTimeout, Retry: job.DefaultRetry}
	doc, err := readBody(ctx, contract.MaxBody)
	if err != nil {
		return task, err
	}
	if doc == nil {
		return task, oneMistake("", codeMissingField, "an object", "a task is needed in the body")
	}
	r := newReader(doc)
	f := r.object(0, "", namesOf[taskRequest]())
	if v, ok := f["executor"]; ok {
		task.Executor, _ = r.oneOf(v, codeInvalidValue, executor.Names())
	} else if f != nil {
		r.missing("", "executor")
	}
	row := job.Row{Pool: task.Pool, Priority: task.Priority, Timeout: task.Timeout, Retry: task.Retry}
	r.running(f, &row)
	task.Pool, task.Priority, task.Timeout, task.Retry = row.Pool, row.Priority, row.Timeout, row.Retry
	if v, ok := f["payload_schema"]; ok {
		task.PayloadSchema = r.schema(v, s.schemas)
	}
	return task, r.wrong.Err()
}

// schema reads a payload schema, which must compile.
func (r *reader) schema(v value, schemas *schemaCache) json.RawMessage {
	if k := r.doc.nodes[v.node].kind; k != kindObject && k != kindBool {
		r.mistake(v.pointer, codeInvalidValue, "a JSON Schema", "%s is given where a schema belongs", k)
		return nil
	}
	r.allDuplicates(v.node)
	text := r.doc.compact(v.node)
	_, err := schemas.compile(text)
	var limit *schemaLimit
	if errors.As(err, &limit) {
		r.mistake(v.pointer, codeOutOfRange, limit.allowed, "%s", limit.detail)
		return nil
	}
	if err != nil {
		r.uncompiled(v.pointer, err)
		return nil
	}
	return slices.Clone(text)
}

func (s *stage) getTask(ctx context.Context, who tenant.Identity, in *taskInput) (*taskAnswer, error) {
	t, err := s.Store.Task(ctx, who.Tenant, in.Name)
	if fault.KindOf(err) == fault.NotFound {
		return nil, newProblem(codeNotFound, "there is no such task")
	}
	if err != nil {
		return nil, err
	}
	return &taskAnswer{http.StatusOK, viewTask(t)}, nil
}

func (s *stage) deleteTask(ctx context.Context, who tenant.Identity, in *taskInput) (*empty, error) {
	for _, b := range job.BuiltInTasks() {
		if b.Name == in.Name {
			return nil, newProblem(codeWrongState, "task %s is built in and cannot be deleted", b.Name)
		}
	}
	err := s.Store.DeleteTask(ctx, who.Tenant, in.Name)
	if fault.KindOf(err) == fault.NotFound {
		return nil, newProblem(codeNotFound, "there is no such task")
	}
	return &empty{}, err
}

type listTasksInput struct{ Paging }

type tasksAnswer struct{ Body page[taskView] }

func (s *stage) listTasks(ctx context.Context, who tenant.Identity, in *listTasksInput) (*tasksAnswer, error) {
	limit, err := in.limit()
	if err != nil {
		return nil, err
	}
	l := list{who.Tenant, "tasks", nil}
	after, err := l.place(in.Cursor)
	if err != nil {
		return nil, err
	}
	tasks, more, err := s.Store.Tasks(ctx, who.Tenant, after, limit)
	if err != nil {
		return nil, err
	}
	// The built-in ones are in no table: those that belong between after and the page's end join it.
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
	out := &tasksAnswer{Body: page[taskView]{Items: make([]taskView, len(tasks))}}
	for i, t := range tasks {
		out.Body.Items[i] = viewTask(t)
	}
	if more {
		out.Body.NextCursor = l.cursor(tasks[len(tasks)-1].Name)
	}
	out.Body.fit(func(last int) *string { return l.cursor(tasks[last].Name) })
	return out, nil
}
