package jobs

import (
	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/contract"
)

// readBatchKey reads the key of a job in a batch.
func readBatchKey(r *rest.Reader, v rest.Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && !spec.ValidKey(s) {
		r.Mistake(v.Pointer, rest.CodeInvalidValue, spec.KeyAllowed, "this is not an idempotency key")
	}
	return s, ok
}

var (
	jobRequest = field.NewObject("JobRequest", "Job to run, and when.", spec.Task, spec.Payload, spec.RunAt, spec.Delay,
		spec.Priority, spec.Pool, spec.Timeout, spec.StartWithin, spec.ExpireAfter, spec.Retry, after, runIf, spec.Tags,
		spec.Metadata, spec.AllowLiterals).
		Refusing(field.IsEither(field.HasAll("run_at", "delay"), ruleOfNone))
	batchJobRequest = jobRequest.Replacing("BatchJobRequest", "Job of a batch.", after.Shaped(field.ArrayOf(0,
		contract.MaxAfter, field.TextSchema(field.Matching(parentPattern, spec.JobIDLength))))).With(batchKey)
)

// ruleOfNone is an object with run_if but without after.
var ruleOfNone = &huma.Schema{AllOf: []*huma.Schema{field.HasAll("run_if"), field.IsNot(field.HasAll("after"))}}
