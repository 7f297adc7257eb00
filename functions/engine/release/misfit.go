package release

import (
	"bytes"
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

// workPerItem is what judging the payload of an item of a mapped node may cost at least. All items together may
// cost a few seconds.
const workPerItem = schema.WorkPerValue / 20

// misfit judges the payload of a job by its task's schema, as REST judges the payload of a job that is posted. why
// is the zero Reason where it fits, or there is nothing to judge.
func (r *Releaser) misfit(
	ctx context.Context, row job.Row, task job.Task, payload json.RawMessage, items int,
) (why job.Reason, err error) {
	if len(task.PayloadSchema) == 0 || len(payload) == 0 || bytes.Equal(payload, []byte("null")) {
		return why, nil
	}
	by := schema.Use{Schema: task.PayloadSchema, Owner: "task", Field: "payload_schema"}
	if row.ItemNo > 0 {
		by.Work = max(workPerItem, schema.WorkPerValue/items)
	}
	return r.unfit(ctx, dag.ReasonInvalidPayload, "/payload", payload, by)
}

// unfit says with that code why a value does not fit a schema; the zero Reason if it does. Nobody can mend a schema
// or a value that is kept, so again does not help.
func (r *Releaser) unfit(
	ctx context.Context, code, at string, value json.RawMessage, by schema.Use,
) (why job.Reason, err error) {
	err = r.Schemas.Judge(ctx, value, by)
	var wrong fault.Mistakes
	switch {
	case errors.As(err, &wrong):
		return job.Reason{Code: code, Message: job.Cut(sentence(at, wrong), contract.MaxErrorMessage)}, nil
	case fault.KindOf(err) == fault.Undecodable:
		return job.Reason{Code: code, Message: fmt.Sprintf("the %s's %s cannot be applied", by.Owner, by.Field)}, nil
	}
	return why, err
}

// sentence tells the first mistake about the value at a place, and how many more there are.
func sentence(at string, wrong fault.Mistakes) string {
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
