package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

// cleaned is a definition of a node, one after it, and one that cleans up after both, with a node after that.
func cleaned() dag.Definition {
	return always(def("work", "more: work", "clean: work more", "report: clean"), "clean")
}

// always lets nodes of a definition run always. The payload of each shows how its parents ended.
func always(d dag.Definition, nodes ...string) dag.Definition {
	for _, name := range nodes {
		d = with(d, name, func(n *dag.Node) {
			n.RunIf = dag.Always
			ends := ""
			for _, p := range n.DependsOn {
				ends += fmt.Sprintf("${nodes[%q].status} ", p)
			}
			n.Payload = []byte(fmt.Sprintf("%q", ends))
		})
	}
	return d
}

func (b *bench) cancel() {
	b.Helper()
	_, err := b.rel.Cancel(context.Background(), b.key, by)
	b.Must(err)
}

// ends checks the end of a run whose node clean has run after these ends of work and more.
func (b *bench) ends(s run.Status, parents string, report job.Status, code string) {
	b.Helper()
	b.runIs(s)
	b.is("clean", job.Succeeded, "")
	b.is("report", report, code)
	if got := b.current("clean").Payload; got != fmt.Sprintf("%q", parents) {
		b.Errorf("clean sees %s, want %q", got, parents)
	}
}

func TestAlways_RunsAfterParentsThatEndedInAnyWay(t *testing.T) {
	t.Parallel()
	for failing, ended := range map[string]string{
		"": "SUCCEEDED SUCCEEDED ", "work": "DEAD CANCELLED ", "more": "SUCCEEDED DEAD ",
	} {
		for _, policy := range []dag.Policy{dag.CancelDownstream, dag.Continue} {
			t.Run(fmt.Sprintf("under %s, %q fails", policy, failing), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.fails = func(row job.Row) bool { return row.Node == failing }
				d := cleaned()
				d.OnFailure = policy
				b.create(d)
				b.calm()
				want, parents := run.Failed, ended
				if failing == "" || policy == dag.Continue {
					want = run.Succeeded
				}
				if policy == dag.Continue && failing == "work" {
					parents = "DEAD SUCCEEDED "
				}
				b.ends(want, parents, job.Succeeded, "")
			})
		}
	}
}

func TestAlways_RunsInACancelledRunOnceItsParentsHaveEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	work := b.current("work")
	b.start(work)
	b.cancel()
	b.is("more", job.Cancelled, run.ReasonCancelled)
	b.is("report", job.Cancelled, run.ReasonCancelled)
	if row := b.current("clean"); row.Status != "" {
		t.Errorf("clean is %s before its parent has ended", row.Status)
	}
	is := b.run()
	if is.Shown() != run.Running || !is.StoppedAt.Equal(b.now) {
		t.Errorf("the run is %s, stopped at %s", is.Shown(), is.StoppedAt)
	}
	b.finish(work, true)
	b.runIs(run.Running)
	b.calm()
	b.ends(run.Cancelled, "SUCCEEDED CANCELLED ", job.Cancelled, run.ReasonCancelled)
}

func TestAlways_RunsInARunThatIsCancelledBeforeAnythingHasStarted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*runs.Request){
		"that is due":                func(*runs.Request) {},
		"that is due only next week": func(n *runs.Request) { n.DueAt = noon.Add(7 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(always(cleaned(), "work"), change)
			late := b.current("work").DueAt.After(b.now)
			b.cancel()
			b.calm()
			if late { // what waits with the run for its time has nothing to come after
				b.ends(run.Cancelled, "CANCELLED CANCELLED ", job.Cancelled, run.ReasonCancelled)
				return
			}
			b.ends(run.Cancelled, "SUCCEEDED CANCELLED ", job.Cancelled, run.ReasonCancelled)
		})
	}
}

func TestAlways_GoesOnWhenItsRunIsCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	for name, started := range map[string]bool{"while it runs": true, "while it waits for a worker": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(cleaned())
			b.one()
			b.one()
			clean := b.current("clean")
			if started {
				b.start(clean)
			}
			b.cancel()
			if row := b.current("clean"); row.Status.Final() || row.Stop != job.NoStop {
				t.Fatalf("clean is %s, stop %q", row.Status, row.Stop)
			}
			if started {
				b.finish(clean, true)
			}
			b.calm()
			b.ends(run.Cancelled, "SUCCEEDED SUCCEEDED ", job.Cancelled, run.ReasonCancelled)
		})
	}
}

