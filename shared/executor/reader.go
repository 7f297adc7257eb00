package executor

import (
	"iter"
	"time"
)

// Codes of violations, as the API's catalogue of problems explains them.
const (
	CodeInvalidValue      = "invalid_value"
	CodeOutOfRange        = "out_of_range"
	CodeDuplicateField    = "duplicate_field"
	CodeConflictingFields = "conflicting_fields"
	CodeSecretInPayload   = "secret_in_payload"
	CodeTargetRefused     = "target_refused"
)

// Value is one value of a payload: its number in the document, and where it is.
type Value struct {
	Node    int
	Pointer string // JSON pointer
}

// Reader takes values out of a payload and gathers every violation on the way. What its methods
// cannot read they note themselves, unless they say otherwise.
type Reader interface {
	// Object returns the fields of an object that may have only these. Nil: it is no object.
	Object(v Value, known []string) map[string]Value
	// IsObject says whether v is an object, and notes that "allowed" belongs there if it is not.
	IsObject(v Value, allowed string) bool
	// Members iterates over the fields of an object by name, those that repeat a name included;
	// of anything else there are none.
	Members(v Value) iter.Seq2[string, Value]
	// Repeated returns a function that says which of the members of an object repeat a name.
	Repeated(v Value) func(member Value) bool
	// Text reads a string.
	Text(v Value) (string, bool)
	// Peek returns a string and notes nothing: ok is false for what is none or is not there.
	Peek(v Value) (s string, ok bool)
	// Size is how many bytes a value has as compact JSON.
	Size(v Value) int
	// OneOf reads one of a few words; code is that of any other.
	OneOf(v Value, code string, words []string) (string, bool)
	// Whole reads a whole number within limits, both included.
	Whole(v Value, least, most int) (int, bool)
	// Span reads a length of time.
	Span(v Value) (time.Duration, bool)
	// Missing notes that the object at a pointer lacks a field.
	Missing(pointer, name string)
	// Violation notes any other violation: its code, what would be taken, what is wrong. If there are args, detail is a
	// format.
	Violation(pointer, code, allowed, detail string, args ...any)
}
