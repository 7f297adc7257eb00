package field

import "github.com/danielgtaylor/huma/v2"

// HasAll is an object with all these fields.
func HasAll(names ...string) *huma.Schema { return &huma.Schema{Required: names} }

// HasAny is an object with at least one of these fields.
func HasAny(names []string) *huma.Schema {
	of := make([]*huma.Schema, len(names))
	for n, name := range names {
		of[n] = HasAll(name)
	}
	return IsEither(of...)
}

// IsNot is a value that does not match a schema.
func IsNot(s *huma.Schema) *huma.Schema { return &huma.Schema{Not: s} }

// IsEither is a value that matches one of these schemas, or more.
func IsEither(of ...*huma.Schema) *huma.Schema { return &huma.Schema{AnyOf: of} }

// HasSome is an object with a list of that name that is not empty.
func HasSome(name string) *huma.Schema {
	return &huma.Schema{Required: []string{name}, Properties: map[string]*huma.Schema{name: {MinItems: new(1)}}}
}

// HasNull is an object whose field is null; hasValue is one whose field is anything else.
func HasNull(name string) *huma.Schema {
	return &huma.Schema{Required: []string{name}, Properties: map[string]*huma.Schema{name: {Type: "null"}}}
}

// HasValue is an object whose field is there and is not null.
func HasValue(name string) *huma.Schema {
	return &huma.Schema{Required: []string{name},
		Properties: map[string]*huma.Schema{name: IsNot(&huma.Schema{Type: "null"})}}
}
