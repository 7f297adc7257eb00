package workertest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/workers/worker"
)

type invoice struct {
	Cents int `json:"cents"`
}

type receipt struct {
	Key   string `json:"key"`
	Cents int    `json:"cents"`
}

func TestRun_ShowsAHandlerWhatAWorkerWould(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var saw worker.Job[invoice]
	got := Run(t, func(_ context.Context, j worker.Job[invoice]) (receipt, error) {
		saw = j
		j.Progress(1, 2, "half")
		return receipt{Key: j.Key, Cents: j.Payload.Cents}, nil
	}, invoice{Cents: 100}, Attempt(3), Token(7), Key("the-key"), DueAt(due))
	if got.Ended != Succeeded || got.Err != nil || got.Result != (receipt{"the-key", 100}) {
		t.Errorf("got %+v", got)
	}
	if saw.Attempt != 3 || saw.Token != 7 || !saw.DueAt.Equal(due) || saw.JobID == "" {
		t.Errorf("it saw %+v", saw)
	}
	if len(got.Progress) != 1 || got.Progress[0] != (Note{1, 2, "half"}) {
		t.Errorf("progress %+v", got.Progress)
	}
}

func TestRun_DerivesTheOutcomeFromWhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	wait := func(ctx context.Context, _ worker.Job[invoice]) (receipt, error) {
		<-ctx.Done()
		return receipt{}, context.Cause(ctx)
	}
	returns := func(err error) Handler[invoice, receipt] {
		return func(context.Context, worker.Job[invoice]) (receipt, error) { return receipt{}, err }
	}
	failed := errors.New("no")
	for name, c := range map[string]struct {
		handler Handler[invoice, receipt]
		options []Option
		ended   Ended
		code    string
		after   time.Duration
	}{
		"an error":          {returns(failed), nil, Retried, job.CodeHandler, 0},
		"a permanent error": {returns(worker.Permanent(failed)), nil, Dead, job.CodePermanent, 0},
		"an error that waits": {returns(worker.RetryAfter(time.Minute, failed)), nil, Retried, job.CodeHandler,
			time.Minute},
		"a snooze": {returns(worker.Snooze(time.Hour)), nil, Snoozed, "", time.Hour},
		"a panic": {func(context.Context, worker.Job[invoice]) (receipt, error) { panic("oh") }, nil,
			Retried, job.CodePanic, 0},
		"a timeout": {wait, []Option{Timeout(time.Minute)}, Retried, job.CodeTimeout, 0},
		"a cancel": {wait, []Option{End(time.Second, worker.ErrCancelled)}, Cancelled, job.CodeCancelled,
			0},
		"a worker that drains": {wait, []Option{End(time.Second, worker.ErrDraining)}, GivenBack, "", 0},
		"a lost lease":         {wait, []Option{End(time.Second, worker.ErrLeaseLost)}, GivenBack, "", 0},
	} {
		t.Run("a handler returns "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := Run(t, c.handler, invoice{}, c.options...)
				if got.Ended != c.ended || got.Code != c.code || got.After != c.after || c.ended != Snoozed &&
					got.Err == nil {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

func TestRun_FailsForGoodOnAPayloadThatDoesNotFit(t *testing.T) {
	t.Parallel()
	got := RunJSON(t, func(context.Context, worker.Job[invoice]) (receipt, error) { return receipt{}, nil },
		`{"cents":"many"}`)
	if got.Ended != Dead || got.Code != job.CodeUnreadablePayload {
		t.Errorf("got %+v", got)
	}
}
