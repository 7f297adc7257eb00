package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Cases that seeds have found.

func TestJob_MovedDuringItsParkingRunsAfterThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The move reads the row before the job is parked and writes it afterwards.
		slow := Point{Stage: "api", Op: "table.commit", What: "row.reschedule", N: 1}
		w := New(t, Options{Plan: At(slow, Slow, 5*time.Second), Late: 5 * time.Second}).As(tenant.Local)
		w.Define()
		n := w.Pause(object{})
		id := w.Post("k", object{"delay": "3s"})
		time.Sleep(2 * time.Second)
		at := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		w.Want([]int{200}, "PATCH", "/jobs/"+string(id), object{"run_at": at})
		time.Sleep(20 * time.Minute)
		lifted := time.Now()
		w.Lift(n)
		w.Settle(5 * time.Second)
		w.Is(id, 1, job.Succeeded)
		for _, r := range w.of(id) {
			if held := r.from.Sub(lifted); held < 0 || held > 5*time.Second {
				t.Errorf("it started %s after the pause was lifted", held)
			}
		}
		w.Check()
		w.Close()
		w.Report("moved while parked")
	})
}
