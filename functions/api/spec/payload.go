package spec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schema"
	"punctual/shared/tenant"
)

// ReadPayload checks a payload by the general rules, by those of its executor and by its task's schema. It returns the
// payload as compact JSON; nil is none, or null, and is validated as null.
func (s *Core) ReadPayload(ctx context.Context, r *rest.Reader, v rest.Value, given bool, pointer string,
	task job.Task,
	t tenant.ID, literals []string) ([]byte, error) {
	v.Pointer = pointer + "/payload"
	of, _ := executor.Named(task.Executor)
	if !given || r.Doc.Kind(v.Node) == document.KindNull {
		switch before := len(r.Wrong); {
		case of.NeedsPayload():
			r.Missing(pointer, "payload")
		case len(task.PayloadSchema) > 0:
			err := s.checkPayload(ctx, r, v.Pointer, []byte("null"), task)
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
		r.Violation(v.Pointer, rest.CodeTooLarge, fmt.Sprintf("at most %d bytes", contract.MaxPayload),
			"the payload has %d bytes", len(payload))
		return nil, nil
	}
	if TooDeep(r, v, "the payload is") {
		return nil, nil
	}
	r.AllDuplicates(v.Node)
	if of.Check != nil {
		site := executor.Site{Tenant: t, Deployment: s.Deployment, HTTPAllow: s.HTTPAllow, OwnPorts: s.OwnPorts}
		of.Check(r, v, site)
	}
	r.NoSecrets(v, Under(pointer, literals))
	if len(task.PayloadSchema) > 0 && len(r.Wrong) == before {
		if err := s.checkPayload(ctx, r, v.Pointer, payload, task); err != nil {
			return nil, err
		}
	}
	return payload, nil
}

// ReplacesPayload reports whether a request has a payload, or a patch, in place of a payload that is there.
func ReplacesPayload(f rest.Fields) bool {
	return HasAny(f, []string{Payload.Name(), PayloadPatch.Name()})
}

// ReplacePayload reads the payload of a request, or its patch of the payload that is there, by the rules for the
// payload of a new job.
func (s *Core) ReplacePayload(ctx context.Context, r *rest.Reader, f rest.Fields, there []byte, task job.Task,
	t tenant.ID, literals []string) (payload []byte, err error) {
	whole, replaced := f[Payload.Name()]
	patch, patched := f[PayloadPatch.Name()]
	if replaced && patched {
		r.Violation(patch.Pointer, rest.CodeConflictingFields, "payload or payload_patch",
			"payload and payload_patch exclude each other")
		return nil, nil
	}
	if replaced {
		return s.ReadPayload(ctx, r, whole, true, "", task, t, literals)
	}
	before := len(r.Wrong)
	if r.AllDuplicates(patch.Node); TooDeep(r, patch, "the patch is") || len(r.Wrong) > before {
		return nil, nil
	}
	merged := document.Merge(there, r.Doc.Compact(patch.Node))
	doc, err := document.Read(merged)
	if err != nil {
		return nil, rest.Unreadable(merged, err)
	}
	of := NewReader(doc)
	payload, err = s.ReadPayload(ctx, of, rest.Value{}, true, "", task, t, literals)
	for _, m := range of.Wrong { // the request has the patch only
		below := strings.TrimPrefix(m.Pointer, "/"+Payload.Name())
		r.Violation(patch.Pointer+below, m.Code, m.Allowed, "%s", m.Detail)
	}
	return payload, err
}

// TaskOf returns the task of a job or a template that is there, for the rules of its payload.
func (s *Core) TaskOf(ctx context.Context, t tenant.ID, is job.Settings) (job.Task, error) {
	task, err := s.Store.Task(ctx, t, is.Task)
	if fault.KindOf(err) == fault.NotFound { // the task was deleted; the job still runs with what it copied
		task, err = job.Task{Name: is.Task}, nil
	}
	task.Executor = is.Executor
	return task, err
}

// checkPayload reports each part of a payload that does not fit its task's schema.
func (s *Core) checkPayload(ctx context.Context, r *rest.Reader, pointer string, payload []byte, task job.Task) error {
	by := schema.Use{Schema: task.PayloadSchema, Owner: "task", Field: "payload_schema", Work: r.SchemaWork}
	return s.checkSchema(ctx, r, pointer, payload, by)
}

// checkSchema reports each part of a value that does not match a schema.
func (s *Core) checkSchema(ctx context.Context, r *rest.Reader, pointer string, value []byte, by schema.Use) error {
	if !s.Schemas.Has(by.Schema) && r.Compilable.Add(-int64(len(by.Schema))) < 0 {
		r.Violation(pointer, rest.CodeOutOfRange, "jobs of fewer tasks in one batch",
			"the payload schemas of the batch's tasks are too large together")
		return nil
	}
	err := s.Schemas.Validate(ctx, value, by)
	var wrong fault.Violations
	if errors.As(err, &wrong) {
		AllWrong(r, pointer, wrong)
		return nil
	}
	return err
}

// newSchemaBytes is how many bytes of schemas that are not in the cache one request may have compiled.
const newSchemaBytes = 256 << 10

// NewReader returns a reader whose checks by the schemas of tasks are bounded.
func NewReader(d *document.Document) *rest.Reader {
	r := rest.NewReader(d)
	r.SchemaWork, r.Compilable, r.HiddenTemplates = schema.WorkPerValue, &atomic.Int64{}, map[string]bool{}
	r.Compilable.Store(newSchemaBytes)
	return r
}

// ReadSchema reads a JSON Schema, which must compile.
func ReadSchema(r *rest.Reader, v rest.Value, schemas *schema.Cache) json.RawMessage {
	if k := r.Doc.Kind(v.Node); k != document.KindObject && k != document.KindBool {
		r.Violation(v.Pointer, rest.CodeInvalidValue, "a JSON Schema", "%s is given where a schema belongs", k)
		return nil
	}
	r.AllDuplicates(v.Node)
	raw := r.Doc.Compact(v.Node)
	var wrong fault.Violations
	if errors.As(schemas.Check(raw), &wrong) {
		AllWrong(r, v.Pointer, wrong)
		return nil
	}
	return slices.Clone(raw)
}

// AllWrong adds violations about the value at a pointer.
func AllWrong(r *rest.Reader, pointer string, wrong fault.Violations) {
	for _, m := range wrong {
		r.Violation(pointer+m.Pointer, m.Code, m.Allowed, "%s", m.Detail)
	}
}
