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

// ended is how the handler returned.
type ended struct {
	result json.RawMessage
	err    error
	cause  error // of its context's end, at the moment it returned; nil if that had not ended
	at     time.Time

	shortens  bool // the executor keeps its results within their limit itself
	shortened bool // and has shortened this one
}

// outcomeOf says what a handler's return means. What it costs the job is for the status stage
// to decide.
func outcomeOf(end ended, keeps keeping) job.Outcome {
	o := job.Outcome{Kind: job.OutcomeFailed, FinishedAt: end.at.UTC().Truncate(time.Millisecond)}
	var failure *executor.Failure
	switch {
	case errors.Is(end.cause, ErrTimeout): // even if it returned something since: the promise was the timeout
		o.Error = &job.Reason{Code: job.CodeTimeout, Message: "the attempt reached its timeout"}
	case end.err == nil:
		keeps.result(&o, end)
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

// keeping is what is kept of results: at most so many bytes, of which fails says that a larger one fails the attempt.
type keeping struct {
	most  int
	fails bool
}

func keepingOf(r *job.Row) keeping {
	most := contract.MaxResult
	if r.MaxResult > 0 {
		most = min(most, int(r.MaxResult))
	}
	return keeping{most, r.FailLarge}
}

// result sets the outcome of an attempt that returned without an error.
func (k keeping) result(o *job.Outcome, end ended) {
	result, partial := sendable(end.result), end.shortened
	size := len(result)
	if !end.shortens && size > k.most {
		result, partial = preview(result, min(k.most, contract.MaxPreview)), true
	}
	if partial && k.fails {
		o.Permanent = true // the work is done, and doing it once more brings the same
		o.Error = &job.Reason{Code: job.CodeResultTooLarge,
			Message: "the result is larger than the " + text.Bytes(k.most) + " that the task keeps"}
		return
	}
	o.Kind, o.Result = job.OutcomeSucceeded, result
	if partial {
		o.Partial = job.PartialSize
	}
}

// sendable returns a result as JSON that can be stored, nil for none. One that is not JSON becomes a string.
func sendable(result json.RawMessage) json.RawMessage {
	switch {
	case len(result) == 0:
		return nil
	case json.Valid(result):
		return text.Sendable(result)
	}
	return text.MustJSON(string(result))
}

// preview returns {"truncated":true,"preview":"…"} with as much of a result's text as fits into that many bytes.
func preview(result json.RawMessage, most int) json.RawMessage {
	whole := string(result)
	for space := most; ; space = space * 3 / 4 {
		// Escaping lengthens the text; how much, only doing it shows.
		cut := text.MustJSON(struct {
			Truncated bool   `json:"truncated"`
			Preview   string `json:"preview"`
		}{true, job.Cut(whole, space)})
		if len(cut) <= most {
			return cut
		}
	}
}
