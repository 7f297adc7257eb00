package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/schema"
)

// correct returns what an operation changes in the jobs that repeat dead ones; nil for nothing. The errors of what it
// returns are fault.Violations, with the codes of a redrive of one job.
func (s *session) correct(ctx context.Context, at int) accept.Correct {
	set := s.is.Bulk.Set
	timed := set.Timed() || s.is.Bulk.Spread > 0
	if !timed && set.Priority == "" && set.Patch == nil {
		return nil
	}
	return func(dead job.Row, next *accept.Draft, now time.Time) error {
		if dead.InRun() {
			return ofNode(dead, set)
		}
		next.By = s.is.By
		if set.Priority != "" {
			next.Row.Priority = set.Priority
		}
		if timed {
			notBefore, delay := s.due(at)
			if next.Row.DueAt = now.Add(delay); notBefore.After(now) {
				next.Row.DueAt = notBefore
			}
			if next.Row.ExpireAfter > 0 {
				next.Row.ExpiryAt = next.Row.DueAt.Add(next.Row.ExpireAfter)
			}
		}
		if set.Patch == nil {
			return nil
		}
		return s.patch(ctx, dead, next, set.Patch)
	}
}

// ofNode refuses corrections of the job of a run's node. A spread is none: the job of a node starts at once.
func ofNode(dead job.Row, set operation.Set) error {
	if !set.Timed() && set.Priority == "" && set.Patch == nil {
		return nil
	}
	return violation("conflicting_fields", "the job is that of node %s of run %s: its redrive retries the node, whose "+
		"definition says what it is given", dead.Node, dead.RunID)
}

// patch changes the payload of the job that repeats a dead one. The request has checked the patch for secrets; the rest
// of the payload was checked when the dead job was made.
func (s *session) patch(ctx context.Context, dead job.Row, next *accept.Draft, patch json.RawMessage) error {
	merged := document.Merge(next.Payload, patch)
	if len(merged) > contract.MaxPayload {
		return violation("too_large", "the payload has %d bytes with the patch, of at most %d", len(merged),
			contract.MaxPayload)
	}
	doc, err := document.Read(merged)
	switch {
	case err != nil:
		return fmt.Errorf("reading the payload of job %s with the patch: %w", dead.ID, err)
	case doc.Depth(0) > contract.MaxDepth:
		return violation("out_of_range", "the payload is nested more than %d levels deep with the patch",
			contract.MaxDepth)
	}
	task, err := s.Store.Task(ctx, dead.Tenant, dead.Task)
	if fault.KindOf(err) == fault.NotFound { // it was deleted; the job still runs with what it copied
		task, err = job.Task{Name: dead.Task}, nil
	}
	if err != nil {
		return err
	}
	if document.IsNull(merged) {
		if kind, _ := executor.Named(dead.Executor); kind.NeedsPayload() {
			return violation("missing_field", "the executor %s needs a payload, and the patch leaves none", kind.Name)
		}
		next.Payload = nil
	} else {
		next.Payload = merged
	}
	return s.fits(ctx, merged, task)
}

// fits says where a payload does not fit the schema of its task.
func (s *session) fits(ctx context.Context, payload json.RawMessage, task job.Task) error {
	if len(task.PayloadSchema) == 0 {
		return nil
	}
	err := s.Schemas.Validate(ctx, payload, schema.Use{Schema: task.PayloadSchema, Owner: "task",
		Field: "payload_schema"})
	var wrong fault.Violations
	if errors.As(err, &wrong) && len(wrong) > 0 {
		return violation(wrong[0].Code, "the payload with the patch, at %s: %s", "/payload"+wrong[0].Pointer,
			wrong[0].Detail)
	}
	return err
}

func violation(code, detail string, args ...any) fault.Violations {
	return fault.Violations{{Pointer: "/set", Code: code, Detail: fmt.Sprintf(detail, args...)}}
}
