package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/span"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

func (s *Handler) taskRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagTasks, Path: "/v1/tasks"}
	rest.Put(on, "/{name}", "putTask", "Create or replace a task", s.putTask, rest.Route{
		Action: audit.TaskPut,
		Scope:  tenant.Admin, Body: taskRequest, Conflict: true,
		About: "201 for a new task. Jobs copy the settings of their task when they are accepted, so that waiting " +
			"jobs do not change.",
	})
	rest.Get(on, "/{name}", "getTask", "Get a task", s.getTask)
	rest.Delete(on, "/{name}", "deleteTask", "Delete a task", s.deleteTask,
		rest.Route{Action: audit.TaskDelete, Scope: tenant.Admin, Conflict: true, About: "Waiting jobs still run."})
	rest.GetPage(on, "", "listTasks", "List tasks", s.listTasks,
		rest.Route{About: "Ordered by name, built-in tasks included."})
}

// Fields of a task alone.
var (
	maxResult = field.Text("max_result", "Maximum size of a result, or of the body of an HTTP answer, that is kept: a "+
		"whole number and B, KB, KiB, MB or MiB, from {=min_max_result} to {=max_result}, which is the default.",
		field.Matching(resultSizes, len("262144KiB")), readResultSize)
	onLargeResult = field.Word[string]("on_large_result", "Effect of a larger result. preview (default): the job "+
		"succeeds and shows a preview, and every use of the value fails; fail: the attempt fails without a retry. "+
		"The code is result_too_large.", rest.CodeInvalidValue, largeWords)
	executorField = field.Word[string]("executor", "", rest.CodeInvalidValue, executor.Names()).Required().
			About(executorsInWords())
	payloadSchema = field.Value("payload_schema", "JSON Schema that payloads must match (2020-12 unless it says "+
		"otherwise), up to {=schema_kib} KiB, without references to other documents, $dynamicRef or $recursiveRef. "+
		"Formats that are checked: date, date-time, duration, email, hostname, ipv4, ipv6, iri, iri-reference, "+
		"json-pointer, period, regex, relative-json-pointer, semver, time, uri, uri-reference, uri-template, uuid; "+
		"any other gets a note. Patterns are RE2, with the white space of ECMA-262. A schema that is too expensive to "+
		"compile or to apply is refused.", spec.JSONSchema)

	taskRequest = field.NewObject("TaskRequest", "Task: settings of its jobs, and the form of their payloads.",
		executorField, spec.Pool.About("Pool of workers; default: {=default_pool}."),
		spec.Priority.About("Priority; default: normal. Priorities are strict: a job of a lower priority waits as "+
			"long as jobs of a higher one are due."),
		spec.Timeout.About("Maximum duration of one attempt; default: {=default_timeout}."),
		spec.Retry.About("Retry policy; default: {=default_retry}."),
		spec.Limits.About("Limits of work under which the jobs of the task count, up to {=job_limits}, unless a job "+
			"names its own; default: none."), maxResult, onLargeResult, payloadSchema)
)

// executorsInWords lists the executors and what each does.
func executorsInWords() string {
	var about []string
	for _, k := range executor.Kinds() {
		about = append(about, k.Name+": "+k.About)
	}
	return strings.Join(about, "; ")
}

type taskView struct {
	Name          string          `json:"name" doc:"Name of the task"`
	Executor      string          `json:"executor" doc:"Executor that runs the jobs of the task"`
	Pool          string          `json:"pool"`
	Priority      job.Priority    `json:"priority"`
	Timeout       string          `json:"timeout"`
	Retry         *spec.RetryView `json:"retry"`
	Limits        []spec.LimitUse `json:"limits,omitempty"`
	MaxResult     string          `json:"max_result" doc:"Maximum size of a result that is kept"`
	OnLargeResult string          `json:"on_large_result" enum:"preview,fail"`
	PayloadSchema json.RawMessage `json:"payload_schema,omitempty"`
	Version       int64           `json:"version" doc:"Version of the task, which grows with every change"`
	BuiltIn       bool            `json:"built_in,omitempty" doc:"Whether the task is built in and cannot be changed"`
	Notes         []string        `json:"notes,omitempty" doc:"Sentences about parts of payload_schema that are not checked; not in lists"`
}

func viewTask(t job.Task) taskView {
	return taskView{
		Name: t.Name, Executor: t.Executor, Pool: t.Pool, Priority: t.Priority, Timeout: span.Format(t.Timeout),
		Retry: spec.ViewRetry(t.Retry), Limits: spec.ViewLimits(t.Limits),
		MaxResult:     text.Bytes(cmp.Or(int(t.MaxResult), contract.MaxResult)),
		OnLargeResult: onLarge(t.FailLarge), PayloadSchema: t.PayloadSchema, Version: t.Version,
		BuiltIn: t.BuiltIn,
	}
}

