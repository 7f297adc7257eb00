package schedules

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/spec"
)

// Document adds the schemas that are made from others: those of patches and of the forms of calendars.
func Document(schemas map[string]*huma.Schema) {
	patchOf(schemas, scheduleRequest.Name())
	schemas["SchedulePatchRequest"].MinProperties = new(1)
	delete(schemas["SchedulePatchRequest"].Properties, spec.Pausing.Name()) // its own routes pause and resume
	calendars(schemas)
}

func closedObject() *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{}}
}

// calendars turns the schema of a calendar into one of its four forms.
func calendars(schemas map[string]*huma.Schema) {
	whole := schemas["CalendarRequest"]
	whole.OneOf = nil
	for _, form := range calendarForms {
		s := closedObject()
		s.Required = form.own[:1]
		for name, field := range whole.Properties {
			if !slices.Contains(form.others(), name) {
				s.Properties[name] = field
			}
		}
		schemas[form.schema] = s
		whole.OneOf = append(whole.OneOf, field.Ref(form.schema))
	}
	whole.Type, whole.Properties, whole.AdditionalProperties, whole.Required = "", nil, nil, nil
}

// patchOf makes the schema of a merge patch (RFC 7396) from a whole schema: no field is required, and null removes an
// optional one. Nested objects are patched too.
func patchOf(schemas map[string]*huma.Schema, name string) *huma.Schema {
	whole, patch := schemas[name], strings.TrimSuffix(name, "Request")+"PatchRequest"
	s := closedObject()
	for name, is := range whole.Properties {
		p := *is
		if inner, ok := strings.CutPrefix(p.Ref, field.Prefix); ok {
			p = *patchOf(schemas, inner)
		}
		switch {
		case slices.Contains(whole.Required, name):
		case p.Ref != "":
			p = huma.Schema{AnyOf: []*huma.Schema{field.Ref(strings.TrimPrefix(p.Ref, field.Prefix)), {Type: "null"}}}
		case p.Type != "":
			p = field.Nullable(p)
			if each, ok := p.AdditionalProperties.(*huma.Schema); ok {
				one := field.Nullable(*each)
				p.AdditionalProperties = &one
			}
		}
		s.Properties[name] = &p
	}
	schemas[patch] = s
	return field.Ref(patch)
}
