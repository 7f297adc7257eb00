package rest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"punctual/shared/text"
)

// ShortestSecret is how many characters a string under the name of a secret must have to count as one.
const ShortestSecret = 8

const secretAllowed = "the ARN of a secret under punctual/<deployment>/<tenant>/ in Secrets Manager, " +
	"where the task takes one; " +
	"or name this pointer in allow_literals if it is no secret"

// NoSecrets reports every string at or below v that looks like a secret: by the name of its field, by its own form, or
// as a part of a URL. allowed are the pointers of strings that are none.
func (r *Reader) NoSecrets(v Value, allowed []string) {
	r.secretsBelow(v.Node, &trail{name: v.Pointer, index: -1}, notSecret, permittedAt(v.Pointer, allowed))
}

// NoSecretText reports a text that looks like a secret and is no string of the document. hidden says that it is below
// the name of a secret; name is that of its own field, or empty.
func (r *Reader) NoSecretText(pointer string, hidden bool, name, s string, allowed []string) {
	named := notSecret
	if hidden {
		named = secretItself
	}
	if name != "" {
		named = r.below(named, name)
	}
	if resemblesSecret(s, named) && !slices.Contains(allowed, pointer) {
		r.Violation(pointer, CodeSecretInPayload, secretAllowed, inTheClear)
	}
}

const inTheClear = "this looks like a secret, and would be kept in the clear"

// resemblesSecret reports whether a text under names of that secrecy looks like a secret.
func resemblesSecret(s string, named secrecy) bool {
	return named.hidesStrings() && utf8.RuneCountInString(s) >= ShortestSecret && !wholeARN().MatchString(s) ||
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
			b.WriteString(text.EscapePointer(step.name[:min(len(step.name), maxPointer+utf8.UTFMax)]))
		}
		if b.Len() > maxPointer {
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
func (r *Reader) secrecyOf(name string) secrecy {
	const most = 1000
	known, ok := r.names[name]
	if ok {
		return known
	}
	if r.names == nil {
		r.names = map[string]secrecy{}
	}
	known = secrecyOf(name)
	if len(r.names) < most {
		r.names[name] = known
	}
	return known
}

// below returns the secrecy of a field inside one of secrecy named.
func (r *Reader) below(named secrecy, name string) secrecy {
	own := notSecret
	if named.hidesStrings() || suspicious(name) {
		own = r.secrecyOf(name)
	}
	return named.below(name, own)
}

func (r *Reader) secretsBelow(n int, at *trail, named secrecy, allowed []permitted) {
	if len(r.Wrong) >= MaxViolations {
		return
	}
	switch r.Doc.nodes[n].kind {
	case KindObject:
		r.secretsInObject(n, at, named, allowed)
	case KindArray:
		element := &trail{at, "", 0}
		for i, child := range r.Doc.Elements(n) {
			element.index = i
			inside := allowed
			if len(allowed) > 0 {
				inside = permittedBelow(allowed, strconv.Itoa(i))
			}
			r.secretsBelow(child, element, named, inside)
		}
	case KindString:
		raw := r.Doc.Raw(n)
		if len(raw)-2 < ShortestSecret || !named.hidesStrings() && len(raw)-2 < text.ShortestToken &&
			!bytes.Contains(raw, []byte(":/")) || isPermitted(allowed) {
			return
		}
		s := r.Doc.Text(n)
		if r.Templates != nil && strings.Contains(s, "${") {
			r.Templates[n] = named.hidesStrings()
			return
		}
		if !resemblesSecret(s, named) {
			return
		}
		r.Violation(at.String(), CodeSecretInPayload, secretAllowed, inTheClear)
	}
}

func (r *Reader) secretsInObject(n int, at *trail, named secrecy, allowed []permitted) {
	label, known := notSecret, false
	for name, child := range r.Doc.Members(n) {
		if len(r.Wrong) >= MaxViolations {
			return
		}
		if text.TokenShaped(name) {
			r.Violation(at.String(), CodeSecretInPayload, secretAllowed,
				"the name of a field here looks like a secret")
			continue
		}
		of := r.below(named, name)
		if pairValues[name] && !of.hidesStrings() {
			if !known {
				label, known = r.labelOf(n), true
			}
			of = max(of, label)
		}
		r.secretsBelow(child, &trail{at, name, -1}, of, permittedBelow(allowed, name))
	}
}

// pairLabels and pairValues are the fields of an object that is a name and its value, such as a header in a list.
var (
	pairLabels = wordSet("name Name key Key header field variable parameter")
	pairValues = wordSet("value Value val content")
)

// labelOf returns secretItself for an object that names itself as a secret.
func (r *Reader) labelOf(n int) secrecy {
	for name, child := range r.Doc.Members(n) {
		if !pairLabels[name] || r.Doc.nodes[child].kind != KindString {
			continue
		}
		if called := r.Doc.Text(child); suspicious(called) && r.secrecyOf(called).hidesStrings() {
			return secretItself
		}
	}
	return notSecret
}
