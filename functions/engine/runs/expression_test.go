package runs_test

import (
	"strings"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestRelease_HandsOnWhatAnHTTPNodeAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(def("call", "pay: call", "skip: call", "after: skip"), "call", func(n *dag.Node) { n.Task = "http" })
	d = with(d, "pay", func(n *dag.Node) {
		n.When = "nodes.call.result.json.rows[0].open"
		n.Payload = []byte(`{"amount":"${nodes.call.result.json.rows[0].amount}"}`)
	})
	d = with(d, "skip", func(n *dag.Node) { n.When = "!nodes.call.result.json.rows[0].open" })
	d = with(d, "after", func(n *dag.Node) {
		n.RunIf = dag.AllDone
		n.Payload = []byte(`"${nodes.skip.result.rows}"`)
	})
	b.gives = func(row job.Row) string {
		if row.Node != "call" {
			return ""
		}
		return `{"status":200,"truncated":false,"content_type":"application/json",` +
			`"body":"{\"rows\":[{\"open\":true,\"amount\":12345678901234567.89}]}"}`
	}
	b.create(d)
	b.calm()
	b.runIs(run.Failed)
	if got := b.current("pay").Payload; got != `{"amount":12345678901234567.89}` {
		t.Errorf("the next node works on %s", got)
	}
	b.is("skip", job.Skipped, dag.ReasonWhenFalse)
	b.is("after", job.Dead, dag.ReasonExpressionFailed)
	if says := b.current("after").Reason.Message; !strings.Contains(says, "skip was skipped, its result is null") {
		t.Errorf("it says %q", says)
	}
}