func TestAlways_IsStoppedByASecondCancel(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(b *bench){
		"while it is BLOCKED":         func(b *bench) { b.start(b.current("work")); b.cancel(); b.cancel() },
		"while it waits for a worker": func(b *bench) { b.one(); b.one(); b.cancel(); b.cancel() },
		"while it runs": func(b *bench) {
			b.one()
			b.one()
			b.start(b.current("clean"))
			b.cancel()
			b.cancel()
			if b.current("clean").Stop == job.NoStop {
				b.Error("clean is not asked to stop")
			}
			b.now = b.now.Add(contract.Lease + time.Second) // its worker has heeded that, or is lost
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(cleaned())
			do(b)
			if !b.run().Status.Final() {
				epoch := b.run().Epoch
				if b.cancel(); b.run().Epoch != epoch {
					t.Error("a third cancel changes the run")
				}
			}
			b.now = b.now.Add(contract.Lease + time.Second)
			b.settle()
			b.runIs(run.Cancelled)
			b.is("clean", job.Cancelled, run.ReasonCancelled)
			_, err := b.rel.Retry(context.Background(), b.key, "", by)
			b.Must(err)
			if is := b.run(); is.StopAll || !is.StoppedAt.IsZero() {
				t.Errorf("the retried run is stopped at %s, all %v", is.StoppedAt, is.StopAll)
			}
			b.calm()
			b.runIs(run.Succeeded)
		})
	}
}

func TestAlways_TakesACancelWhoseAnswerWasLostForOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	b.start(b.current("work"))
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		if c.Name == run.WriteStop {
			b.World.SetFaults(nil)
			return memory.Fault{Fail: fault.Conflict, Lost: true}
		}
		return memory.Fault{}
	})
	_, _ = b.rel.Cancel(context.Background(), b.key, by)
	if is := b.run(); is.Stop != run.StopCancel || is.StopAll {
		t.Errorf("after one cancel the stop is %q, all %v", is.Stop, is.StopAll)
	}
}

func TestAlways_TakesTwoCancelsAtOnceForOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	b.start(b.current("work"))
	b.Before(stagetest.Named(run.WriteStop), func() { b.cancel() })
	b.cancel()
	if is := b.run(); is.Stop != run.StopCancel || is.StopAll {
		t.Errorf("after two cancels at once the stop is %q, all %v", is.Stop, is.StopAll)
	}
}

func TestAlways_IsLeftAloneByAScheduleThatCancelsItsRunRepeatedly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	b.start(b.current("work"))
	for range 3 {
		row := job.Row{Key: job.Key{Tenant: b.key.Tenant, ID: b.key.ID}}
		b.Must(b.rel.CancelLaunched(context.Background(), row, "x"))
	}
	b.finish(b.current("work"), true)
	b.calm()
	b.ends(run.Cancelled, "SUCCEEDED CANCELLED ", job.Cancelled, run.ReasonCancelled)
}

func TestAlways_RunsInARunThatExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := cleaned()
	d.ExpireAfter = time.Hour
	b.create(d)
	work := b.current("work")
	b.start(work)
	b.now = b.now.Add(2 * time.Hour)
	b.finish(work, true)
	b.calm()
	b.ends(run.Failed, "SUCCEEDED CANCELLED ", job.Cancelled, run.ReasonExpired)
	if is := b.run(); is.Reason.Code != run.ReasonExpired {
		t.Errorf("the run failed for %q", is.Reason.Code)
	}
}

func TestAlways_RunsInARunThatFailsUnderCancelRun(t *testing.T) {
	t.Parallel()
	for _, parents := range []int{2, 7} { // more than four are counted
		t.Run(fmt.Sprintf("after %d parents", parents), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			nodes, after := []string{}, "clean:"
			for i := range parents {
				nodes = append(nodes, fmt.Sprintf("p%d", i))
				after += fmt.Sprintf(" p%d", i)
			}
			d := always(def(append(nodes, after, "report: clean")...), "clean")
			d.OnFailure = dag.CancelRun
			b.fails = func(row job.Row) bool { return row.Node == "p0" }
			b.create(d)
			for i := range parents {
				b.start(b.current(fmt.Sprintf("p%d", i)))
			}
			for i := range parents {
				b.finish(b.current(fmt.Sprintf("p%d", i)), true)
			}
			b.calm()
			b.runIs(run.Failed)
			b.is("clean", job.Succeeded, "")
			b.is("report", job.Cancelled, run.ReasonFailed)
		})
	}
}

func TestAlways_DoesNotChangeHowAStoppedRunEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(row job.Row) bool { return row.Node == "clean" }
	b.create(cleaned())
	b.cancel()
	b.calm()
	b.runIs(run.Cancelled)
	b.is("clean", job.Dead, "x")
}

