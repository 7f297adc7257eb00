package field

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/rest"
)

// Object is an object that a request may hold, or a whole body. It has no fields but these.
type Object struct {
	name    string // of its schema
	about   string
	fields  []property
	names   []string
	changes bool
	exclude []string            // fields of which an object has at most one
	needs   map[string][]string // fields that another field needs
	either  []*Object           // its alternatives; nil: it has none
}

// NewObject returns an object with these fields; name is the name of its schema in the document.
func NewObject(name, about string, fields ...Property) *Object {
	o := &Object{name: name, about: about}
	for _, f := range fields {
		o.fields = append(o.fields, f.of())
		o.names = append(o.names, f.of().name)
	}
	return o
}

// OneOfTwo returns an object that is one of two others. It reads the fields of both; the reader has to refuse fields of
// both at the same time.
func OneOfTwo(name, about string, one, other *Object) *Object {
	o := NewObject(name, about)
	o.either = []*Object{one, other}
	for _, n := range slices.Concat(one.names, other.names) {
		if !slices.Contains(o.names, n) {
			o.names = append(o.names, n)
		}
	}
	return o
}

// With returns the object with more fields.
func (o *Object) With(more ...Property) *Object {
	n := *o
	n.fields, n.names = slices.Clone(o.fields), slices.Clone(o.names)
	for _, f := range more {
		n.fields, n.names = append(n.fields, f.of()), append(n.names, f.of().name)
	}
	return &n
}

// Replacing returns the object under another name, with one of its fields replaced by another of the same name.
func (o *Object) Replacing(name, about string, by Property) *Object {
	n := *o.With()
	n.name, n.about = name, about
	for i, f := range n.fields {
		if f.name == by.of().name {
			n.fields[i] = by.of()
		}
	}
	return &n
}

// Name returns the name of the object's schema.
func (o *Object) Name() string { return o.name }

// Excluding returns the object with two fields of which it has at most one. The reader has to refuse both.
func (o *Object) Excluding(one, other string) *Object {
	n := *o
	n.exclude = []string{one, other}
	return &n
}

// Needing returns the object with a field that it has only with another. The reader has to refuse the one alone.
func (o *Object) Needing(one, other string) *Object {
	n := *o
	n.needs = map[string][]string{one: {other}}
	return &n
}

// Changes returns the object as a set of changes, which must have at least one field.
func (o *Object) Changes() *Object {
	n := *o
	n.changes = true
	return &n
}

// Names returns the names of the fields.
func (o *Object) Names() []string { return o.names }

// Read reads the object's fields. Any other value, an unknown field and a repeated field are errors; the fields are nil
// if the value is no object.
func (o *Object) Read(r *rest.Reader, v rest.Value) rest.Fields {
	return r.Object(v, o.names)
}

// Body reads the object as a whole body.
func (o *Object) Body(r *rest.Reader) rest.Fields { return o.Read(r, rest.Value{}) }

// Schema adds the object to the document's schemas and returns a reference to it.
func (o *Object) Schema(known huma.Registry) *huma.Schema {
	ref := Ref(o.name)
	if _, ok := known.Map()[o.name]; ok {
		return ref
	}
	if o.either != nil {
		s := &huma.Schema{Description: o.about}
		for _, alternative := range o.either {
			s.OneOf = append(s.OneOf, alternative.Schema(known))
		}
		known.Map()[o.name] = s
		return ref
	}
	s := &huma.Schema{Type: huma.TypeObject, Description: o.about, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{}, DependentRequired: o.needs}
	known.Map()[o.name] = s
	if o.exclude != nil {
		s.Not = &huma.Schema{Required: o.exclude}
	}
	if o.changes {
		s.MinProperties = new(1)
	}
	for _, f := range o.fields {
		s.Properties[f.name] = f.document(known)
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	return ref
}

// Prefix is the beginning of the reference to a schema of the document.
const Prefix = "#/components/schemas/"

// Ref returns a reference to a schema of the document.
func Ref(name string) *huma.Schema { return &huma.Schema{Ref: Prefix + name} }

// Nested is a field that holds an object; read reads it whole.
func Nested[T any](name, about string, o *Object, read func(*rest.Reader, rest.Value) (T, bool)) Field[T] {
	return Field[T]{property{name: name, about: about, schema: o.Schema}, read}
}
