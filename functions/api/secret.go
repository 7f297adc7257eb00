package api

import (
	"bytes"
	"slices"
)

// shortestSecret is how long a string under a secret's name must be to be taken for one.
const shortestSecret = 8

const secretAllowed = "the ARN of a secret under punctual/<tenant>/ in Secrets Manager, where the task takes one; or name this pointer in allow_literals if it is no secret"

// noSecrets blames every string at or below v that looks like a secret: by the name that it
// stands under, by its own form, or as a part of a URL.
func (r *reader) noSecrets(v value, allowed []string) {
	r.secretsBelow(v.node, &trail{name: v.pointer}, notSecret, allowed)
}

// trail is the way to a value, from its end. Its pointer is written only for the few values
// that are blamed: a payload can have half a million.
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
		return t.from.String() + "/" + itoa(t.index)
	}
	return t.from.String() + "/" + escapePointer(t.name)
}

// secrecyOf judges a name once: most names of a payload stand there many times.
func (r *reader) secrecyOf(name string) secrecy {
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

func (r *reader) secretsBelow(n int, at *trail, named secrecy, allowed []string) {
	if len(r.wrong) >= maxMistakes {
		return
	}
	switch r.doc.nodes[n].kind {
	case kindObject:
		for name, child := range r.doc.members(n) {
			if len(r.wrong) >= maxMistakes {
				return
			}
			if tokenShaped(name) {
				r.mistake(at.String(), codeSecretInPayload, secretAllowed,
					"the name of a field here looks like a secret")
				continue
			}
			own := notSecret
			if named.hidesStrings() || suspicious(name) {
				own = r.secrecyOf(name)
			}
			r.secretsBelow(child, &trail{at, name, -1}, named.below(name, own), allowed)
		}
	case kindArray:
		element := &trail{at, "", 0}
		for i, child := range r.doc.elements(n) {
			element.index = i
			r.secretsBelow(child, element, named, allowed)
		}
	case kindString:
		raw, hidden := r.doc.raw(n), named.hidesStrings()
		if len(raw)-2 < shortestSecret || !hidden && len(raw)-2 < shortestToken && !bytes.Contains(raw, []byte(":/")) {
			return
		}
		s := r.doc.string(n)
		if hidden && runes(s) >= shortestSecret && !wholeARN.MatchString(s) || tokenShaped(s) || urlSecret(s) {
			if pointer := at.String(); !slices.Contains(allowed, pointer) {
				r.mistake(pointer, codeSecretInPayload, secretAllowed,
					"this looks like a secret, and would be kept in the clear")
			}
		}
	}
}
