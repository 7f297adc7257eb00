package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"punctual/functions/api/wire"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// JobRequest documents the body of POST /v1/jobs. Its field names are the only ones allowed.
type JobRequest struct {
	Task        string        `json:"task" example:"echo"`
	Payload     wire.Anything `json:"payload,omitempty" doc:"Up to {=payload_mib} MiB, {=depth} levels deep. What it holds is up to the executor of the task"`
	RunAt       string        `json:"run_at,omitempty" format:"date-time" doc:"With a zone; up to {=past_s} s ago (runs at once), up to {=ahead_years} years ahead; not with delay"`
	Delay       wire.Duration `json:"delay,omitempty" doc:"Instead of run_at: from now"`
	Priority    string        `json:"priority,omitempty" doc:"Default: the task's. Strict: a lower one waits as long as there are jobs of a higher one, without bound"`
	Pool        string        `json:"pool,omitempty" doc:"Default: the task's"`
	Timeout     wire.Duration `json:"timeout,omitempty" doc:"Of one attempt; default: the task's"`
	StartWithin wire.Duration `json:"start_within,omitempty" doc:"EXPIRED if no attempt started this long after due_at; default: no limit"`
	ExpireAfter wire.Duration `json:"expire_after,omitempty" doc:"EXPIRED if not over this long after due_at; default: no limit"`
	Retry       retryRequest  `json:"retry,omitempty" doc:"What is left out is the task's"`
	After       []string      `json:"after,omitempty" doc:"Jobs that must be over before. The job is BLOCKED until they are, and then SCHEDULED if they ended as run_if asks, else CANCELLED or SKIPPED. A delay counts from then; a run_at holds if it is later. Within a batch #n names job n of it, from 0, if it is an earlier one"`
	RunIf       string        `json:"run_if,omitempty" doc:"What must have become of the jobs in after; default all_succeeded"`
	LabelsRequest
	AllowLiterals []string `json:"allow_literals,omitempty" doc:"JSON pointers of strings that look like secrets and are none; recorded with the job"`
}

// BatchJobRequest is a JobRequest in a batch.
type BatchJobRequest struct {
	JobRequest
	IdempotencyKey string `json:"idempotency_key,omitempty" doc:"Printable ASCII; one key space with the Idempotency-Key header"`
}

type retryRequest struct {
	MaxAttempts  int           `json:"max_attempts,omitempty" doc:"Tries in all"`
	InitialDelay wire.Duration `json:"initial_delay,omitempty"`
	Factor       float64       `json:"factor,omitempty"`
	MaxDelay     wire.Duration `json:"max_delay,omitempty"`
	Jitter       float64       `json:"jitter,omitempty" doc:"Share of the delay that is added at most"`
	OnWorkerLost string        `json:"on_worker_lost,omitempty" doc:"What becomes of an attempt whose worker ends while it runs. rerun (default): it is started again, up to {=starts} starts an attempt. fail: it failed with code worker_lost, and is retried only while attempts are left"`
}

var (
	jobFields   = wire.NamesOf[JobRequest]()
	batchFields = wire.NamesOf[BatchJobRequest]()
	retryFields = wire.NamesOf[retryRequest]()
)

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
	ctx context.Context, r *reader, f wire.Fields, pointer string,
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
func (b *taskBook) unknown(ctx context.Context, r *reader, pointer, name string) {
	names := b.all(ctx)
	detail := fmt.Sprintf("task %s is not defined", text.Quoted(name))
	if near := text.Nearest(name, names); near != "" {
		detail += fmt.Sprintf("; did you mean %q?", near)
	}
	r.Mistake(pointer, codeUnknownTask, listedNames(names), "%s", detail)
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
	ctx context.Context, r *reader, f wire.Fields, pointer string, book *taskBook, now time.Time,
) (*draft, error) {
	_, task, known, err := book.read(ctx, r, f, pointer)
	if err != nil {
		return nil, err
	}
	d := &draft{row: job.Row{
		Status: job.Scheduled, Version: 1, Attempt: 1, CreatedAt: now, DueAt: now, Task: task.Name,
		Executor: task.Executor,
		Pool:     task.Pool, Priority: task.Priority, Timeout: task.Timeout, Retry: task.Retry, Keeping: task.Keeping,
	}}
	d.row.Key.Tenant = book.tenant
	r.due(f, now, &d.row.DueAt)
	if err := s.readAfter(ctx, r, f, pointer, d, now); err != nil {
		return nil, err
	}
	r.running(f, &d.row)
	set(f, "start_within", &d.row.StartWithin, r.window)
	if set(f, "expire_after", &d.row.ExpireAfter, r.window); d.row.ExpireAfter > 0 {
		d.row.ExpiryAt = d.row.DueAt.Add(d.row.ExpireAfter)
	}
	d.labels = r.labels(f)
	if v, ok := f["allow_literals"]; ok {
		d.literals = r.literals(v)
	}
	r.noSecretLabels(f, under(pointer, d.literals))
	v, given := f["payload"]
	if !known {
		return d, nil // the rules for the payload depend on the task
	}
	d.payload, err = s.readPayload(ctx, r, v, given, pointer, task, book.tenant, d.literals)
	return d, err
}

