package api

import (
	"regexp"
	"slices"
	"strings"

	"punctual/shared/tenant"
)

// secretNames are parts of field names under which a string is taken for a secret. Hyphens
// count as underscores, as in headers.
var secretNames = []string{"password", "passwd", "secret", "api_key", "apikey", "access_token", "private_key", "authorization"}

// shortestSecret is how long a string under such a name must be to be taken for one.
const shortestSecret = 8

func secretName(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) })
}

// tokenShapes are the forms of tokens that everybody knows. The mark is looked for first,
// because most strings hold none.
var tokenShapes = []struct {
	mark  string
	shape *regexp.Regexp
}{
	{"AKIA", regexp.MustCompile(`AKIA[0-9A-Z]{16}`)},
	{"ASIA", regexp.MustCompile(`ASIA[0-9A-Z]{16}`)},
	{"gh", regexp.MustCompile(`gh[pousr]_[A-Za-z0-9]{36}`)},
	{"github_pat_", regexp.MustCompile(`github_pat_[A-Za-z0-9_]{22}`)},
	{"xox", regexp.MustCompile(`xox[abeoprs](\.xox[abp])?-[A-Za-z0-9-]{10}`)},
	{"xapp-", regexp.MustCompile(`xapp-[0-9A-Za-z-]{10}`)},
	{"hooks.slack.com/", regexp.MustCompile(`hooks\.slack\.com/(services|workflows|triggers)/[A-Za-z0-9/_-]{20}`)},
	{"k_live_", regexp.MustCompile(`[srp]k_live_[A-Za-z0-9]{16}`)},
	{"k_test_", regexp.MustCompile(`[sr]k_test_[A-Za-z0-9]{16}`)},
	{"whsec_", regexp.MustCompile(`whsec_[A-Za-z0-9+/]{16}`)},
	{"eyJ", regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{"PRIVATE KEY", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)},
}

// shortestToken is how long any of them is at least.
const shortestToken = 16

func tokenShaped(s string) bool {
	if len(s) < shortestToken {
		return false
	}
	for _, t := range tokenShapes {
		if strings.Contains(s, t.mark) && t.shape.MatchString(s) {
			return true
		}
	}
	return false
}

const secretAllowed = "the ARN of a secret under punctual/<tenant>/ in Secrets Manager, where the task takes one; or name this pointer in allow_literals if it is no secret"

// noSecrets blames every string at or below v that looks like a secret: by the name that it
// stands under, or by its own form.
func (r *reader) noSecrets(v value, allowed []string) {
	r.secretsBelow(v.node, &trail{name: v.pointer}, false, allowed)
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

func (r *reader) secretsBelow(n int, at *trail, named bool, allowed []string) {
	switch r.doc.nodes[n].kind {
	case kindObject:
		for name, child := range r.doc.members(n) {
			if tokenShaped(name) {
				r.mistake(at.String(), codeSecretInPayload, secretAllowed, "the name of a field here looks like a secret")
				continue
			}
			r.secretsBelow(child, &trail{at, name, -1}, secretName(name), allowed)
		}
	case kindArray:
		element := &trail{at, "", 0}
		for i, child := range r.doc.elements(n) {
			element.index = i
			r.secretsBelow(child, element, named, allowed)
		}
	case kindString:
		raw := r.doc.raw(n)
		if len(raw)-2 < shortestSecret || !named && len(raw)-2 < shortestToken {
			return
		}
		s := r.doc.string(n)
		if named && runes(s) >= shortestSecret && !strings.HasPrefix(s, "arn:") || tokenShaped(s) {
			if pointer := at.String(); !slices.Contains(allowed, pointer) {
				r.mistake(pointer, codeSecretInPayload, secretAllowed, "this looks like a secret, and would be kept in the clear")
			}
		}
	}
}

// secretARN is a secret that the tenant may use.
var secretARN = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]*:[0-9]*:secret:punctual/([a-zA-Z0-9_.-]{1,64})/[A-Za-z0-9/_+=.@-]{1,400}$`)

// secretOf reads the ARN of one of the tenant's own secrets. Anything else is refused without
// being repeated: a plain secret may stand there.
func (r *reader) secretOf(v value, t tenant.ID) {
	const allowed = "the ARN of a secret under punctual/<tenant>/ in Secrets Manager"
	s, ok := r.text(v)
	if !ok {
		return
	}
	m := secretARN.FindStringSubmatch(s)
	switch {
	case m == nil && !strings.HasPrefix(s, "arn:"):
		r.mistake(v.pointer, codeSecretInPayload, allowed, "a secret is given by its ARN, never itself")
	case m == nil:
		r.mistake(v.pointer, codeInvalidValue, allowed, "this is not the ARN of such a secret")
	case m[1] != string(t):
		r.mistake(v.pointer, codeInvalidValue, "a secret under punctual/"+string(t)+"/", "the secret is not one of this tenant's")
	}
}
