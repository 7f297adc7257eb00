package executor

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// SecretPattern is the form of the ARN of a secret that a tenant may use; it captures the deployment and
// the tenant.
const SecretPattern = `^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]*:[0-9]*:secret:` +
	`punctual/([a-z0-9-]{1,32})/([a-zA-Z0-9_.-]{1,64})/[A-Za-z0-9/_+=.@-]{1,400}$`

// Secrets is what the names of a tenant's secrets begin with, in a deployment of that prefix; "" is
// contract.DefaultPrefix.
func Secrets(deployment string, t tenant.ID) string {
	return "punctual/" + cmp.Or(deployment, contract.DefaultPrefix) + "/" + string(t) + "/"
}

// ARNPattern is the form of the ARN of anything.
const ARNPattern = `^arn:aws[a-z-]*:[a-z0-9-]{1,64}:[a-z0-9-]*:([0-9]+|aws)?:[A-Za-z0-9/_+=.@:$*,-]{1,600}$`

var (
	secretARN = text.Pattern(SecretPattern)
	anyARN    = text.Pattern(ARNPattern)
)

// namesSecret says whether a text is meant as the ARN of a secret, whosever it is.
func namesSecret(s string) bool {
	return strings.HasPrefix(s, "arn:") && strings.Contains(s, ":secretsmanager:")
}

// MaxSecrets is how many fields of one payload may name a secret.
const MaxSecrets = 16

// Names of the fields of an HTTPPayload that name a secret; a header's is HeaderSecret and its name.
const (
	BearerSecret = "auth.bearer"
	SignSecret   = "sign_with"
	HeaderSecret = "headers."
)

// paramsOnly is an expression that gives a parameter of the run as it is.
var paramsOnly = text.Pattern(`^\$\{\s*params(\.[a-zA-Z_][a-zA-Z0-9_]*)+\s*\}$`)

// DefinedSecrets lists the fields that name a secret in the payload of a node's definition, in order, with at most
// MaxSecrets of them. Only these are resolved: what an expression renders is text, even where it looks like the ARN of
// a secret. The fields auth.bearer and sign_with, which hold nothing else, may also be a parameter of the run.
func DefinedSecrets(executor string, payload []byte) []string {
	if executor != HTTP {
		return nil
	}
	var p struct {
		Headers  json.RawMessage `json:"headers"`
		Auth     json.RawMessage `json:"auth"`
		SignWith json.RawMessage `json:"sign_with"`
	}
	var auth struct {
		Bearer json.RawMessage `json:"bearer"`
	}
	var headers map[string]json.RawMessage
	if json.Unmarshal(payload, &p) != nil {
		return nil // the whole payload is an expression
	}
	_ = json.Unmarshal(p.Auth, &auth)
	_ = json.Unmarshal(p.Headers, &headers)
	var fields []string
	for name, v := range headers {
		if s := textOf(v); namesSecret(s) && !strings.Contains(s, "${") {
			fields = append(fields, HeaderSecret+name)
		}
	}
	for field, v := range map[string]json.RawMessage{BearerSecret: auth.Bearer, SignSecret: p.SignWith} {
		if s := textOf(v); s != "" && !strings.Contains(s, "${") || paramsOnly().MatchString(s) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields[:min(len(fields), MaxSecrets)]
}

// textOf is a JSON string's text, "" for anything else.
func textOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// sentSecret reads the ARN of a secret that is going to be sent itself.
func sentSecret(r Reader, v Value, of Site, inClear bool) {
	secret(r, v, of)
	if inClear {
		r.Violation(v.Pointer, CodeConflictingFields, "an https URL",
			"a secret is sent over https only; the URL is http")
	}
}

// secret reads the ARN of one of the tenant's own secrets. Anything else is refused without being
// repeated, since it may be a plain secret.
func secret(r Reader, v Value, of Site) {
	const allowed = "the ARN of a secret under punctual/<deployment>/<tenant>/ in Secrets Manager"
	s, ok := r.Text(v)
	if !ok {
		return
	}
	m := secretARN().FindStringSubmatch(s)
	switch {
	case m == nil && !anyARN().MatchString(s):
		r.Violation(v.Pointer, CodeSecretInPayload, allowed, "a secret is given by its ARN, never itself")
	case m == nil:
		r.Violation(v.Pointer, CodeInvalidValue, allowed, "this is not the ARN of such a secret")
	case "punctual/"+m[1]+"/"+m[2]+"/" != Secrets(of.Deployment, of.Tenant):
		r.Violation(v.Pointer, CodeInvalidValue, "a secret under "+Secrets(of.Deployment, of.Tenant),
			"the secret is not one of this tenant's")
	}
}
