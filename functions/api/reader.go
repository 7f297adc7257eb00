package api

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/span"
)

var namePattern = regexp.MustCompile(contract.NamePattern)

// nameAllowed says what a name is, for an error's "allowed".
const nameAllowed = "1 to 64 of a-z A-Z 0-9 _ -"

// reader takes values out of a document and gathers every mistake on the way. No detail holds
// a string of the document, except names that follow namePattern and names of fields.
type reader struct {
	doc   *document
	wrong fault.Mistakes
	work  int           // what judging a payload by its task's schema may cost
	fresh *atomic.Int64 // bytes of schemas that may still be compiled for this request
	names map[string]secrecy
}

func newReader(d *document) *reader {
	r := &reader{doc: d, work: workPerPayload, fresh: &atomic.Int64{}}
	r.fresh.Store(freshSchemas)
	return r
}

// maxMistakes bounds an answer; nobody mends more at once.
const maxMistakes = 50

func (r *reader) mistake(pointer, code, allowed, detail string, args ...any) {
	if len(r.wrong) >= maxMistakes {
		return
	}
	if len(pointer) > maxPointer {
		pointer = shown(pointer, maxPointer)
	}
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	r.wrong = append(r.wrong, fault.Field{Pointer: pointer, Code: code, Detail: detail, Allowed: allowed})
}

// value is a place in the document with its pointer.
type value struct {
	node    int
	pointer string
}

// fields are an object's values by name.
type fields map[string]value

// object reads an object of which only known fields may be there. A value of another kind, an
// unknown field and a repeated one are mistakes. The fields that are known come back.
func (r *reader) object(n int, pointer string, known []string) fields {
	if got := r.doc.nodes[n].kind; got != kindObject {
		r.mistake(pointer, codeInvalidValue, "an object", "%s is given where an object belongs", got)
		return nil
	}
	twice := r.doc.repeated(n)
	found := fields{}
	for name, v := range r.doc.members(n) {
		if len(r.wrong) >= maxMistakes {
			break
		}
		at := pointer + "/" + escapePointer(name)
		switch {
		case twice[int32(v-1)]:
			r.mistake(at, codeDuplicateField, "", "the field %s is given more than once", quoted(name))
		case !slices.Contains(known, name):
			detail := fmt.Sprintf("no field %s is known here", quoted(name))
			if near := nearest(name, known); near != "" {
				detail += fmt.Sprintf("; did you mean %q?", near)
			}
			r.mistake(at, codeUnknownField, strings.Join(known, ", "), "%s", detail)
		default:
			found[name] = value{v, at}
		}
	}
	return found
}

