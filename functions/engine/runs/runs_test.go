package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

var by = runs.By{Who: "alice", Reason: "because"}

//proof:of 130
func TestRun_RunsEachNodeAfterItsParents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(def("a", "b: a", "c: a", "d: b c"))
	b.runIs(run.Running)
	b.calm()
	b.runIs(run.Succeeded)
	for _, n := range []string{"a", "b", "c", "d"} {
		if b.started[b.current(n).ID] != 1 {
			t.Errorf("node %q started %d times", n, b.started[b.current(n).ID])
		}
	}
	for _, row := range b.rows() {
		if row.PendingEffects != job.NoPendingEffects || b.fired[row.ID] != 1 {
			t.Errorf("node %q has pending effects %q and was fired %d times", row.Node, row.PendingEffects,
				b.fired[row.ID])
		}
	}
}

//proof:of 136
func TestRun_EndsAfterAFailure(t *testing.T) {
	t.Parallel()
	for policy, want := range map[dag.Policy]string{
		dag.CancelDownstream: "FAILED b CANCELLED parent_failed c SUCCEEDED  d CANCELLED parent_failed",
		dag.Continue:         "SUCCEEDED b SUCCEEDED  c SUCCEEDED  d SUCCEEDED ",
		dag.Hold:             "HELD b   c SUCCEEDED  d  ",
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a", "x", "b: a", "c: x", "d: b c")
			d.OnFailure = policy
			b.fails = func(r job.Row) bool { return r.Node == "a" }
			b.create(d)
			b.calm()
			got := string(b.run().Status)
			for _, n := range []string{"b", "c", "d"} {
				row := b.current(n)
				got += fmt.Sprintf(" %s %s %s", n, row.Status, row.Reason.Code)
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

//proof:of 136
func TestRun_IsFailedAsAWholeByCancelRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "x", "b: a", "c: x")
	d.OnFailure = dag.CancelRun
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(d)
	b.settle()
	b.runIs(run.Failed)
	b.is("b", job.Cancelled, run.ReasonFailed)
	b.is("c", job.Cancelled, run.ReasonFailed)
	if why := b.run().Reason; why.Code != run.ReasonFailed || why.Message != `node "a" failed` {
		t.Errorf("the run says %+v", why)
	}
}

//proof:of S46
func TestRetry_RunsFailedNodesAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "c" && r.Generation == 1 }
	b.create(def("a", "b", "c", "d: b c"))
	b.calm()
	b.runIs(run.Failed)
	is, err := b.rel.Retry(context.Background(), b.key, "", by)
	b.Must(err)
	if is.Status != run.Running || is.Generation("c") != 2 || is.Generation("d") != 2 || is.Generation("a") != 1 {
		t.Errorf("the run is %s with %v", is.Status, is.Nodes)
	}
	b.calm()
	b.runIs(run.Succeeded)
	counts := map[string]int{}
	for _, row := range b.rows() {
		counts[row.Node] += b.started[row.ID]
	}
	if fmt.Sprint(counts) != "map[a:1 b:1 c:2 d:1]" {
		t.Errorf("starts %v", counts)
	}
	var wrong *runs.WrongState
	if _, err := b.rel.Retry(context.Background(), b.key, "", by); !errors.As(err, &wrong) {
		t.Errorf("a retry of a run in which nothing failed: %v", err)
	}
}

//proof:of F53
func TestRetryNode_BringsBackWhatItsFailureStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, operate := range map[string]func(b *bench) (run.Run, error){
		"a retry":    func(b *bench) (run.Run, error) { return b.rel.RetryNode(ctx, b.key, "a", by) },
		"a skip":     func(b *bench) (run.Run, error) { return b.rel.Skip(ctx, b.key, "a", false, by) },
		"a complete": func(b *bench) (run.Run, error) { return b.rel.Complete(ctx, b.key, "a", nil, by) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a", "x", "y", "b: a", "c: x")
			d.OnFailure = dag.CancelRun
			b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
			b.create(d)
			x := b.current("x")
			b.start(x)
			b.finish(x, false)
			a := b.current("a")
			b.start(a)
			b.finish(a, true)
			b.Must(b.rel.Ended(ctx, b.current("a")))
			b.settle()
			b.runIs(run.Failed)
			b.is("y", job.Cancelled, run.ReasonFailed)
			_, err := operate(b)
			b.Must(err)
			b.settle()
			b.runIs(run.Succeeded)
			for _, n := range []string{"y", "b", "c"} {
				b.is(n, job.Succeeded, "")
			}
			if g := b.run().Generation("x"); g != 1 {
				t.Errorf("x, which had succeeded, is of generation %d", g)
			}
		})
	}
}

