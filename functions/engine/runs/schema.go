package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schema"
)

// workPerItem is the least work that validating the payload of one item may cost. With it, validating all items of a
// mapped node takes seconds at most.
const workPerItem = schema.WorkPerValue / 20

// violation validates the payload of a job by its task's schema, as REST does when a job is posted. why is the zero
// Reason if the payload fits, or there is no schema.
func (r *Controller) violation(
	ctx context.Context, row job.Row, task job.Task, payload json.RawMessage, items int,
) (why job.Reason, err error) {
	if len(task.PayloadSchema) == 0 {
		return why, nil
	}
	if len(payload) == 0 { // none is null
		payload = json.RawMessage("null")
	}
	by := schema.Use{Schema: task.PayloadSchema, Owner: "task", Field: "payload_schema"}
	if row.IsItem() {
		by.Work = max(workPerItem, schema.WorkPerValue/items)
	}
	return r.unfit(ctx, dag.ReasonInvalidPayload, "/payload", payload, by)
}

// unfit returns a reason with that code if a value does not fit a schema, and the zero Reason if it does. A schema that
// cannot be applied is a reason, too, not an error: a retry would meet the same schema and value.
func (r *Controller) unfit(
	ctx context.Context, code, at string, value json.RawMessage, by schema.Use,
) (why job.Reason, err error) {
	err = r.Schemas.Validate(ctx, value, by)
	var wrong fault.Violations
	switch {
	case errors.As(err, &wrong):
		return job.Reason{Code: code, Message: job.Cut(sentence(at, wrong), contract.MaxErrorMessage)}, nil
	case fault.KindOf(err) == fault.Undecodable:
		return job.Reason{Code: code, Message: fmt.Sprintf("the %s's %s cannot be applied", by.Owner, by.Field)}, nil
	}
	return why, err
}

// sentence describes the first violation in the value at that pointer, and says how many more there are.
func sentence(at string, wrong fault.Violations) string {
	m := wrong[0]
	s := fmt.Sprintf("%s%s: %s", at, m.Pointer, m.Detail)
	if m.Allowed != "" {
		s += "; allowed: " + m.Allowed
	}
	if more := len(wrong) - 1; more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s
}
