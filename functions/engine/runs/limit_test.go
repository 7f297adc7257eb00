package runs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

// with changes one node of a definition.
func with(d dag.Definition, node string, change func(n *dag.Node)) dag.Definition {
	n := d.Nodes[node]
	change(&n)
	d.Nodes[node] = n
	return d
}

func TestMaxConcurrency_GivesASlotThatIsFreedJustBeforeANodeJoinsTheLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b")
	d.MaxConcurrency = 1
	b.Before(stagetest.Named(run.WriteAddWaiters), func() {
		a := b.current("a")
		b.start(a)
		b.finish(a, true) // the line is still empty
	})
	b.create(d)
	b.is("b", job.Scheduled, "")
}

func TestMaxConcurrency_ReleasesNothingOfARunThatIsJustStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b")
	d.MaxConcurrency = 1
	b.create(d)
	a := b.current("a")
	b.start(a)
	b.dies(run.WriteStop, func() { _, _ = b.rel.Cancel(context.Background(), b.key, by) })
	b.finish(a, true)
	if row := b.current("b"); row.Status != "" {
		t.Errorf("b is %s", row.Status)
	}
	b.settle()
	b.runIs(run.Cancelled)
	b.is("b", job.Cancelled, run.ReasonCancelled)
}

func TestMaxParallel_HeedsAPauseAndACancel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	mapped := func(b *bench) {
		b.create(with(def("m"), "m", func(n *dag.Node) { n.ForEach, n.MaxParallel = "${[1,2,3]}", 1 }))
		b.start(b.items("m", 1)[0])
	}
	t.Run("a paused run releases no further item", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		mapped(b)
		_, err := b.rel.Pause(ctx, b.key, by)
		b.Must(err)
		b.finish(b.items("m", 1)[0], true)
		if n := len(b.items("m", 1)); n != 1 {
			t.Errorf("%d items have a row", n)
		}
		_, err = b.rel.Resume(ctx, b.key, by)
		b.Must(err)
		b.calm()
		b.runIs(run.Succeeded)
	})
	t.Run("a cancelled run cancels the items that were never released", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		mapped(b)
		_, err := b.rel.Cancel(ctx, b.key, by)
		b.Must(err)
		b.finish(b.items("m", 1)[0], true)
		items := b.items("m", 1)
		got := fmt.Sprint(len(items))
		for _, row := range items {
			got += " " + string(row.Status) + " " + row.Reason.Code
		}
		if want := "3 SUCCEEDED  CANCELLED run_cancelled CANCELLED run_cancelled"; got != want {
			t.Errorf("the items are %s, want %s", got, want)
		}
		b.is("m", job.Cancelled, run.ReasonCancelled)
		b.runIs(run.Cancelled)
	})
}

func TestMapped_IsDeadIfItsRunWouldHaveTooManyJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others int64
		want   job.Status
		code   string
	}{
		"with as many as there may be": {dag.MaxJobs - 1 - 3, job.Blocked, ""},
		"with one more":                {dag.MaxJobs - 1 - 2, job.Dead, dag.ReasonExpressionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(with(def("a", "m: a"), "m", func(n *dag.Node) { n.ForEach = "${[1,2,3]}" }))
			b.Write(b.key.CountItems(c.others, dag.MaxJobs, time.Now()))
			a := b.current("a")
			b.start(a)
			b.finish(a, true)
			b.is("m", c.want, c.code)
			if c.want == job.Dead {
				b.runIs(run.Failed)
			}
		})
	}
}

func TestMapped_EndsAsItsExpressionsSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "absent: a", "none: a", "items: a")
	d = with(d, "absent", func(n *dag.Node) { n.ForEach = "${nodes.a.result.absent}" })
	d = with(d, "none", func(n *dag.Node) { n.ForEach = "${nodes.a.result.n}" })
	d = with(d, "items", func(n *dag.Node) {
		n.ForEach, n.Payload = "${[1,0,2]}", []byte(`"${nodes.a.result.n / item}"`)
	})
	d.MaxConcurrency = 1
	b.gives = func(r job.Row) string {
		if r.Node == "a" {
			return `{"n":4}`
		}
		return r.Payload
	}
	b.create(d)
	b.calm()
	for _, node := range []string{"absent", "none", "items"} {
		b.is(node, job.Dead, dag.ReasonExpressionFailed)
	}
	got := ""
	for _, row := range b.items("items", 1) {
		got += fmt.Sprintf("%s %s %s,", row.Status, row.Reason.Code, row.Result)
	}
	if want := "SUCCEEDED  4,DEAD expression_failed ,SUCCEEDED  2,"; got != want {
		t.Errorf("the items are %s want %s", got, want)
	}
	if says := b.current("items").Reason.Message; !strings.HasPrefix(says, "item 1: ") {
		t.Errorf("the node says %q", says)
	}
	b.runIs(run.Failed)
}