func TestRetryNode_OfANodeThatAFailureStoppedBringsBackNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "y", "z", "c: y")
	d.OnFailure = dag.CancelRun
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(d)
	a := b.current("a")
	b.start(a)
	b.finish(a, true)
	b.Must(b.rel.Ended(context.Background(), b.current("a")))
	b.settle()
	_, err := b.rel.RetryNode(context.Background(), b.key, "y", by)
	b.Must(err)
	b.settle()
	b.runIs(run.Failed)
	b.is("c", job.Succeeded, "")
	b.is("z", job.Cancelled, run.ReasonFailed)
}

// items are the rows of a mapped node's items, of that generation.
func (b *bench) items(node string, generation int64) (items []job.Row) {
	b.Helper()
	for _, row := range b.rows() {
		if row.Node == node && row.Generation == generation && row.ItemNo > 0 {
			items = append(items, row)
		}
	}
	return items
}

//proof:of F52
func TestRetry_StartsOnceAllThatRanBeforeHasStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, list := range map[string]string{
		"a node": "", "two items": "${[1,2]}", "ten items": "${[1,2,3,4,5,6,7,8,9,0]}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("m")
			m := d.Nodes["m"]
			m.ForEach = list
			d.Nodes["m"] = m
			b.create(d)
			first := append(b.items("m", 1), b.current("m"))
			for _, row := range first {
				b.start(row)
			}
			for range 2 { // the second generation has no row when the third begins
				_, err := b.rel.Retry(ctx, b.key, "m", by)
				b.Must(err)
				if row := b.current("m"); row.Status != "" {
					t.Errorf("generation %d begins while the first one runs", row.Generation)
				}
			}
			for _, row := range first {
				b.finish(row, true)
			}
			if row := b.current("m"); row.Status == "" || row.Generation != 3 {
				t.Error("the newest generation has not begun after the end of the first")
			}
			b.calm()
			b.runIs(run.Succeeded)
		})
	}
}

//proof:of F52
func TestComplete_ClosesTheOlderNodeOnceItsItemsHaveStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	d := def("m")
	m := d.Nodes["m"]
	m.ForEach = "${[1,2]}"
	d.Nodes["m"] = m
	b.create(d)
	older := b.current("m")
	for _, row := range b.items("m", 1) {
		b.start(row)
	}
	_, err := b.rel.Retry(ctx, b.key, "m", by)
	b.Must(err)
	_, err = b.rel.Complete(ctx, b.key, "m", nil, by)
	b.Must(err)
	b.runIs(run.Succeeded)
	for _, row := range b.items("m", 1) {
		b.finish(row, true)
	}
	rows, err := b.Store.Nodes(ctx, []job.Key{older.Key})
	b.Must(err)
	if !rows[0].Status.Final() {
		t.Errorf("the run is over, all items have ended, and their node is %s", rows[0].Status)
	}
}

