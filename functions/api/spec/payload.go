package spec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schema"
	"punctual/shared/tenant"
	"punctual/shared/text"
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
		of.Check(payloadReader{r}, v, site)
	}
	r.NoSecrets(v, Under(pointer, literals))
	if len(task.PayloadSchema) > 0 && len(r.Wrong) == before {
		if err := s.checkPayload(ctx, r, v.Pointer, payload, task); err != nil {
			return nil, err
		}
	}
	return payload, nil
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

// payloadReader is an executor.Reader, for executors that check payloads.
type payloadReader struct{ *rest.Reader }

func (p payloadReader) Object(v rest.Value, known []string) map[string]rest.Value {
	return p.Reader.Object(v.Node, v.Pointer, known)
}

func (p payloadReader) IsObject(v rest.Value, allowed string) bool {
	got := p.Doc.Kind(v.Node)
	if got != document.KindObject {
		p.Reader.Violation(v.Pointer, rest.CodeInvalidValue, allowed, "%s is given where an object belongs", got)
	}
	return got == document.KindObject
}

func (p payloadReader) Members(v rest.Value) iter.Seq2[string, int] { return p.Doc.Members(v.Node) }

func (payloadReader) Member(of rest.Value, name string, node int) rest.Value {
	return rest.Value{Node: node, Pointer: of.Pointer + "/" + text.EscapePointer(name)}
}

func (p payloadReader) Repeated(v rest.Value) func(node int) bool {
	repeated := p.Doc.Repeated(v.Node)
	return func(node int) bool { return repeated[int32(node-1)] } // the node before a value is its name
}

func (p payloadReader) Peek(v rest.Value) (s string, ok bool) {
	if v.Pointer == "" || p.Doc.Kind(v.Node) != document.KindString {
		return "", false
	}
	return p.Doc.Text(v.Node), true
}

func (p payloadReader) Size(v rest.Value) int { return len(p.Doc.Compact(v.Node)) }

func (p payloadReader) OneOf(v rest.Value, allowed []string) {
	p.Reader.OneOf(v, rest.CodeInvalidValue, allowed)
}

func (p payloadReader) Whole(v rest.Value, least, most int) { p.Reader.Whole(v, least, most) }

func (p payloadReader) Missing(v rest.Value, name string) { p.Reader.Missing(v.Pointer, name) }

func (p payloadReader) Violation(v rest.Value, code, allowed, detail string) {
	p.Reader.Violation(v.Pointer, code, allowed, "%s", detail)
}

func (payloadReader) Quoted(name string) string { return text.Quoted(name) }
