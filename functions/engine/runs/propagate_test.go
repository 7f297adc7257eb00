package runs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

// failing is a run of each kind of node, in which many ends follow from one.
func failing() dag.Definition {
	d := def("a", "no: a", "below: no", "m: a", "z: m", "last: below z")
	d = with(d, "no", func(n *dag.Node) { n.When = "false" })
	d = with(d, "m", func(n *dag.Node) { n.ForEach, n.MaxParallel = "${[1,2,3]}", 2 })
	d = with(d, "last", func(n *dag.Node) { n.RunIf = dag.AllDone })
	return d
}

// TestPropagate_FinishesARunWhicheverCallFails fails one call of the table, each in turn, and redelivers the report.
// There is no sweep and no wake-up.
//
//proof:of F67
func TestPropagate_FinishesARunWhicheverCallFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Unavailable, fault.Conflict} {
		for limit, calls := range map[int]int{0: 0, 1: 0, 2: 0} {
			t.Run(fmt.Sprintf("%s with max_concurrency %d", kind, limit), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for fails := 1; fails == 1 || fails <= calls; fails++ {
						b := setup(t)
						d := failing()
						d.MaxConcurrency = limit
						b.create(d)
						b.redelivered, calls = 3, 0
						var mu sync.Mutex // calls may come together
						b.World.SetFaults(func(c memory.Call) memory.Fault {
							if !b.propagating.Load() {
								return memory.Fault{}
							}
							mu.Lock()
							defer mu.Unlock()
							if calls++; calls == fails {
								return memory.Fault{Fail: kind}
							}
							return memory.Fault{}
						})
						b.calm()
						b.World.SetFaults(nil)
						if is := b.run(); is.Status != run.Succeeded {
							t.Fatalf("the run is %s after call %d failed", is.Status, fails)
						}
					}
					t.Logf("%d calls", calls)
				})
			})
		}
	}
}

func TestRetryFrom_AMappedNodeWithWaitingItemsBeginsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(with(def("a", "m: a", "z: m"), "m", func(n *dag.Node) { n.ForEach = "${[1,2,3]}" }))
	a := b.current("a")
	b.start(a)
	b.finish(a, true)
	_, err := b.rel.Retry(context.Background(), b.key, "m", by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
	if g := b.run().Generation("m"); g != 2 {
		t.Errorf("m is of generation %d", g)
	}
}

func TestCancelRun_StopsForAFailureBetweenTheTwoWritesOfARetry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.fails = func(job.Row) bool { return true }
	d := def("a", "x", "y", "after: y")
	d.OnFailure = dag.CancelRun
	b.create(d)
	x, y := b.current("x"), b.current("y")
	b.start(x)
	b.start(y)
	b.Before(stagetest.Named(run.WriteFinish), func() { b.finish(x, true) })
	_, err := b.rel.Retry(ctx, b.key, "a", by)
	b.Must(err)
	if is := b.run(); is.Stop != run.StopFail {
		t.Errorf("the run is %s and its stop %q", is.Status, is.Stop)
	}
	b.finish(y, true)
	b.calm()
	b.runIs(run.Failed)
	b.is("after", job.Cancelled, run.ReasonFailed)
}

func TestCancelRun_IsDerivedInAnotherInvocationIfTheStopCannotGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(job.Row) bool { return true }
	d := def("x", "y: x")
	d.OnFailure = dag.CancelRun
	b.create(d)
	x := b.current("x")
	b.start(x)
	propagated, failed := false, false
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		if propagated && !failed && c.Op == memory.TableGet && c.Ref == b.key.Ref() {
			failed = true
			return memory.Fault{Fail: fault.Unavailable}
		}
		propagated = propagated || c.Name == run.WriteStop
		return memory.Fault{}
	})
	b.finish(x, true)
	b.calm()
	b.runIs(run.Failed)
}
