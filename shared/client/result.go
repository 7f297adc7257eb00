package client

import (
	"encoding/json"
	"fmt"

	"punctual/shared/client/rest"
)

// Codes of a result that is not the value which the work returned, for errors.Is.
const (
	ResultTooLarge Code = "result_too_large" // larger than is kept; the job shows a preview, or a part of it
	ResultLost     Code = "result_lost"      // the result could not be stored
)

// Result decodes the result of a job that has succeeded; no result is the zero T. A result of which only a preview or a
// part is kept is an error, [ResultTooLarge] or [ResultLost]: it is never decoded as the value. Lists show only small
// results, so job is what [Client.Job] or [Client.Wait] returns.
func Result[T any](job rest.JobView) (T, error) {
	var value T
	if job.ResultPartial != nil {
		return value, fmt.Errorf("reading the result of job %s, of which only a part is kept: %w", job.JobID,
			Code(*job.ResultPartial))
	}
	if job.Status != rest.JobViewStatusSUCCEEDED {
		return value, fmt.Errorf("reading the result of job %s: it is %s", job.JobID, job.Status)
	}
	if len(job.Result) == 0 {
		return value, nil
	}
	if err := json.Unmarshal(job.Result, &value); err != nil {
		return value, fmt.Errorf("reading the result of job %s as %T: %w", job.JobID, value, err)
	}
	return value, nil
}
