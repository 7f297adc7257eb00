package wire

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"punctual/shared/text"
)

// ShortestSecret is how many characters a string under the name of a secret must have to count as one.
const ShortestSecret = 8

const secretAllowed = "the ARN of a secret under punctual/<deployment>/<tenant>/ in Secrets Manager, " +
	"where the task takes one; " +
	"or name this pointer in allow_literals if it is no secret"

// NoSecrets reports every string at or below v that looks like a secret: by the name of its field, by its own form, or
// as a part of a URL.
func (r *Reader) NoSecrets(v Value, allowed []string) {
	r.secretsBelow(v.Node, &trail{name: v.Pointer}, notSecret, allowed)
}

// trail is the path to a value, from its end. A pointer is written only for values that are reported, because a payload
// can have half a million values.
type trail struct {
	from  *trail // nil at the start, whose name is a pointer already
	name  string
	index int // of an element, when name is ""
}

func (t *trail) String() string {
	switch {
	case t.from == nil:
		return t.name
	case t.index >= 0:
		return t.from.String() + "/" + strconv.Itoa(t.index)
	}
	return t.from.String() + "/" + text.EscapePointer(t.name)
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

func (r *Reader) secretsBelow(n int, at *trail, named secrecy, allowed []string) {
	if len(r.Wrong) >= MaxMistakes {
		return
	}
	switch r.Doc.nodes[n].kind {
	case KindObject:
		for name, child := range r.Doc.Members(n) {
			if len(r.Wrong) >= MaxMistakes {
				return
			}
			if text.TokenShaped(name) {
				r.Mistake(at.String(), CodeSecretInPayload, secretAllowed,
					"the name of a field here looks like a secret")
				continue
			}
			own := notSecret
			if named.hidesStrings() || suspicious(name) {
				own = r.secrecyOf(name)
			}
			r.secretsBelow(child, &trail{at, name, -1}, named.below(name, own), allowed)
		}
	case KindArray:
		element := &trail{at, "", 0}
		for i, child := range r.Doc.Elements(n) {
			element.index = i
			r.secretsBelow(child, element, named, allowed)
		}
	case KindString:
		raw, hidden := r.Doc.Raw(n), named.hidesStrings()
		if len(raw)-2 < ShortestSecret || !hidden && len(raw)-2 < text.ShortestToken &&
			!bytes.Contains(raw, []byte(":/")) {
			return
		}
		s := r.Doc.Text(n)
		if hidden && utf8.RuneCountInString(s) >= ShortestSecret && !wholeARN().MatchString(s) || text.TokenShaped(s) ||
			urlSecret(s) {
			if pointer := at.String(); !slices.Contains(allowed, pointer) {
				r.Mistake(pointer, CodeSecretInPayload, secretAllowed,
					"this looks like a secret, and would be kept in the clear")
			}
		}
	}
}
