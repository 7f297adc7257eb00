package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/wire"
	"punctual/shared/text"
)

// This file has the inputs and answers that several routes share.

type nothing struct{}

type namedInput struct {
	Name string `path:"name"`
}

type pageInput struct{ wire.Paging }

// empty is the answer 204, which has no body.
type empty struct{}

// answer is an answer with a body.
type answer[V any] struct{ Body V }

// page is the answer of a list.
type page[V any] = answer[wire.Page[V]]

// statusAnswer is an answer whose status depends on what was done.
type statusAnswer[V any] struct {
	Status int
	Body   V
}

// orNull is an object in an answer, or null. It can be left out if it is not known.
type orNull[T any] struct {
	value *T
	known bool
}

// IsZero reports whether omitzero leaves it out.
func (o orNull[T]) IsZero() bool { return !o.known && o.value == nil }

// MarshalJSON writes the object, or null.
func (o orNull[T]) MarshalJSON() ([]byte, error) { return text.JSON(o.value) }

// Schema documents it.
func (orNull[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[T](), true, ""), {Type: "null"}}}
}

// either is an answer of one of two kinds; the other is nil.
type either[A, B any] struct {
	one   *A
	other *B
}

// MarshalJSON writes the one that is there.
func (e either[A, B]) MarshalJSON() ([]byte, error) {
	if e.other != nil {
		return text.JSON(e.other)
	}
	return text.JSON(e.one)
}

// Schema documents both.
func (either[A, B]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[A](), true, ""),
		r.Schema(reflect.TypeFor[B](), true, "")}}
}
