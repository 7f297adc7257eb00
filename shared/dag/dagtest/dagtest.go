package dagtest

import (
	"slices"

	"punctual/shared/dag"
)

// Evaluate says what dag.Evaluate should: what becomes of a node after such ends of its parents, and why it does not
// run. It goes through the documented table of trigger rules sentence by sentence.
func Evaluate(rule dag.Rule, policy dag.Policy, parents []dag.End) (v dag.Verdict, reason string) {
	every := func(is ...dag.End) bool {
		return !slices.ContainsFunc(parents, func(p dag.End) bool { return !slices.Contains(is, p) })
	}
	some := func(is dag.End) bool { return slices.Contains(parents, is) }
	switch {
	case len(parents) == 0:
		return dag.Run, ""
	case some(dag.NotEnded):
		return dag.Wait, ""
	case policy == dag.Continue && (rule == dag.AllSucceeded || rule == ""):
		if every(dag.Succeeded, dag.Failed) {
			return dag.Run, ""
		}
		return dag.Skip, dag.ReasonParentSkipped
	}
	runs := map[dag.Rule]bool{
		"": every(dag.Succeeded), dag.AllSucceeded: every(dag.Succeeded), dag.AllDone: true,
		dag.Always:       true,
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
