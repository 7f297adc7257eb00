package authorizer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"punctual/shared/tenant"
	"punctual/shared/text"
)

const (
	leeway     = 30 * time.Second // that clocks may differ by
	maxToken   = 8 << 10          // bytes; API Gateway takes 10 KB of headers in all
	maxSubject = 256              // bytes
	scopeSpace = "punctual:"      // what our own scopes begin with
)

// algorithms are all that are ever verified. Symmetric ones are missing on purpose: with them
// anyone who can read the public key could sign.
var algorithms = map[string]jwa.SignatureAlgorithm{
	"RS256": jwa.RS256(), "ES256": jwa.ES256(), "EdDSA": jwa.EdDSA(),
}

// cause says why a token is refused, in our words only: nothing of the token is in it.
type cause string

const (
	malformed     cause = "it is no signed token in compact form"
	wrongAlg      cause = "its algorithm is not one of RS256, ES256, EdDSA"
	noKeyID       cause = "it names no key"
	unknownKey    cause = "its key is not one of the issuer's for that algorithm"
	noKeys        cause = "the issuer's keys could not be fetched"
	wrongSeal     cause = "its signature is wrong"
	noClaims      cause = "its claims cannot be read"
	wrongIssuer   cause = "it is of another issuer"
	wrongAudience cause = "it is for another audience"
	noExpiry      cause = "it has no expiry"
	expired       cause = "it has expired"
	notYet        cause = "it is not valid yet"
	wrongTenant   cause = "its tenant claim is missing or no tenant"
	noTenantScope cause = "it has not exactly one group or scope that names a tenant"
	wrongGroups   cause = "its group claim is no list of texts"
	wrongSubject  cause = "its subject is too long, or has control or direction characters"
	wrongScopes   cause = "its scope claim is neither a text nor a list of texts"
)

// identify verifies a token and reads who it speaks for. The cause is "" for a good one.
func (a *Authorizer) identify(ctx context.Context, token string) (tenant.Identity, cause) {
	payload, refused := a.open(ctx, token)
	if refused != "" {
		return tenant.Identity{}, refused
	}
	if refused := a.valid(payload); refused != "" {
		return tenant.Identity{}, refused
	}
	claims := map[string]any{}
	if json.Unmarshal(payload, &claims) != nil {
		return tenant.Identity{}, noClaims
	}
	if !a.meant(claims) {
		return tenant.Identity{}, wrongAudience
	}
	return a.read(claims)
}

// open checks the signature and returns what was signed.
func (a *Authorizer) open(ctx context.Context, token string) ([]byte, cause) {
	if !compact(token) {
		return nil, malformed
	}
	message, err := jws.ParseString(token, jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return nil, malformed
	}
	header := message.Signatures()[0].ProtectedHeaders()
	named, _ := header.Algorithm() // the zero algorithm is not in the list
	alg, ok := algorithms[named.String()]
	if !ok {
		return nil, wrongAlg
	}
	kid, _ := header.KeyID()
	if kid == "" {
		return nil, noKeyID
	}
	keys, loaded := a.keys.find(ctx, kid, alg)
	switch {
	case !loaded:
		return nil, noKeys
	case len(keys) == 0:
		return nil, unknownKey
	}
	for _, key := range keys {
		// Takes the algorithm from us and compares the header's to it; refuses crit and b64.
		if payload, err := jws.VerifyCompactFast(key, []byte(token), alg); err == nil {
			return payload, ""
		}
	}
	return nil, wrongSeal
}

// compact says whether the token is three parts of base64url, each in its only spelling:
// decoders overlook padding, line ends and stray bits, and then two texts are one token.
func compact(token string) bool {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 || strings.ContainsAny(token, "\r\n") {
		return false
	}
	for _, part := range parts {
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil || part == "" {
			return false
		}
	}
	return true
}

// valid checks the registered claims.
func (a *Authorizer) valid(payload []byte) cause {
	token := jwt.New()
	if json.Unmarshal(payload, token) != nil {
		return noClaims
	}
	if a.deps.Issuer == "" {
		return wrongIssuer
	}
	err := jwt.Validate(token,
		jwt.WithClock(a.deps.Clock), jwt.WithAcceptableSkew(leeway),
		jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithIssuer(a.deps.Issuer))
	switch {
	case err == nil:
		return ""
	case errors.Is(err, jwt.TokenExpiredError()):
		return expired
	case errors.Is(err, jwt.TokenNotYetValidError()), errors.Is(err, jwt.InvalidIssuedAtError()):
		return notYet
	case errors.Is(err, jwt.InvalidIssuerError()):
		return wrongIssuer
	case errors.Is(err, jwt.MissingRequiredClaimError()):
		return noExpiry
	}
	return noClaims
}

// meant says whether the token is for one of the audiences.
func (a *Authorizer) meant(claims map[string]any) bool {
	said, ok := texts(claim(claims, a.deps.AudienceClaim), func(s string) []string { return []string{s} })
	return ok && slices.ContainsFunc(said,
		func(s string) bool { return s != "" && slices.Contains(a.deps.Audiences, s) })
}

// read takes the identity out of the claims of a token that is valid.
func (a *Authorizer) read(claims map[string]any) (tenant.Identity, cause) {
	var id tenant.Identity
	value := claim(claims, a.deps.ScopeClaim)
	scopes, ok := texts(value, strings.Fields)
	if !ok {
		return tenant.Identity{}, wrongScopes
	}
	name, refused := a.tenantOf(claims, scopes)
	if refused != "" {
		return tenant.Identity{}, refused
	}
	var err error
	if id.Tenant, err = tenant.ParseCaller(name); err != nil {
		return tenant.Identity{}, wrongTenant
	}
	id.Subject, _ = claims["sub"].(string)
	if len(id.Subject) > maxSubject || strings.ContainsFunc(id.Subject, text.Hidden) {
		return tenant.Identity{}, wrongSubject
	}
	if value == nil {
		id.Scopes = a.deps.WithoutScopes
		return id, ""
	}
	for _, known := range []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin} {
		if slices.Contains(scopes, a.deps.ScopePrefix+strings.TrimPrefix(string(known), scopeSpace)) {
			id.Scopes = append(id.Scopes, known)
		}
	}
	return id, ""
}

// tenantOf finds the name of the tenant in its claim, or in the one scope or group that names one: of
// two tenants a token could mean, it would be anybody's choice which.
func (a *Authorizer) tenantOf(claims map[string]any, scopes []string) (string, cause) {
	if a.deps.TenantScope == "" {
		name, _ := claim(claims, a.deps.TenantClaim).(string)
		return name, ""
	}
	var groups []string
	if a.deps.GroupClaim != "" {
		var ok bool
		groups, ok = texts(claim(claims, a.deps.GroupClaim), func(s string) []string { return []string{s} })
		if !ok {
			return "", wrongGroups
		}
	}
	var names []string
	for _, s := range slices.Concat(scopes, groups) {
		if name, ok := strings.CutPrefix(s, a.deps.TenantScope); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return "", noTenantScope
	}
	return names[0], ""
}

// texts reads a claim that is a text, which split cuts, or a list of texts; an absent one is an
// empty list. It is false for any other.
func texts(value any, split func(string) []string) ([]string, bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case string:
		return split(v), true
	case []any:
		list := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			list[i] = s
		}
		return list, true
	}
	return nil, false
}

// claim finds a claim by its whole name, which may be a URL with dots in it, or else along the
// path that its dots make; nil when there is none.
func claim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, nested := strings.Cut(name, ".")
	inner, ok := claims[first].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return claim(inner, rest)
}
