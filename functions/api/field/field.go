package field

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/rest"
	"punctual/shared/span"
)

// Schema makes the schema of a value; schemas that it refers to are added to those that are known.
type Schema func(known huma.Registry) *huma.Schema

// Field is one field of a request body. It does not change; its methods return changed copies.
type Field[T any] struct {
	property
	read func(*rest.Reader, rest.Value) (T, bool)
}

// property is what the document says about a field.
type property struct {
	name     string
	about    string
	example  any
	required bool
	schema   Schema
	bound    Bound // nil: the schema says all
}

// Property is a field of any type.
type Property interface{ of() property }

func (p property) of() property { return p }

// Name returns the name of the field.
func (p property) Name() string { return p.name }

// document returns the schema of the field in an object.
func (p property) document(known huma.Registry) *huma.Schema {
	s := p.schema(known)
	if p.about != "" {
		s.Description = p.about
	}
	if p.example != nil {
		s.Examples = []any{p.example}
	}
	if p.bound != nil {
		p.bound(s)
	}
	return s
}

// About returns the field with another description, for an object in which it means more, or less.
func (f Field[T]) About(text string) Field[T] {
	f.about = text
	return f
}

// Example returns the field with an example of its value.
func (f Field[T]) Example(value any) Field[T] {
	f.example = value
	return f
}

// Shaped returns the field with another schema.
func (f Field[T]) Shaped(s Schema) Field[T] {
	f.schema = s
	return f
}

// Ending returns the field with a description that ends with more, after its limits.
func (f Field[T]) Ending(more string) Field[T] {
	limits := f.bound
	f.bound = All(limits, func(s *huma.Schema) { s.Description += more })
	return f
}

// Required returns the field as one that its object must have.
func (f Field[T]) Required() Field[T] {
	f.required = true
	return f
}

// Into reads the field into to if it is given and right. It reports whether it is given.
func (f Field[T]) Into(r *rest.Reader, in rest.Fields, to *T) (given bool) {
	v, given := in[f.name]
	if given {
		if value, ok := f.read(r, v); ok {
			*to = value
		}
	}
	return given
}

// Pointer reads the field into to, as Into does; to stays nil if the field is not given.
func (f Field[T]) Pointer(r *rest.Reader, in rest.Fields, to **T) (given bool) {
	v, given := in[f.name]
	if given {
		if value, ok := f.read(r, v); ok {
			*to = &value
		}
	}
	return given
}

// typed returns the schema of a type; format may be "".
func typed(kind, format string) Schema {
	return func(huma.Registry) *huma.Schema { return &huma.Schema{Type: kind, Format: format} }
}

// Duration is a duration from least to most.
func Duration(name, about string, least, most time.Duration) Field[time.Duration] {
	if about == "" {
		about = span.Allowed
	}
	return Field[time.Duration]{
		property{name: name, about: about, schema: typed(huma.TypeString, ""), bound: Lasting(least, most)},
		func(r *rest.Reader, v rest.Value) (time.Duration, bool) { return r.Duration(v, least, most) },
	}
}

// Whole is a whole number from least to most.
func Whole(name, about string, least, most int) Field[int] {
	return Field[int]{
		property{name: name, about: about, schema: typed(huma.TypeInteger, "int64"),
			bound: from(float64(least), float64(most))},
		func(r *rest.Reader, v rest.Value) (int, bool) { return r.Whole(v, least, most) },
	}
}

// Number is a number from least to most.
func Number(name, about string, least, most float64) Field[float64] {
	return Field[float64]{
		property{name: name, about: about, schema: typed(huma.TypeNumber, "double"), bound: from(least, most)},
		func(r *rest.Reader, v rest.Value) (float64, bool) { return r.Number(v, least, most) },
	}
}

// Flag is a boolean.
func Flag(name, about string) Field[bool] {
	return Field[bool]{
		property{name: name, about: about, schema: typed(huma.TypeBoolean, "")},
		func(r *rest.Reader, v rest.Value) (bool, bool) { return r.Flag(v) },
	}
}

// Word is one of the given words, as a value of type T. Any other is an error with this code.
func Word[T, W ~string](name, about, code string, words []W) Field[T] {
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = string(w)
	}
	return Field[T]{
		property{name: name, about: about, schema: typed(huma.TypeString, ""), bound: OneOf(words)},
		func(r *rest.Reader, v rest.Value) (T, bool) {
			s, ok := r.OneOf(v, code, plain)
			return T(s), ok
		},
	}
}

// Text is a text that read checks beyond its kind; bound is what the document says about it.
func Text[T any](name, about string, bound Bound, read func(*rest.Reader, rest.Value) (T, bool)) Field[T] {
	return Field[T]{property{name: name, about: about, schema: typed(huma.TypeString, ""), bound: bound}, read}
}

// List is a list of at most that many elements. An element that is wrong is left out.
func List[T any](name, about string, least, most int, each Field[T]) Field[[]T] {
	return Field[[]T]{
		property{name: name, about: about,
			schema: ArrayOf(least, most, each.document)},
		func(r *rest.Reader, v rest.Value) (list []T, ok bool) {
			for _, element := range r.List(v, most) {
				if value, ok := each.read(r, element); ok {
					list = append(list, value)
				}
			}
			return list, true
		},
	}
}

// ArrayOf returns the schema of a list of least to most elements.
func ArrayOf(least, most int, each Schema) Schema {
	return func(known huma.Registry) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeArray, Items: each(known), MaxItems: &most}
		if least > 0 {
			s.MinItems = &least
		}
		return s
	}
}

// MapOf returns the schema of an object of least to most values by name.
func MapOf(least, most int, name map[string]any, each Schema) Schema {
	return func(known huma.Registry) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: each(known), MaxProperties: &most,
			Extensions: map[string]any{"propertyNames": name}}
		if least > 0 {
			s.MinProperties = &least
		}
		return s
	}
}

// Value is a field that the reader of its object reads itself.
func Value(name, about string, schema Schema) Field[rest.Value] {
	return Field[rest.Value]{property{name: name, about: about, schema: schema},
		func(_ *rest.Reader, v rest.Value) (rest.Value, bool) { return v, true }}
}

// TextSchema returns the schema of a text.
func TextSchema(bound Bound) Schema {
	return func(huma.Registry) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeString}
		bound(s)
		return s
	}
}

// Anything is the schema of any JSON value.
func Anything(huma.Registry) *huma.Schema { return &huma.Schema{} }

// AnyObject is the schema of an object with any fields.
func AnyObject(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