func TestAlways_WaitsForANodeThatIsHeld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := cleaned()
	d.OnFailure = dag.Hold
	b.fails = func(row job.Row) bool { return row.Node == "work" && row.Generation == 1 }
	b.create(d)
	b.calm()
	b.runIs(run.Held)
	if row := b.current("clean"); row.Status != "" {
		t.Errorf("clean is %s, and more can still start", row.Status)
	}
	b.cancel()
	if is := b.run(); is.Shown() != run.Running {
		t.Errorf("the run is %s", is.Shown())
	}
	b.calm()
	b.ends(run.Cancelled, "DEAD CANCELLED ", job.Cancelled, run.ReasonCancelled)
	_, err := b.rel.Retry(context.Background(), b.key, "", by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
	if b.run().Generation("clean") != 1 {
		t.Error("clean has run once more, although it had succeeded")
	}
	b.is("report", job.Succeeded, "")
}

func TestAlways_RunsInAPausedRunThatIsCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	b.one()
	b.one()
	_, err := b.rel.Pause(context.Background(), b.key, by)
	b.Must(err)
	if step, _, err := b.admit(b.current("clean")); step != job.StepPark || err != nil {
		t.Fatalf("the paused run wants %s, %v", step, err)
	}
	b.cancel()
	if row := b.current("clean"); row.Parked {
		t.Error("clean is parked in a run that is not paused any more")
	}
	b.calm()
	b.ends(run.Cancelled, "SUCCEEDED SUCCEEDED ", job.Cancelled, run.ReasonCancelled)
}

func TestAlways_PutsTheItemsOfAStoppedRun(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(n *dag.Node, d *dag.Definition){
		"without a limit":       func(*dag.Node, *dag.Definition) {},
		"under max_parallel":    func(n *dag.Node, _ *dag.Definition) { n.MaxParallel = 1 },
		"under max_concurrency": func(_ *dag.Node, d *dag.Definition) { d.MaxConcurrency = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := cleaned()
			d = with(d, "clean", func(n *dag.Node) {
				n.ForEach = "${[1,2,3]}"
				limit(n, &d)
			})
			b.create(d)
			work := b.current("work")
			b.start(work)
			b.cancel()
			b.finish(work, true)
			b.calm()
			b.runIs(run.Cancelled)
			b.is("clean", job.Succeeded, "")
			for _, item := range b.items("clean", 1) {
				if item.Status != job.Succeeded || !item.Always {
					t.Errorf("item %d is %s", item.ItemNo, item.Status)
				}
			}
		})
	}
}

func TestAlways_ReleasesNothingElseOfAStoppedRunThatWaitsForAPermit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := always(def("a", "b", "c: a", "m"), "c")
	d = with(d, "m", func(n *dag.Node) { n.ForEach = "${[1,2,3]}" })
	d.MaxConcurrency = 1
	b.create(d)
	a := b.current("a")
	b.start(a)
	b.dies(run.WriteStop, func() { _, _ = b.rel.Cancel(context.Background(), b.key, by) })
	b.finish(a, true) // by a process that reads the stop before any other has done anything
	for _, name := range []string{"b", "m"} {
		if row := b.current(name); row.Status.Open() {
			t.Errorf("%s is released in a stopped run", name)
		}
	}
	b.settle()
	b.runIs(run.Cancelled)
	b.is("c", job.Succeeded, "")
	b.is("b", job.Cancelled, run.ReasonCancelled)
}

func TestAlways_DoesNotRunWhereWhatHasEndedMayBeForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	b.start(b.current("work"))
	b.now = b.now.Add(contract.NodeKept + time.Hour)
	b.settle()
	b.runIs(run.Failed)
	if row := b.current("clean"); row.Status != job.Cancelled {
		t.Errorf("clean is %s", row.Status)
	}
}

func TestAlways_RefusesOtherOperationsWhileTheRunIsStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(cleaned())
	b.start(b.current("work"))
	b.cancel()
	ctx := context.Background()
	for name, do := range map[string]func() error{
		"pause":    func() error { _, err := b.rel.Pause(ctx, b.key, by); return err },
		"resume":   func() error { _, err := b.rel.Resume(ctx, b.key, by); return err },
		"retry":    func() error { _, err := b.rel.Retry(ctx, b.key, "clean", by); return err },
		"skip":     func() error { _, err := b.rel.Skip(ctx, b.key, "clean", false, by); return err },
		"complete": func() error { _, err := b.rel.Complete(ctx, b.key, "clean", nil, by); return err },
	} {
		var wrong *runs.WrongState
		if err := do(); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