func TestRetry_CarriesOverTheItemsThatSucceeded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	large := `"` + strings.Repeat("x", contract.MaxInlineResult) + `"`
	for name, c := range map[string]struct {
		operate func(b *bench) error
		starts  string // of the items of the newest generation
	}{
		"of a retry of what failed": {func(b *bench) error {
			_, err := b.rel.Retry(ctx, b.key, "", by)
			return err
		}, "0 1 0"},
		"not of a retry from the node": {func(b *bench) error {
			_, err := b.rel.Retry(ctx, b.key, "m", by)
			return err
		}, "1 1 1"},
		"not of a retry from its parent": {func(b *bench) error {
			_, err := b.rel.Retry(ctx, b.key, "a", by)
			return err
		}, "1 1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := with(def("a", "m: a", "z: m"), "m", func(n *dag.Node) { n.ForEach = "${nodes.a.result}" })
			d = with(d, "z", func(n *dag.Node) { n.Payload = []byte(`["${size(nodes.m.result[0])}","${nodes.m.result[2]}"]`) })
			b.fails = func(r job.Row) bool { return r.ItemNo == 2 && r.Generation == 1 }
			b.gives = func(r job.Row) string {
				switch {
				case r.Node == "a":
					return "[1,2,3]"
				case r.ItemNo == 1:
					return large
				}
				return fmt.Sprint(r.ItemNo)
			}
			b.create(d)
			b.calm()
			b.is("m", job.Dead, "x")
			began := b.now
			b.now = b.now.Add(1e9)
			b.Must(c.operate(b))
			b.calm()
			b.runIs(run.Succeeded)
			var starts []string
			for _, row := range b.items("m", 2) {
				starts = append(starts, fmt.Sprint(b.started[row.ID]))
				if carried := b.started[row.ID] == 0; row.StartedAt.Equal(began) != carried {
					t.Errorf("item %d started at %s", row.ItemNo, row.StartedAt)
				}
			}
			if got := strings.Join(starts, " "); got != c.starts {
				t.Errorf("the items started %s times, want %s", got, c.starts)
			}
			if got, want := b.current("z").Payload, fmt.Sprintf("[%d,3]", len(large)-2); got != want {
				t.Errorf("z sees %s, want %s", got, want)
			}
		})
	}
}

func TestRetry_RunsAllItemsAgainWithAParentThatFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(def("a", "m: a"), "m", func(n *dag.Node) { n.ForEach, n.RunIf = "${[1,2]}", dag.AllDone })
	b.fails = func(r job.Row) bool { return r.Generation == 1 && r.ItemNo != 2 }
	b.create(d)
	b.calm()
	_, err := b.rel.Retry(context.Background(), b.key, "", by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
	for _, row := range b.items("m", 2) {
		if b.started[row.ID] != 1 {
			t.Errorf("item %d started %d times", row.ItemNo, b.started[row.ID])
		}
	}
}

func TestMaxConcurrency_GivesAPlaceThatIsFreedAfterItsEndHasLookedIntoTheLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "p", "c1: p", "c2: p")
	d.MaxConcurrency = 2
	b.create(d)
	a, p := b.current("a"), b.current("p")
	b.start(a)
	b.start(p)
	// one child gets the place of p, the other none
	b.Before(stagetest.Named(run.WriteFreeSlot), func() { b.finish(p, true) })
	b.finish(a, true)
	b.is("c1", job.Scheduled, "")
	b.is("c2", job.Scheduled, "")
}

func TestMaxParallel_GoesOnIfAnotherEndMeetsItsNodeAmongTheWaiters(t *testing.T) {
	t.Parallel()
	for _, write := range []string{run.WriteAddWaiters, run.WriteFreeSlot} {
		t.Run("just before "+write, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := with(def("a", "p", "m", "v: p", "w: p"), "m",
				func(n *dag.Node) { n.ForEach, n.MaxParallel = "${[1,2]}", 1 })
			d.MaxConcurrency = 3
			b.create(d)
			a, p, first := b.current("a"), b.current("p"), b.items("m", 1)[0]
			for _, row := range []job.Row{a, p, first} {
				b.start(row)
			}
			b.finish(p, true) // v gets its permit of the run, and w waits
			b.Before(stagetest.Named(write), func() { b.finish(a, true) })
			b.finish(first, true) // w gets its permit of the run, so m waits
			b.is("v", job.Scheduled, "")
			b.is("w", job.Scheduled, "")
			if n := len(b.items("m", 1)); n != 2 {
				t.Errorf("%d items have a row while the run has a free permit, want 2", n)
			}
		})
	}
}

func TestMaxConcurrency_FreesThePlacesOfEndedJobsWhenTheRunIsReconciled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b")
	d.MaxConcurrency = 1
	b.create(d)
	a := b.current("a")
	b.start(a)
	b.finish(a, false)
	// A process of the version before knows no buckets: it propagates the end and frees nothing.
	b.Write(item.Write{Ref: a.Ref(), Set: map[string]any{"owes": nil}})
	b.Must(b.rel.Reconcile(context.Background(), b.key))
	b.is("b", job.Scheduled, "")
}

