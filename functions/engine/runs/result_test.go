package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// rowsOf is a result with a list of n numbers, of about seven bytes each.
func rowsOf(n int) string {
	return `{"refunds":2,"rows":[` + strings.TrimSuffix(strings.Repeat("123456,", n), ",") + `]}`
}

//proof:of F68
func TestResult_IsReadWholeHoweverLarge(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 600, 2_000, 30_000} {
		t.Run(fmt.Sprintf("reads %d rows", n), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := with(def("orders", "pay: orders", "nothing: orders"), "pay", func(x *dag.Node) {
				x.When = "has(nodes.orders.result.refunds)"
				x.Payload = []byte(`"${size(nodes.orders.result.rows)}"`)
			})
			d = with(d, "nothing", func(x *dag.Node) { x.When = "!has(nodes.orders.result.refunds)" })
			b.gives = func(row job.Row) string {
				if row.Node == "orders" {
					return rowsOf(n)
				}
				return ""
			}
			b.create(d)
			b.calm()
			b.runIs(run.Succeeded)
			b.is("nothing", job.Skipped, dag.ReasonWhenFalse)
			if got := b.current("pay").Payload; got != fmt.Sprint(n) {
				t.Errorf("the next node works on %s rows", got)
			}
		})
	}
}

//proof:of F68
func TestResult_FailsByNameWhereItIsOnlyPartOfTheValue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "when: a", "payload: a", "list: a", "has: a", "status: a", "other: a", "unread: a", "end: when list")
	d = with(d, "when", func(n *dag.Node) { n.When = "nodes.a.result.truncated" })
	d = with(d, "payload", func(n *dag.Node) { n.Payload = []byte(`{"x":["${nodes.a.result}"]}`) })
	d = with(d, "list", func(n *dag.Node) { n.ForEach = "${nodes.a.result.preview}" })
	d = with(d, "has", func(n *dag.Node) { n.When = "has(nodes.a.result.x)" })
	d = with(d, "status", func(n *dag.Node) { n.When = `nodes.a.status == "SUCCEEDED"` })
	d = with(d, "other", func(n *dag.Node) { n.When = `nodes.a.attempt == 1 || nodes.a.result.x` })
	b.gives = func(job.Row) string { return `{"truncated":true,"preview":"…"}` }
	b.partial = func(row job.Row) job.Partial {
		if row.Node == "a" {
			return job.PartialSize
		}
		return job.Whole
	}
	b.create(d)
	b.calm()
	b.runIs(run.Failed)
	for _, name := range []string{"when", "payload", "list", "has"} {
		b.is(name, job.Dead, job.CodeResultTooLarge)
		if row := b.current(name); row.Attempt != 1 ||
			!strings.Contains(row.Reason.Message, "node a: the result is larger") {
			t.Errorf("%s says %q", name, row.Reason.Message)
		}
	}
	for _, name := range []string{"status", "other", "unread"} {
		b.is(name, job.Succeeded, "")
	}
	b.is("end", job.Cancelled, dag.ReasonParentFailed)
}

func TestResult_IsTheValueThoughItLooksLikeAPreview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(def("a", "b: a"), "b", func(n *dag.Node) { n.When = "nodes.a.result.truncated" })
	b.gives = func(job.Row) string { return `{"truncated":true,"preview":"mine"}` }
	b.create(d)
	b.calm()
	b.is("b", job.Succeeded, "")
}

func TestResult_OfAnItemThatIsOnlyPartOfTheValueFailsByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(def("m", "sum: m", "count: m"), "m", func(n *dag.Node) {
		n.ForEach = "${[1,2,3]}"
		n.Payload = []byte(`{"n":"${item}"}`)
	})
	d = with(d, "sum", func(n *dag.Node) { n.Payload = []byte(`"${nodes.m.result[0]}"`) })
	d = with(d, "count", func(n *dag.Node) { n.When = `nodes.m.status == "SUCCEEDED"` })
	b.gives = func(job.Row) string { return `1` }
	b.partial = func(row job.Row) job.Partial {
		if row.ItemNo == 2 {
			return job.PartialLost
		}
		return job.Whole
	}
	b.create(d)
	b.calm()
	b.is("count", job.Succeeded, "")
	b.is("sum", job.Dead, job.CodeResultLost)
	if says := b.current("sum").Reason.Message; !strings.Contains(says, "node m, item 1:") {
		t.Errorf("it says %q", says)
	}
}

