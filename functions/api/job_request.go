package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Fields of a job alone.
var (
	after = field.List("after", "Identifiers of the jobs that must end first. The job is BLOCKED until they have, "+
		"then SCHEDULED if their outcomes match run_if, else CANCELLED or SKIPPED. A delay counts from their end; a "+
		"run_at applies if it is later. In a batch, #n is the job at index n, from 0, if it is an earlier one.", 0,
		contract.MaxAfter, field.Text("", "", spec.IDForm, (*wire.Reader).Text))
	runIf    = spec.RunIf("Rule that the outcomes of the jobs in after must match; default: all_succeeded.")
	batchKey = field.Text("idempotency_key", "Idempotency key of this job, printable ASCII; it shares one key space "+
		"with the header Idempotency-Key.", spec.KeyForm, readBatchKey)
)

var (
	jobRequest = field.NewObject("JobRequest", "Job to run, and when.", spec.Task, spec.Payload, spec.RunAt, spec.Delay,
		spec.Priority, spec.Pool, spec.Timeout, spec.StartWithin, spec.ExpireAfter, spec.Retry, after, runIf, spec.Tags,
		spec.Metadata, spec.AllowLiterals).
		Refusing(isEither(hasAll("run_at", "delay"), ruleOfNone))
	batchJobRequest = jobRequest.Replacing("BatchJobRequest", "Job of a batch.", after.Shaped(field.ArrayOf(0,
		contract.MaxAfter, field.TextSchema(field.Matching(parentPattern, spec.JobIDLength))))).With(batchKey)
)

// jobSource is what a request knows about the jobs in it.
type jobSource struct {
	*taskBook
	// earlier returns the id of job n of the batch, if it comes before this one and was accepted. nil: there is no
	// batch.
	earlier func(n int) (job.ID, bool)
}

// draft is a job before it is accepted; it has no id yet.
type draft struct {
	row      job.Row
	after    *dag.After // nil: it waits for no job
	payload  []byte     // compact JSON; nil for none
	labels   job.Labels
	literals []string
}

// taskBook reads each task once per request. Jobs of a batch that want the same task wait for one read, each until its
// own context ends; reads of different tasks do not wait for each other.
type taskBook struct {
	stage  *stage
	tenant tenant.ID
	known  *cache.Cache[string, job.Task]
	names  *cache.Cache[struct{}, []string] // for suggestions
}

func (s *stage) taskBook(t tenant.ID) *taskBook {
	return &taskBook{stage: s, tenant: t,
		known: cache.New[string, job.Task](cache.Options[job.Task]{Most: contract.MaxBatchJobs, Now: s.now}),
		names: cache.New[struct{}, []string](cache.Options[[]string]{Most: 1, Now: s.now}),
	}
}

func (b *taskBook) task(ctx context.Context, name string) (job.Task, error) {
	return b.known.Get(ctx, name, func(ctx context.Context) (job.Task, error) {
		return b.stage.Store.Task(ctx, b.tenant, name)
	})
}

// all returns the names of the tenant's tasks, or of the built-in ones when the others cannot be read: the names are
// only a suggestion.
func (b *taskBook) all(ctx context.Context) []string {
	names, err := b.names.Get(ctx, struct{}{}, func(ctx context.Context) (names []string, err error) {
		for _, t := range job.BuiltInTasks() {
			names = append(names, t.Name)
		}
		if own, _, err := b.stage.Store.Tasks(ctx, b.tenant, "", contract.ListMax); err == nil {
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

// defaultTask has the settings of a task that does not set them.
var defaultTask = job.Task{Pool: contract.DefaultPool, Priority: job.Normal, Timeout: contract.DefaultTimeout,
	Retry: job.DefaultRetry}

// read reads the task that an object names. Without a known task it is defaultTask, with a mistake; the error is for a
// failed look-up.
func (b *taskBook) read(
	ctx context.Context, r *wire.Reader, f wire.Fields, pointer string,
) (name string, task job.Task, known bool, err error) {
	v, ok := f["task"]
	if !ok {
		r.Missing(pointer, "task")
		return "", defaultTask, false, nil
	}
	if name, ok = r.Name(v); !ok {
		return "", defaultTask, false, nil
	}
	task, err = b.task(ctx, name)
	if fault.KindOf(err) == fault.NotFound {
		b.unknown(ctx, r, v.Pointer, name)
		return name, defaultTask, false, nil
	}
	return name, task, err == nil, err
}

// unknown reports a task that does not exist, with the most similar name.
func (b *taskBook) unknown(ctx context.Context, r *wire.Reader, pointer, name string) {
	names := b.all(ctx)
	detail := fmt.Sprintf("task %s is not defined", text.Quoted(name))
	if near := text.Nearest(name, names); near != "" {
		detail += fmt.Sprintf("; did you mean %q?", near)
	}
	r.Mistake(pointer, spec.CodeUnknownTask, listedNames(names), "%s", detail)
}

// listedMost is how many tasks a mistake lists.
const listedMost = 20

// listedNames lists up to listedMost names in order.
func listedNames(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) > listedMost {
		return strings.Join(names[:listedMost], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// readJob reads one job of a body and checks all of it. Mistakes go to r; the error is for a failed look-up.
func (s *stage) readJob(
	ctx context.Context, r *wire.Reader, f wire.Fields, pointer string, from jobSource, now time.Time,
) (*draft, error) {
	_, task, known, err := from.read(ctx, r, f, pointer)
	if err != nil {
		return nil, err
	}
	d := &draft{row: job.Row{
		Status: job.Scheduled, Version: 1, Attempt: 1, CreatedAt: now, DueAt: now, Task: task.Name,
		Executor: task.Executor,
		Pool:     task.Pool, Priority: task.Priority, Timeout: task.Timeout, Retry: task.Retry, Keeping: task.Keeping,
	}}
	d.row.Key.Tenant = from.tenant
	spec.Due(r, f, now, &d.row.DueAt)
	if err := s.readAfter(ctx, r, f, pointer, d, from, now); err != nil {
		return nil, err
	}
	spec.Running(r, f, &d.row)
	spec.StartWithin.Into(r, f, &d.row.StartWithin)
	if spec.ExpireAfter.Into(r, f, &d.row.ExpireAfter); d.row.ExpireAfter > 0 {
		d.row.ExpiryAt = d.row.DueAt.Add(d.row.ExpireAfter)
	}
	d.labels = spec.Labels(r, f)
	spec.AllowLiterals.Into(r, f, &d.literals)
	spec.NoSecretLabels(r, f, spec.Under(pointer, d.literals))
	v, given := f["payload"]
	if !known {
		return d, nil // the rules for the payload depend on the task
	}
	d.payload, err = s.readPayload(ctx, r, v, given, pointer, task, from.tenant, d.literals)
	return d, err
}
