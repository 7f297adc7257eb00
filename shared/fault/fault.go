package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind is a sort of fault, with one meaning for every adapter.
type Kind string

// The kinds. The zero Kind is an unknown fault: not retryable.
const (
	NotFound    Kind = "not_found"   // it does not exist
	Refused     Kind = "refused"     // a condition did not hold; decide once more from facts
	Conflict    Kind = "conflict"    // another writer holds it for a moment; a retry helps
	Throttled   Kind = "throttled"   // too many requests; a later retry helps
	Unavailable Kind = "unavailable" // the service or the way to it failed; a retry helps
	Invalid     Kind = "invalid"     // the request can never work
	TooLarge    Kind = "too_large"   // over a limit of the service
	Forbidden   Kind = "forbidden"   // a grant is missing
	Undecodable Kind = "undecodable" // stored or received data that cannot be read
)

// Error is a fault of a known kind.
type Error struct {
	Kind Kind
	Op   string // what was being done, and to what: `arming timer "j-…"`
	Err  error  // the service's error; may be nil
}

// New returns an Error; op is formatted with args.
func New(kind Kind, err error, op string, args ...any) *Error {
	return &Error{Kind: kind, Op: fmt.Sprintf(op, args...), Err: err}
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Op + ": " + string(e.Kind)
	}
	return fmt.Sprintf("%s: %s: %v", e.Op, e.Kind, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool {
	return e.Kind == Conflict || e.Kind == Throttled || e.Kind == Unavailable
}

// KindOf returns the kind of the first Error in err's chain, "" when there is none. The end of a
// context is Unavailable: the call's effect is unknown.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Unavailable
	}
	return ""
}

// Retryable reports whether a retry may help. Unknown errors are not retryable.
func Retryable(err error) bool {
	switch KindOf(err) {
	case Conflict, Throttled, Unavailable:
		return true
	}
	return false
}

// Field is one violation in a request.
type Field struct {
	Pointer string `json:"pointer"`           // JSON pointer into the body, or the parameter's name
	Code    string `json:"code"`              // stable, from the catalogue in contract
	Detail  string `json:"detail"`            // a sentence, with the value where that is safe
	Allowed string `json:"allowed,omitempty"` // what is accepted
}

// Violations lists what a user did wrong; it is never retryable.
type Violations []Field

func (m Violations) Error() string {
	parts := make([]string, len(m))
	for i, f := range m {
		parts[i] = f.Pointer + ": " + f.Detail
	}
	return strings.Join(parts, "; ")
}

// Err returns nil when there are no violations, so that an empty list is no error.
func (m Violations) Err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}
