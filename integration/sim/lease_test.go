package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
)

func TestWorker_StopsItsHandlerWhenHeartbeatsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Options{Workers: 2, Plan: func(p Point) (Fault, time.Duration) {
			if p.What == job.WriteClaimHeartbeat && p.N <= 26 {
				return Fail, 0
			}
			return None, 0
		}}).As(tenant.Local)
		w.Define()
		id := w.Post("k", object{"payload": Work{Sleep: "35s"}, "timeout": "2m"})
		w.Settle(5 * time.Minute)
		w.Is(id, 1, job.Succeeded)
		w.Ran(id, 2)
		w.Check()
		w.Close()
		w.Report("no heartbeat comes through")
	})
}