// due reads run_at or delay into at; false if neither is given.
func (r *reader) due(f wire.Fields, now time.Time, at *time.Time) (given bool) {
	runAt, isTime := f["run_at"]
	delay, isDelay := f["delay"]
	switch {
	case isTime && isDelay:
		r.Mistake(delay.Pointer, wire.CodeConflictingFields, "run_at or delay", "run_at and delay exclude each other")
	case isTime:
		if t, ok := r.Ahead(runAt, now); ok {
			*at = t
		}
	case isDelay:
		if d, ok := r.Duration(delay, 0, wire.Latest(now).Sub(now)); ok {
			*at = now.Add(d)
		}
	}
	return isTime || isDelay
}

// running reads how a job runs, over what its task has set.
func (r *reader) running(f wire.Fields, row *job.Row) {
	set(f, "pool", &row.Pool,
		func(v wire.Value) (string, bool) { return r.OneOf(v, codeUnknownPool, contract.Pools) })
	set(f, "priority", &row.Priority, wordOf[job.Priority](r, contract.Priorities))
	set(f, "timeout", &row.Timeout, r.duration(contract.MinTimeout, longest(row.Pool)))
	if _, ok := f["timeout"]; !ok && row.Timeout > longest(row.Pool) { // the task's, in a pool that the job chose
		r.Mistake(f["pool"].Pointer, wire.CodeConflictingFields, "",
			"the task's timeout is longer than pool %s allows; give a timeout", row.Pool)
	}
	if v, ok := f["retry"]; ok {
		r.retry(v, &row.Retry)
	}
}

func longest(pool string) time.Duration {
	if pool == "long" {
		return contract.MaxTimeoutLong
	}
	return contract.MaxTimeout
}

func (r *reader) retry(v wire.Value, p *job.RetryPolicy) {
	f := r.Object(v.Node, v.Pointer, retryFields)
	set(f, "max_attempts", &p.MaxAttempts, r.whole(1, contract.MaxAttempts))
	set(f, "initial_delay", &p.InitialDelay, r.duration(0, contract.MaxInitialDelay))
	set(f, "factor", &p.Factor, r.number(1, contract.MaxFactor))
	set(f, "max_delay", &p.MaxDelay, r.duration(time.Millisecond, contract.MaxRetryDelay))
	set(f, "jitter", &p.Jitter, r.number(0, 1))
	set(f, "on_worker_lost", &p.FailOnLost, func(v wire.Value) (bool, bool) {
		word, ok := r.OneOf(v, wire.CodeInvalidValue, lostWords)
		return word == job.LostFail, ok
	})
}

func (r *reader) tags(v wire.Value) map[string]string {
	if got := r.Doc.Kind(v.Node); got != wire.KindObject {
		r.Mistake(v.Pointer, wire.CodeInvalidValue, "an object of strings", "%s is given where an object belongs", got)
		return nil
	}
	r.AllDuplicates(v.Node)
	tags := map[string]string{}
	count := 0
	for name, n := range r.Doc.Members(v.Node) {
		at := wire.Value{Node: n, Pointer: v.Pointer + "/" + text.EscapePointer(name)}
		if count++; count > contract.MaxTags {
			r.Mistake(v.Pointer, wire.CodeOutOfRange, fmt.Sprintf("at most %d", contract.MaxTags),
				"there are more than %d tags", contract.MaxTags)
			return nil
		}
		if runes(name) < 1 || runes(name) > contract.MaxTagKey {
			r.Mistake(at.Pointer, wire.CodeOutOfRange, fmt.Sprintf("1 to %d characters", contract.MaxTagKey),
				"the name of a tag is too long, or empty")
		}
		if strings.ContainsFunc(name, text.Hidden) {
			r.Mistake(at.Pointer, wire.CodeInvalidValue, "characters that can be seen, and spaces",
				"the name of a tag has control characters, or characters that change the direction of text")
		}
		if s, ok := r.Text(at); ok {
			if runes(s) > contract.MaxTagValue {
				r.Mistake(at.Pointer, wire.CodeOutOfRange, fmt.Sprintf("at most %d characters", contract.MaxTagValue),
					"the value of the tag has %d characters", runes(s))
			}
			if strings.ContainsFunc(s, text.Hidden) {
				r.Mistake(at.Pointer, wire.CodeInvalidValue, "characters that can be seen, and spaces",
					"the value of the tag has control characters, or characters that change the direction of text")
			}
			tags[name] = s
		}
	}
	return tags
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// lostWords are the values of on_worker_lost.
var lostWords = []string{job.LostRerun, job.LostFail}

// maxLiterals bounds how many strings one job may declare to be no secrets.
const maxLiterals = 50

// maxLiteral is how long a pointer in allow_literals may be, in characters.
const maxLiteral = 1024

func (r *reader) literals(v wire.Value) []string {
	var pointers []string
	for _, each := range r.List(v, maxLiterals) {
		s, ok := r.Text(each)
		if !ok {
			continue
		}
		if len(s) == 0 || runes(s) > maxLiteral || s[0] != '/' {
			r.Mistake(each.Pointer, wire.CodeInvalidValue, fmt.Sprintf("a JSON pointer such as /payload/x, up to "+
				"%d characters", maxLiteral), "this is not a JSON pointer")
			continue
		}
		pointers = append(pointers, s)
	}
	return pointers
}
