package runs_test

import (
	"context"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// use names limit github with a key.
func use(key string) *[]job.LimitKey { return &[]job.LimitKey{{Name: "github", Key: key}} }

func TestRelease_CountsEachJobUnderTheLimitsOfItsNode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Store.UpdateTask(context.Background(), b.key.Tenant, "limited", func(*job.Task) (job.Task, error) {
		return job.Task{Name: "limited", Executor: "go", Pool: contract.DefaultPool, Priority: job.Normal,
			Timeout: contract.DefaultTimeout, Retry: job.DefaultRetry,
			Limits: job.LimitsOf(job.LimitKey{Name: "all"})}, nil
	})
	b.Must(err)
	d := def("a", "keyed: a", "none: a", "tasks: a", "list: a", "wrong: a")
	for name, n := range d.Nodes {
		if name != "a" {
			n.Task = "limited"
		}
		d.Nodes[name] = n
	}
	d = with(d, "keyed", func(n *dag.Node) { n.Limits = use("acct-${nodes.a.result.n}") })
	d = with(d, "none", func(n *dag.Node) { n.Limits = &[]job.LimitKey{} })
	d = with(d, "list", func(n *dag.Node) {
		n.ForEach, n.Limits = `${["x", 7, null]}`, use("${item}")
	})
	d = with(d, "wrong", func(n *dag.Node) { n.Limits = use("${nodes.a.result}") })
	b.gives = func(row job.Row) string { return `{"n":42}` }
	b.create(d)
	b.calm()
	b.runIs(run.Failed)
	for node, want := range map[string]job.Limits{
		"keyed": job.LimitsOf(job.LimitKey{Name: "github", Key: "acct-42"}), "none": "",
		"tasks": job.LimitsOf(job.LimitKey{Name: "all"}), "list": "",
	} {
		if got := b.current(node).Limits; got != want {
			t.Errorf("node %s counts under %q, want %q", node, got, want)
		}
	}
	b.is("wrong", job.Dead, dag.ReasonExpressionFailed)
	b.is("list", job.Dead, dag.ReasonExpressionFailed)
	items := b.items("list", 1)
	for i, want := range []string{"x", "7"} {
		limits := job.LimitsOf(job.LimitKey{Name: "github", Key: want})
		if got := items[i]; got.Limits != limits || got.Status != job.Succeeded {
			t.Errorf("item %d is %s and counts under %q", i, got.Status, got.Limits)
		}
	}
	if got := items[2]; got.Status != job.Dead || got.Reason.Code != dag.ReasonExpressionFailed {
		t.Errorf("the item whose key is null is %s: %+v", got.Status, got.Reason)
	}
}
