package spec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine/accept"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// TaskBook reads each task once per request. Jobs of a batch that want the same task wait for one read, each until its
// own context ends; reads of different tasks do not wait for each other.
type TaskBook struct {
	stage  *Core
	Tenant tenant.ID
	known  *cache.Cache[string, job.Task]
	names  *cache.Cache[struct{}, []string] // for suggestions
	limits *cache.Cache[string, bool]       // whether the tenant has them
}

// TaskBook returns the tasks of a tenant, for one request.
func (s *Core) TaskBook(t tenant.ID) *TaskBook {
	return &TaskBook{stage: s, Tenant: t,
		known: cache.New[string, job.Task](cache.Options[job.Task]{Most: contract.MaxBatchJobs, Now: s.Now}),
		names: cache.New[struct{}, []string](cache.Options[[]string]{Most: 1, Now: s.Now}), limits: limitCache(s),
	}
}

func (b *TaskBook) task(ctx context.Context, name string) (job.Task, error) {
	return b.known.Get(ctx, name, func(ctx context.Context) (job.Task, error) {
		return b.stage.Store.Task(ctx, b.Tenant, name)
	})
}

// all returns the names of the tenant's tasks, or of the built-in ones when the others cannot be read: the names are
// only a suggestion.
func (b *TaskBook) all(ctx context.Context) []string {
	names, err := b.names.Get(ctx, struct{}{}, func(ctx context.Context) (names []string, err error) {
		names = append(names, executor.BuiltIn()...)
		if own, _, err := b.stage.Store.Tasks(ctx, b.Tenant, "", contract.ListMax); err == nil {
			for _, t := range own {
				names = append(names, t.Name)
			}
		}
		return names, nil
	})
	if err != nil { // the request has ended
		return nil
	}
	return names
}

// DefaultTask has the settings of a task that does not set them.
var DefaultTask = job.Task{Pool: contract.DefaultPool, Priority: job.Normal, Timeout: contract.DefaultTimeout,
	Retry: job.DefaultRetry}

// Read reads the task that an object names. Without a known task it is DefaultTask, with a violation; the error is for
// a failed look-up.
func (b *TaskBook) Read(
	ctx context.Context, r *rest.Reader, f rest.Fields, pointer string,
) (name string, task job.Task, known bool, err error) {
	v, ok := f["task"]
	if !ok {
		r.Missing(pointer, "task")
		return "", DefaultTask, false, nil
	}
	if name, ok = r.Name(v); !ok {
		return "", DefaultTask, false, nil
	}
	task, err = b.task(ctx, name)
	if fault.KindOf(err) == fault.NotFound {
		b.unknown(ctx, r, v.Pointer, name)
		return name, DefaultTask, false, nil
	}
	if err == nil && task.Executor == executor.Webhook {
		r.Violation(v.Pointer, CodeUnknownTask, listedNames(b.all(ctx)),
			"the task webhook is that of deliveries to webhooks, which only Punctual makes")
		return name, DefaultTask, false, nil
	}
	return name, task, err == nil, err
}

// unknown reports a task that does not exist, with the most similar name.
func (b *TaskBook) unknown(ctx context.Context, r *rest.Reader, pointer, name string) {
	names := b.all(ctx)
	detail := fmt.Sprintf("task %s is not defined", text.Quoted(name))
	if near := text.Nearest(name, names); near != "" {
		detail += fmt.Sprintf("; did you mean %q?", near)
	}
	r.Violation(pointer, CodeUnknownTask, listedNames(names), "%s", detail)
}

// listedMost is how many tasks a violation lists.
const listedMost = 20

// listedNames lists up to listedMost names in order.
func listedNames(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) > listedMost {
		return strings.Join(names[:listedMost], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// ReadJob reads one job of a body and checks all of it. after reads which jobs it comes after; nil where it can come
// after none. Violations go to r; the error is for a failed look-up.
func (s *Core) ReadJob(
	ctx context.Context, r *rest.Reader, f rest.Fields, pointer string, book *TaskBook,
	after func(*accept.Draft) error, now time.Time,
) (*accept.Draft, error) {
	_, task, known, err := book.Read(ctx, r, f, pointer)
	if err != nil {
		return nil, err
	}
	d := &accept.Draft{Row: job.Row{
		Status: job.Scheduled, Version: 1, Attempt: 1, CreatedAt: now, DueAt: now, Settings: task.Settings(),
	}}
	d.Row.Key.Tenant = book.Tenant
	Due(r, f, now, &d.Row.DueAt)
	if after != nil {
		if err := after(d); err != nil {
			return nil, err
		}
	}
	if ReadSettings(r, f, &d.Row.Settings); d.Row.ExpireAfter > 0 {
		d.Row.ExpiryAt = d.Row.DueAt.Add(d.Row.ExpireAfter)
	}
	if err := book.Limits(ctx, r, f, &d.Row.Limits); err != nil {
		return nil, err
	}
	Unique.Into(r, f, &d.Row.Unique)
	d.Labels = Labels(r, f)
	AllowLiterals.Into(r, f, &d.Literals)
	noSecretLabels(r, f, Under(pointer, d.Literals))
	v, given := f["payload"]
	if !known {
		return d, nil // the rules for the payload depend on the task
	}
	d.Payload, err = s.ReadPayload(ctx, r, v, given, pointer, task, book.Tenant, d.Literals)
	return d, err
}
