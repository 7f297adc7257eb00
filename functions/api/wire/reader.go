package wire

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/span"
	"punctual/shared/text"
)

// NamePattern is the form of names: of tasks, schedules, exclusions.
var NamePattern = regexp.MustCompile(contract.NamePattern)

// NameAllowed says what a name is, for an error's "allowed".
var NameAllowed = fmt.Sprintf("1 to %d of a-z A-Z 0-9 _ -", contract.MaxName)

// Reader takes values out of a document and gathers every mistake on the way. No detail holds
// a string of the document, except names that follow NamePattern and names of fields.
type Reader struct {
	Doc   *Document
	Wrong fault.Mistakes
	names map[string]secrecy // what names of fields say of what is there, as far as it was asked
}

// NewReader returns a reader of d that has found no mistake yet.
func NewReader(d *Document) *Reader { return &Reader{Doc: d} }

// MaxMistakes is how many mistakes an answer names; nobody mends more at once.
const MaxMistakes = 50

// Mistake notes a mistake at a pointer; allowed is "" where it says nothing, and detail is formatted
// with args, if there are any. Beyond MaxMistakes nothing is noted.
func (r *Reader) Mistake(pointer, code, allowed, detail string, args ...any) {
	if len(r.Wrong) >= MaxMistakes {
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

// Value is a place in the document with its pointer.
type Value struct {
	Node    int
	Pointer string
}

// Fields are an object's values by name.
type Fields map[string]Value

// Object reads an object of which only known fields may be there. A value of another kind, an
// unknown field and a repeated one are mistakes. The fields that are known come back.
func (r *Reader) Object(n int, pointer string, known []string) Fields {
	if got := r.Doc.nodes[n].kind; got != KindObject {
		r.Mistake(pointer, CodeInvalidValue, "an object", "%s is given where an object belongs", got)
		return nil
	}
	twice := r.Doc.Repeated(n)
	found := Fields{}
	for name, v := range r.Doc.Members(n) {
		if len(r.Wrong) >= MaxMistakes {
			break
		}
		at := pointer + "/" + text.EscapePointer(name)
		switch {
		case twice[int32(v-1)]:
			r.Mistake(at, CodeDuplicateField, "", "the field %s is given more than once", text.Quoted(name))
		case !slices.Contains(known, name):
			detail := fmt.Sprintf("no field %s is known here", text.Quoted(name))
			if near := text.Nearest(name, known); near != "" {
				detail += fmt.Sprintf("; did you mean %q?", near)
			}
			r.Mistake(at, CodeUnknownField, strings.Join(known, ", "), "%s", detail)
		default:
			found[name] = Value{v, at}
		}
	}
	return found
}

// Repeated are the keys within a node that repeat one of their object; nil if there are none,
// which is the rule.
func (d *Document) Repeated(n int) map[int32]bool {
	within := d.twiceWithin(n)
	if len(within) == 0 {
		return nil
	}
	keys := make(map[int32]bool, len(within))
	for _, key := range within {
		keys[key] = true
	}
	return keys
}

// twiceWithin is repeated as a list, in their order.
func (d *Document) twiceWithin(n int) []int32 {
	from, _ := slices.BinarySearch(d.twice, int32(n+1))
	to, _ := slices.BinarySearch(d.twice, d.nodes[n].next)
	return d.twice[from:to]
}

// AllDuplicates blames every repeated field at any depth of a value.
func (r *Reader) AllDuplicates(n int) {
	for _, key := range r.Doc.twiceWithin(n) {
		if len(r.Wrong) >= MaxMistakes {
			return
		}
		r.Mistake(r.Doc.Pointer(int(key)), CodeDuplicateField, "", "the field %s is given more than once",
			text.Quoted(r.Doc.Text(int(key))))
	}
}

// Text reads a string.
func (r *Reader) Text(v Value) (string, bool) {
	if got := r.Doc.nodes[v.Node].kind; got != KindString {
		r.Mistake(v.Pointer, CodeInvalidValue, "a string", "%s is given where a string belongs", got)
		return "", false
	}
	return r.Doc.Text(v.Node), true
}

// Name reads a name of the form of NamePattern.
func (r *Reader) Name(v Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && !NamePattern.MatchString(s) {
		r.Mistake(v.Pointer, CodeInvalidValue, NameAllowed, "this is not a name")
		return "", false
	}
	return s, ok
}

// OneOf reads one of a few words.
func (r *Reader) OneOf(v Value, code string, words []string) (string, bool) {
	s, ok := r.Text(v)
	if ok && !slices.Contains(words, s) {
		detail := "this is not one of the words that are known here"
		if near := text.Nearest(s, words); near != "" { // only a slip of the finger is surely no secret
			detail = fmt.Sprintf("%s is not known here; did you mean %q?", text.Quoted(s), near)
		}
		r.Mistake(v.Pointer, code, strings.Join(words, ", "), "%s", detail)
		return "", false
	}
	return s, ok
}

// Duration reads a length of time within limits, both included; false for any other, which is a mistake.
func (r *Reader) Duration(v Value, least, most time.Duration) (time.Duration, bool) {
	if r.BareSeconds(v) {
		return 0, false
	}
	s, ok := r.Text(v)
	if !ok {
		return 0, false
	}
	d, err := span.Parse(s)
	if err != nil {
		r.Mistake(v.Pointer, CodeInvalidValue, span.Allowed, "%s", err.Error())
		return 0, false
	}
	if d < least || d > most {
		r.Mistake(v.Pointer, CodeOutOfRange, Between(span.Format(least), span.Format(most)), "%s is out of range",
			span.Format(d))
		return 0, false
	}
	return d, true
}

// BareSeconds blames a number where a length of time belongs: most people who write 30 mean "30s".
func (r *Reader) BareSeconds(v Value) bool {
	if r.Doc.nodes[v.Node].kind != KindNumber {
		return false
	}
	detail := "a number is given where a length of time belongs"
	if n, err := strconv.ParseUint(string(r.Doc.Raw(v.Node)), 10, 32); err == nil {
		detail += fmt.Sprintf("; for seconds write %q", strconv.FormatUint(n, 10)+"s")
	}
	r.Mistake(v.Pointer, CodeInvalidValue, span.Allowed, "%s", detail)
	return true
}

// Between says two limits, both included.
func Between(least, most string) string { return least + " to " + most }

// Number reads a number within limits, both included.
func (r *Reader) Number(v Value, least, most float64) (float64, bool) {
	if got := r.Doc.nodes[v.Node].kind; got != KindNumber {
		r.Mistake(v.Pointer, CodeInvalidValue, "a number", "%s is given where a number belongs", got)
		return 0, false
	}
	f, err := strconv.ParseFloat(string(r.Doc.Raw(v.Node)), 64)
	if err != nil || f < least || f > most {
		r.Mistake(v.Pointer, CodeOutOfRange, Between(PlainNumber(least), PlainNumber(most)),
			"the number is out of range")
		return 0, false
	}
	return f, true
}

// PlainNumber writes a number as people do, without an exponent where it can be short.
func PlainNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Whole reads a whole number within limits, both included.
func (r *Reader) Whole(v Value, least, most int) (int, bool) {
	f, ok := r.Number(v, float64(least), float64(most))
	if ok && f != math.Trunc(f) {
		r.Mistake(v.Pointer, CodeInvalidValue, "a whole number", "the number is not whole")
		return 0, false
	}
	return int(f), ok
}

// Flag reads a boolean; ok is false for anything else.
func (r *Reader) Flag(v Value) (on, ok bool) {
	if got := r.Doc.nodes[v.Node].kind; got != KindBool {
		r.Mistake(v.Pointer, CodeInvalidValue, "true or false", "%s is given where true or false belongs", got)
		return false, false
	}
	return r.Doc.Raw(v.Node)[0] == 't', true
}

// List reads an array of at most that many values; nil for one that is longer, empty or none.
func (r *Reader) List(v Value, most int) []Value {
	if got := r.Doc.nodes[v.Node].kind; got != KindArray {
		r.Mistake(v.Pointer, CodeInvalidValue, "an array", "%s is given where an array belongs", got)
		return nil
	}
	var values []Value
	for i, n := range r.Doc.Elements(v.Node) {
		if i >= most {
			r.Mistake(v.Pointer, CodeOutOfRange, fmt.Sprintf("at most %d", most), "there are more than %d", most)
			return nil
		}
		values = append(values, Value{n, v.Pointer + "/" + strconv.Itoa(i)})
	}
	return values
}

// Missing blames an object at pointer for a field that is not there.
func (r *Reader) Missing(pointer, name string) {
	r.Mistake(pointer+"/"+name, CodeMissingField, "", "%s is missing", name)
}

// NamesOf returns the JSON names of a struct's fields: what documents a body also says what it may hold.
func NamesOf[T any]() []string { return namesIn(reflect.TypeFor[T]()) }

func namesIn(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		if t.Field(i).Anonymous {
			names = append(names, namesIn(t.Field(i).Type)...)
			continue
		}
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func listed(names map[string]bool) string {
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func sortMistakes(m fault.Mistakes) {
	slices.SortFunc(m, func(a, b fault.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
}

// Span reads a length of time of any size.
func (r *Reader) Span(v Value) {
	if r.BareSeconds(v) {
		return
	}
	s, ok := r.Text(v)
	if !ok {
		return
	}
	if _, err := span.Parse(s); err != nil {
		r.Mistake(v.Pointer, CodeInvalidValue, span.Allowed, "%s", err.Error())
	}
}
