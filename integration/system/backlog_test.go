package system_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

//proof:of F30
func TestSystem_DefinesATaskForEachHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := worker.NewRegistry()
		worker.Register(registry, "greet", func(context.Context, worker.Job[any]) (string, error) {
			return "hello", nil
		})
		b := setup(t, func(o *system.Options) { o.Registry = registry })
		defer b.stop()
		for range 2 { // the second call finds them defined
			if err := b.sys.DefineHandlers(t.Context(), tenant.Local, registry); err != nil {
				t.Fatal(err)
			}
		}
		b.Want(201, "PUT", "/tasks/rehearsal", object{"executor": "echo"})
		greeted, rehearsed := b.Post(object{"task": "greet"}), b.Post(object{"task": "rehearsal",
			"payload": "once more"})
		time.Sleep(5 * time.Second)
		if got := b.WantStatus(greeted, "SUCCEEDED")["result"]; got != "hello" {
			t.Errorf("greet answers %v", got)
		}
		if got := b.WantStatus(rehearsed, "SUCCEEDED")["result"]; got != "once more" {
			t.Errorf("rehearsal answers %v", got)
		}
	})
}

// Jobs that wait for hours because few may run at the same time are not lost: the sweeper must not
// repeat their firings endlessly, and none may end in a dead-letter queue.
//
//proof:of F05
func TestSystem_HoldsOneFiringForEachWaitingJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []worker.Option
		slots   int
		copies  int // average messages per job, at most
	}{
		"behind a handler that runs once at a time": {[]worker.Option{worker.Concurrency(1)}, 25, 2},
		"behind a worker with one slot":             {nil, 1, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const jobs, each = 100, 5 * time.Minute
				runs := 0
				b := setup(t, func(o *system.Options) {
					o.Worker.Poll, o.Worker.Slots = 20*time.Second, c.slots
					worker.Register(o.Registry, "slow", func(ctx context.Context,
						_ worker.Job[json.RawMessage]) (struct{}, error) {
						runs++
						select {
						case <-time.After(each):
						case <-ctx.Done():
						}
						return struct{}{}, ctx.Err()
					}, c.options...)
				})
				defer b.stop()
				b.Want(201, "PUT", "/tasks/slow", object{"executor": "go", "timeout": "1h"})
				for range jobs {
					b.Post(object{"task": "slow"})
				}
				for begun := time.Now(); runs < jobs || held(t, b.World) > 0; {
					time.Sleep(30 * time.Minute)
					synctest.Wait()
					if n, most := held(t, b.World), c.copies*jobs; n > most {
						t.Fatalf("%d jobs wait after %s, and queues hold %d firings of them, want at most %d",
							jobs-runs, time.Since(begun), n, most)
					}
					if time.Since(begun) > 12*time.Hour {
						t.Fatalf("%d of %d ran in %s; queues hold %d", runs, jobs, time.Since(begun), held(t, b.World))
					}
				}
				d, err := b.World.Queues().Depth(context.Background(), contract.FiringDead)
				if err != nil || d.Visible != 0 || runs != jobs {
					t.Errorf("%d runs of %d jobs; %d messages were given up, %v", runs, jobs, d.Visible, err)
				}
				if n := b.Meter.Total(telemetry.DeadLetters); n != 0 {
					t.Errorf("%v jobs died", n)
				}
			})
		})
	}
}