//proof:of 38
func TestSkip_LetsChildrenRunOrSkipsThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(def("a", "b: a", "c: b"))
	b.calm()
	_, err := b.rel.Skip(context.Background(), b.key, "a", false, by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
	b.is("a", job.Skipped, dag.ReasonSkippedByOperator)
	b.is("c", job.Succeeded, "")

	b = setup(t)
	b.create(def("a", "b: a", "c: b"))
	_, err = b.rel.Skip(context.Background(), b.key, "b", true, by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
	b.is("b", job.Skipped, dag.ReasonSkippedByOperator)
	b.is("c", job.Skipped, dag.ReasonParentSkipped)
	if b.run().Generation("b") != 1 {
		t.Error("a node that had not failed has a new generation")
	}
}

//proof:of 37
func TestComplete_GivesChildrenItsResult(t *testing.T) {
	t.Parallel()
	d := def("a", "b: a")
	n := d.Nodes["b"]
	n.Payload = []byte(`{"x":"${nodes.a.result.n}","forced":"${nodes.a.forced}"}`)
	d.Nodes["b"] = n
	for _, failed := range []bool{false, true} {
		b := setup(t)
		b.fails = func(job.Row) bool { return failed }
		b.create(d)
		if failed {
			b.calm()
		}
		b.fails = func(job.Row) bool { return false }
		_, err := b.rel.Complete(context.Background(), b.key, "a", []byte(`{"n":7}`), by)
		b.Must(err)
		b.calm()
		b.runIs(run.Succeeded)
		if got := b.current("b").Payload; got != `{"forced":true,"x":7}` {
			t.Errorf("after a failure %v: the payload is %s", failed, got)
		}
	}
}

//proof:of 138
func TestCancel_EndsWaitingNodesAndAsksRunningOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(def("a", "x", "b: a"))
	row := b.current("a")
	if !b.start(row) {
		t.Fatal("a does not start")
	}
	_, err := b.rel.Cancel(context.Background(), b.key, by)
	b.Must(err)
	b.is("x", job.Cancelled, run.ReasonCancelled)
	b.is("b", job.Cancelled, run.ReasonCancelled)
	b.runIs(run.Running)
	b.finish(row, true)
	b.runIs(run.Cancelled)
	if b.current("a").Status != job.Succeeded {
		t.Error("what is done is not done")
	}
	var wrong *runs.WrongState
	if _, err := b.rel.Cancel(context.Background(), b.key, by); !errors.As(err, &wrong) || wrong.Is != "CANCELLED" {
		t.Errorf("cancelling what is over: %v", err)
	}
	_, err = b.rel.Retry(context.Background(), b.key, "", by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
}

//proof:of 138
func TestPause_KeepsNodesFromStarting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(def("a", "b: a"))
	_, err := b.rel.Pause(context.Background(), b.key, by)
	b.Must(err)
	b.settle()
	if len(b.started) > 0 || b.run().Shown() != run.Paused {
		t.Errorf("%d started, and the run is %s", len(b.started), b.run().Shown())
	}
	_, err = b.rel.Resume(context.Background(), b.key, by)
	b.Must(err)
	b.settle()
	b.runIs(run.Succeeded)
}

//proof:of 59
func TestHold_WaitsForAnOperator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b: a")
	d.OnFailure = dag.Hold
	b.fails = func(r job.Row) bool { return r.Generation == 1 }
	b.create(d)
	b.settle()
	b.runIs(run.Held)
	_, err := b.rel.Resume(context.Background(), b.key, by)
	var wrong *runs.WrongState
	if !errors.As(err, &wrong) {
		t.Errorf("resuming a held run: %v", err)
	}
	b.fails = func(job.Row) bool { return false }
	_, err = b.rel.RetryNode(context.Background(), b.key, "a", by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
}

func TestExpiry_EndsARunThatTakesTooLong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("a", "b: a")
	d.ExpireAfter = 3600e9
	b.create(d)
	row := b.current("a")
	b.start(row)
	b.now = b.now.Add(2 * 3600e9)
	b.settle()
	b.runIs(run.Failed)
	b.is("b", job.Cancelled, run.ReasonExpired)
}

//proof:of F50
func TestRetry_RunsAfterExpireAfterHasPassed(t *testing.T) {
	t.Parallel()
	for name, expired := range map[string]bool{"of a run that failed in time": false, "of one that expired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a", "b: a")
			d.ExpireAfter = time.Hour
			b.fails = func(r job.Row) bool { return r.Generation == 1 }
			b.create(d)
			if !expired {
				b.settle()
			}
			b.now = b.now.Add(24 * time.Hour)
			b.settle()
			b.runIs(run.Failed)
			_, err := b.rel.Retry(context.Background(), b.key, "", by)
			b.Must(err)
			b.calm()
			b.runIs(run.Succeeded)
		})
	}
}

func TestExpressions_DecideAndFail(t *testing.T) {
	t.Parallel()
	d := def("a", "no: a", "bad: a", "worse: a")
	for name, change := range map[string]func(*dag.Node){
		"no":    func(n *dag.Node) { n.When = "nodes.a.result.n > 5" },
		"bad":   func(n *dag.Node) { n.When = "nodes.a.result.absent > 5" },
		"worse": func(n *dag.Node) { n.Payload = []byte(`{"x":"${nodes.a.result.absent}"}`) },
	} {
		n := d.Nodes[name]
		change(&n)
		d.Nodes[name] = n
	}
	b := setup(t)
	b.gives = func(job.Row) string { return `{"n":5}` }
	b.create(d)
	b.settle()
	b.runIs(run.Failed)
	b.is("no", job.Skipped, dag.ReasonWhenFalse)
	b.is("bad", job.Dead, dag.ReasonExpressionFailed)
	b.is("worse", job.Dead, dag.ReasonExpressionFailed)
	if fmt.Sprint(b.deadLetters) != "map[bad:1 worse:1]" {
		t.Errorf("dead letters of nodes that never ran: %v", b.deadLetters)
	}
}