func TestResult_ReadTogetherIsBoundedForEachExpression(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const large, n = contract.MaxResult - 100, contract.MaxResultsRead/contract.MaxResult + 2
	var parents []string
	d := def()
	for i := range n {
		parents = append(parents, fmt.Sprintf("p%02d", i))
		d.Nodes[parents[i]] = dag.Node{Task: "echo"}
	}
	sizes := func(names []string) string {
		for i, p := range names {
			names[i] = "size(nodes." + p + ".result)"
		}
		return "${" + strings.Join(names, " + ") + "}"
	}
	half := parents[:n/2]
	d.Nodes["apart"] = dag.Node{Task: "echo", DependsOn: parents,
		Payload: []byte(
			fmt.Sprintf(`[%q,%q]`, sizes(append([]string{}, half...)), sizes(append([]string{}, parents[n/2:]...))),
		)}
	d.Nodes["together"] = dag.Node{Task: "echo", DependsOn: parents,
		Payload: []byte(fmt.Sprintf(`%q`, sizes(append([]string{}, parents...))))}
	b.gives = func(row job.Row) string {
		if row.Node[0] == 'p' {
			return `"` + strings.Repeat("x", large) + `"`
		}
		return ""
	}
	b.create(d)
	b.calm()
	b.is("apart", job.Succeeded, "")
	if got, want := b.current("apart").Payload, fmt.Sprintf("[%d,%d]", large*(n/2), large*(n-n/2)); got != want {
		t.Errorf("apart they have %s characters, want %s", got, want)
	}
	b.is("together", job.Dead, job.CodeResultTooLarge)
	if says := b.current("together").Reason.Message; !strings.Contains(says, "p16") {
		t.Errorf("it says %q", says)
	}
}

func TestResult_OfManyItemsIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(def("m", "all: m"), "m", func(n *dag.Node) { n.ForEach = "${[" + strings.Repeat("0,", 19) + "0]}" })
	d = with(d, "all", func(n *dag.Node) { n.When = "size(nodes.m.result) == 20" })
	b.gives = func(job.Row) string { return `"` + strings.Repeat("x", contract.MaxResult-100) + `"` }
	b.create(d)
	b.calm()
	b.is("m", job.Succeeded, "")
	b.is("all", job.Dead, job.CodeResultTooLarge)
}

func TestRetry_CarriesOverLargeAndPartialResults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := with(def("m", "z: m"), "m", func(n *dag.Node) { n.ForEach = "${[1,2,3]}" })
	d = with(d, "z", func(n *dag.Node) { n.Payload = []byte(`"${size(nodes.m.result[0].rows)}"`) })
	b.gives = func(row job.Row) string {
		if row.Node == "m" {
			return rowsOf(5_000)
		}
		return ""
	}
	failing := true
	b.fails = func(row job.Row) bool { return failing && row.ItemNo == 3 }
	b.partial = func(row job.Row) job.Partial {
		if row.ItemNo == 2 {
			return job.PartialSize
		}
		return job.Whole
	}
	b.create(d)
	b.calm()
	b.is("m", job.Dead, "x")
	failing = false
	_, err := b.rel.Retry(t.Context(), b.key, "", by)
	b.Must(err)
	b.calm()
	b.is("m", job.Succeeded, "")
	items, err := b.Store.Nodes(t.Context(), []job.Key{b.key.Job("m", 2, 1), b.key.Job("m", 2, 2)})
	b.Must(err)
	if body, err := b.Store.Result(t.Context(), items[0]); err != nil || body != rowsOf(5_000) {
		t.Errorf("an item has a result of %d bytes, %v", len(body), err)
	}
	if items[1].Partial != job.PartialSize {
		t.Errorf("a part was carried over as the value")
	}
	b.is("z", job.Dead, job.CodeResultTooLarge)
}
