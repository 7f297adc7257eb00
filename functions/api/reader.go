package api

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"punctual/functions/api/wire"
	"punctual/shared/fault"
	"punctual/shared/schema"
)

// newSchemaBytes is how many bytes of schemas that are not in the cache one request may have compiled.
const newSchemaBytes = 256 << 10

// newReader returns a reader whose checks by the schemas of tasks are bounded.
func newReader(d *wire.Document) *wire.Reader {
	r := wire.NewReader(d)
	r.SchemaWork, r.Compilable, r.HiddenTemplates = schema.WorkPerValue, &atomic.Int64{}, map[string]bool{}
	r.Compilable.Store(newSchemaBytes)
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

func wordsOf[T ~string](values []T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
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