//proof:of 133
func TestMapped_RunsOneJobForEachItem(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{0, 2} {
		for _, n := range []int{0, 1, 3, 12} {
			b := setup(t)
			d := def("a", "m: a", "z: m")
			m, z := d.Nodes["m"], d.Nodes["z"]
			m.ForEach, m.MaxParallel = "${nodes.a.result}", parallel
			m.Payload = []byte(`{"v":"${item}","at":"${index}"}`)
			z.Payload, z.RunIf = []byte(`{"all":"${nodes.m.result}"}`), dag.AllDone
			d.Nodes["m"], d.Nodes["z"] = m, z
			list := "["
			for i := range n {
				list += fmt.Sprint(i * 10)
				if i < n-1 {
					list += ","
				}
			}
			b.gives = func(r job.Row) string {
				if r.Node == "a" {
					return list + "]"
				}
				return r.Payload
			}
			b.create(d)
			b.work()
			open := 0
			for _, row := range b.rows() {
				if row.Status.Open() {
					open++
				}
			}
			if parallel > 0 && open > parallel {
				t.Errorf("%d of %d at a time", open, parallel)
			}
			b.calm()
			b.runIs(run.Succeeded)
			if n == 0 {
				b.is("m", job.Skipped, dag.ReasonEmpty)
				continue
			}
			b.is("m", job.Succeeded, "")
			if want := fmt.Sprintf(`"at":%d,"v":%d`, n-1, (n-1)*10); n > 1 && !contains(b, want) {
				t.Errorf("z does not see %s", want)
			}
		}
	}
}

//proof:of F51
func TestMapped_CountsTheJobsOfARunByItsNewestGenerations(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	d := def()
	list := json.RawMessage("[0" + strings.Repeat(",0", dag.MaxItems-1) + "]")
	d.Params = map[string]json.RawMessage{"list": list}
	for n := range dag.MaxJobs / dag.MaxItems {
		d.Nodes[fmt.Sprint("m", n)] = dag.Node{Task: "echo", ForEach: "${params.list}"}
	}
	b.create(d, func(n *runs.Request) { n.Params = json.RawMessage(`{"list":` + string(list) + `}`) })
	full := func(when string) {
		for name := range d.Nodes {
			if row := b.current(name); row.Items != dag.MaxItems || row.Status != job.Blocked {
				t.Fatalf("%s: %s has %d items and is %s: %v", when, name, row.Items, row.Status, row.Reason)
			}
		}
	}
	full("as many jobs as there may be")
	_, err := b.rel.Cancel(ctx, b.key, by)
	b.Must(err)
	_, err = b.rel.Retry(ctx, b.key, "", by)
	b.Must(err)
	full("once more")
}

func contains(b *bench, want string) bool {
	p, err := b.Store.Payload(context.Background(), b.current("z"))
	b.Must(err)
	return len(p) > len(want) && strings.Contains(string(p), want)
}

func TestAdmit_StopsAnOlderGenerationAndParksAPausedNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.create(def("a", "b"))
	row := b.current("a")
	if step, done, err := b.admit(row); step != job.StepFire || done || err != nil {
		t.Errorf("of a run that goes on: %s, done %v, %v", step, done, err)
	}
	_, err := b.rel.Pause(ctx, b.key, by)
	b.Must(err)
	if step, done, err := b.admit(row); step != job.StepPark || !done || err != nil || !b.current("a").Parked {
		t.Errorf("of a paused run: %s, done %v, %v, parked %v", step, done, err, b.current("a").Parked)
	}
	before := b.fired[row.ID]
	_, err = b.rel.Resume(ctx, b.key, by)
	b.Must(err)
	if b.fired[row.ID] == before || b.current("a").Parked {
		t.Error("a resume does not fire what is parked")
	}
	_, err = b.rel.Retry(ctx, b.key, "a", by)
	b.Must(err)
	if old := b.rows()[0]; old.Generation != 1 || old.Status != job.Cancelled {
		t.Errorf("the older generation is %s", old.Status)
	}
	late := row // a release by the old facts, just after the retry
	late.Generation, late.Key = 1, b.key.Job("c", 1, 0)
	b.Must(b.Store.Accept(ctx, late))
	if _, done, err := b.admit(late); !done || err != nil {
		t.Errorf("of an older generation: done %v, %v", done, err)
	}
	rows, err := b.Store.Nodes(ctx, []job.Key{late.Key})
	b.Must(err)
	if rows[0].Status != job.Cancelled {
		t.Errorf("the job of the older generation is %s", rows[0].Status)
	}
}

