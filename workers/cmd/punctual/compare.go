package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"punctual/shared/client"
	"punctual/shared/client/rest"
	"punctual/shared/fault"
	"punctual/shared/schema"
	"punctual/shared/span"
	"punctual/shared/text"
)

// servedSchemas are those of the OpenAPI document that the API serves, which is read when the first one is needed.
type servedSchemas struct {
	Paths map[string]struct {
		Put struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
	}
	Components struct{ Schemas map[string]json.RawMessage }
}

// bodySchema is the schema of the body of a request.
type bodySchema struct {
	text   json.RawMessage
	fields map[string]json.RawMessage // by name
}

// reference is what the pointer of a schema in the document begins with.
const reference = "#/components/schemas/"

// referred are the names of the schemas that a schema refers to.
var referred = regexp.MustCompile(`"` + reference + `(\w+)"`)

// of returns the schema of the body of a put, with all that it refers to.
func (c *servedSchemas) of(s *shell, write rest.Operation) (body bodySchema, err error) {
	if c.Paths == nil {
		text, err := s.client.Document(s.ctx)
		if err != nil {
			return body, err
		}
		if err := json.Unmarshal(text, c); err != nil {
			return body, fmt.Errorf("reading the OpenAPI document: %w", err)
		}
	}
	name := strings.TrimPrefix(c.Paths[write.Path].Put.RequestBody.Content["application/json"].Schema.Ref, reference)
	if c.Components.Schemas[name] == nil {
		return body, fmt.Errorf("the API has no schema for %s %s: it is of another version", write.Method, write.Path)
	}
	needed := map[string]json.RawMessage{}
	for open := []string{name}; len(open) > 0; open = open[1:] {
		if _, known := needed[open[0]]; known {
			continue
		}
		needed[open[0]] = c.Components.Schemas[open[0]]
		for _, m := range referred.FindAllSubmatch(needed[open[0]], -1) {
			open = append(open, string(m[1]))
		}
	}
	var object struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(needed[name], &object); err != nil {
		return body, fmt.Errorf("reading the schema %s: %w", name, err)
	}
	body.fields = object.Properties
	body.text, err = json.Marshal(map[string]any{"$ref": reference + name,
		"components": map[string]any{"schemas": needed}})
	return body, err
}

// bodies holds the schemas of bodies that were compiled.
var bodies = schema.NewCache()

// fits checks the document by the schema that the API serves for it. It is an error that names each place.
func (d document) fits(ctx context.Context, by bodySchema) error {
	if len(by.text) > schema.MaxText {
		return nil // it cannot be compiled; the write checks the document
	}
	use := schema.Use{Schema: by.text, Owner: "API", Field: "schema"}
	err := bodies.Validate(ctx, d.body, use)
	found, ok := errors.AsType[fault.Violations](err)
	if !ok {
		return err
	}
	var all []error
	known := slices.Sorted(maps.Keys(by.fields))
	for _, v := range found {
		m := rest.ProblemError{Pointer: v.Pointer, Allowed: ptr(v.Allowed),
			Detail: strings.TrimSuffix(v.Detail, " (of the API's schema)")}
		name := strings.TrimPrefix(v.Pointer, "/")
		if name != "" && !strings.Contains(name, "/") && by.fields[name] == nil {
			m.Code, m.Allowed = rest.ProblemErrorCode(client.UnknownField), new(strings.Join(known, ", "))
			m.Detail = fmt.Sprintf("no field %q is known here%s", name, suggestion(name, known))
		}
		all = append(all, d.violation(m))
	}
	return usage{errors.Join(all...)}
}

// differences are the pointers of the fields in which the view of a resource is not what the document asks for. A
// field that the document leaves out has its default.
func (e *entry) differences(view json.RawMessage, fields map[string]json.RawMessage) ([]string, error) {
	want, err := fieldsOf(e.body)
	if err != nil {
		return nil, err
	}
	defaults, err := fieldsOf(json.RawMessage(cmp.Or(e.resource.defaults, "{}")))
	if err != nil {
		return nil, err
	}
	have, err := fieldsOf(view)
	if err != nil {
		return nil, err
	}
	fill(want, defaults)
	maps.DeleteFunc(have, func(name string, _ any) bool { return fields[name] == nil })
	return differ(want, have, "", false), nil
}

func fieldsOf(text json.RawMessage) (v map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	return v, nil
}

// fill gives an object the defaults of the fields that it has not. The default * is that of every field.
func fill(v, defaults map[string]any) {
	for name, value := range defaults {
		inner, _ := value.(map[string]any)
		if name == "*" {
			for _, each := range v {
				if child, ok := each.(map[string]any); ok {
					fill(child, inner)
				}
			}
			continue
		}
		if is, ok := v[name].(map[string]any); ok && inner != nil {
			fill(is, inner)
		} else if v[name] == nil {
			v[name] = value
		}
	}
}

// verbatim are the fields whose values are the user's own, in which 60s is not 1m.
var verbatim = []string{"payload", "params", "payload_schema", "params_schema", "tags", "metadata"}

// differ returns the pointers of the parts in which two values are not the same. Absent, null and empty are.
func differ(a, b any, at string, exact bool) (all []string) {
	first, isFirst := a.(map[string]any)
	second, isSecond := b.(map[string]any)
	switch {
	case isFirst && b == nil, a == nil && isSecond:
		if !blank(first) || !blank(second) {
			return []string{at}
		}
	case isFirst && isSecond:
		names := maps.Clone(first)
		maps.Copy(names, second)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			all = append(all, differ(first[name], second[name], at+"/"+text.EscapePointer(name),
				exact || slices.Contains(verbatim, name))...)
		}
		return all
	case !alike(a, b, exact):
		return []string{at}
	}
	return nil
}

// blank says whether all fields of an object are absent, null or empty.
func blank(v map[string]any) bool {
	for _, value := range v {
		if inner, ok := value.(map[string]any); ok && blank(inner) {
			continue
		}
		if !alike(value, nil, true) && !alike(nil, value, true) {
			return false
		}
	}
	return true
}

// alike says whether two values, of which one is no object, mean the same.
func alike(a, b any, exact bool) bool {
	switch a := a.(type) {
	case []any:
		list, ok := b.([]any)
		if len(a) != len(list) || !ok && b != nil {
			return false
		}
		for i := range a {
			if len(differ(a[i], list[i], "", exact)) > 0 {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b || !strings.ContainsAny(a.String()+b.String(), ".eE") {
			return ok && a == b // whole numbers may have more digits than a float
		}
		x, errX := a.Float64()
		y, errY := b.Float64()
		return errX == nil && errY == nil && x == y
	case string:
		b, ok := b.(string)
		return ok && (a == b || !exact && measure(a) == measure(b))
	case nil:
		list, ok := b.([]any)
		return b == nil || ok && len(list) == 0
	}
	return reflect.DeepEqual(a, b)
}

// measure is a length of time or a size in its shortest form, and any other text as it is.
func measure(s string) string {
	if d, err := span.Parse(s); err == nil {
		return span.Format(d)
	}
	if n, err := text.ParseBytes(s); err == nil {
		return text.Bytes(n)
	}
	return s
}
