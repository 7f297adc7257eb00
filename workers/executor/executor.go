package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// Work is one attempt, as an executor sees it.
type Work struct {
	Key        job.Key
	Task       string
	HandlerKey job.ID // the same through attempts and redrives: the idempotency key of effects
	Attempt    int64
	Token      int64 // fences, compared after Attempt
	DueAt      time.Time
	NominalAt  time.Time       // what the calendar says; zero for a job of no schedule
	Payload    json.RawMessage // nil for none
	// Text reports whether a field of the payload is text even if it looks like the ARN of a secret: an expression has
	// rendered it. Nil: no field is.
	Text func(field string) bool
	// MaxResult is how many bytes of a result are kept; 0 is contract.MaxResult.
	MaxResult int
	// Progress notes how far the work is; the last note rides the next heartbeat. Never nil.
	Progress func(done, total int64, note string)
	// Log writes lines that are kept with the attempt: of an executor what it did and when, never a body. Nil: they are
	// dropped.
	Log *slog.Logger
}

// log is Log, whether given or not.
func (w Work) log() *slog.Logger { return cmp.Or(w.Log, silent) }

var silent = slog.New(slog.DiscardHandler)

// resolves reports whether a field names a secret if it looks like it.
func (w Work) resolves(field string) bool { return w.Text == nil || !w.Text(field) }

// Most is MaxResult, whether given or not.
func (w Work) Most() int { return cmp.Or(w.MaxResult, contract.MaxResult) }

// Executor runs one kind of task. Run returns the result as JSON (nil for none). The context
// ends at the task's timeout, when the job is cancelled, when the lease is lost or when the
// worker gives up draining; context.Cause says which. An error is retried, unless it is a
// *[Failure] that says otherwise. Run is called by many goroutines at once.
type Executor interface {
	Run(ctx context.Context, w Work) (json.RawMessage, error)
}

// Shortens is an Executor that keeps its results within Work.MaxResult itself, in a form of its own. With a result
// that it has shortened it returns [ErrShortened], which is no failure.
type Shortens interface{ Shortens() }

// ErrShortened says that the result with it is only a part: the work is done.
var ErrShortened = errors.New("the result was shortened")

// Failure is an error that says what should become of the job.
type Failure struct {
	Code       string // stable: job.Code…; "" reads as job.CodeHandler
	Message    string // for people; never a payload or a secret
	Permanent  bool   // another try cannot help
	RetryAfter time.Duration
	Snooze     bool // not a failure: run again after RetryAfter, at no cost to the retry budget
	Err        error
}

func (f *Failure) Error() string {
	if f.Message != "" {
		return f.Message
	}
	if f.Err != nil {
		return f.Err.Error()
	}
	return f.Code
}

func (f *Failure) Unwrap() error { return f.Err }
