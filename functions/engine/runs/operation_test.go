package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"punctual/functions/engine/runs"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestOperations_SayWhichStateForbidsThem(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const (
		goingOn   = "BUILDING RUNNING PAUSED HELD"
		retryable = goingOn + " SUCCEEDED FAILED CANCELLED"
		failed    = "DEAD EXPIRED CANCELLED"
		forceable = "BLOCKED SCHEDULED QUEUED " + failed
	)
	retry := func(b *bench, _ string) error { _, err := b.rel.Retry(ctx, b.key, "", by); return err }
	retryNode := func(b *bench, node string) error { _, err := b.rel.RetryNode(ctx, b.key, node, by); return err }
	skip := func(b *bench, node string) error { _, err := b.rel.Skip(ctx, b.key, node, false, by); return err }
	complete := func(b *bench, node string) error { _, err := b.rel.Complete(ctx, b.key, node, nil, by); return err }
	none := func(*bench) {}
	begun := func(b *bench) {
		begun, write := b.run().Begin(run.Operation{ID: "1", Kind: run.OperationRetryFrom, Node: "done"}, b.now)
		b.Must(b.Store.WriteRun(ctx, begun, write))
	}
	stopping := func(b *bench) { b.dies(run.WriteStop, func() { _, _ = b.rel.Cancel(ctx, b.key, by) }) }
	const busy, stops = "somebody else is changing the run just now", "the run is being stopped"
	for name, c := range map[string]struct {
		operate func(b *bench, node string) error
		node    string
		before  func(b *bench)
		want    string
	}{
		"a retry of a node that is blocked": {retryNode, "blocked", none, "node BLOCKED " + failed},
		"a retry of a node that runs":       {retryNode, "runs", none, "node RUNNING " + failed},
		"a retry of a node that succeeded":  {retryNode, "done", none, "node SUCCEEDED " + failed},
		"a retry under another act":         {retry, "", begun, "run RUNNING " + goingOn + ": " + busy},
		"a retry of a run that is stopped": {retry, "", stopping,
			"run RUNNING " + retryable + ": " + stops + ": retry it once it has ended"},
		"a skip of a node that runs":      {skip, "runs", none, "node RUNNING " + forceable},
		"a complete of a node that runs":  {complete, "runs", none, "node RUNNING " + forceable},
		"a skip of a node that succeeded": {skip, "done", none, "node SUCCEEDED " + forceable},
		"a skip of a node that has items": {skip, "items", none, "node RUNNING " + forceable +
			": items of the node are released: wait for them, or cancel their jobs first"},
		"a skip under another act": {skip, "blocked", begun, "run RUNNING " + goingOn + ": " + busy},
		"a complete of a node in a run that is stopped": {complete, "blocked", stopping,
			"run RUNNING " + goingOn + ": " + stops},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("runs", "dead", "done", "items", "blocked: runs")
			b.fails = func(r job.Row) bool { return r.Node == "dead" }
			b.create(with(d, "items", func(n *dag.Node) { n.ForEach = "${[1]}" }))
			for _, node := range []string{"runs", "dead", "done"} {
				row := b.current(node)
				b.start(row)
				if node != "runs" {
					b.finish(row, true)
				}
			}
			c.before(b)
			err := c.operate(b, c.node)
			var wrong *runs.WrongState
			if !errors.As(err, &wrong) {
				t.Fatalf("it is answered %v", err)
			}
			got := wrong.Of + " " + wrong.Is
			for _, s := range wrong.Allowed {
				got += " " + s
			}
			if wrong.Detail != "" {
				got += ": " + wrong.Detail
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if says := fmt.Sprint(wrong); wrong.Detail != "" && says != wrong.Detail {
				t.Errorf("it says %q", says)
			}
		})
	}
}