// shownTask is the view of a task for the audit; nil for none.
func shownTask(t *job.Task) any {
	if t == nil {
		return nil
	}
	return viewTask(*t)
}

// noted is a task's view with its notes.
func (s *Handler) noted(t job.Task) taskView {
	v := viewTask(t)
	v.Notes = s.Schemas.Notes(t.PayloadSchema)
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

// readResultSize reads max_result; the default reads as none.
func readResultSize(r *rest.Reader, v rest.Value) (int64, bool) {
	const least, most = contract.MinMaxResult, contract.MaxResult
	allowed := "a size such as 16KiB, from " + text.Bytes(least) + " to " + text.Bytes(most)
	s, ok := r.Text(v)
	if !ok {
		return 0, false
	}
	switch n, err := text.ParseBytes(s); {
	case err != nil:
		r.Violation(v.Pointer, rest.CodeInvalidValue, allowed, "%s", err.Error())
		return 0, false
	case n < least || n > most:
		r.Violation(v.Pointer, rest.CodeOutOfRange, allowed, "the size is out of range")
		return 0, false
	case n == most:
		return 0, true
	default:
		return int64(n), true
	}
}

type taskAnswer = rest.StatusAnswer[taskView]

func (s *Handler) putTask(ctx context.Context, who tenant.Identity, in *rest.Named) (*taskAnswer, error) {
	if err := rest.CheckName(in.Name, "a task"); err != nil {
		return nil, err
	}
	task, err := s.readTask(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	after, err := s.Store.UpdateTask(ctx, who.Tenant, in.Name, func(old *job.Task) (job.Task, error) {
		switch {
		case old == nil:
			status = http.StatusCreated
		case old.BuiltIn:
			return task, rest.NewProblem(spec.CodeWrongState, "task %s is built in and cannot be changed", in.Name)
		default:
			status = http.StatusOK
		}
		audit.From(ctx).Changed(shownTask(old), viewTask(task))
		return task, nil
	})
	return &taskAnswer{Status: status, Body: s.noted(after)}, err
}

func (s *Handler) readTask(ctx context.Context, t tenant.ID, name string) (job.Task, error) {
	task := spec.DefaultTask
	task.Name = name
	r, f, err := spec.ReadBody(ctx, taskRequest, "a task")
	if err != nil {
		return task, err
	}
	if !executorField.Into(r, f, &task.Executor) && f != nil {
		r.Missing("", "executor")
	}
	settings := task.Settings()
	spec.Running(r, f, &settings)
	task.Pool, task.Priority, task.Timeout, task.Retry = settings.Pool, settings.Priority, settings.Timeout,
		settings.Retry
	if err := s.TaskBook(t).Limits(ctx, r, f, &task.Limits); err != nil {
		return task, err
	}
	maxResult.Into(r, f, &task.MaxResult)
	var large string
	onLargeResult.Into(r, f, &large)
	task.FailLarge = large == largeWords[1]
	if v, ok := f[payloadSchema.Name()]; ok {
		task.PayloadSchema = spec.ReadSchema(r, v, s.Schemas)
	}
	return task, r.Wrong.Err()
}

func (s *Handler) getTask(ctx context.Context, who tenant.Identity, in *rest.Named) (*taskAnswer, error) {
	t, err := s.Store.Task(ctx, who.Tenant, in.Name)
	return &taskAnswer{Status: http.StatusOK, Body: s.noted(t)}, rest.Absent(err, "task")
}

func (s *Handler) deleteTask(ctx context.Context, who tenant.Identity, in *rest.Named) (*rest.NoContent, error) {
	for _, b := range job.BuiltInTasks() {
		if b.Name == in.Name {
			return nil, rest.NewProblem(spec.CodeWrongState, "task %s is built in and cannot be deleted", b.Name)
		}
	}
	return &rest.NoContent{}, rest.Absent(s.Store.DeleteTask(ctx, who.Tenant, in.Name), "task")
}

func (s *Handler) listTasks(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, limit int,
) (rest.Found[taskView], error) {
	tasks, more, err := s.Store.Tasks(ctx, who.Tenant, after, limit)
	if err != nil {
		return rest.Found[taskView]{}, err
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
	return rest.FoundRows(tasks, more, viewTask, func(t job.Task) string { return t.Name }), nil
}

// resultSizes are the sizes from contract.MinMaxResult to contract.MaxResult, in each unit of package text that can say
// one; a schema has no bounds for a number in a text.
const resultSizes = `^(([1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-6])KiB` +
	`|([2-9]|[1-9][0-9]|1[0-9]{2}|2[0-5][0-9]|26[0-2])KB` +
	`|(102[4-9]|10[3-9][0-9]|1[1-9][0-9]{2}|[2-9][0-9]{3}|[1-9][0-9]{4}|1[0-9]{5}|2[0-5][0-9]{4}|26[01][0-9]{3})B)$`
