package dag

import (
	"punctual/shared/job"
	"punctual/shared/run"
)

// Rule says when a node runs, once all of its parents have ended.
type Rule string

// The trigger rules; AllSucceeded is the default.
const (
	AllSucceeded           Rule = "all_succeeded"
	AllDone                Rule = "all_done"
	AllFailed              Rule = "all_failed"
	OneSucceeded           Rule = "one_succeeded"
	OneFailed              Rule = "one_failed"
	NoneFailed             Rule = "none_failed"
	NoneFailedOneSucceeded Rule = "none_failed_one_succeeded"
	// Always is AllDone for a node that also runs where its run was stopped: cancelled, expired, or failed under
	// CancelRun.
	Always Rule = "always"
)

// Rules lists all rules, the default first.
var Rules = []string{
	string(AllSucceeded), string(AllDone), string(AllFailed), string(OneSucceeded), string(OneFailed),
	string(NoneFailed), string(NoneFailedOneSucceeded), string(Always),
}

// End is how a parent ended, as its children see it.
type End string

// The ends. A parent that is forgotten counts as the end it had.
const (
	NotEnded  End = ""
	Succeeded End = "succeeded"
	Failed    End = "failed" // DEAD, EXPIRED or CANCELLED
	Skipped   End = "skipped"
)

// EndOf returns the end of a job with a final status; NotEnded for any other status.
func EndOf(s job.Status) End {
	switch s {
	case job.Succeeded:
		return Succeeded
	case job.Dead, job.Expired, job.Cancelled:
		return Failed
	case job.Skipped:
		return Skipped
	}
	return NotEnded
}

// Verdict is the decision about a node.
type Verdict string

// The verdicts.
const (
	Wait   Verdict = "wait"   // a parent has not ended
	Run    Verdict = "run"    // it becomes due, unless its when says no
	Cancel Verdict = "cancel" // it ends CANCELLED, with the reason
	Skip   Verdict = "skip"   // it ends SKIPPED, with the reason
	Held   Verdict = "held"   // it stays BLOCKED until an operator acts
)

// Why a node did not run: status_reason codes.
const (
	ReasonParentFailed        = "parent_failed"
	ReasonParentSkipped       = "parent_skipped"
	ReasonRuleNotMet          = "rule_not_met"
	ReasonWhenFalse           = "when_false"
	ReasonEmpty               = "empty"
	ReasonExpressionFailed    = "expression_failed"
	ReasonInvalidPayload      = "invalid_payload"    // it does not fit its task's payload_schema
	ReasonPayloadsTooLarge    = "payloads_too_large" // with it, the run's payloads would have too many bytes
	ReasonRunCancelled        = run.ReasonCancelled
	ReasonRunFailed           = run.ReasonFailed
	ReasonRunExpired          = run.ReasonExpired
	ReasonSkippedByOperator   = "skipped_by_operator"
	ReasonCompletedByOperator = "completed_by_operator"
)

// Evaluate returns what a node's rule and the run's policy decide about it once its parents have ended
// so; reason is set with Cancel, Skip and Held. A node without parents runs. Under CancelRun the
// run ends the other nodes at the first failure; Evaluate applies the rule alone.
func Evaluate(rule Rule, policy Policy, parents []End) (v Verdict, reason string) {
	var succeeded, failed, skipped int
	for _, p := range parents {
		switch p {
		case Succeeded:
			succeeded++
		case Failed:
			failed++
		case Skipped:
			skipped++
		default:
			return Wait, ""
		}
	}
	if len(parents) == 0 {
		return Run, ""
	}
	isDefault := rule == AllSucceeded || rule == ""
	if policy == Continue && isDefault {
		succeeded, failed = succeeded+failed, 0
	}
	v, reason = evaluate(rule, succeeded, failed, skipped)
	if v == Cancel && policy == Hold {
		return Held, reason
	}
	return v, reason
}

// evaluate applies a rule to how many parents ended in each way; there is at least one.
func evaluate(rule Rule, succeeded, failed, skipped int) (Verdict, string) {
	// The verdict of a rule that needs successes and does not get them.
	unmet := func() (Verdict, string) {
		if failed > 0 {
			return Cancel, ReasonParentFailed
		}
		return Skip, ReasonParentSkipped
	}
	switch rule {
	case AllDone, Always:
		return Run, ""
	case AllFailed:
		if succeeded+skipped == 0 {
			return Run, ""
		}
		return Skip, ReasonRuleNotMet
	case OneSucceeded:
		if succeeded > 0 {
			return Run, ""
		}
		return unmet()
	case OneFailed:
		if failed > 0 {
			return Run, ""
		}
		return Skip, ReasonRuleNotMet
	case NoneFailed:
		if failed == 0 {
			return Run, ""
		}
		return Cancel, ReasonParentFailed
	case NoneFailedOneSucceeded:
		if failed == 0 && succeeded > 0 {
			return Run, ""
		}
		return unmet()
	default: // AllSucceeded
		if failed+skipped == 0 {
			return Run, ""
		}
		return unmet()
	}
}
