package runs_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// task puts a task with the given payload_schema.
func (b *bench) task(name, schema string) {
	b.Helper()
	_, err := b.Store.UpdateTask(context.Background(), b.key.Tenant, name, func(*job.Task) (job.Task, error) {
		return job.Task{
			Name: name, Executor: "go", Pool: contract.DefaultPool, Priority: job.Normal,
			Timeout: contract.DefaultTimeout, Retry: job.DefaultRetry, PayloadSchema: json.RawMessage(schema),
		}, nil
	})
	b.Must(err)
}

// nodes changes nodes of a definition.
func nodes(d dag.Definition, task string, payloads map[string]string) dag.Definition {
	for name, p := range payloads {
		n := d.Nodes[name]
		n.Task, n.Payload = task, nil
		if p != "" {
			n.Payload = []byte(p)
		}
		d.Nodes[name] = n
	}
	return d
}

const small = `{"type":["object","null"],"properties":{"n":{"type":"integer","maximum":10}},"required":["n"]}`

func TestPayload_IsJudgedByItsTasksSchemaAtRelease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("small", small)
	d := nodes(def("a", "fits: a", "large: a", "other: a", "lacks: a", "none: a", "null: a", "then: large"), "small",
		map[string]string{
			"fits":  `{"n":"${nodes.a.result.n}"}`,
			"large": `{"n":"${nodes.a.result.n + 735}"}`,
			"other": `{"n":"${nodes.a.result.n}!"}`,
			"lacks": `{"m":"${nodes.a.result.n}"}`,
			"none":  ``,
			"null":  `null`,
		})
	b.gives = func(job.Row) string { return `{"n":5}` }
	b.create(d)
	b.calm()
	b.runIs(run.Failed)
	b.is("fits", job.Succeeded, "")
	b.is("none", job.Succeeded, "")
	b.is("null", job.Succeeded, "")
	b.is("then", job.Cancelled, dag.ReasonParentFailed)
	for node, want := range map[string]string{
		"large": "/payload/n: the number is too large (of the task's payload_schema); allowed: maximum 10",
		"other": "/payload/n: the value is of another type (of the task's payload_schema); allowed: integer",
		"lacks": `/payload/n: "n" is missing (of the task's payload_schema)`,
	} {
		b.is(node, job.Dead, dag.ReasonInvalidPayload)
		row := b.current(node)
		if row.Reason.Message != want {
			t.Errorf("%s says %q, want %q", node, row.Reason.Message, want)
		}
		if strings.Contains(row.Reason.Message, "740") || row.Payload != "" {
			t.Errorf("%s shows its payload: %q, %q", node, row.Reason.Message, row.Payload)
		}
		if b.started[row.ID] != 0 || b.fired[row.ID] != 0 || row.Attempt != 1 {
			t.Errorf("%s was tried", node)
		}
	}
}

//proof:of F41
func TestPayload_ThatIsNoneIsJudgedAsNull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("strict", `{"type":"object"}`)
	b.create(nodes(def("none", "null", "gives"), "strict", map[string]string{
		"none": ``, "null": `null`, "gives": `"${null}"`,
	}))
	b.calm()
	for _, node := range []string{"none", "null", "gives"} {
		b.is(node, job.Dead, dag.ReasonInvalidPayload)
	}
}

func TestPayload_ThatDoesNotFitFreesItsSlot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("small", small)
	d := nodes(def("a", "b", "c"), "small", map[string]string{"a": `{"n":"${10 + 1}"}`, "b": `{"n":"${10 + 2}"}`})
	d.MaxConcurrency = 1
	b.create(d)
	b.calm()
	b.runIs(run.Failed)
	b.is("a", job.Dead, dag.ReasonInvalidPayload)
	b.is("b", job.Dead, dag.ReasonInvalidPayload)
	b.is("c", job.Succeeded, "")
}

func TestPayload_OfEachItemIsJudged(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{0, 1} {
		b := setup(t)
		b.task("small", small)
		d := nodes(def("a", "m: a", "z: m"), "small", map[string]string{"m": `{"n":"${item}"}`})
		m, z := d.Nodes["m"], d.Nodes["z"]
		m.ForEach, m.MaxParallel, z.RunIf = "${nodes.a.result}", parallel, dag.AllDone
		d.Nodes["m"], d.Nodes["z"], d.MaxConcurrency = m, z, 2*parallel
		b.gives = func(job.Row) string { return `[9,11,10,12]` }
		b.create(d)
		b.calm()
		b.is("m", job.Dead, dag.ReasonInvalidPayload)
		b.is("z", job.Succeeded, "")
		succeeded := 0
		for _, row := range b.rows() {
			if row.Node == "m" && row.ItemNo > 0 && row.Status == job.Succeeded {
				succeeded++
			}
		}
		if succeeded != 2 {
			t.Errorf("%d items of 2 succeeded", succeeded)
		}
		if says := b.current("m").Reason.Message; !strings.HasPrefix(says,
			"item 1: /payload/n: the number is too large") {
			t.Errorf("the node says %q", says)
		}
	}
}

func TestPayload_ThatTakesTooMuchWorkIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("deep", `{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`)
	deep := strings.Repeat(`{"a":`, 60) + `"${1}"` + strings.Repeat(`}`, 60)
	b.create(nodes(def("a"), "deep", map[string]string{"a": deep}))
	b.calm()
	b.is("a", job.Dead, dag.ReasonInvalidPayload)
	if says := b.current("a").Reason.Message; !strings.Contains(says, "takes more work than is allowed") {
		t.Errorf("the node says %q", says)
	}
}

func TestPayload_IsJudgedByTheCurrentTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("small", small)
	d := nodes(def("a", "b: a"), "small", map[string]string{"b": `{"n":7}`})
	b.gives = func(job.Row) string {
		b.task("small", `{"properties":{"n":{"maximum":5}}}`)
		return ""
	}
	b.create(d)
	b.calm()
	b.is("b", job.Dead, dag.ReasonInvalidPayload)
	b.gives = func(job.Row) string { return "" }
	b.task("small", small)
	_, err := b.rel.RetryNode(context.Background(), b.key, "b", by)
	b.Must(err)
	b.calm()
	b.is("b", job.Succeeded, "")
	b.runIs(run.Succeeded)
}

func TestPayload_IsDeadUnderASchemaThatCannotBeCompiled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("odd", `{"type":"nothing"}`)
	b.create(nodes(def("a"), "odd", map[string]string{"a": `{"n":1}`}))
	b.calm()
	b.is("a", job.Dead, dag.ReasonInvalidPayload)
	if says := b.current("a").Reason.Message; says != "the task's payload_schema cannot be applied" {
		t.Errorf("the node says %q", says)
	}
}
