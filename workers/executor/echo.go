package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"punctual/shared/job"
	"punctual/shared/span"
)

// echo answers with its payload. An object may ask it to sleep first ("sleep": "2s") and to
// fail its first attempts ("fail": 2): demos and tests then need no server.
type echo struct{}

func newEcho(Options) Executor { return echo{} }

func (echo) Run(ctx context.Context, w Work) (json.RawMessage, error) {
	sleep, fail, err := echoWishes(w.Payload)
	if err != nil {
		return nil, err
	}
	if sleep > 0 {
		timer := time.NewTimer(sleep)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("sleeping %s: %w", span.Format(sleep), context.Cause(ctx))
		}
	}
	if w.Attempt <= fail {
		return nil, &Failure{Code: CodeEcho, Message: fmt.Sprintf("attempt %d was asked to fail", w.Attempt)}
	}
	return w.Payload, nil
}

// echoWishes reads sleep and fail where the payload is an object that has them. Anything else
// is only echoed.
func echoWishes(payload json.RawMessage) (sleep time.Duration, fail int64, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(payload, " \t\r\n"), []byte("{")) {
		return 0, 0, nil
	}
	fields := map[string]json.RawMessage{} // a map, because names in a struct match in any case
	if json.Unmarshal(payload, &fields) != nil {
		return 0, 0, never(job.CodeUnreadablePayload, "the payload is no JSON")
	}
	if raw, ok := fields["sleep"]; ok {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			sleep, err = span.Parse(text)
		}
		if text == "" || err != nil {
			return 0, 0, never(job.CodeUnreadablePayload, "sleep wants "+span.Allowed)
		}
	}
	if raw, ok := fields["fail"]; ok {
		if json.Unmarshal(raw, &fail) != nil || fail < 0 {
			return 0, 0, never(job.CodeUnreadablePayload, "fail wants the number of attempts to fail")
		}
	}
	return sleep, fail, nil
}
