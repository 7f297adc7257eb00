package executor

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	kind "punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/target"
	"punctual/shared/tenant"
)

// secretARN takes the name of a secret out of its ARN. Secrets Manager reads names letter by
// letter: there is no ".." that could lead from one tenant's secrets to another's.
var secretARN = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]*:[0-9]*:secret:([a-zA-Z0-9/_+=.@-]+)$`)

// isSecretARN says whether s names a secret, whosever it is.
func isSecretARN(s string) bool { return secretARN.MatchString(s) }

// ownSecret says whether the ARN names a secret of the tenant in this deployment.
func ownSecret(deployment string, t tenant.ID, arn string) bool {
	m := secretARN.FindStringSubmatch(arn)
	prefix := kind.Secrets(deployment, t)
	return m != nil && t != "" && len(m[1]) > len(prefix) && strings.HasPrefix(m[1], prefix)
}

// wallet resolves the secrets of one attempt and remembers their values, so that these can be
// kept out of everything that leaves the attempt.
type wallet struct {
	secrets Secrets
	tenant  tenant.ID

	deployment string
	to         *url.URL       // where the attempt sends them
	allow      []netip.Prefix // what the deployment has opened
	known      []string
}

// send returns a secret that is itself sent to the target. The connection must be private: TLS, or
// this machine's loopback where that is opened.
func (w *wallet) send(ctx context.Context, field, arn string) (string, error) {
	if w.to.Scheme != "https" && !target.OpenLoopback(w.to.Hostname(), w.allow) {
		return "", never(CodeSecret, "the secret of "+field+" is sent over https only")
	}
	return w.resolve(ctx, field, arn)
}

// bound returns an error if a secret may not be used with the host that is called. Without it, a caller who
// may write jobs could send the secret to a host of their own, or have their own text signed.
func (w *wallet) bound(ctx context.Context, field, arn string) error {
	hosts, bound, err := w.secrets.Hosts(ctx, arn)
	if err != nil {
		return w.unread(ctx, field, err)
	}
	if bound && !among(hosts, w.to.Hostname()) {
		return never(CodeSecret, "the secret of "+field+" is bound to other hosts by its tag punctual:hosts")
	}
	return nil
}

// among says whether a host is one of hosts, or is below one that begins with a dot.
func among(hosts []string, host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(hosts, func(allowed string) bool {
		allowed = strings.TrimSuffix(strings.ToLower(allowed), ".")
		return host == allowed || strings.HasPrefix(allowed, ".") && len(allowed) > 1 &&
			strings.HasSuffix(host, allowed)
	})
}

// unread says what it means that Secrets Manager did not answer.
func (w *wallet) unread(ctx context.Context, field string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("reading the secret of %s: %w", field, context.Cause(ctx))
	}
	kind := fault.KindOf(err)
	return &Failure{
		Code: CodeSecret, Message: strings.TrimSuffix("the secret of "+field+" could not be read: "+string(kind), ": "),
		Permanent: kind == fault.NotFound || kind == fault.Invalid || kind == fault.Forbidden, Err: err,
	}
}

// resolve returns the secret's value. No error repeats arn: it may be a secret itself.
func (w *wallet) resolve(ctx context.Context, field, arn string) (string, error) {
	if !ownSecret(w.deployment, w.tenant, arn) {
		return "", never(CodeSecret, field+" wants the ARN of a secret under "+kind.Secrets(w.deployment, w.tenant))
	}
	if w.secrets == nil {
		return "", never(CodeSecret, "this deployment holds no secrets")
	}
	if err := w.bound(ctx, field, arn); err != nil {
		return "", err
	}
	value, err := w.secrets.Resolve(ctx, arn)
	if err != nil {
		return "", w.unread(ctx, field, err)
	}
	if value == "" {
		return "", never(CodeSecret, "the secret of "+field+" is empty")
	}
	w.known = append(w.known, value)
	return value, nil
}

const masked = "[secret]"

// needles lists the spellings in which a target may hand a secret back, longest first.
func (w *wallet) needles() []string {
	var all []string
	for _, value := range w.known {
		for _, v := range []string{value, strings.TrimSpace(value), strings.TrimPrefix(value, "whsec_")} {
			quoted, _ := json.Marshal(v) // a string cannot fail
			all = append(all, v, strings.Trim(string(quoted), `"`), url.QueryEscape(v), url.PathEscape(v),
				html.EscapeString(v), base64.StdEncoding.EncodeToString([]byte(v)),
				base64.RawURLEncoding.EncodeToString([]byte(v)), hex.EncodeToString([]byte(v)))
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
		pairs = append(pairs, needle, masked)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// scrubbed takes every known secret out of the message of a failure, which may name an address that a target gave.
func (w *wallet) scrubbed(err error) error {
	var f *Failure
	if errors.As(err, &f) {
		f.Message = w.scrub(f.Message)
	}
	return err
}

// longest is the length of the longest spelling of a secret, in bytes.
func (w *wallet) longest() int {
	if all := w.needles(); len(all) > 0 {
		return len(all[0])
	}
	return 0
}
