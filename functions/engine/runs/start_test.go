package runs_test

import (
	"context"
	"testing"

	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestAdmit_SaysWhyAJobMayNotStart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		change func(b *bench)
		want   job.Reason
	}{
		"its run is being cancelled": {func(b *bench) {
			b.dies(run.WriteStop, func() { _, _ = b.rel.Cancel(ctx, b.key, by) })
		}, job.Reason{Code: run.ReasonCancelled}},
		"its run is over": {func(b *bench) { b.settle() }, job.Reason{
			Code: run.ReasonCancelled, Message: "the run is over",
		}},
		"its run is forgotten": {func(b *bench) {
			b.Write(item.Write{Ref: b.run().Ref(), Name: "test.forget", Delete: true})
		}, job.Reason{Code: run.ReasonCancelled}},
		"its node has a newer generation": {func(b *bench) {
			_, err := b.rel.Retry(ctx, b.key, "a", by)
			b.Must(err)
		}, job.Reason{Code: job.CodeCancelled, Message: "a newer generation of the node counts"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(def("a"))
			late := b.current("a") // one that was released by the old facts
			late.Key, late.ItemNo = b.key.Job("a", 1, 7), 7
			c.change(b)
			b.Must(b.Store.Accept(ctx, late))
			step, done, err := b.admit(late)
			if step != job.StepFinishStop || !done || err != nil {
				t.Errorf("%s, done %v, %v", step, done, err)
			}
			rows, err := b.Store.Nodes(ctx, []job.Key{late.Key})
			b.Must(err)
			if rows[0].Status != job.Cancelled || rows[0].Reason != c.want {
				t.Errorf("it is %s: %+v", rows[0].Status, rows[0].Reason)
			}
		})
	}
}

func TestRedrive_SaysWhetherItIsWorthRepeating(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		node   string
		change func(b *bench)
		want   fault.Kind // "": no error, the node was retried by another process
	}{
		"while an act is begun": {"a", func(b *bench) {
			begun, write := b.run().Begin(run.Operation{ID: "1", Kind: run.OperationRetryFrom, Node: "z"}, b.now)
			b.Must(b.Store.WriteRun(ctx, begun, write))
		}, fault.Conflict},
		"while the run is being stopped": {"a", func(b *bench) {
			b.dies(run.WriteStop, func() { _, _ = b.rel.Cancel(ctx, b.key, by) })
		}, fault.Conflict},
		"of a job that succeeded": {"z", func(*bench) {}, fault.Refused},
		"just after somebody else's": {"a", func(b *bench) {
			b.Before(stagetest.Named(run.WriteBegin), func() {
				_, err := b.rel.RetryNode(ctx, b.key, "a", by)
				b.Must(err)
			})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.fails = func(r job.Row) bool { return r.Node == "a" }
			b.create(def("a", "x", "z"))
			for _, node := range []string{"a", "z"} {
				row := b.current(node)
				b.start(row)
				b.finish(row, true)
			}
			of := b.current(c.node)
			c.change(b)
			next, already, err := b.rel.Redrive(ctx, of.Key)
			if c.want != "" {
				if fault.KindOf(err) != c.want {
					t.Errorf("it is answered %v, want %s", err, c.want)
				}
				return
			}
			b.Must(err)
			if !already || next != b.key.Job("a", 2, 0).ID || b.run().Generation("a") != 2 {
				t.Errorf("already %v, by %s, and a is of generation %d", already, next, b.run().Generation("a"))
			}
		})
	}
}

func TestAdmit_LetsADeadlineEndWhatAPausedRunHolds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.create(def("a"))
	_, err := b.rel.Pause(ctx, b.key, by)
	b.Must(err)
	step, done, err := b.admitFor(b.current("a"), job.StepExpire)
	if step != job.StepExpire || done || err != nil {
		t.Errorf("%s, done %v, %v", step, done, err)
	}
}
