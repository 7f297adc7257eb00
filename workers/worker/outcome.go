package worker

import (
	"encoding/json"
	"errors"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/text"
	"punctual/workers/executor"
)

// outcomeOf says what a handler's return means. What it costs the job is for the status stage
// to decide.
func outcomeOf(end ended) job.Outcome {
	o := job.Outcome{Kind: job.OutcomeFailed, FinishedAt: end.at.UTC().Truncate(time.Millisecond)}
	var failure *executor.Failure
	switch {
	case errors.Is(end.cause, ErrTimeout): // even if it returned something since: the promise was the timeout
		o.Error = &job.Reason{Code: job.CodeTimeout, Message: "the attempt reached its timeout"}
	case end.err == nil:
		o.Kind, o.Result = job.OutcomeSucceeded, cutResult(end.result)
	case errors.Is(end.cause, ErrCancelled):
		o.Error = &job.Reason{Code: job.CodeCancelled, Message: "the job was cancelled while it ran"}
	case errors.As(end.err, &failure):
		o.RetryAfterMS = max(failure.RetryAfter, 0).Milliseconds()
		if failure.Snooze {
			o.Kind = job.OutcomeSnoozed
			return o
		}
		o.Permanent = failure.Permanent
		o.Error = &job.Reason{Code: job.Cut(failure.Code, contract.MaxErrorCode),
			Message: job.Cut(end.err.Error(), contract.MaxErrorMessage)}
		if o.Error.Code == "" {
			o.Error.Code = job.CodeHandler
		}
	default:
		o.Error = &job.Reason{Code: job.CodeHandler, Message: job.Cut(end.err.Error(), contract.MaxErrorMessage)}
	}
	return o
}

// cutResult keeps a result within contract.MaxResult. A longer one becomes
// {"truncated":true,"preview":"…"} with as much of its text as fits; one that is not JSON, a string.
func cutResult(result json.RawMessage) json.RawMessage {
	if len(result) == 0 {
		return nil
	}
	if json.Valid(result) {
		result = text.Sendable(result)
	} else {
		result = text.MustJSON(string(result))
	}
	if len(result) <= contract.MaxResult {
		return result
	}
	whole := string(result)
	for space := contract.MaxResult; ; space = space * 3 / 4 {
		// Escaping lengthens the text; how much, only doing it tells.
		cut := text.MustJSON(struct {
			Truncated bool   `json:"truncated"`
			Preview   string `json:"preview"`
		}{true, job.Cut(whole, space)})
		if len(cut) <= contract.MaxResult {
			return cut
		}
	}
}