func TestRetry_LinksTheDeadJobToItsSuccessor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Generation < 3 }
	b.create(def("a"))
	b.calm()
	first := b.current("a")
	for range 2 {
		_, err := b.rel.RetryNode(context.Background(), b.key, "a", by)
		b.Must(err)
		b.calm()
	}
	b.runIs(run.Succeeded)
	third := b.current("a")
	rows, err := b.Store.Nodes(context.Background(), []job.Key{first.Key, b.key.Job("a", 2, 0)})
	b.Must(err)
	if rows[0].RedrivenBy != rows[1].ID || rows[1].RedrivenBy != third.ID || third.RedriveOf != rows[1].ID {
		t.Errorf("the jobs are %s by %s, %s by %s, and %s of %s", rows[0].ID, rows[0].RedrivenBy, rows[1].ID,
			rows[1].RedrivenBy, third.ID, third.RedriveOf)
	}
	if third.HandlerKey() != first.ID {
		t.Errorf("the handler's key is %s, want %s", third.HandlerKey(), first.ID)
	}
	if _, err := b.rel.Retry(context.Background(), b.key, "a", by); err != nil {
		t.Fatal(err)
	}
	b.calm()
	if next := b.current("a"); next.HandlerKey() != next.ID {
		t.Errorf("the handler's key of a job after a success is %s", next.HandlerKey())
	}
}

func TestMapped_ResultListsItsItemsDespiteFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := def("m", "z: m")
	m, z := d.Nodes["m"], d.Nodes["z"]
	m.ForEach, z.RunIf, z.Payload = "${[1,2,3]}", dag.AllDone, []byte(`"${nodes.m.result}"`)
	d.Nodes["m"], d.Nodes["z"] = m, z
	b.fails = func(r job.Row) bool { return r.ItemNo == 2 }
	b.gives = func(r job.Row) string { return fmt.Sprint(r.ItemNo) }
	b.create(d)
	b.calm()
	b.is("m", job.Dead, "x")
	if got := b.current("z").Payload; got != "[1,null,3]" {
		t.Errorf("its child saw %s", got)
	}
}

func TestRedrive_LinksTheDeadJobBeforeItsRunReleasesTheNewOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
	b.create(def("a", "x"))
	b.start(b.current("a"))
	b.finish(b.current("a"), true)
	dead := b.current("a")
	_, err := b.rel.Pause(ctx, b.key, by)
	b.Must(err)
	id, already, err := b.rel.Redrive(ctx, dead.Key)
	b.Must(err)
	if already || b.current("a").Status != "" {
		t.Errorf("already %v, and a paused run has released %+v", already, b.current("a"))
	}
	rows, err := b.Store.Nodes(ctx, []job.Key{dead.Key})
	b.Must(err)
	if rows[0].RedrivenBy != id || rows[0].PendingEffects.DeadLetter() {
		t.Errorf("the dead job was redriven by %q, want %q, and its pending effects are %q", rows[0].RedrivenBy, id,
			rows[0].PendingEffects)
	}
	_, err = b.rel.Resume(ctx, b.key, by)
	b.Must(err)
	b.calm()
	b.runIs(run.Succeeded)
	if next := b.current("a"); next.ID != id || next.RedriveOf != dead.ID {
		t.Errorf("the new job is %s, a redrive of %q; want %s of %q", next.ID, next.RedriveOf, id, dead.ID)
	}
}

