package rest

import (
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/secret"
	"punctual/shared/span"
	"punctual/shared/text"
)

var namePattern = regexp.MustCompile(contract.NamePattern)

// IsName reports whether s can be the name of a task, a schedule, an exclusion, a dag or a node.
func IsName(s string) bool { return namePattern.MatchString(s) }

// NameAllowed describes a name, for the "allowed" of a violation.
var NameAllowed = fmt.Sprintf("1 to %d of a-z A-Z 0-9 _ -", contract.MaxName)

// Reader reads values from a document and collects all violations. No detail repeats a string of the document, except
// names of fields and names by IsName.
type Reader struct {
	Doc     *document.Document
	Wrong   fault.Violations
	secrets secret.Search
	// HiddenTemplates are the pointers of templates below the names of secrets.
	HiddenTemplates map[string]bool

	SchemaWork int           // units of work that checking by the schemas of tasks may take; see schema.Use
	Compilable *atomic.Int64 // bytes of schemas that the request may still compile
}

// NewReader returns a reader of d without violations.
func NewReader(d *document.Document) *Reader { return &Reader{Doc: d, secrets: secret.Search{Doc: d}} }

// MaxViolations is how many violations an answer lists; no user corrects more at once.
const MaxViolations = 50

// Violation adds a violation at a pointer. allowed may be "", and detail is a format if there are args. Beyond
// MaxViolations it adds nothing.
func (r *Reader) Violation(pointer, code, allowed, detail string, args ...any) {
	if len(r.Wrong) >= MaxViolations {
		return
	}
	if len(pointer) > maxPointer {
		pointer = shown(pointer, maxPointer)
	}
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	r.Wrong = append(r.Wrong, fault.Field{Pointer: pointer, Code: code, Detail: detail, Allowed: allowed})
}

// Value is a value of the document, with its pointer.
type Value = executor.Value

// Fields are the values of an object by name.
type Fields = map[string]Value

// Templates has NoSecrets leave out the strings with ${, and note them in templates; nil: it leaves out none.
func (r *Reader) Templates(templates map[int]bool) { r.secrets.Templates = templates }

// Is reports whether a value is of a kind; any other is a violation.
func (r *Reader) Is(v Value, want document.Kind) bool {
	got := r.Doc.Kind(v.Node)
	if got != want {
		r.Violation(v.Pointer, CodeInvalidValue, want.String(), "%s is given where %s belongs", got, want)
	}
	return got == want
}

// IsObject reports whether a value is an object; any other is a violation, with what is allowed.
func (r *Reader) IsObject(v Value, allowed string) bool {
	got := r.Doc.Kind(v.Node)
	if got != document.KindObject {
		r.Violation(v.Pointer, CodeInvalidValue, allowed, "%s is given where an object belongs", got)
	}
	return got == document.KindObject
}

// Members iterates over the fields of an object by name, repeated ones included; any other value has none.
func (r *Reader) Members(v Value) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for name, n := range r.Doc.Members(v.Node) {
			if !yield(name, Value{Node: n, Pointer: v.Pointer + "/" + text.EscapePointer(name)}) {
				return
			}
		}
	}
}

// Repeated returns a function that reports whether a member of an object has the name of another.
func (r *Reader) Repeated(v Value) func(member Value) bool {
	repeated := r.Doc.Repeated(v.Node)
	return func(member Value) bool { return repeated[int32(member.Node-1)] } // the node before a value is its name
}

// Object reads an object and returns its known fields. A value of another kind, an unknown field and a repeated field
// are violations.
func (r *Reader) Object(v Value, known []string) Fields {
	if !r.Is(v, document.KindObject) {
		return nil
	}
	repeated, found := r.Repeated(v), Fields{}
	for name, member := range r.Members(v) {
		if len(r.Wrong) >= MaxViolations {
			break
		}
		switch {
		case repeated(member):
			r.Violation(member.Pointer, CodeDuplicateField, "", "the field %s is given more than once",
				text.Quoted(name))
		case !slices.Contains(known, name):
			detail := fmt.Sprintf("no field %s is known here", text.Quoted(name))
			if near := text.Nearest(name, known); near != "" {
				detail += fmt.Sprintf("; did you mean %q?", near)
			}
			r.Violation(member.Pointer, CodeUnknownField, strings.Join(known, ", "), "%s", detail)
		default:
			found[name] = member
		}
	}
	return found
}

// AllDuplicates reports every repeated field at any depth of a value.
func (r *Reader) AllDuplicates(n int) {
	for _, key := range r.Doc.RepeatedIn(n) {
		if len(r.Wrong) >= MaxViolations {
			return
		}
		r.Violation(r.Doc.Pointer(int(key)), CodeDuplicateField, "", "the field %s is given more than once",
			text.Quoted(r.Doc.Text(int(key))))
	}
}

// Text reads a string.
func (r *Reader) Text(v Value) (string, bool) {
	if !r.Is(v, document.KindString) {
		return "", false
	}
	return r.Doc.Text(v.Node), true
}

