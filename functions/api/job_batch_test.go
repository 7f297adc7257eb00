package api_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/api"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
)

// With a mutex held over the read, the clock of the test would stop: a goroutine that waits for a mutex is busy
// to it.
func TestBatch_WaitsForItsTasksWithoutAMutex(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *memory.Options, d *api.Deps) { o.Clock, d.Clock = clock.System{}, clock.System{} })
		b.want(t, 201, "PUT", "/v1/tasks/one", `{"executor":"go"}`)
		b.want(t, 201, "PUT", "/v1/tasks/two", `{"executor":"go"}`)
		var mu sync.Mutex
		tasks := map[string]int{}
		b.World.SetFaults(func(c memory.Call) (f memory.Fault) {
			if c.Op == memory.TableGet && c.Ref == job.TaskRef("acme", c.Ref.SK) && c.Ref.Table == contract.Tasks {
				mu.Lock()
				defer mu.Unlock()
				tasks[c.Ref.SK]++
				f.Wait = 3 * time.Second
			}
			return f
		})
		start := time.Now()
		jobs := strings.TrimSuffix(strings.Repeat(`{"task":"one","delay":"1h"},{"task":"two","delay":"1h"},`, 20), ",")
		r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[`+jobs+`]}`)
		if r.body["accepted"] != 40. || time.Since(start) != 3*time.Second {
			t.Errorf("%v accepted after %v", r.body["accepted"], time.Since(start))
		}
		if len(tasks) != 2 || tasks["one"] != 1 || tasks["two"] != 1 {
			t.Errorf("the tasks were read %v", tasks)
		}
	})
}
