package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/fault"
	"punctual/shared/item"
)

// Knobs describe the adapter under test. The zero value is right for AWS itself.
type Knobs struct {
	// Virtual runs each exercise in a bubble of testing/synctest, where waiting costs nothing. It
	// is for adapters that do no I/O.
	Virtual bool
	// Patience is the longest that an exercise may wait in real time; those that need longer are
	// skipped. Default 10 s; ignored when Virtual.
	Patience time.Duration
	// Gaps names exercises that the service behind the adapter is known to fail, with the reason.
	// They must fail: one that passes is an error, because its gap is closed.
	Gaps map[string]string
	// Resent counts the requests that the client has sent more than once so far, because an answer was lost; nil if
	// that cannot happen. A service may carry out both, so an exercise that fails meanwhile runs once more.
	Resent func() int64
}

// maxRuns is how often an exercise runs at most, if requests are resent each time.
const maxRuns = 5

// T is what an exercise needs of a test.
type T interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// exercise is one behaviour of an adapter.
type exercise[A any] struct {
	name  string
	waits time.Duration // at least that long, in real time
	run   func(t T, a A)
}

// run runs each exercise as a subtest.
func run[A any](t *testing.T, k Knobs, open func(*testing.T) A, exercises []exercise[A]) {
	t.Helper()
	patience := k.Patience
	if patience == 0 {
		patience = 10 * time.Second
	}
	known := map[string]bool{}
	for _, e := range exercises {
		known[e.name] = true
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if !k.Virtual && e.waits > patience {
				t.Skipf("waits %s, over the patience of %s", e.waits, patience)
			}
			body := func(t *testing.T) {
				why, gap := k.Gaps[e.name]
				if !gap {
					for n := 1; k.Resent != nil && n < maxRuns; n++ {
						before := k.Resent()
						failures := attempt(t, open(t), e)
						if len(failures) == 0 {
							return
						}
						if k.Resent() == before {
							t.Fatal(strings.Join(failures, "; "))
						}
						t.Logf("runs once more, because a request was resent: %s", strings.Join(failures, "; "))
					}
					e.run(t, open(t))
					return
				}
				failures := attempt(t, open(t), e)
				if len(failures) == 0 {
					t.Errorf("passes, although it is named as a gap: %s", why)
				}
				t.Logf("known gap: %s; it shows as: %s", why, strings.Join(failures, "; "))
			}
			if k.Virtual {
				synctest.Test(t, body)
				return
			}
			body(t)
		})
	}
	for name := range k.Gaps {
		if !known[name] && !elsewhere(name) {
			t.Errorf("gap %q is the name of no exercise", name)
		}
	}
}

// elsewhere reports whether a gap belongs to another suite, so that one set of Knobs can describe a
// whole emulator.
func elsewhere(name string) bool {
	for _, names := range [][]string{namesOf(table), namesOf(queues), namesOf(timers), namesOf(blobs),
		namesOf(secrets), namesOf(tenantQueues)} {
		for _, n := range names {
			if n == name {
				return true
			}
		}
	}
	return false
}

func namesOf[A any](exercises func() []exercise[A]) []string {
	var names []string
	for _, e := range exercises() {
		names = append(names, e.name)
	}
	return names
}

// recorder keeps failures instead of reporting them.
type recorder struct {
	ctx      context.Context
	mu       sync.Mutex
	failures []string
}

// attempt runs an exercise and returns its failures instead of reporting them.
func attempt[A any](t *testing.T, a A, e exercise[A]) []string {
	r := &recorder{ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.run(r, a)
	}()
	<-done
	return r.failures
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// unique returns a name that nothing else uses.
func unique() string { return "c-" + rand.Text() }

func must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// wantKind fails unless err is of one of the kinds.
func wantKind(t T, err error, kinds ...fault.Kind) {
	t.Helper()
	for _, k := range kinds {
		if fault.KindOf(err) == k {
			return
		}
	}
	t.Errorf("got error %v (kind %q), want one of kind %q", err, fault.KindOf(err), kinds)
}

// refusal returns the *item.Refused in err.
func refusal(t T, err error) *item.Refused {
	t.Helper()
	var r *item.Refused
	if !errors.As(err, &r) {
		t.Fatalf("got error %v, want a refusal", err)
	}
	return r
}

// pause waits; with Virtual it takes no time.
func pause(t T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatalf("the test ended while it waited")
	}
}

// eventually waits until holds returns "", and fails with its last answer after a minute.
func eventually(t T, holds func() string) {
	t.Helper()
	end := time.Now().Add(busy)
	for {
		why := holds()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still not so after %s: %s", busy, why)
		}
		pause(t, 50*time.Millisecond)
	}
}
