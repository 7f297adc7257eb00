package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schema"
	"punctual/shared/tenant"
)

// number reads a number in a cursor; 0 for anything else.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// readPayload checks a payload by the general rules, by those of its executor and by its task's schema. It returns the
// payload as compact JSON; nil is none, or null, and is judged as null.
func (s *stage) readPayload(ctx context.Context, r *wire.Reader, v wire.Value, given bool, pointer string,
	task job.Task,
	t tenant.ID, literals []string) ([]byte, error) {
	v.Pointer = pointer + "/payload"
	of, _ := executor.Named(task.Executor)
	if !given || r.Doc.Kind(v.Node) == wire.KindNull {
		switch before := len(r.Wrong); {
		case of.NeedsPayload():
			r.Missing(pointer, "payload")
		case len(task.PayloadSchema) > 0:
			err := s.judgePayload(ctx, r, v.Pointer, []byte("null"), task)
			if !given && len(r.Wrong) > before {
				r.Wrong = r.Wrong[:before]
				r.Missing(pointer, "payload")
			}
			return nil, err
		}
		return nil, nil
	}
	before := len(r.Wrong)
	payload := r.Doc.Compact(v.Node)
	if len(payload) > contract.MaxPayload {
		r.Mistake(v.Pointer, wire.CodeTooLarge, fmt.Sprintf("at most %d bytes", contract.MaxPayload),
			"the payload has %d bytes", len(payload))
		return nil, nil
	}
	if spec.TooDeep(r, v, "the payload is") {
		return nil, nil
	}
	r.AllDuplicates(v.Node)
	if of.Check != nil {
		site := executor.Site{Tenant: t, Deployment: s.Deployment, HTTPAllow: s.HTTPAllow, OwnPorts: s.OwnPorts}
		of.Check(payloadReader{r}, executor.Value{Node: v.Node, Pointer: v.Pointer}, site)
	}
	r.NoSecrets(v, spec.Under(pointer, literals))
	if len(task.PayloadSchema) > 0 && len(r.Wrong) == before {
		if err := s.judgePayload(ctx, r, v.Pointer, payload, task); err != nil {
			return nil, err
		}
	}
	return payload, nil
}

// judgePayload reports each part of a payload that does not fit its task's schema.
func (s *stage) judgePayload(ctx context.Context, r *wire.Reader, pointer string, payload []byte, task job.Task) error {
	by := schema.Use{Schema: task.PayloadSchema, Owner: "task", Field: "payload_schema", Work: r.SchemaWork}
	return s.judge(ctx, r, pointer, payload, by)
}

// judge reports each part of a value that does not fit a schema.
func (s *stage) judge(ctx context.Context, r *wire.Reader, pointer string, value []byte, by schema.Use) error {
	if !s.schemas.Has(by.Schema) && r.Compilable.Add(-int64(len(by.Schema))) < 0 {
		r.Mistake(pointer, wire.CodeOutOfRange, "jobs of fewer tasks in one batch",
			"the payload schemas of the batch's tasks are too large together")
		return nil
	}
	err := s.schemas.Judge(ctx, value, by)
	var wrong fault.Mistakes
	if errors.As(err, &wrong) {
		allWrong(r, pointer, wrong)
		return nil
	}
	return err
}
