package rest

import (
	"slices"
)

const (
	secretAllowed = "the ARN of a secret under punctual/<deployment>/<tenant>/ in Secrets Manager, " +
		"where the task takes one; or name this pointer in allow_literals if it is no secret"
	inTheClear = "this looks like a secret, and would be kept in the clear"
)

// NoSecrets reports every string at or below v that looks like a secret; see package secret. allowed are the pointers
// of strings that are none.
func (r *Reader) NoSecrets(v Value, allowed []string) {
	if len(r.Wrong) >= MaxViolations {
		return
	}
	for found := range r.secrets.Below(v.Node, v.Pointer, allowed) {
		detail := inTheClear
		if found.Name {
			detail = "the name of a field here looks like a secret"
		}
		if r.Violation(found.Pointer, CodeSecretInPayload, secretAllowed, detail); len(r.Wrong) >= MaxViolations {
			return
		}
	}
}

// NoSecretText reports a text that looks like a secret and is no string of the document; see secret.Search.
func (r *Reader) NoSecretText(pointer string, hidden bool, name, s string, allowed []string) {
	if r.secrets.InText(hidden, name, s) && !slices.Contains(allowed, pointer) {
		r.Violation(pointer, CodeSecretInPayload, secretAllowed, inTheClear)
	}
}
