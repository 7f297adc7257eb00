package rest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/text"
)

// MatchPattern is one strong ETag as we write it.
var MatchPattern = regexp.MustCompile(`^"([1-9][0-9]{0,17})"$`)

// readMatch reads the version in If-Match; 0 is any.
func readMatch(values []string) (int64, error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "*" {
		return 0, nil
	}
	m := MatchPattern.FindStringSubmatch(values[0])
	if len(values) > 1 || m == nil {
		return 0, OneViolation("If-Match", CodeInvalidValue, `one ETag as it was given, such as "3", or *`,
			"If-Match is not an ETag of a job")
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// ReadRange reads the two ends of a half-open range; the zero time is an open end.
func ReadRange(wrong *fault.Violations, afterName, after, beforeName, before string) (from, to time.Time) {
	read := func(name, s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		t, ok := ParseInstant(s)
		if !ok {
			*wrong = append(*wrong,
				fault.Field{Pointer: name, Code: CodeInvalidValue,
					Detail:  "this is not a time with a zone: " + calendar.WhyNoInstant(s),
					Allowed: InstantAllowed + " (in a URL + is written %2B)"})
			return time.Time{}
		}
		return SinceEpoch(t)
	}
	from, to = read(afterName, after), read(beforeName, before)
	CheckRange(wrong, beforeName, from, to)
	return from, to
}

// CheckRange adds a violation if a range ends before it begins; the zero time is an open end.
func CheckRange(wrong *fault.Violations, pointer string, from, to time.Time) {
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		*wrong = append(*wrong, fault.Field{Pointer: pointer, Code: CodeConflictingFields,
			Detail: "the range ends before it begins", Allowed: "a time after " + from.Format(text.InstantLayout)})
	}
}

// SinceEpoch returns a time that is not before 1970: nothing is older, and an id holds no such time.
func SinceEpoch(t time.Time) time.Time {
	if epoch := time.Unix(0, 0).UTC(); t.Before(epoch) {
		return epoch
	}
	return t
}

// CursorNumber reads a number in a cursor; 0 for anything else.
func CursorNumber(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// NeededBody reads a body that must be there; without one, detail says what is missing.
func NeededBody(ctx context.Context, limit int64, allowed, detail string) (*document.Document, error) {
	doc, err := ReadBody(ctx, limit)
	if err == nil && doc == nil {
		err = OneViolation("", CodeMissingField, allowed, "%s", detail)
	}
	return doc, err
}

// WordsOf returns values as texts.
func WordsOf[T ~string](values []T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// CheckName refuses a name in a path that nothing can have.
func CheckName(name, of string) error {
	if IsName(name) {
		return nil
	}
	return OneViolation("name", CodeInvalidValue, NameAllowed, "this is not a name for "+of)
}

// FilterName adds a violation if a filter is given and is not a name.
func FilterName(wrong *fault.Violations, parameter, value string) {
	if value != "" && !IsName(value) {
		*wrong = append(*wrong, fault.Field{Pointer: parameter, Code: CodeInvalidValue,
			Detail: "this is not a name", Allowed: NameAllowed})
	}
}

// FilterWord adds a violation if a filter is given and is not one of the words.
func FilterWord(wrong *fault.Violations, parameter, value string, words []string) {
	if value != "" && !slices.Contains(words, value) {
		*wrong = append(*wrong, fault.Field{Pointer: parameter, Code: CodeInvalidValue,
			Detail: unknownWord(value, words), Allowed: strings.Join(words, ", ")})
	}
}

// NoSuch returns the problem that there is no such thing.
func NoSuch(what string) *Problem { return NewProblem(CodeNotFound, "there is no such "+what) }

// Absent turns fault.NotFound into the problem that there is no such thing.
func Absent(err error, what string) error {
	if fault.KindOf(err) == fault.NotFound {
		return NoSuch(what)
	}
	return err
}

// IsNotFound reports whether an error is the problem of something absent.
func IsNotFound(err error) bool {
	p := new(Problem)
	return errors.As(err, &p) && p.Code == CodeNotFound
}
