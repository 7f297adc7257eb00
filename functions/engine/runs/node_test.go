package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestRun_GivesAJobTheSettingsOfItsNode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Store.UpdateTask(context.Background(), b.key.Tenant, "step", func(*job.Task) (job.Task, error) {
		return job.Task{Name: "step", Executor: "go", Pool: "of-task", Priority: job.Low, Timeout: time.Minute,
			Retry: job.DefaultRetry}, nil
	})
	b.Must(err)
	own := dag.Node{Task: "step", Pool: "of-node", Priority: job.High, Timeout: time.Hour, StartWithin: time.Second,
		Retry: json.RawMessage(`{"max_attempts":2}`)}
	never := own
	never.When = "false"
	d := dag.Definition{Nodes: map[string]dag.Node{"own": own, "never": never, "plain": {Task: "step"}}}
	nominal := noon.Add(-time.Minute)
	b.create(d, func(n *runs.Request) { n.NominalAt = nominal })
	for node, want := range map[string]string{
		"own":   "go of-node high 1h0m0s 1s 2",
		"never": "go of-node high 1h0m0s 1s 2",
		"plain": fmt.Sprint("go of-task low 1m0s 0s ", job.DefaultRetry.MaxAttempts),
	} {
		row := b.current(node)
		got := fmt.Sprint(row.Executor, " ", row.Pool, " ", row.Priority, " ", row.Timeout, " ", row.StartWithin, " ",
			row.Retry.MaxAttempts)
		if got != want {
			t.Errorf("the job of %s has %s, want %s", node, got, want)
		}
		if !row.NominalAt.Equal(nominal) {
			t.Errorf("the job of %s has the nominal time %s", node, row.NominalAt)
		}
	}
}

func TestRun_GivesItsPriorityToJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node, run, dag, want job.Priority
	}{
		"that of the node comes first": {job.Low, job.High, job.Normal, job.Low},
		"that of the run comes second": {"", job.High, job.Low, job.High},
		"that of the dag comes third":  {"", "", job.Low, job.Low},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := dag.Definition{Nodes: map[string]dag.Node{"a": {Task: "echo", Priority: c.node}}, Priority: c.dag}
			b.create(d, func(n *runs.Request) { n.Priority = c.run })
			if got := b.current("a").Priority; got != c.want {
				t.Errorf("the job has the priority %s, want %s", got, c.want)
			}
		})
	}
}

func TestExpressions_SeeTheRunAndItsNodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nominal time.Time
		want    string
	}{
		"of a schedule":      {noon.Add(-time.Minute), `"2026-11-28T11:59:00.000Z"`},
		"without a schedule": {time.Time{}, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a", "b: a")
			n := d.Nodes["b"]
			n.RunIf = dag.AllDone
			n.Payload = []byte(`["${run.id}","${run.dag}","${run.version}","${run.created_at}","${run.nominal_at}",` +
				`"${nodes.a.status}","${nodes.a.attempt}","${nodes.a.forced}"]`)
			d.Nodes["b"] = n
			b.fails = func(r job.Row) bool { return r.Node == "a" }
			b.create(d, func(n *runs.Request) { n.Dag, n.Version, n.NominalAt = "etl", 7, c.nominal })
			b.calm()
			want := fmt.Sprintf(`[%q,"etl",7,"2026-11-28T12:00:00.000Z",%s,"DEAD",1,false]`, b.key.ID, c.want)
			if got := b.current("b").Payload; got != want {
				t.Errorf("b sees %s, want %s", got, want)
			}
		})
	}
}

func TestRun_SurvivesThatATaskIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("gone", "never", "z: gone never")
	d.Nodes["gone"] = dag.Node{Task: "deleted"}
	d.Nodes["never"] = dag.Node{Task: "deleted", When: "false"}
	z := d.Nodes["z"]
	z.RunIf = dag.AllDone
	d.Nodes["z"], d.MaxConcurrency = z, 1
	b.create(d)
	b.calm()
	b.runIs(run.Failed)
	b.is("gone", job.Dead, job.CodeUnknownTask)
	b.is("never", job.Skipped, dag.ReasonWhenFalse)
	b.is("z", job.Succeeded, "")
	if row := b.current("never"); row.Timeout != contract.DefaultTimeout ||
		row.Retry.MaxAttempts != job.DefaultRetry.MaxAttempts {
		t.Errorf("it is shown with the timeout %s and %d attempts", row.Timeout, row.Retry.MaxAttempts)
	}
	if b.deadLetters["gone"] != 1 {
		t.Errorf("dead letters %v", b.deadLetters)
	}
}

func TestRun_WaitsForItsDueTime(t *testing.T) {
	t.Parallel()
	due := noon.Add(time.Hour)
	b := setup(t)
	b.create(def("a", "b: a"), func(n *runs.Request) { n.DueAt = due })
	a := b.current("a")
	if a.Status != job.Scheduled || !a.DueAt.Equal(due) || b.fired[a.ID] != 0 {
		t.Errorf("the first node is %s, due at %s, and was fired %d times", a.Status, a.DueAt, b.fired[a.ID])
	}
	b.now = due.Add(time.Minute)
	b.calm()
	b.runIs(run.Succeeded)
	if row := b.current("b"); !row.DueAt.Equal(b.now) {
		t.Errorf("the second node is due at %s", row.DueAt)
	}
}

func TestRun_WakesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		due, expireAfter time.Duration
		cancel           bool
		want             time.Duration
	}{
		"a while after it was derived":      {0, 0, false, contract.RetryEvery},
		"a while after it is due":           {time.Hour, 0, false, time.Hour + contract.RetryEvery},
		"when it expires":                   {0, time.Second, false, time.Second},
		"not at an expiry that is later":    {0, 24 * time.Hour, false, contract.RetryEvery},
		"a while after it was stopped":      {0, 24 * time.Hour, true, contract.Grace},
		"after a stop, not when it expires": {0, time.Second, true, contract.Grace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a")
			d.ExpireAfter = c.expireAfter
			b.create(d, func(n *runs.Request) { n.DueAt = noon.Add(c.due) })
			if c.cancel {
				b.start(b.current("a"))
				_, err := b.rel.Cancel(context.Background(), b.key, by)
				b.Must(err)
			}
			if at := b.run().WakeAt; !at.Equal(noon.Add(c.want)) {
				t.Errorf("it wakes up after %s, want %s", at.Sub(noon), c.want)
			}
		})
	}
}
