package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"punctual/integration/story"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// A timer fires anywhere in its minute, and a job's lateness must not depend on it. In virtual time
// only the protocol adds lateness, not the machine.
//
//proof:of 145 S19
func TestLateness_OfTimersStaysInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		h := compose(t, system.Options{Shards: 4, Worker: worker.Options{Name: "bench", Slots: 100}})
		api := story.Over(t, h.sys.API)
		dice := rand.New(rand.NewPCG(1, 2))
		var ids []string
		for range n {
			ids = append(ids, api.Post(story.Object{"task": "echo",
				"delay": fmt.Sprintf("%dms", int64(15*time.Minute/time.Millisecond)+dice.Int64N(15*60*1000))}))
		}
		time.Sleep(31 * time.Minute)
		var late []time.Duration
		for _, id := range ids {
			v := api.WantStatus(id, "SUCCEEDED")
			late = append(late, time.Duration(v["start_lateness_ms"].(float64))*time.Millisecond)
		}
		slices.Sort(late)
		if late[0] < 0 || quantile(late, .99) > 100*time.Millisecond {
			t.Errorf("lateness: %s", spread(late))
		}
		note("start lateness, timer + dispatch, 0–59 s jitter, virtual time", "%s", spread(late))
	})
}