func TestRedrive_NamesAnItemThatTheNewListDoesNotHave(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the node has ended": false, "after the node has ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a", "m: a", "x")
			m := d.Nodes["m"]
			m.ForEach = "${nodes.a.result}"
			d.Nodes["m"] = m
			b.gives = func(r job.Row) string { return map[int64]string{1: "[1,2]", 2: "[1]"}[r.Generation] }
			b.fails = func(r job.Row) bool { return r.Node == "m" && r.Generation == 1 }
			b.create(d)
			b.calm()
			_, err := b.rel.Retry(context.Background(), b.key, "a", by)
			b.Must(err)
			if after {
				b.calm()
			} else {
				b.finish(b.current("a"), true) // the one item of the node waits
			}
			dead := b.key.Job("m", 1, 2)
			next, already, err := b.rel.Redrive(context.Background(), dead)
			b.Must(err)
			b.calm()
			b.runIs(run.Succeeded)
			rows, err := b.Store.Nodes(context.Background(), []job.Key{dead, {Tenant: dead.Tenant, ID: next}})
			b.Must(err)
			if !already || rows[0].RedrivenBy != next || rows[0].PendingEffects.DeadLetter() {
				t.Errorf("redriven %v by %s, and the row says by %q", already, next, rows[0].RedrivenBy)
			}
			is := rows[1]
			if is.Status != job.Skipped || is.Reason.Code != dag.ReasonEmpty || is.RedriveOf != dead.ID ||
				is.PendingEffects != job.NoPendingEffects {
				t.Errorf("in its place is %+v", is)
			}
		})
	}
}

func TestRetry_KeepsTheHandlersKeyThroughAGenerationThatNeverRan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(def("a", "x"))
	b.finish(b.current("a"), true)
	first := b.current("a")
	retry := func(ctx context.Context, k run.Key, by runs.By) (run.Run, error) {
		return b.rel.Retry(ctx, k, "", by)
	}
	for _, operate := range []func(context.Context, run.Key, runs.By) (run.Run, error){
		b.rel.Pause, retry, b.rel.Cancel, retry, b.rel.Resume,
	} {
		_, err := operate(context.Background(), b.key, by)
		b.Must(err)
	}
	if last := b.current("a"); last.Generation != 3 || last.HandlerKey() != first.ID || last.RedriveOf != "" {
		t.Errorf("generation %d has the key %s and replaces %q", last.Generation, last.HandlerKey(), last.RedriveOf)
	}
}

func TestRun_EndsWithAJobInEachGenerationThatWasPassedOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
	b.create(def("p", "a: p"))
	b.calm()
	dead := b.current("a")
	for _, operate := range []run.Operation{
		{ID: "1", Kind: run.OperationRetryNode, Node: "a"}, {ID: "2", Kind: run.OperationRetryFrom},
		{ID: "3", Kind: run.OperationRetryFrom},
	} { // no process reconciles the run between them
		begun, write := b.run().Begin(operate, b.now)
		b.Must(b.Store.WriteRun(ctx, begun, write))
		finished, write := begun.Finish(map[string]run.Before{"a": {}}, b.now)
		b.Must(b.Store.WriteRun(ctx, finished, write))
	}
	b.Must(b.rel.Reconcile(ctx, b.key))
	rows, err := b.Store.Nodes(ctx, []job.Key{b.key.Job("a", 3, 0)})
	b.Must(err)
	if rows[0].Status != job.Cancelled {
		t.Errorf("while the run goes on the newest that was passed over is %q", rows[0].Status)
	}
	b.settle()
	b.runIs(run.Succeeded)
	rows, err = b.Store.Nodes(ctx, []job.Key{b.key.Job("a", 2, 0), b.key.Job("a", 3, 0), b.key.Job("a", 4, 0)})
	b.Must(err)
	for n, want := range []job.Status{job.Cancelled, job.Cancelled, job.Succeeded} {
		row := rows[n]
		if row.Status != want || row.HandlerKey() != dead.ID || row.PendingEffects != job.NoPendingEffects {
			t.Errorf("generation %d is %s with the key %s and the pending effects %q", n+2, row.Status,
				row.HandlerKey(), row.PendingEffects)
		}
	}
}

func TestRetry_RunsANodeWhoseDeadJobIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Generation == 1 }
	b.create(def("a"))
	b.calm()
	dead := b.current("a")
	b.Write(job.Forget(dead, b.now))
	_, err := b.rel.RetryNode(context.Background(), b.key, "a", by)
	b.Must(err)
	if next := b.current("a"); next.Status != job.Scheduled || next.HandlerKey() != dead.ID || next.RedriveOf != "" {
		t.Errorf("it is %s with the key %s and replaces %q", next.Status, next.HandlerKey(), next.RedriveOf)
	}
}
