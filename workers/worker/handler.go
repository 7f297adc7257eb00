package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/text"
	"punctual/workers/executor"
)

// Registry holds the handlers of tasks whose executor is "go", by task name. It is filled before
// the worker starts and only read afterwards.
type Registry struct {
	handlers map[string]*handler
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{handlers: map[string]*handler{}} }

type handler struct {
	run   func(ctx context.Context, w executor.Work) (json.RawMessage, error)
	limit chan struct{} // nil: only the worker's slots limit it
}

// Option sets how a handler is run.
type Option func(*handler)

// Concurrency limits how many attempts of the task one worker runs at once. Without it the
// worker's slots are the limit. n counts from 1.
func Concurrency(n int) Option {
	return func(h *handler) { h.limit = make(chan struct{}, max(n, 1)) }
}

var taskName = regexp.MustCompile(contract.NamePattern)

// Register makes fn the handler of the task called name. The payload is decoded from JSON into P
// (no payload leaves the zero P); what fn returns is the job's result, encoded as JSON.
// It panics if the name is no task's name or is taken: the program cannot start like that.
func Register[P, R any](r *Registry, name string, fn func(ctx context.Context, j Job[P]) (R, error), opts ...Option) {
	if !taskName.MatchString(name) {
		panic(fmt.Sprintf("registering handler %q: a task's name matches %s", name, contract.NamePattern))
	}
	if r.handlers[name] != nil {
		panic(fmt.Sprintf("registering handler %q: it is registered already", name))
	}
	h := &handler{run: func(ctx context.Context, w executor.Work) (json.RawMessage, error) { return call(ctx, w, fn) }}
	for _, o := range opts {
		o(h)
	}
	r.handlers[name] = h
}

// Knows says whether a task of that name has a handler.
func (r *Registry) Knows(task string) bool { return r != nil && r.handlers[task] != nil }

// Names lists the tasks that have a handler, in order.
func (r *Registry) Names() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.handlers))
}

// namesMost is how many handlers an error names.
const namesMost = 20

// unknown says that a task has no handler here, and which have one.
func (r *Registry) unknown(task string) string {
	names := r.Names()
	switch {
	case len(names) == 0:
		return fmt.Sprintf("no worker has a handler for task %s; this one has none", task)
	case len(names) > namesMost:
		names = append(names[:namesMost], "…")
	}
	return fmt.Sprintf("no worker has a handler for task %s; this one has %s", task, strings.Join(names, ", "))
}

// Run runs the task's handler. It makes the registry an executor: the one of kind "go".
func (r *Registry) Run(ctx context.Context, w executor.Work) (json.RawMessage, error) {
	if !r.Knows(w.Task) {
		return nil, &executor.Failure{Code: job.CodeUnknownTask, Message: r.unknown(w.Task), Permanent: true}
	}
	return r.handlers[w.Task].run(withLog(ctx, w.Log), w)
}

// enter counts one more running attempt of the task; leave ends that. false: its limit is reached.
func (r *Registry) enter(task string) (leave func(), ok bool) {
	if !r.Knows(task) || r.handlers[task].limit == nil {
		return func() {}, true
	}
	limit := r.handlers[task].limit
	select {
	case limit <- struct{}{}:
		return func() { <-limit }, true
	default:
		return nil, false
	}
}

// Job is one attempt, as its handler sees it.
type Job[P any] struct {
	// Payload is the job's payload. Where P holds an any, a number in it is a json.Number, which
	// keeps every digit.
	Payload P
	// Key stays the same through retries and redrives of the job: the idempotency key of what
	// the handler does to the world.
	Key string
	// JobID is the job's own id. A redriven job has a new one.
	JobID string
	// Attempt counts from 1. It grows with every retry and snooze.
	Attempt int64
	// Token fences: of two runs of one attempt the later has the higher token. A store that
	// remembers the highest (Attempt, Token) it has seen can refuse a worker that was presumed dead.
	Token int64
	// DueAt is when the attempt was due.
	DueAt time.Time
	// NominalAt is what the calendar of the job's schedule says: DueAt without spread and retries.
	// Zero for a job of no schedule.
	NominalAt time.Time

	progress func(done, total int64, note string)
}

// Progress notes how far the work is; total 0 is unknown. It costs nothing: the latest note
// travels with the next heartbeat, some seconds later. A job that ends sooner shows none.
func (j Job[P]) Progress(done, total int64, note string) {
	if j.progress != nil {
		j.progress(done, total, note)
	}
}

// call decodes the payload, runs the handler and encodes its result.
func call[P, R any](
	ctx context.Context, w executor.Work, fn func(context.Context, Job[P]) (R, error),
) (json.RawMessage, error) {
	j := Job[P]{Key: string(w.HandlerKey), JobID: string(w.Key.ID), Attempt: w.Attempt, Token: w.Token, DueAt: w.DueAt,
		NominalAt: w.NominalAt, progress: w.Progress}
	if len(w.Payload) > 0 {
		d := json.NewDecoder(bytes.NewReader(w.Payload))
		d.UseNumber() // a float64 would round 9007199254740993
		err := d.Decode(&j.Payload)
		if err == nil && d.More() {
			err = errors.New("there is more than one value")
		}
		if err != nil {
			return nil, unreadable(err, j.Payload)
		}
	}
	result, err := fn(ctx, j)
	if err != nil {
		return nil, err
	}
	body, err := text.JSON(result)
	if err != nil {
		// The work is done: running it again would do it twice only to fail here again.
		return nil, Permanent(fmt.Errorf("the work was done, but its result cannot be written as JSON: %w", err))
	}
	if bytes.Equal(body, []byte("null")) {
		return nil, nil
	}
	return body, nil
}

// unreadable names the place where a payload does not fit, and never its content, which
// encoding/json's own words may quote.
func unreadable(err error, into any) error {
	where := ""
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		where = fmt.Sprintf(", at field %q", wrong.Field)
	}
	return &executor.Failure{
		Code: job.CodeUnreadablePayload, Permanent: true,
		Message: fmt.Sprintf("the payload does not fit the handler's type %T%s", into, where),
	}
}

// Permanent marks an error that another try cannot mend: the job is dead at once, whatever tries
// are left. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &executor.Failure{Code: job.CodePermanent, Permanent: true, Err: err}
}

// RetryAfter marks an error after which the job waits at least d before its next try, up to
// contract.MaxRetryAfter. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &executor.Failure{RetryAfter: d, Err: err}
}

// Snooze ends the attempt without its having failed: the job runs again after d, and no try of
// its retry policy is spent. A d under contract.MinSnooze is taken for that: each snooze is an
// attempt with its writes, and a handler that only waits must not run in a loop.
func Snooze(d time.Duration) error {
	return &executor.Failure{Snooze: true, RetryAfter: d, Message: "snoozed"}
}