// Peek returns a string without a violation for anything else.
func (r *Reader) Peek(v Value) (s string, ok bool) {
	if v.Pointer == "" || r.Doc.Kind(v.Node) != document.KindString {
		return "", false
	}
	return r.Doc.Text(v.Node), true
}

// Size returns how many bytes a value has as compact JSON.
func (r *Reader) Size(v Value) int { return len(r.Doc.Compact(v.Node)) }

// Name reads a name; see IsName.
func (r *Reader) Name(v Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && !IsName(s) {
		r.Violation(v.Pointer, CodeInvalidValue, NameAllowed, "this is not a name")
		return "", false
	}
	return s, ok
}

// OneOf reads one of the given words.
func (r *Reader) OneOf(v Value, code string, words []string) (string, bool) {
	s, ok := r.Text(v)
	if ok && !slices.Contains(words, s) {
		r.Violation(v.Pointer, code, strings.Join(words, ", "), "%s", unknownWord(s, words))
		return "", false
	}
	return s, ok
}

// unknownWord says that a text is none of the words.
func unknownWord(s string, words []string) string {
	if near := text.Nearest(s, words); near != "" { // only a misspelled word is surely no secret
		return fmt.Sprintf("%s is not known here; did you mean %q?", text.Quoted(s), near)
	}
	return "this is not one of the words that are known here"
}

// Span reads a length of time.
func (r *Reader) Span(v Value) (time.Duration, bool) {
	if r.BareSeconds(v) {
		return 0, false
	}
	s, ok := r.Text(v)
	if !ok {
		return 0, false
	}
	d, err := span.Parse(s)
	if err != nil {
		r.Violation(v.Pointer, CodeInvalidValue, span.Allowed, "%s", err.Error())
	}
	return d, err == nil
}

// Duration reads a length of time from least to most. Anything else is a violation, and false.
func (r *Reader) Duration(v Value, least, most time.Duration) (time.Duration, bool) {
	d, ok := r.Span(v)
	if ok && (d < least || d > most) {
		r.Violation(v.Pointer, CodeOutOfRange, Between(span.Format(least), span.Format(most)), "%s is out of range",
			span.Format(d))
		return 0, false
	}
	return d, ok
}

// BareSeconds reports a number where a length of time belongs. Most people who write 30 mean "30s".
func (r *Reader) BareSeconds(v Value) bool {
	if r.Doc.Kind(v.Node) != document.KindNumber {
		return false
	}
	detail := "a number is given where a length of time belongs"
	if n, err := strconv.ParseUint(string(r.Doc.Raw(v.Node)), 10, 32); err == nil {
		detail += fmt.Sprintf("; for seconds write %q", strconv.FormatUint(n, 10)+"s")
	}
	r.Violation(v.Pointer, CodeInvalidValue, span.Allowed, "%s", detail)
	return true
}

// Between describes two limits, both included.
func Between(least, most string) string { return least + " to " + most }

// Number reads a number from least to most.
func (r *Reader) Number(v Value, least, most float64) (float64, bool) {
	if !r.Is(v, document.KindNumber) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(r.Doc.Raw(v.Node)), 64)
	if err != nil || f < least || f > most {
		r.Violation(v.Pointer, CodeOutOfRange, Between(text.PlainNumber(least), text.PlainNumber(most)),
			"the number is out of range")
		return 0, false
	}
	return f, true
}

// Whole reads a whole number from least to most.
func (r *Reader) Whole(v Value, least, most int) (int, bool) {
	f, ok := r.Number(v, float64(least), float64(most))
	if ok && f != math.Trunc(f) {
		r.Violation(v.Pointer, CodeInvalidValue, "a whole number", "the number is not whole")
		return 0, false
	}
	return int(f), ok
}

// Flag reads a boolean; ok is false for anything else.
func (r *Reader) Flag(v Value) (on, ok bool) {
	if got := r.Doc.Kind(v.Node); got != document.KindBool {
		r.Violation(v.Pointer, CodeInvalidValue, "true or false", "%s is given where true or false belongs", got)
		return false, false
	}
	return r.Doc.Raw(v.Node)[0] == 't', true
}

// List reads an array of at most that many values. A longer one is a violation, and nil.
func (r *Reader) List(v Value, most int) []Value {
	if !r.Is(v, document.KindArray) {
		return nil
	}
	var values []Value
	for i, n := range r.Doc.Elements(v.Node) {
		if i >= most {
			r.Violation(v.Pointer, CodeOutOfRange, fmt.Sprintf("at most %d", most), "there are more than %d", most)
			return nil
		}
		values = append(values, Value{Node: n, Pointer: v.Pointer + "/" + strconv.Itoa(i)})
	}
	return values
}

// Missing reports that the object at pointer has no field of that name.
func (r *Reader) Missing(pointer, name string) {
	r.Violation(pointer+"/"+name, CodeMissingField, "", "%s is missing", name)
}

func listed(names map[string]bool) string {
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func sortViolations(m fault.Violations) {
	slices.SortFunc(m, func(a, b fault.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
}
