package executor

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"punctual/shared/fault"
	"punctual/shared/tenant"
)

// secretARN takes the name of a secret out of its ARN. Secrets Manager reads names letter by
// letter: there is no ".." that could lead from one tenant's secrets to another's.
var secretARN = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]*:[0-9]*:secret:([a-zA-Z0-9/_+=.@-]+)$`)

// isSecretARN says whether s names a secret, whosever it is.
func isSecretARN(s string) bool { return secretARN.MatchString(s) }

// ownSecret says whether the ARN names a secret of the tenant.
func ownSecret(t tenant.ID, arn string) bool {
	m := secretARN.FindStringSubmatch(arn)
	prefix := "punctual/" + string(t) + "/"
	return m != nil && t != "" && len(m[1]) > len(prefix) && strings.HasPrefix(m[1], prefix)
}

// wallet resolves the secrets of one attempt and remembers their values, so that these can be
// kept out of everything that leaves the attempt.
type wallet struct {
	secrets Secrets
	tenant  tenant.ID
	known   []string
}

// resolve returns the secret's value. What stands where an ARN belongs may be a secret itself,
// so no error repeats it.
func (w *wallet) resolve(ctx context.Context, field, arn string) (string, error) {
	if !ownSecret(w.tenant, arn) {
		return "", never(CodeSecret, field+" wants the ARN of a secret under punctual/"+string(w.tenant)+"/")
	}
	if w.secrets == nil {
		return "", never(CodeSecret, "this deployment holds no secrets")
	}
	value, err := w.secrets.Resolve(ctx, arn)
	if err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("reading the secret of %s: %w", field, context.Cause(ctx))
		}
		kind := fault.KindOf(err)
		return "", &Failure{
			Code: CodeSecret, Message: strings.TrimSuffix("the secret of "+field+" could not be read: "+string(kind), ": "),
			Permanent: kind == fault.NotFound || kind == fault.Invalid || kind == fault.Forbidden, Err: err,
		}
	}
	if value == "" {
		return "", never(CodeSecret, "the secret of "+field+" is empty")
	}
	w.known = append(w.known, value)
	return value, nil
}

const scrubbed = "[secret]"

// needles lists the spellings in which a target may hand a secret back, longest first.
func (w *wallet) needles() []string {
	var all []string
	for _, value := range w.known {
		for _, v := range []string{value, strings.TrimSpace(value), strings.TrimPrefix(value, "whsec_")} {
			quoted, _ := json.Marshal(v) // a string cannot fail
			all = append(all, v, strings.Trim(string(quoted), `"`), url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v),
				base64.StdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)), hex.EncodeToString([]byte(v)))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// scrub takes every known secret out of a text that others wrote.
func (w *wallet) scrub(text string) string {
	if len(w.known) == 0 {
		return text
	}
	var pairs []string
	for _, needle := range w.needles() {
		pairs = append(pairs, needle, scrubbed)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// longest is the length of the longest spelling of a secret, in bytes.
func (w *wallet) longest() int {
	if all := w.needles(); len(all) > 0 {
		return len(all[0])
	}
	return 0
}
