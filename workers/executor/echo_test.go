package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/workers/executor"
)

func TestEcho_AnswersWithItsPayload(t *testing.T) {
	t.Parallel()
	echo := executor.Standard(executor.Options{})[job.ExecutorEcho]
	for _, payload := range []string{"", "null", "5", `"text"`, `["sleep"]`, `{"a":{"sleep":"9d"}}`,
		`{"SLEEP":"9d","Fail":99}`, ` {"fail":0}`} {
		got, err := echo.Run(t.Context(), work(payload))
		if err != nil || string(got) != payload {
			t.Errorf("%s came back as %s, %v", payload, got, err)
		}
	}
}

func TestEcho_FailsAsManyAttemptsAsAsked(t *testing.T) {
	t.Parallel()
	echo := executor.Standard(executor.Options{})[job.ExecutorEcho]
	for attempt := int64(1); attempt <= 4; attempt++ {
		w := work(`{"fail":2}`)
		w.Attempt = attempt
		_, err := echo.Run(t.Context(), w)
		if attempt > 2 {
			if err != nil {
				t.Errorf("attempt %d failed: %v", attempt, err)
			}
			continue
		}
		requireFailure(t, err, executor.CodeEcho, false)
	}
}

func TestEcho_SleepsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		echo := executor.Standard(executor.Options{})[job.ExecutorEcho]
		start := time.Now()
		if _, err := echo.Run(t.Context(), work(`{"sleep":"1h30m"}`)); err != nil ||
			time.Since(start) != 90*time.Minute {
			t.Fatalf("slept %v, %v", time.Since(start), err)
		}
	})
}

func TestEcho_WakesWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		echo := executor.Standard(executor.Options{})[job.ExecutorEcho]
		cause := errors.New("cancelled by the user")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { cancel(cause) })
		if _, err := echo.Run(ctx, work(`{"sleep":"9d"}`)); !errors.Is(err, cause) ||
			time.Since(start) != 2*time.Second {
			t.Fatalf("woke after %v with %v", time.Since(start), err)
		}
	})
}

func TestEcho_RefusesWishesItCannotRead(t *testing.T) {
	t.Parallel()
	echo := executor.Standard(executor.Options{})[job.ExecutorEcho]
	for _, payload := range []string{`{"sleep":2}`, `{"sleep":"2"}`, `{"sleep":"-2s"}`, `{"sleep":null}`,
		`{"sleep":""}`, `{"fail":-1}`, `{"fail":1.5}`, `{"fail":"2"}`, `{"fail":1e99}`, `{"fail":`} {
		_, err := echo.Run(t.Context(), work(payload))
		requireFailure(t, err, job.CodeUnreadablePayload, true)
	}
}
