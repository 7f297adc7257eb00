package sim

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
)

func TestLimited_EndsWellWithoutFaults(t *testing.T) {
	t.Parallel()
	nothingFails(t, Limited)
}

func TestLimited_EndsWellForTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	forTwoTenants(t, Limited)
}

func TestLimited_EndsWellInAnyWeather(t *testing.T) {
	t.Parallel()
	inAnyWeather(t, Limited, 4*time.Hour)
}

// The crowd of limited jobs: under so many keys, of each of which so many may run at a time. SIM_FULL=1 has 10,000
// jobs.
const (
	crowdedJobs = 2_000 / fewer
	crowdedKeys = 100
	crowdedMost = 2
)

// Workers and functions crash at any call, and none of many jobs is forgotten nor runs with too many of its key.
func TestLimits_HoldForManyJobsAndKeysWhileProcessesDie(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Options{Seed: 21, Workers: 4, Shards: 2, Pumps: 2, IndexLag: 2 * time.Second,
			Plan: Storm(21, Weather{Crash: 2})}).As(tenant.Local)
		w.Define()
		from := time.Now()
		w.limit("crowd", object{"max_running": crowdedMost})
		keys := make([][]job.ID, crowdedKeys)
		jobs := crowdedJobs
		if os.Getenv("SIM_FULL") != "" {
			jobs = 10_000
		}
		for n := range jobs {
			k := n % crowdedKeys
			keys[k] = append(keys[k], w.postNamed(fmt.Sprint("crowd", n), 1, "crowd", fmt.Sprint(k),
				Work{Sleep: fmt.Sprintf("%dms", 200+n%7*300)})...)
		}
		w.Settle(12 * time.Hour)
		w.Calm()
		w.Settle(2 * time.Hour)
		time.Sleep(20 * time.Second) // the indexes lag
		for _, ids := range keys {
			for _, id := range ids {
				w.Is(id, 0, job.Succeeded, job.Dead) // its workers were lost too often
			}
			w.AtMost(crowdedMost, ids)
		}
		w.Check()
		w.Close()
		w.Report("a crowd of limited jobs")
		t.Logf("%d jobs, %d crashes, at rest after %v", jobs, w.faults(), time.Since(from))
		if w.faults() < jobs/50 {
			t.Errorf("%d crashes are too few to show anything", w.faults())
		}
	})
}
