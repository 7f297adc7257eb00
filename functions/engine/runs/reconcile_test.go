package runs_test

import (
	"context"
	"testing"

	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

// dies calls do as a process that crashes just after the write of that name.
func (b *bench) dies(name string, do func()) {
	b.Helper()
	wrote := false
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		if wrote {
			return memory.Fault{Fail: fault.Unavailable}
		}
		wrote = c.Name == name
		return memory.Fault{}
	})
	do()
	b.World.SetFaults(nil)
	if !wrote {
		b.Errorf("there was no write %s", name)
	}
}

func TestReconcile_ClosesAMappedNodeOfWhichAllItemsHaveEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("m", "z: m")
	m := d.Nodes["m"]
	m.ForEach = "${[1,2]}"
	d.Nodes["m"] = m
	b.create(d)
	for _, row := range b.items("m", 1) {
		b.start(row)
		b.finish(row, false) // a crash keeps it from being announced
	}
	b.Must(b.rel.Reconcile(context.Background(), b.key))
	b.is("m", job.Succeeded, "")
	b.is("z", job.Scheduled, "")
}

func TestEnded_ReleasesNothingBetweenTheTwoWritesOfAnAct(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "x" && r.Generation == 1 }
	b.create(def("a", "x", "b: a", "y: x"))
	x := b.current("x")
	b.start(x)
	b.finish(x, true)
	a := b.current("a")
	b.start(a)
	begun, write := b.run().Begin(run.Operation{ID: "1", Kind: run.OperationRetryNode, Node: "x"}, b.now)
	b.Must(b.Store.WriteRun(ctx, begun, write))
	b.finish(a, true)
	if row := b.current("b"); row.Status != "" {
		t.Errorf("b is %s", row.Status)
	}
	b.Must(b.rel.Reconcile(ctx, b.key))
	b.is("b", job.Scheduled, "")
	b.calm()
	b.runIs(run.Succeeded)
}

func TestReconcile_EvaluatesChildrenByTheRowThatWasFaster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(def("a", "b: a", "c: b"))
	a := b.current("a")
	b.start(a)
	b.finish(a, false)
	b.Before(stagetest.Named(job.WriteAcceptEnded), func() { // b is about to be cancelled
		b.dies(run.WriteTouch, func() { _, _ = b.rel.Skip(ctx, b.key, "b", false, by) })
	})
	b.Must(b.rel.Reconcile(ctx, b.key))
	b.is("b", job.Skipped, dag.ReasonSkippedByOperator)
	b.is("c", job.Scheduled, "")
}

func TestCancel_LeavesNoPendingEffects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b: a", "m")
	m := d.Nodes["m"]
	m.ForEach = "${[1,2]}"
	d.Nodes["m"] = m
	b.create(d)
	_, err := b.rel.Cancel(context.Background(), b.key, by)
	b.Must(err)
	b.runIs(run.Cancelled)
	for _, row := range b.rows() {
		if row.Status != job.Cancelled || row.PendingEffects != job.NoPendingEffects {
			t.Errorf("node %q is %s with pending effects %q", row.Node, row.Status, row.PendingEffects)
		}
	}
}

func TestCancel_KeepsWhatAnOperatorHasCompleted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(def("a", "x"))
	a := b.current("a")
	b.start(a)
	b.finish(a, true)
	b.dies(run.WriteFinish, func() { _, _ = b.rel.Complete(ctx, b.key, "a", []byte("1"), by) })
	_, err := b.rel.Cancel(ctx, b.key, by)
	b.Must(err)
	b.runIs(run.Cancelled)
	b.is("a", job.Succeeded, dag.ReasonCompletedByOperator)
	b.is("x", job.Cancelled, run.ReasonCancelled)
}

func TestCancel_EndsAJobThatWasReleasedJustBefore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.create(def("a", "b: a"))
	a := b.current("a")
	b.start(a)
	b.Before(stagetest.Named(job.WriteAcceptEnded), func() {
		late := a
		late.Node, late.Key = "b", b.run().Job("b")
		b.Must(b.Store.Accept(ctx, late))
	})
	_, err := b.rel.Cancel(ctx, b.key, by)
	b.Must(err)
	b.is("b", job.Cancelled, run.ReasonCancelled)
}

func TestReconcile_WithdrawsAnOperationThatFindsNothingToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(def("a", "b: a"))
	a := b.current("a")
	b.start(a)
	b.finish(a, true)
	begun, write := b.run().Begin(run.Operation{ID: "1", Kind: run.OperationRetryNode, Node: "a"}, b.now)
	b.Must(b.Store.WriteRun(context.Background(), begun, write))
	b.settle()
	b.runIs(run.Succeeded)
	if is := b.run(); is.Generation("a") != 1 {
		t.Errorf("a is of generation %d", is.Generation("a"))
	}
}

func TestEnded_KeepsAFailureForTheRunUnderAnAct(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	d := def("a", "x", "b: a")
	d.OnFailure = dag.CancelRun
	b.fails = func(r job.Row) bool { return r.Node == "x" }
	b.create(d)
	a, x := b.current("a"), b.current("x")
	b.start(a)
	b.finish(a, true)
	b.start(x)
	begun, write := b.run().Begin(run.Operation{ID: "1", Kind: run.OperationRetryFrom, Node: "a"}, b.now)
	b.Must(b.Store.WriteRun(ctx, begun, write))
	b.finish(x, true)
	if is := b.run(); is.Stop != run.NoStop {
		t.Errorf("the run is stopped under an act: %s", is.Stop)
	}
	if x = b.current("x"); !x.PendingEffects.Children() {
		t.Error("nobody will tell of the failure again")
	}
	b.Must(b.rel.Reconcile(ctx, b.key))
	b.Must(b.rel.Ended(ctx, x))
	b.settle()
	b.runIs(run.Failed)
	b.is("b", job.Cancelled, run.ReasonFailed)
}

func TestEnded_StopsARunThatHasExpired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b: a")
	d.ExpireAfter = 3600e9
	b.create(d)
	a := b.current("a")
	b.start(a)
	b.now = b.now.Add(2 * 3600e9)
	b.finish(a, true)
	b.runIs(run.Failed)
	b.is("b", job.Cancelled, run.ReasonExpired)
	if why := b.run().Reason; why.Code != run.ReasonExpired || why.Message != "expire_after has passed" {
		t.Errorf("the run says %+v", why)
	}
}
