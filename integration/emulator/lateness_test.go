package emulator_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
	"punctual/shared/clock"
	"punctual/shared/telemetry"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// patient is how long a busy machine may take for what takes seconds.
const patient = 3 * time.Minute

// promised returns the bound of start lateness: 100 ms on an idle machine (PUNCTUAL_STRICT=1), and
// on a busy one a bound that no sweep can meet.
func promised() time.Duration {
	if os.Getenv("PUNCTUAL_STRICT") != "" {
		return 100 * time.Millisecond
	}
	return time.Minute
}

// 200 jobs start on time although they come by timers of the emulator's Scheduler, which fires every
// ten seconds: those of the slices that they lie in. Only jobs due beyond 14 minutes wait for their
// slices. So that no test waits that long, the clocks of the API and of the stream's consumer are
// behind, and all others are right: dispatch makes timers a minute or two ahead.
func TestLateness_OfTimersOverMiniStack(t *testing.T) {
	t.Parallel()
	const n, shards, behind, ahead = 200, 4, 13 * time.Minute, 270 * time.Second
	meter := new(telemetry.Meter)
	h := buildOver(t, environment.MiniStack(t).Config(), func(p *system.Ports) {
		all := *p
		all.Meter = meter
		*p = all
		p.Of = func(stage string) system.Ports {
			own := all
			if stage == "api" || stage == "stream" {
				own.Clock = clock.Skewed{Offset: -behind}
			}
			return own
		}
	}, func(o *system.Options) {
		o.Shards = shards
		o.Worker = worker.Options{Name: "w1", Slots: 50, Poll: time.Second, Drain: 5 * time.Second}
	})
	var jobs []story.Object
	for i := range n {
		jobs = append(jobs, story.Object{"task": "echo", "delay": fmt.Sprintf("%dms",
			(behind+ahead).Milliseconds()+int64(i)*100)})
	}
	var ids []string
	for batch := range slices.Chunk(jobs, 100) {
		items, _ := h.Want(200, "POST", "/jobs/batch", story.Object{"jobs": batch})["items"].([]any)
		for _, i := range items {
			id, _ := i.(story.Object)["job"].(story.Object)["job_id"].(string)
			ids = append(ids, id)
		}
	}
	time.Sleep(ahead)
	var late []time.Duration
	for _, id := range ids {
		v := h.Await(id, "SUCCEEDED", patient)
		late = append(late, time.Duration(v["start_lateness_ms"].(float64))*time.Millisecond)
	}
	if armed := meter.Total(telemetry.TimersArmed); armed == 0 || armed > 2*shards {
		t.Errorf("%v timers were armed for two minutes of %d shards", armed, shards)
	}
	slices.Sort(late)
	t.Logf("start lateness of %d jobs through timers: p50 %s, p99 %s, max %s", n, late[n/2], late[n*99/100], late[n-1])
	if late[0] < 0 || late[n*99/100] > promised() {
		t.Errorf("p99 is %s, want at most %s; earliest %s", late[n*99/100], promised(), late[0])
	}
}
