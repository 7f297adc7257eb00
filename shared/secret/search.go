package secret

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"punctual/shared/document"
	"punctual/shared/text"
)

// Shortest is how many characters a string under the name of a secret must have to count as one.
const Shortest = 8

// MaxPointer is how many bytes of a pointer are written; a longer one is only begun.
const MaxPointer = 256

// Search finds the strings of a document that look like secrets: by the name of their field, by their own form, or as a
// part of a URL. It is for one caller at a time.
type Search struct {
	Doc   *document.Document
	names map[string]secrecy // what the names seen so far mean
	// Templates are the strings with ${ that were left out, with whether the names above them are those of secrets:
	// what they hold is known once they are compiled. Nil: there are no templates.
	Templates map[int]bool
}

// Finding is a string that looks like a secret.
type Finding struct {
	Pointer string // of the string; or of the object whose field has such a name
	Name    bool   // it is the name of a field
}

// Below iterates over the findings at and below a value, in the order of the text. pointer is that of the value;
// allowed are the pointers of strings that are no secrets.
func (s *Search) Below(n int, pointer string, allowed []string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		s.below(n, &trail{name: pointer, index: -1}, notSecret, permittedAt(pointer, allowed), yield)
	}
}

// InText reports whether a text that is no string of the document looks like a secret. hidden says that it is below the
// name of a secret; name is that of its own field, or empty.
func (s *Search) InText(hidden bool, name, value string) bool {
	named := notSecret
	if hidden {
		named = secretItself
	}
	if name != "" {
		named = s.inside(named, name)
	}
	return resemblesSecret(value, named)
}

// resemblesSecret reports whether a text under names of that secrecy looks like a secret.
func resemblesSecret(s string, named secrecy) bool {
	return named.hidesStrings() && utf8.RuneCountInString(s) >= Shortest && !wholeARN().MatchString(s) ||
		text.TokenShaped(s) || urlSecret(s) || headerSecret(s)
}

// trail is the path to a value, from its end. A pointer is written only for values that are reported, because a payload
// can have half a million values.
type trail struct {
	from  *trail // nil at the start, whose name is a pointer already
	name  string
	index int // of an element, or -1
}

// String returns the pointer, or a beginning of it that is longer than a problem shows.
func (t *trail) String() string {
	var path []*trail
	for ; t.from != nil; t = t.from {
		path = append(path, t)
	}
	var b strings.Builder
	b.WriteString(t.name)
	for _, step := range slices.Backward(path) {
		b.WriteByte('/')
		if step.index >= 0 {
			b.WriteString(strconv.Itoa(step.index))
		} else {
			b.WriteString(text.EscapePointer(step.name[:min(len(step.name), MaxPointer+utf8.UTFMax)]))
		}
		if b.Len() > MaxPointer {
			break
		}
	}
	return b.String()
}

// permitted is the rest of a pointer in allow_literals: the name that comes next, and what is after it.
type permitted struct {
	name string
	rest string // begins with a slash, or is empty
	done bool   // the pointer ends here
}

func permittedAt(pointer string, allowed []string) []permitted {
	var all []permitted
	for _, a := range allowed {
		if rest, ok := strings.CutPrefix(a, pointer); ok && (rest == "" || rest[0] == '/') {
			all = append(all, nextPermitted(rest))
		}
	}
	return all
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func nextPermitted(rest string) permitted {
	if rest == "" {
		return permitted{done: true}
	}
	name := rest[1:]
	if at := strings.IndexByte(name, '/'); at >= 0 {
		return permitted{name: unescapePointer.Replace(name[:at]), rest: name[at:]}
	}
	return permitted{name: unescapePointer.Replace(name)}
}

// permittedBelow returns what is permitted below a field or an element.
func permittedBelow(all []permitted, name string) (below []permitted) {
	for _, p := range all {
		if !p.done && p.name == name {
			below = append(below, nextPermitted(p.rest))
		}
	}
	return below
}

func isPermitted(all []permitted) bool {
	return slices.ContainsFunc(all, func(p permitted) bool { return p.done })
}

// secrecyOf classifies each name once: most names of a payload repeat.
func (s *Search) secrecyOf(name string) secrecy {
	const most = 1000
	known, ok := s.names[name]
	if ok {
		return known
	}
	if s.names == nil {
		s.names = map[string]secrecy{}
	}
	known = secrecyOf(name)
	if len(s.names) < most {
		s.names[name] = known
	}
	return known
}

// inside returns the secrecy of a field inside one of secrecy named.
func (s *Search) inside(named secrecy, name string) secrecy {
	own := notSecret
	if named.hidesStrings() || suspicious(name) {
		own = s.secrecyOf(name)
	}
	return named.below(name, own)
}

func (s *Search) below(n int, at *trail, named secrecy, allowed []permitted, yield func(Finding) bool) bool {
	switch s.Doc.Kind(n) {
	case document.KindObject:
		return s.inObject(n, at, named, allowed, yield)
	case document.KindArray:
		element := &trail{at, "", 0}
		for i, child := range s.Doc.Elements(n) {
			element.index = i
			inside := allowed
			if len(allowed) > 0 {
				inside = permittedBelow(allowed, strconv.Itoa(i))
			}
			if !s.below(child, element, named, inside, yield) {
				return false
			}
		}
	case document.KindString:
		raw := s.Doc.Raw(n)
		if len(raw)-2 < Shortest || !named.hidesStrings() && len(raw)-2 < text.ShortestToken &&
			!bytes.Contains(raw, []byte(":/")) || isPermitted(allowed) {
			return true
		}
		value := s.Doc.Text(n)
		if s.Templates != nil && strings.Contains(value, "${") {
			s.Templates[n] = named.hidesStrings()
			return true
		}
		return !resemblesSecret(value, named) || yield(Finding{Pointer: at.String()})
	}
	return true
}

func (s *Search) inObject(n int, at *trail, named secrecy, allowed []permitted, yield func(Finding) bool) bool {
	label, known := notSecret, false
	for name, child := range s.Doc.Members(n) {
		if text.TokenShaped(name) {
			if !yield(Finding{at.String(), true}) {
				return false
			}
			continue
		}
		of := s.inside(named, name)
		if pairValues[name] && !of.hidesStrings() {
			if !known {
				label, known = s.labelOf(n), true
			}
			of = max(of, label)
		}
		if !s.below(child, &trail{at, name, -1}, of, permittedBelow(allowed, name), yield) {
			return false
		}
	}
	return true
}

// pairLabels and pairValues are the fields of an object that is a name and its value, such as a header in a list.
var (
	pairLabels = wordSet("name Name key Key header field variable parameter")
	pairValues = wordSet("value Value val content")
)

// labelOf returns secretItself for an object that names itself as a secret.
func (s *Search) labelOf(n int) secrecy {
	for name, child := range s.Doc.Members(n) {
		if !pairLabels[name] || s.Doc.Kind(child) != document.KindString {
			continue
		}
		if called := s.Doc.Text(child); suspicious(called) && s.secrecyOf(called).hidesStrings() {
			return secretItself
		}
	}
	return notSecret
}
