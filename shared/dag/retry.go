package dag

import (
	"encoding/json"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/span"
)

// RetryOf is the retry policy of a node: what raw says, and what of says for the rest. raw has been checked
// when the dag was put; if it cannot be read, that is a fault.Undecodable.
func RetryOf(of job.RetryPolicy, raw json.RawMessage) (job.RetryPolicy, error) {
	var says struct {
		MaxAttempts  *float64 `json:"max_attempts"`
		InitialDelay *string  `json:"initial_delay"`
		Factor       *float64 `json:"factor"`
		MaxDelay     *string  `json:"max_delay"`
		Jitter       *float64 `json:"jitter"`
		OnWorkerLost *string  `json:"on_worker_lost"`
	}
	unreadable := func(err error) (job.RetryPolicy, error) {
		return of, fault.New(fault.Undecodable, err, "reading the retry policy of a node")
	}
	if err := json.Unmarshal(raw, &says); err != nil {
		return unreadable(err)
	}
	var err error
	if says.InitialDelay != nil {
		if of.InitialDelay, err = span.Parse(*says.InitialDelay); err != nil {
			return unreadable(err)
		}
	}
	if says.MaxDelay != nil {
		if of.MaxDelay, err = span.Parse(*says.MaxDelay); err != nil {
			return unreadable(err)
		}
	}
	if says.MaxAttempts != nil {
		of.MaxAttempts = int(*says.MaxAttempts) // 8.0 is 8
	}
	if says.Factor != nil {
		of.Factor = *says.Factor
	}
	if says.Jitter != nil {
		of.Jitter = *says.Jitter
	}
	if says.OnWorkerLost != nil {
		of.FailOnLost = *says.OnWorkerLost == job.LostFail
	}
	return of, nil
}
