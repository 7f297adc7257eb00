package runs_test

import (
	"context"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// tolerant is a definition of a node of four items, of which half may fail, and a node after it.
func tolerant() dag.Definition {
	d := with(def("m", "z: m"), "m", func(n *dag.Node) {
		n.ForEach, n.MaxFailed = "${[1,2,3,4]}", dag.MaxFailed{Percent: 50}
	})
	return with(d, "z", func(n *dag.Node) { n.Payload = []byte(`"${nodes.m.result} ${nodes.m.status}"`) })
}

func TestMaxFailed_CountsEveryItemThatDidNotSucceed(t *testing.T) {
	t.Parallel()
	for failing, want := range map[int64]job.Status{
		0: job.Succeeded, 1: job.Succeeded, 2: job.Succeeded, 3: job.Dead, 4: job.Dead,
	} {
		b := setup(t)
		b.fails = func(r job.Row) bool { return r.ItemNo > 0 && r.ItemNo <= failing }
		b.gives = func(r job.Row) string { return "7" }
		b.create(tolerant())
		b.calm()
		code := ""
		if want == job.Dead {
			code = "x"
		}
		b.is("m", want, code)
		if want == job.Succeeded {
			b.runIs(run.Succeeded)
		}
		if got := b.current("z").Payload; failing == 2 && got != `"[null,null,7,7] SUCCEEDED"` {
			t.Errorf("the child sees %s", got)
		}
	}
}

func TestMaxFailed_CountsItemsThatWereCancelledOneByOne(t *testing.T) {
	t.Parallel()
	for cancelled, want := range map[int]job.Status{2: job.Succeeded, 3: job.Dead} {
		b := setup(t)
		b.create(tolerant())
		for _, item := range b.items("m", 1)[:cancelled] {
			after, _, err := b.Stop(context.Background(), item, job.Reason{Code: job.CodeCancelled}, b.Now())
			b.Must(err)
			b.Must(b.rel.Ended(context.Background(), after))
		}
		b.calm()
		if row := b.current("m"); row.Status != want {
			t.Errorf("with %d items cancelled the node is %s, want %s", cancelled, row.Status, want)
		}
	}
}

func TestMaxFailed_DoesNotHideThatTheRunWasCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(tolerant(), "m", func(n *dag.Node) { n.MaxFailed = dag.MaxFailed{Count: 4} })
	b.create(d)
	for _, item := range b.items("m", 1)[:2] {
		b.start(item)
		b.finish(item, true)
	}
	_, err := b.rel.Cancel(context.Background(), b.key, by)
	b.Must(err)
	b.calm()
	b.runIs(run.Cancelled)
	b.is("m", job.Cancelled, run.ReasonCancelled)
	_, err = b.rel.Retry(context.Background(), b.key, "", by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
}

func TestMaxFailed_UnderCancelRunStopsNothingWhileItHolds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := tolerant()
	d.OnFailure = dag.CancelRun
	b.fails = func(r job.Row) bool { return r.ItemNo == 1 }
	b.create(d)
	b.calm()
	b.runIs(run.Succeeded)
}
