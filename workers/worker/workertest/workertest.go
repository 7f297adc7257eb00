package workertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/workers/executor"
	"punctual/workers/worker"
)

// Handler is what worker.Register takes.
type Handler[P, R any] func(context.Context, worker.Job[P]) (R, error)

// Ended is what the system would make of a handler's return.
type Ended string

// The ways to end.
const (
	Succeeded Ended = "succeeded"
	Retried   Ended = "retried" // while the task's retry policy allows
	Dead      Ended = "dead"    // for good, whatever tries are left
	Snoozed   Ended = "snoozed"
	Cancelled Ended = "cancelled"
	GivenBack Ended = "given back" // to another worker, as if this attempt had not been
)

// Result is what came of one attempt.
type Result[R any] struct {
	Ended  Ended
	Result R      // as a reader of the job would see it: through JSON
	Err    error  // nil after a success
	Code   string // of the error: handler_failed, permanent_failure, handler_panicked, timeout, …
	After  time.Duration
	// Progress lists the handler's notes, in order.
	Progress []Note
}

// Note is one call of Job.Progress.
type Note struct {
	Done, Total int64
	Text        string
}

type setting struct {
	work    executor.Work
	timeout time.Duration
	end     error // why the context ends; nil: only at the timeout
	after   time.Duration
}

// Option changes what the handler sees.
type Option func(*setting)

// Attempt is the number of the attempt; 1 by default.
func Attempt(n int64) Option { return func(s *setting) { s.work.Attempt = n } }

// Key is the job's key, the same through retries and redrives. By default it is a fixed one.
func Key(key string) Option { return func(s *setting) { s.work.HandlerKey = job.ID(key) } }

// Token is the fencing token; 1 by default.
func Token(n int64) Option { return func(s *setting) { s.work.Token = n } }

// DueAt is when the attempt was due; now by default.
func DueAt(at time.Time) Option { return func(s *setting) { s.work.DueAt = at } }

// NominalAt is the nominal time of a schedule's job; by default there is none.
func NominalAt(at time.Time) Option { return func(s *setting) { s.work.NominalAt = at } }

// Timeout is the task's timeout; contract.DefaultTimeout by default.
func Timeout(d time.Duration) Option { return func(s *setting) { s.timeout = d } }

// End ends the handler's context after d for that reason: worker.ErrCancelled,
// worker.ErrDraining or worker.ErrLeaseLost.
func End(d time.Duration, cause error) Option {
	return func(s *setting) { s.after, s.end = d, cause }
}

// Run runs one attempt of the handler with the payload and returns what came of it.
func Run[P, R any](t testing.TB, handler Handler[P, R], payload P, options ...Option) Result[R] {
	t.Helper()
	body, err := json.Marshal(payload)
	if err != nil {
		t.Fatalf("the payload cannot be written as JSON, so no job can carry it: %v", err)
	}
	return RunJSON(t, handler, string(body), options...)
}

// RunJSON is Run with a payload as a client would send it; "" is none.
func RunJSON[P, R any](t testing.TB, handler Handler[P, R], payload string, options ...Option) Result[R] {
	t.Helper()
	const task = "task"
	var got Result[R]
	s := setting{timeout: contract.DefaultTimeout, work: executor.Work{
		Key:  job.Key{Tenant: tenant.Local, ID: job.DeterministicID(time.Unix(0, 0), "workertest")},
		Task: task, Attempt: 1, Token: 1, DueAt: time.Now().UTC().Truncate(time.Millisecond),
	}}
	s.work.HandlerKey = s.work.Key.ID
	s.work.Progress = func(done, total int64, note string) {
		got.Progress = append(got.Progress,
			Note{done, total, note})
	}
	if payload != "" {
		s.work.Payload = json.RawMessage(payload)
	}
	for _, o := range options {
		o(&s)
	}

	registry := worker.NewRegistry()
	worker.Register(registry, task, handler)
	ctx, stop := context.WithTimeoutCause(t.Context(), s.timeout, worker.ErrTimeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.end != nil {
		ending := time.AfterFunc(s.after, func() { cancel(s.end) })
		defer ending.Stop()
	}
	o, err := worker.Attempt(ctx, registry, s.work)
	got.Err, got.After = err, time.Duration(o.RetryAfterMS)*time.Millisecond
	if o.Error != nil {
		got.Code = o.Error.Code
	}
	switch cause := context.Cause(ctx); {
	case o.Kind == job.OutcomeSnoozed:
		got.Ended = Snoozed
	case o.Kind == job.OutcomeSucceeded:
		got.Ended = Succeeded
		if len(o.Result) > 0 {
			d := json.NewDecoder(bytes.NewReader(o.Result))
			d.UseNumber()
			if err := d.Decode(&got.Result); err != nil {
				t.Fatalf("the result does not survive JSON, or is longer than the %d bytes that are kept: %v",
					contract.MaxResult, err)
			}
		}
	case errors.Is(cause, worker.ErrDraining), errors.Is(cause, worker.ErrLeaseLost):
		got.Ended, got.Code = GivenBack, ""
	case got.Code == job.CodeCancelled:
		got.Ended = Cancelled
	case o.Permanent:
		got.Ended = Dead
	default:
		got.Ended = Retried
	}
	return got
}
