package dag_test

import (
	"fmt"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/dag/dagtest"
	"punctual/shared/job"
	"punctual/shared/run"
)

//proof:of 58
func TestEvaluate_AgreesWithTheTableForAllEndsOfUpToFourParents(t *testing.T) {
	t.Parallel()
	ends := []dag.End{dag.NotEnded, dag.Succeeded, dag.Failed, dag.Skipped}
	rules := append([]string{""}, dag.Rules...)
	var parents []dag.End
	checked := 0
	var all func(n int)
	all = func(n int) {
		for _, rule := range rules {
			for _, policy := range dag.Policies {
				wantV, wantR := dagtest.Evaluate(dag.Rule(rule), dag.Policy(policy), parents)
				v, r := dag.Evaluate(dag.Rule(rule), dag.Policy(policy), parents)
				if v != wantV || r != wantR {
					t.Errorf("%s under %s after %v: %s %s, want %s %s", rule, policy, parents, v, r, wantV, wantR)
				}
				checked++
			}
		}
		if n == 0 {
			return
		}
		for _, e := range ends {
			parents = append(parents, e)
			all(n - 1)
			parents = parents[:len(parents)-1]
		}
	}
	all(4)
	if want := (1 + 4 + 16 + 64 + 256) * 9 * 4; checked != want {
		t.Errorf("%d cases, want %d", checked, want)
	}
}

func TestEvaluate_DoesNotDependOnTheOrderOfParents(t *testing.T) {
	t.Parallel()
	a, b, c := dag.Succeeded, dag.Failed, dag.Skipped
	for _, rule := range dag.Rules {
		got := map[string]bool{}
		for _, p := range [][]dag.End{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
			v, r := dag.Evaluate(dag.Rule(rule), dag.CancelDownstream, p)
			got[fmt.Sprint(v, r)] = true
		}
		if len(got) != 1 {
			t.Errorf("%s: %v", rule, got)
		}
	}
}

//proof:of 136
func TestOutcome_AgreesWithTheTableForAllEndsOfThreeNodes(t *testing.T) {
	t.Parallel()
	d := dag.Definition{Nodes: map[string]dag.Node{
		"a": {Task: "echo"}, "b": {Task: "echo", DependsOn: []string{"a"}},
		"c": {Task: "echo", DependsOn: []string{"a"}},
	}}
	finals := []job.Status{job.Succeeded, job.Dead, job.Expired, job.Cancelled, job.Skipped}
	for _, policy := range dag.Policies {
		d.OnFailure = dag.Policy(policy)
		g, err := dag.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(finals) * len(finals) * len(finals) {
			rows, states := map[string]job.Row{}, map[string]dag.NodeState{}
			for n, name := range []string{"a", "b", "c"} {
				rows[name] = job.Row{Status: finals[i/[]int{1, 5, 25}[n]%5]}
				states[name] = dag.StateOf(rows[name])
			}
			for _, stop := range []dag.Stop{dag.NoStop, dag.StopCancel, dag.StopExpire, dag.StopFail} {
				right := dagtest.Run{Definition: d, Item: run.Run{Stop: stop}, Rows: rows}
				if got, want := g.Outcome(states, stop), right.Status(); got != want {
					t.Errorf("%s under %s with stop %q is %s, want %s", fmt.Sprint(states), policy, stop, got, want)
				}
			}
		}
	}
}
