package fault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/fault"
)

func TestWithin_EndsWithItsTime(t *testing.T) {
	t.Parallel()
	own := errors.New("its own")
	for name, c := range map[string]struct {
		do      func(context.Context, <-chan struct{}) error
		overrun bool
		took    time.Duration
	}{
		"work that ends": {func(context.Context, <-chan struct{}) error { return own }, false, 0},
		"work that ends after its end": {slow(10*time.Second + 500*time.Millisecond), false, 10*time.Second +
			500*time.Millisecond},
		"work that heeds its context": {func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return ctx.Err()
		}, true, 10 * time.Second},
		"work that never ends": {func(_ context.Context, end <-chan struct{}) error { <-end; return nil }, true,
			11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				defer close(end)
				began := time.Now()
				err := fault.Within(t.Context(), 10*time.Second, "testing", func(ctx context.Context) error {
					return c.do(ctx, end)
				})
				overrun := new(fault.Overrun)
				if is := errors.As(err, &overrun); is != c.overrun || is != fault.Retryable(err) {
					t.Errorf("the error is %v", err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
			})
		})
	}
}

func slow(d time.Duration) func(context.Context, <-chan struct{}) error {
	return func(context.Context, <-chan struct{}) error { time.Sleep(d); return nil }
}

func TestWithin_ReturnsAPanicAsAnError(t *testing.T) {
	t.Parallel()
	panicked := new(fault.Panicked)
	err := fault.Within(t.Context(), time.Minute, "testing", func(context.Context) error { panic("no") })
	if !errors.As(err, &panicked) {
		t.Errorf("the error is %v", err)
	}
}
