package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// calls counts the calls of the table and the units that they read, while do runs.
func (b *bench) calls(do func()) (calls int64, read float64) {
	count := func() (int64, float64) {
		n := b.World.Counts()
		return n.TableCalls, n.Tables[contract.Jobs].Read + n.Tables[contract.Runs].Read
	}
	callsBefore, readBefore := count()
	do()
	calls, read = count()
	return calls - callsBefore, read - readBefore
}

// TestRetry_CostsTheSameHoweverOftenARunWasRetried retries a chain whose first node always fails.
func TestRetry_CostsTheSameHoweverOftenARunWasRetried(t *testing.T) {
	t.Parallel()
	for policy, is := range map[dag.Policy]run.Status{
		dag.CancelDownstream: run.Failed, dag.CancelRun: run.Failed, dag.Hold: run.Held,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.fails = func(row job.Row) bool { return row.Node == "a" }
			d := def("a", "b: a", "c: b", "d: c")
			d.OnFailure = policy
			b.create(d)
			b.calm()
			var first, last float64
			for n := range 101 {
				_, read := b.calls(func() {
					_, err := b.rel.Retry(context.Background(), b.key, "", by)
					b.Must(err)
					a := b.current("a")
					b.start(a)
					b.finish(a, true)
				})
				if n == 8 {
					first = read
				}
				last = read
			}
			t.Logf("%.0f units for the ninth retry, %.0f for the 101st", first, last)
			if g := b.run().Generation("a"); g != 102 {
				t.Errorf("a is of generation %d", g)
			}
			if last > first {
				t.Errorf("%.0f units for the ninth retry, %.0f for the 101st", first, last)
			}
			b.runIs(is)
		})
	}
}

// TestRetry_OfAWideHeldRunIsShort retries a run of which all nodes but one are BLOCKED, so that each retry passes over
// a generation of each of them.
func TestRetry_OfAWideHeldRunIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.live = true
		b.fails = func(row job.Row) bool { return row.Node == "a" }
		nodes := []string{"a"}
		for n := range dag.MaxNodes - 1 {
			nodes = append(nodes, fmt.Sprintf("n%d: a", n))
		}
		d := def(nodes...)
		d.OnFailure = dag.Hold
		b.create(d)
		b.calm()
		for n := range 4 {
			began := time.Now()
			b.Slow(5 * time.Millisecond)
			_, err := b.rel.Retry(context.Background(), b.key, "", by)
			b.World.SetFaults(nil)
			b.Must(err)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("retry %d took %s", n+1, took)
			}
			b.calm()
			b.runIs(run.Held)
		}
		for _, row := range b.rows() {
			if row.Status.Final() && row.PendingEffects.Children() {
				t.Errorf("node %s of generation %d still has pending effects", row.Node, row.Generation)
			}
		}
	})
}

// TestMapped_AnEndOverTheResultsOfAMappedNodeTakesAsManyCallsAtAnyLength plays a map over a map.
func TestMapped_AnEndOverTheResultsOfAMappedNodeTakesAsManyCallsAtAnyLength(t *testing.T) {
	t.Parallel()
	large := fmt.Sprintf("%02000d", 1)
	each := func(t *testing.T, items int, payload string) int64 {
		b := setup(t)
		list, _ := json.Marshal(make([]int, items))
		d := dag.Definition{Params: map[string]json.RawMessage{"l": list}, Nodes: map[string]dag.Node{
			"first": {Task: "echo", ForEach: "${params.l}"},
			"next": {Task: "echo", DependsOn: []string{"first"}, ForEach: "${nodes.first.result}", MaxParallel: 3,
				Payload: []byte(payload)},
		}}
		b.gives = func(row job.Row) string {
			if row.Node == "first" {
				return `{"text":"` + large + `"}`
			}
			return ""
		}
		b.create(d, func(r *runs.Request) { r.Params = []byte(`{"l":` + string(list) + `}`) })
		for _, row := range b.items("first", 1) {
			b.start(row)
			b.finish(row, true)
		}
		var most int64
		for range 10 {
			open := b.openRows()
			b.start(open[0])
			calls, _ := b.calls(func() { b.finish(open[0], true) })
			most = max(most, calls)
		}
		if n := len(b.openRows()); n != 3 {
			t.Errorf("%d items are open", n)
		}
		return most
	}
	for name, payload := range map[string]string{
		"of payloads that name the item":     `{"of":"${item}"}`,
		"of payloads that name all results":  `{"n":"${size(nodes.first.result)}"}`,
		"of payloads that name one of these": `{"of":"${nodes.first.result[index]}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []int64
			for _, items := range []int{50, 100, 200} {
				calls = append(calls, each(t, items, payload))
			}
			t.Logf("%d calls with 50, 100 and 200 items", calls)
			for _, n := range calls {
				if n > 16 {
					t.Errorf("%d calls with 50, 100 and 200 items", calls)
				}
			}
		})
	}
}

// TestCreate_GoesOnInAnotherInvocationIfTimeRunsShort makes a run whose first items take longer than an invocation.
func TestCreate_GoesOnInAnotherInvocationIfTimeRunsShort(t *testing.T) {
	t.Parallel()
	for name, parallel := range map[string]int{"without a limit": 0, "under max_parallel": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.live = true
				list, _ := json.Marshal(make([]int, dag.MaxItems))
				d := dag.Definition{Params: map[string]json.RawMessage{"l": list}, Nodes: map[string]dag.Node{}}
				for i := range 4 {
					d.Nodes[fmt.Sprint("m", i)] = dag.Node{Task: "echo", ForEach: "${params.l}", MaxParallel: parallel}
				}
				b.Slow(20 * time.Millisecond)
				within := func(do func(ctx context.Context) error) {
					ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
					defer cancel()
					b.Must(do(ctx))
				}
				within(func(ctx context.Context) error {
					_, _, err := b.rel.Create(ctx, runs.Request{Key: b.key, Definition: d, By: by,
						Params: []byte(`{"l":` + string(list) + `}`)})
					return err
				})
				invocations := 1
				for ; b.reconcileLater > 0 && invocations < 60; invocations++ {
					b.reconcileLater = 0
					within(func(ctx context.Context) error { return b.rel.Reconcile(ctx, b.key) })
				}
				t.Logf("%d invocations, %d open", invocations, len(b.openRows()))
				b.World.SetFaults(nil)
				if n := len(b.openRows()); n != 4*dag.MaxItems || invocations < 2 {
					t.Errorf("%d items are open after %d invocations", n, invocations)
				}
				if is := b.run(); is.Status != run.Running {
					t.Errorf("the run is %s", is.Status)
				}
				within(func(ctx context.Context) error {
					b.Slow(20 * time.Millisecond)
					_, err := b.rel.Cancel(ctx, b.key, by)
					return err
				})
				for invocations = 1; b.reconcileLater+len(b.endedLater) > 0 && invocations < 60; invocations++ {
					b.World.SetFaults(nil)
					b.later()
				}
				b.runIs(run.Cancelled)
			})
		})
	}
}