func TestMaxParallel_GoesOnUnderTheLimitOfTheRun(t *testing.T) {
	t.Parallel()
	for run := 1; run <= 4; run++ {
		for node := range 4 {
			t.Run(fmt.Sprintf("%d of the run, %d of each node", run, node), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				d := def("a", "m", "n", "z: m n")
				for _, name := range []string{"m", "n"} {
					d = with(d, name, func(n *dag.Node) { n.ForEach, n.MaxParallel = "${[1,2,3,4,5,6,7]}", node })
				}
				d.MaxConcurrency = run
				b.create(d)
				for {
					open := b.openRows()
					of := map[string]int{}
					for _, row := range open {
						of[row.Node]++
					}
					if len(open) > run || node > 0 && (of["m"] > node || of["n"] > node) {
						t.Fatalf("open are %v", of)
					}
					if len(open) == 0 {
						break
					}
					b.start(open[len(open)/2])
					b.finish(open[len(open)/2], true)
				}
				b.calm()
				if is := b.run(); is.Status != "SUCCEEDED" {
					t.Errorf("the run is %s", is.Status)
				}
			})
		}
	}
}

// The end frees its permit and then searches for nodes that joined the waiters meanwhile. If that fails at first,
// another try has to search, although it has no permit to free any more.
func TestMaxConcurrency_ReleasesAWaiterAlsoIfTheLookAfterTheEndFailsAtFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "p", "c1: p", "c2: p")
	d.MaxConcurrency = 2
	b.create(d)
	a, p := b.current("a"), b.current("p")
	b.start(a)
	b.start(p)
	freed, failed := false, false
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		switch {
		case c.Name == run.WriteFreeSlot && !freed:
			freed = true
			b.finish(p, true)
		case c.Name == run.WriteClaimWaiter && freed && !failed:
			failed = true
			return memory.Fault{Fail: fault.Conflict}
		}
		return memory.Fault{}
	})
	b.finish(a, true)
	b.is("c1", job.Scheduled, "")
	b.is("c2", job.Scheduled, "")
}

// A reconcile evaluates all nodes by one read. A node that joins the waiters after that read waits by a newer end of
// its parent, and the process that takes it out of the line has to see that end.
func TestReconcile_ReleasesAWaiterThatJoinedAfterItsRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b", "w", "c: b")
	d.MaxConcurrency = 2
	b.create(d) // w waits
	first, second := b.current("a"), b.current("b")
	b.start(first)
	b.start(second)
	b.Before(stagetest.Named(run.WriteAddWaiters), func() {
		b.finish(second, true) // w gets its place, and c waits
		b.finish(first, false) // the reconcile frees its place, and takes c out of the line
	})
	b.Must(b.rel.Reconcile(context.Background(), b.key))
	b.Must(b.rel.Ended(context.Background(), b.current("a")))
	b.is("w", job.Scheduled, "")
	b.is("c", job.Scheduled, "")
}

// A node that was taken out of the line and found no place joins it again. An end that fails in between finds the node
// by its mark when it is propagated once more.
func TestMaxConcurrency_FindsAClaimedWaiterAgainThatFoundNoPlace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	d := def("a", "b", "c")
	d.MaxConcurrency = 2
	b.create(d) // c waits
	a := b.current("a")
	b.start(a)
	bucket := run.Bucket{Key: b.key}
	claimed, failed := false, false
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		switch {
		case c.Name == run.WriteClaimWaiter && !claimed: // the place of a goes to another
			claimed = true
			b.Write(bucket.Pass(a.ID, "other"))
		case c.Name == run.WriteAddWaiters && !failed:
			failed = true
			return memory.Fault{Fail: fault.Conflict}
		}
		return memory.Fault{}
	})
	b.finish(a, true)
	waiters, err := b.Store.Waiters(ctx, b.key, len(d.Nodes))
	b.Must(err)
	if !failed || waiters.Waiting[2] != 1 || len(waiters.Claimed) > 0 {
		t.Errorf("the waiters are %+v, want c in generation 1 and no mark", waiters)
	}
}

// An end is propagated by the run as it was read before the operation; the generation that waits is newer.
func TestRetry_ReleasesAWaiterThatAnEndFindsWhichReadTheRunBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Generation == 1 && r.Node != "z" }
	d := def("a", "b", "z")
	d.MaxConcurrency = 1
	b.create(d)
	for _, node := range []string{"a", "b"} {
		row := b.current(node)
		b.start(row)
		b.finish(row, true)
	}
	z := b.current("z")
	b.start(z)
	waiters := func(c memory.Call) bool { return c.Op == memory.TableGetMany && strings.HasPrefix(c.Ref.SK, "line#") }
	b.Before(waiters, func() {
		_, err := b.rel.Retry(context.Background(), b.key, "", by) // a gets the place of z, and b waits
		b.Must(err)
	})
	b.finish(z, true)
	b.calm()
	b.is("a", job.Succeeded, "")
	b.is("b", job.Succeeded, "")
}
