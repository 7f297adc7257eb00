package calendar

import (
	"fmt"
	"strings"
	"unicode"
)

// The codes of an [Error]; the API returns them as they are.
const (
	CodeMissingField      = "missing_field"
	CodeInvalidValue      = "invalid_value"
	CodeOutOfRange        = "out_of_range"
	CodeConflictingFields = "conflicting_fields"
	CodeNeverFires        = "never_fires"
)

// Error says which part of a calendar or exclusion is refused, and what is accepted. Retrying never
// helps.
type Error struct {
	// Field is the path inside the parsed object, with "/" between the parts and none in front:
	// "cron", "dates/3".
	Field string
	// Code is one of the Code constants.
	Code string
	// Detail is a sentence for the user.
	Detail string
	// Allowed says what is accepted; empty when Detail says it.
	Allowed string

	path string // of the calendar in a list of them; "" for one that is none of a list
}

// Pointer returns the JSON pointer of the refused part in a schedule.
func (e *Error) Pointer() string {
	path := e.path
	if path == "" {
		path = "/calendar"
	}
	if e.Field == "" {
		return path
	}
	return path + "/" + e.Field
}

func (e *Error) Error() string {
	if e.Allowed == "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Detail)
	}
	return fmt.Sprintf("%s: %s (allowed: %s)", e.Field, e.Detail, e.Allowed)
}

func refuse(field, code, allowed, format string, args ...any) *Error {
	return &Error{Field: field, Code: code, Allowed: allowed, Detail: fmt.Sprintf(format, args...)}
}

// quoted returns a user's text for a message, shortened.
func quoted(s string) string {
	if secretive(s) {
		return "what is given"
	}
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// secretive reports whether a text may be a password or a token in the wrong field: a long run of
// letters and digits, with other letters than instants and durations have.
func secretive(s string) bool {
	const long = 8
	other := func(r rune) bool { return unicode.IsLetter(r) && !strings.ContainsRune("TZWLdhms", r) }
	for _, run := range strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		if len(run) >= long && strings.ContainsFunc(run, unicode.IsDigit) && strings.ContainsFunc(run, other) {
			return true
		}
	}
	return false
}
