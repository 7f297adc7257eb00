package rest

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/tenant"
	"punctual/shared/text"
)

// This file has the inputs and answers that several routes share.

// NoInput is the input of a route without parameters.
type NoInput struct{}

// Named is the input of a route about one thing by name.
type Named struct {
	Name string `path:"name"`
}

// PageInput is the input of a list without filters.
type PageInput struct{ Paging }

// Match has the header of a request that changes one version of a resource.
type Match struct {
	IfMatch string `header:"If-Match" doc:"ETag of the version to change; the answer is 412 if the resource has another version"`
	Version int64  // in IfMatch; 0: any
}

// Prepare reads the header.
func (m *Match) Prepare(ctx context.Context, _ tenant.Identity) (err error) {
	m.Version, err = readMatch(HeaderOf(ctx).Values("If-Match"))
	return err
}

// NoContent is the answer 204, which has no body.
type NoContent struct{}

// Answer is an answer with a body.
type Answer[V any] struct{ Body V }

// Listing is the answer of a list.
type Listing[V any] = Answer[Page[V]]

// StatusAnswer is an answer whose status depends on what was done.
type StatusAnswer[V any] struct {
	Status int
	Body   V
}

// Created is the answer of a PUT: 201 if it has created the resource, else 200.
func Created[V any](created bool, body V) *StatusAnswer[V] {
	if created {
		return &StatusAnswer[V]{http.StatusCreated, body}
	}
	return &StatusAnswer[V]{http.StatusOK, body}
}

// OrNull is an object in an answer, or null. It can be left out if it is not known.
type OrNull[T any] struct {
	Value *T
	Known bool
}

// IsZero reports whether omitzero leaves it out.
func (o OrNull[T]) IsZero() bool { return !o.Known && o.Value == nil }

// MarshalJSON writes the object, or null.
func (o OrNull[T]) MarshalJSON() ([]byte, error) { return text.JSON(o.Value) }

// Schema documents it.
func (OrNull[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[T](), true, ""), {Type: "null"}}}
}

// Either is an answer of one of two kinds; the other is nil.
type Either[A, B any] struct {
	One   *A
	Other *B
}

// MarshalJSON writes the one that is there.
func (e Either[A, B]) MarshalJSON() ([]byte, error) {
	if e.Other != nil {
		return text.JSON(e.Other)
	}
	return text.JSON(e.One)
}

// Schema documents both.
func (Either[A, B]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[A](), true, ""),
		r.Schema(reflect.TypeFor[B](), true, "")}}
}
