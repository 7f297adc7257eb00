package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/tenant"
)

// Cases that chance seldom produces.

func TestWorker_DoesNotStartAfterItsLeaseRanOut(t *testing.T) {
	t.Parallel()
	// The worker freezes between its claim and the start: after it has read the row, or the payload.
	for _, what := range []string{"jobs", "content"} {
		t.Run("frozen after it reads the "+what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var w *Client
				frozen := false
				plan := func(p Point) (Fault, time.Duration) {
					if !frozen && p.Stage == "worker" && p.Op == memory.TableGet && p.What == what && w.claimed() {
						frozen = true
						return FreezeAfter, 45 * time.Second
					}
					return None, 0
				}
				w = New(t, Options{Workers: 2, Plan: plan}).As(tenant.Local)
				w.Define()
				mark := fmt.Sprintf("%600d", 1) // too large for the row
				id := w.Post("k", object{"payload": Work{Sleep: "35s", Mark: mark}, "timeout": "2m", "delay": "5s"})
				w.Settle(5 * time.Minute)
				w.Is(id, 1, job.Succeeded)
				w.Ran(id, 1)
				if !frozen {
					t.Error("no worker was frozen")
				}
				w.Check()
				w.Close()
				w.Report("frozen worker")
			})
		})
	}
}

// claimed reports whether any job has been claimed. The lock is held: it is for plans.
func (w *World) claimed() bool {
	return w.points[Point{Stage: "worker", Op: memory.TableWrite, What: job.WriteClaimNew}] > 0
}

func TestJob_MovedDuringItsClaimRunsAtItsNewTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The worker reads the row before the move and claims it afterwards.
		slow := func(p Point) (Fault, time.Duration) {
			if p.What == job.WriteClaimNew && p.N <= 2 { // there may be more than one firing
				return Slow, 300 * time.Millisecond
			}
			return None, 0
		}
		w := New(t, Options{Plan: slow, Late: time.Second}).As(tenant.Local)
		w.Define()
		id := w.Post("k", object{"delay": "3s"})
		time.Sleep(2600 * time.Millisecond)
		w.moveTo(id, time.Minute)
		time.Sleep(10 * time.Second)
		w.moveTo(id, 20*time.Second) // no worker holds it now, so it can be moved once more
		moved := time.Now()
		w.Settle(5 * time.Minute)
		w.Is(id, 1, job.Succeeded)
		w.Ran(id, 1)
		for _, r := range w.of(id) {
			if late := r.from.Sub(moved.Add(20 * time.Second)); late < -time.Second || late > time.Second {
				t.Errorf("it started %s after its new time", late)
			}
		}
		if w.faults() == 0 {
			t.Error("no claim was slow")
		}
		w.Check()
		w.Close()
		w.Report("moved while it is claimed")
	})
}

// moveTo moves a job to now plus d.
func (w *Client) moveTo(id job.ID, d time.Duration) {
	w.Want([]int{200}, "PATCH", "/jobs/"+string(id),
		object{"run_at": time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000Z07:00")})
}

func TestJob_StartsOnTimeWhenTheIndexLags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// Accepted just beyond the horizon, many jobs appear in the index only when their minute
		// has entered it.
		w := New(t, Options{IndexLag: 9 * time.Minute}).As(tenant.Local)
		w.Define()
		for n := range 20 {
			w.Post(fmt.Sprint(n), object{"delay": fmt.Sprintf("%ds", 33*60+10*n)})
		}
		w.Settle(time.Hour)
		w.OnTime(100 * time.Millisecond)
		time.Sleep(15 * time.Minute) // until the index shows the final rows
		w.Check()
		w.Close()
		w.Report("late in the index")
	})
}
