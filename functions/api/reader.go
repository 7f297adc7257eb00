package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schema"
)

// newSchemaBytes is how many bytes of schemas that are not in the cache one request may have compiled.
const newSchemaBytes = 256 << 10

// reader reads the bodies of this API. It bounds the cost of checking payloads by the schemas of tasks.
type reader struct {
	*wire.Reader
	work       int           // units of work that checking by schemas may take; see schema.Use
	compilable *atomic.Int64 // bytes of schemas that this request may still compile
	// earlier returns the id of job n of the batch, if it comes before this one and was accepted. nil: there is no
	// batch.
	earlier func(n int) (job.ID, bool)
	// hiddenTemplates are the pointers of templates below the names of secrets.
	hiddenTemplates map[string]bool
}

func newReader(d *wire.Document) *reader {
	r := &reader{Reader: wire.NewReader(d), work: schema.WorkPerValue, compilable: &atomic.Int64{},
		hiddenTemplates: map[string]bool{}}
	r.compilable.Store(newSchemaBytes)
	return r
}

// neededBody reads a body that must be there; without one, detail says what is missing.
func neededBody(ctx context.Context, limit int64, allowed, detail string) (*wire.Document, error) {
	doc, err := wire.ReadBody(ctx, limit)
	if err == nil && doc == nil {
		err = wire.OneMistake("", wire.CodeMissingField, allowed, "%s", detail)
	}
	return doc, err
}

// set reads a field into to, if it is given and right.
func set[T any](f wire.Fields, name string, to *T, read func(wire.Value) (T, bool)) {
	if v, ok := f[name]; ok {
		if value, ok := read(v); ok {
			*to = value
		}
	}
}

func (r *reader) whole(least, most int) func(wire.Value) (int, bool) {
	return func(v wire.Value) (int, bool) { return r.Whole(v, least, most) }
}

func (r *reader) number(least, most float64) func(wire.Value) (float64, bool) {
	return func(v wire.Value) (float64, bool) { return r.Number(v, least, most) }
}

func (r *reader) duration(least, most time.Duration) func(wire.Value) (time.Duration, bool) {
	return func(v wire.Value) (time.Duration, bool) { return r.Duration(v, least, most) }
}

// window reads start_within or expire_after.
func (r *reader) window(v wire.Value) (time.Duration, bool) {
	return r.Duration(v, contract.MinWindow, contract.MaxWindow)
}

// wordOf reads one of the given words, for set.
func wordOf[T, W ~string](r *reader, words []W) func(wire.Value) (T, bool) {
	return func(v wire.Value) (T, bool) {
		word, ok := r.OneOf(v, wire.CodeInvalidValue, wordsOf(words))
		return T(word), ok
	}
}

func wordsOf[T ~string](values []T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// tooDeep reports a value that is nested more than contract.MaxDepth levels deep.
func (r *reader) tooDeep(v wire.Value, what string) bool {
	if r.Doc.Depth(v.Node) <= contract.MaxDepth {
		return false
	}
	r.Mistake(v.Pointer, wire.CodeOutOfRange, fmt.Sprintf("at most %d levels", contract.MaxDepth),
		"%s nested more than %d levels deep", what, contract.MaxDepth)
	return true
}

// checkName refuses a name in a path that nothing can have.
func checkName(name, of string) error {
	if wire.IsName(name) {
		return nil
	}
	return wire.OneMistake("name", wire.CodeInvalidValue, wire.NameAllowed, "this is not a name for "+of)
}

// filterName adds a mistake if a filter is given and is not a name.
func filterName(wrong *fault.Mistakes, parameter, value string) {
	if value != "" && !wire.IsName(value) {
		*wrong = append(*wrong, fault.Field{Pointer: parameter, Code: wire.CodeInvalidValue,
			Detail: "this is not a name", Allowed: wire.NameAllowed})
	}
}

// filterWord adds a mistake if a filter is given and is not one of the words.
func filterWord(wrong *fault.Mistakes, parameter, value string, words []string) {
	if value != "" && !slices.Contains(words, value) {
		*wrong = append(*wrong, fault.Field{Pointer: parameter, Code: wire.CodeInvalidValue,
			Detail: "this is not one " + parameter, Allowed: strings.Join(words, ", ")})
	}
}

// absent turns fault.NotFound into the problem that there is no such thing.
func absent(err error, what string) error {
	if fault.KindOf(err) == fault.NotFound {
		return wire.NewProblem(wire.CodeNotFound, "there is no such "+what)
	}
	return err
}
