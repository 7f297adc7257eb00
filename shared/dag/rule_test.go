package dag_test

import (
	"fmt"
	"testing"

	"punctual/shared/dag"
)

// naive implements the contract's table sentence by sentence.
func naive(rule dag.Rule, policy dag.Policy, parents []dag.End) (dag.Verdict, string) {
	if len(parents) == 0 {
		return dag.Run, ""
	}
	every := func(is ...dag.End) bool {
		for _, p := range parents {
			ok := false
			for _, want := range is {
				ok = ok || p == want
			}
			if !ok {
				return false
			}
		}
		return true
	}
	some := func(is dag.End) bool {
		for _, p := range parents {
			if p == is {
				return true
			}
		}
		return false
	}
	if some(dag.NotEnded) {
		return dag.Wait, ""
	}
	if policy == dag.Continue && (rule == dag.AllSucceeded || rule == "") {
		if every(dag.Succeeded, dag.Failed) {
			return dag.Run, ""
		}
		return dag.Skip, dag.ReasonParentSkipped
	}
	runs := map[dag.Rule]bool{
		"": every(dag.Succeeded), dag.AllSucceeded: every(dag.Succeeded), dag.AllDone: true,
		dag.AllFailed:    every(dag.Failed),
		dag.OneSucceeded: some(dag.Succeeded), dag.OneFailed: some(dag.Failed), dag.NoneFailed: !some(dag.Failed),
		dag.NoneFailedOneSucceeded: !some(dag.Failed) && some(dag.Succeeded),
	}
	switch {
	case runs[rule]:
		return dag.Run, ""
	case rule == dag.AllFailed || rule == dag.OneFailed:
		return dag.Skip, dag.ReasonRuleNotMet
	case some(dag.Failed) && policy == dag.Hold:
		return dag.Held, dag.ReasonParentFailed
	case some(dag.Failed):
		return dag.Cancel, dag.ReasonParentFailed
	}
	return dag.Skip, dag.ReasonParentSkipped
}

func TestJudge_AgreesWithTheTableForAllEndsOfUpToFourParents(t *testing.T) {
	t.Parallel()
	ends := []dag.End{dag.NotEnded, dag.Succeeded, dag.Failed, dag.Skipped}
	rules := append([]string{""}, dag.Rules...)
	var parents []dag.End
	checked := 0
	var all func(n int)
	all = func(n int) {
		for _, rule := range rules {
			for _, policy := range dag.Policies {
				wantV, wantR := naive(dag.Rule(rule), dag.Policy(policy), parents)
				v, r := dag.Judge(dag.Rule(rule), dag.Policy(policy), parents)
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
	if want := (1 + 4 + 16 + 64 + 256) * 8 * 4; checked != want {
		t.Errorf("%d cases, want %d", checked, want)
	}
}

func TestJudge_DoesNotDependOnTheOrderOfParents(t *testing.T) {
	t.Parallel()
	a, b, c := dag.Succeeded, dag.Failed, dag.Skipped
	for _, rule := range dag.Rules {
		got := map[string]bool{}
		for _, p := range [][]dag.End{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
			v, r := dag.Judge(dag.Rule(rule), dag.CancelDownstream, p)
			got[fmt.Sprint(v, r)] = true
		}
		if len(got) != 1 {
			t.Errorf("%s: %v", rule, got)
		}
	}
}