// repeated are the keys within a node that repeat one of their object; nil if there are none,
// which is the rule.
func (d *document) repeated(n int) map[int32]bool {
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
func (d *document) twiceWithin(n int) []int32 {
	from, _ := slices.BinarySearch(d.twice, int32(n+1))
	to, _ := slices.BinarySearch(d.twice, d.nodes[n].next)
	return d.twice[from:to]
}

// allDuplicates blames every repeated field at any depth of a value.
func (r *reader) allDuplicates(n int) {
	for _, key := range r.doc.twiceWithin(n) {
		if len(r.wrong) >= maxMistakes {
			return
		}
		r.mistake(r.doc.pointer(int(key)), codeDuplicateField, "", "the field %s is given more than once", quoted(r.doc.string(int(key))))
	}
}

// text reads a string.
func (r *reader) text(v value) (string, bool) {
	if got := r.doc.nodes[v.node].kind; got != kindString {
		r.mistake(v.pointer, codeInvalidValue, "a string", "%s is given where a string belongs", got)
		return "", false
	}
	return r.doc.string(v.node), true
}

// name reads a name.
func (r *reader) name(v value) (string, bool) {
	s, ok := r.text(v)
	if ok && !namePattern.MatchString(s) {
		r.mistake(v.pointer, codeInvalidValue, nameAllowed, "this is not a name")
		return "", false
	}
	return s, ok
}

// oneOf reads one of a few words.
func (r *reader) oneOf(v value, code string, words []string) (string, bool) {
	s, ok := r.text(v)
	if ok && !slices.Contains(words, s) {
		detail := "this is not one of the words that are known here"
		if near := nearest(s, words); near != "" { // only a slip of the finger is surely no secret
			detail = fmt.Sprintf("%s is not known here; did you mean %q?", quoted(s), near)
		}
		r.mistake(v.pointer, code, strings.Join(words, ", "), "%s", detail)
		return "", false
	}
	return s, ok
}

// duration reads a length of time within limits, both included.
func (r *reader) duration(v value, least, most time.Duration) (time.Duration, bool) {
	if r.bareSeconds(v) {
		return 0, false
	}
	s, ok := r.text(v)
	if !ok {
		return 0, false
	}
	d, err := span.Parse(s)
	if err != nil {
		r.mistake(v.pointer, codeInvalidValue, span.Allowed, "%s", err.Error())
		return 0, false
	}
	if d < least || d > most {
		r.mistake(v.pointer, codeOutOfRange, between(span.Format(least), span.Format(most)), "%s is out of range", span.Format(d))
		return 0, false
	}
	return d, true
}

// bareSeconds blames a number where a length of time belongs: most people who write 30 mean "30s".
func (r *reader) bareSeconds(v value) bool {
	if r.doc.nodes[v.node].kind != kindNumber {
		return false
	}
	detail := "a number is given where a length of time belongs"
	if n, err := strconv.ParseUint(string(r.doc.raw(v.node)), 10, 32); err == nil {
		detail += fmt.Sprintf("; for seconds write %q", strconv.FormatUint(n, 10)+"s")
	}
	r.mistake(v.pointer, codeInvalidValue, span.Allowed, "%s", detail)
	return true
}

func between(least, most string) string { return least + " to " + most }

// number reads a number within limits, both included.
func (r *reader) number(v value, least, most float64) (float64, bool) {
	if got := r.doc.nodes[v.node].kind; got != kindNumber {
		r.mistake(v.pointer, codeInvalidValue, "a number", "%s is given where a number belongs", got)
		return 0, false
	}
	f, err := strconv.ParseFloat(string(r.doc.raw(v.node)), 64)
	if err != nil || f < least || f > most {
		r.mistake(v.pointer, codeOutOfRange, between(plain(least), plain(most)), "the number is out of range")
		return 0, false
	}
	return f, true
}

func plain(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// whole reads a whole number within limits, both included.
func (r *reader) whole(v value, least, most int) (int, bool) {
	f, ok := r.number(v, float64(least), float64(most))
	if ok && f != math.Trunc(f) {
		r.mistake(v.pointer, codeInvalidValue, "a whole number", "the number is not whole")
		return 0, false
	}
	return int(f), ok
}

// flag reads a boolean.
func (r *reader) flag(v value) (on, ok bool) {
	if got := r.doc.nodes[v.node].kind; got != kindBool {
		r.mistake(v.pointer, codeInvalidValue, "true or false", "%s is given where true or false belongs", got)
		return false, false
	}
	return r.doc.raw(v.node)[0] == 't', true
}

// list reads an array of at most that many values.
func (r *reader) list(v value, most int) []value {
	if got := r.doc.nodes[v.node].kind; got != kindArray {
		r.mistake(v.pointer, codeInvalidValue, "an array", "%s is given where an array belongs", got)
		return nil
	}
	var values []value
	for i, n := range r.doc.elements(v.node) {
		if i >= most {
			r.mistake(v.pointer, codeOutOfRange, fmt.Sprintf("at most %d", most), "there are more than %d", most)
			return nil
		}
		values = append(values, value{n, v.pointer + "/" + strconv.Itoa(i)})
	}
	return values
}

// missing blames a field that is not there.
func (r *reader) missing(pointer, name string) {
	r.mistake(pointer+"/"+name, codeMissingField, "", "%s is missing", name)
}

// namesOf are the JSON names of a struct's fields: what documents a body also says what it may hold.
func namesOf[T any]() []string { return namesIn(reflect.TypeFor[T]()) }

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

// nearest returns the word that somebody probably meant, "" if none is near.
func nearest(word string, words []string) string {
	best, least := "", 3 // more than two slips of the finger is another word
	if len(word) > contract.MaxName {
		return ""
	}
	for _, w := range words {
		if d := slips(strings.ToLower(word), strings.ToLower(w)); d < least && d < max(len(w), 2) {
			best, least = w, d
		}
	}
	return best
}

// slips counts the letters to add, drop, change or swap with their neighbour.
func slips(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(rows[1][j]+1, row[j-1]+1, rows[1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], rows[0][j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
	}
	return rows[1][len(b)]
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
