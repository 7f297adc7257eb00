package authorizer_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"punctual/functions/authorizer"
	"punctual/shared/tenant"
)

func TestToken_OfEachAlgorithmIsAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := tenant.Identity{Tenant: "acme", Subject: "user-1", Scopes: []tenant.Scope{tenant.Read, tenant.Write}}
	for _, token := range []string{
		rs(t, good()), seal(t, jwa.ES256(), ecKey(), "ec", good()), seal(t, jwa.EdDSA(), edKey(), "ed", good()),
	} {
		if got := b.requireAccepted(t, token); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v; want %+v", got, want)
		}
	}
	if n := b.issuer.fetched(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// S36: what a token says of its own algorithm is never believed.
//
//proof:of 185 S36
func TestToken_DoesNotChooseHowItIsVerified(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty := func(string) string { return "" }
	kept := rs256(rsaKey())
	for _, alg := range []string{"none", "None", "nOnE", "NONE", "none ", "", "hs256", "rs256", "RS256 ", "RS257",
		"dir"} {
		header := fmt.Sprintf(`{"alg":%q,"kid":"rsa"}`, alg)
		b.requireRefused(t, alg+" without a signature", forge(header, good(), empty), "")
		b.requireRefused(t, alg+" with a true signature", forge(header, good(), kept), "")
		b.requireRefused(t, alg+" with some signature", forge(header, good(), func(string) string { return "AAAA" }),
			"")
	}
	for name, header := range map[string]string{
		"no alg": `{"kid":"rsa"}`, "alg as number": `{"alg":256,"kid":"rsa"}`,
		"alg as list": `{"alg":["RS256"],"kid":"rsa"}`, "alg null": `{"alg":null,"kid":"rsa"}`,
		"ALG": `{"ALG":"RS256","kid":"rsa"}`, "two algs": `{"alg":"RS256","alg":"none","kid":"rsa"}`,
		"crit": `{"alg":"RS256","kid":"rsa","crit":["x"],"x":1}`, "empty crit": `{"alg":"RS256","kid":"rsa","crit":[]}`,
		"b64":      `{"alg":"RS256","kid":"rsa","b64":false,"crit":["b64"]}`,
		"lone b64": `{"alg":"RS256","kid":"rsa","b64":false}`,
		"no kid":   `{"alg":"RS256"}`, "empty kid": `{"alg":"RS256","kid":""}`,
		"kid as number": `{"alg":"RS256","kid":1}`, "kid null": `{"alg":"RS256","kid":null}`,
		"kid of another": `{"alg":"RS256","kid":"ec"}`, "kid unknown": `{"alg":"RS256","kid":"../../rsa"}`,
		"kid with other case": `{"alg":"RS256","kid":"RSA"}`,
		"header no object":    `[]`, "header no JSON": `{`, "header null": `null`,
	} {
		b.requireRefused(t, name, forge(header, good(), kept), "")
	}

	// A public key is no secret: with it as the secret, anybody could sign.
	der, _ := x509.MarshalPKIXPublicKey(rsaKey().Public())
	asJWK, _ := json.Marshal(published(t, rsaKey(), "rsa", nil))
	for name, secret := range map[string][]byte{
		"DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "JWK": asJWK,
		"modulus": rsaKey().N.Bytes(), "nothing": {},
	} {
		for _, kid := range []string{"rsa", "ec", "ed"} {
			b.requireRefused(t, "HS256 with the public key as "+name,
				forge(fmt.Sprintf(`{"alg":"HS256","kid":%q}`, kid), good(), hs256(secret)), "algorithm")
		}
	}

	// Good signatures by the right keys, in algorithms that are not on the list.
	for _, alg := range []jwa.SignatureAlgorithm{jwa.RS384(), jwa.RS512(), jwa.PS256(), jwa.PS512()} {
		b.requireRefused(t, alg.String(), seal(t, alg, rsaKey(), "rsa", good()), "algorithm")
	}
	b.requireRefused(t, "ES384", seal(t, jwa.ES384(), ec384(), "ec", good()), "algorithm")

	// Keys that came with the token.
	theirs, _ := json.Marshal(published(t, otherRSA(), "rsa", nil))
	for name, extra := range map[string]string{
		"jwk": `,"jwk":` + string(theirs), "jku": `,"jku":"https://evil.test/jwks.json"`,
		"x5u": `,"x5u":"https://evil.test/cert"`,
	} {
		b.requireRefused(t, name, forge(`{"alg":"RS256","kid":"rsa"`+extra+`}`, good(), rs256(otherRSA())), "")
	}
	if len(b.issuer.others) > 0 {
		t.Errorf("a token made us ask %v", b.issuer.others)
	}

	b.requireRefused(t, "another's key", seal(t, jwa.RS256(), otherRSA(), "rsa", good()), "signature")
	b.requireRefused(t, "a key for another algorithm", seal(t, jwa.ES256(), ecKey(), "rsa", good()), "key")
	b.requireRefused(t, "no key id", seal(t, jwa.RS256(), rsaKey(), "", good()), "names no key")
}

//proof:of S36
func TestToken_WithAnyByteChangedIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for token, step := range map[string]int{
		seal(t, jwa.EdDSA(), edKey(), "ed", good()): 1, seal(t, jwa.ES256(), ecKey(), "ec", good()): 5,
		rs(t, good()): 5,
	} {
		b.requireAccepted(t, token)
		for i := len(token) - 1; i >= 0; i -= step { // the last byte first: it has bits that no decoder needs
			for _, c := range []byte{'A', 'B', '_', '.', token[i] ^ 1, token[i] ^ 0x20} {
				if changed := token[:i] + string(rune(c)) + token[i+1:]; changed != token {
					b.requireRefused(t, fmt.Sprintf("byte %d as %q", i, c), changed, "")
				}
			}
		}
	}
}

func TestToken_HasTheCompactFormOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rs(t, good())
	parts := strings.Split(token, ".")
	asJSON := fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, parts[0], parts[1], parts[2])
	general := fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q}]}`, parts[1], parts[0],
		parts[2])
	raw, _ := base64.RawURLEncoding.DecodeString(parts[2])
	for name, other := range map[string]string{
		"empty": "", "a dot": ".", "two dots": "..", "two parts": parts[0] + "." + parts[1], "four parts": token +
			".AAAA", "five parts": token + ".AAAA.AAAA",
		"JSON": asJSON, "general JSON": general, "claims alone": string(must(json.Marshal(good()))),
		"padded": token + "=", "padded twice": token + "==", "a space before": " " + token,
		"a line end within": token[:50] + "\n" + token[50:], "a line end after": token + "\r\n",
		"standard base64": parts[0] + "." + parts[1] + "." + base64.StdEncoding.EncodeToString(raw),
		"no header":       "." + parts[1] + "." + parts[2],
		"no payload":      parts[0] + ".." + parts[2], "huge": parts[0] + "." + strings.Repeat("A", 1<<20) + "." +
			parts[2], "NUL": "\x00", "twice": token + token,
	} {
		b.requireRefused(t, name, other, "compact form")
	}
	for name, claims := range map[string]any{"a list": []any{}, "a text": token, "null": nil, "a number": 1} {
		b.requireRefused(t, "claims that are "+name, rs(t, claims), "")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

//proof:of 185 S36
func TestToken_NeedsTheRegisteredClaims(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	for _, c := range []struct {
		name    string
		claims  map[string]any
		because string // "" for accepted
	}{
		{"expired an hour ago", with("exp", at(-time.Hour)), "expired"},
		{"expired beyond the leeway", with("exp", at(-31*time.Second)), "expired"},
		{"expired within the leeway", with("exp", at(-29*time.Second)), ""},
		{"no exp", with("exp", nil), "no expiry"},
		{"exp as a word", with("exp", "never"), "cannot be read"},
		{"exp as a list", with("exp", []any{at(time.Hour)}), "cannot be read"},
		{"exp before time", with("exp", -1), "expired"},
		{"exp zero", with("exp", 0), "expired"},
		{"exp beyond numbers", with("exp", json.Number("1e400")), "cannot be read"},
		{"not valid for a minute yet", with("nbf", at(time.Minute)), "not valid yet"},
		{"not valid yet within the leeway", with("nbf", at(29*time.Second)), ""},
		{"issued in the future", with("iat", at(time.Hour)), "not valid yet"},
		{"issued in the future within the leeway", with("iat", at(29*time.Second)), ""},
		{"no iat", with("iat", nil), ""},
		{"another issuer", with("iss", "https://evil.test/"), "another issuer"},
		{"nearly the issuer", with("iss", strings.TrimSuffix(issuer, "/")), "another issuer"},
		{"the issuer and more", with("iss", issuer+"evil"), "another issuer"},
		{"no issuer", with("iss", nil), "another issuer"},
		{"empty issuer", with("iss", ""), "another issuer"},
		{"issuer in a list", with("iss", []any{issuer}), "cannot be read"},
		{"another audience", with("aud", "other"), "another audience"},
		{"part of the audience", with("aud", "punctua"), "another audience"},
		{"no audience", with("aud", nil), "another audience"},
		{"empty audience", with("aud", ""), "another audience"},
		{"no audience in a list", with("aud", []any{}), "another audience"},
		{"other audiences", with("aud", []any{"a", "b"}), "another audience"},
		{"the audience among others", with("aud", []any{"a", audience}), ""},
		{"no subject", with("sub", nil), ""},
		{"subject beyond the limit", with("sub", strings.Repeat("s", 257)), "subject"},
		{"line end in the subject", with("sub", "a\nb"), "subject"},
		{"terminal escape in the subject", with("sub", "a\u009b31m"), "subject"},
	} {
		b := setup(t)
		token := rs(t, c.claims)
		if c.because == "" {
			b.requireAccepted(t, token)
			continue
		}
		b.requireRefused(t, c.name, token, c.because)
	}
}

func TestToken_LivesNoLongerThanItsExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rs(t, good())
	b.requireAccepted(t, token)
	b.clock.pass(time.Hour + 29*time.Second)
	b.requireAccepted(t, token)
	b.clock.pass(2 * time.Second)
	b.requireRefused(t, "after its expiry", token, "expired")
}

func TestAuthorizer_TrustsNobodyByDefault(t *testing.T) {
	t.Parallel()
	b := setup(t, func(d *authorizer.Deps) { d.Issuer = "" })
	b.requireRefused(t, "no issuer", rs(t, good()), "another issuer")
	b.requireRefused(t, "empty issuer", rs(t, with("iss", "")), "another issuer")
	b = setup(t, func(d *authorizer.Deps) { d.Audiences = nil })
	b.requireRefused(t, "no audience", rs(t, good()), "another audience")
	b.requireRefused(t, "empty audience", rs(t, with("aud", "")), "another audience")
	b = setup(t, func(d *authorizer.Deps) { d.JWKSURL = "" })
	b.requireRefused(t, "no keys", rs(t, good()), "could not be fetched")
}

//proof:of S42
func TestToken_TakesTheTenantFromTheNamedClaimOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, claim string
		claims      map[string]any
		want        tenant.ID // "" for refused
	}{
		{"the default claim", "", good(), "acme"},
		{"missing", "", with("tenant", nil), ""},
		{"empty", "", with("tenant", ""), ""},
		{"a number", "", with("tenant", 7), ""},
		{"a list", "", with("tenant", []any{"acme"}), ""},
		{"an object", "", with("tenant", map[string]any{"tenant": "acme"}), ""},
		{"a key's separator in it", "", with("tenant", "acme#1"), ""},
		{"a path in it", "", with("tenant", "acme/../other"), ""},
		{"a line end in it", "", with("tenant", "acme\n"), ""},
		{"64 long", "", with("tenant", strings.Repeat("t", 64)), tenant.ID(strings.Repeat("t", 64))},
		{"65 long", "", with("tenant", strings.Repeat("t", 65)), ""},
		{"other letters", "", with("tenant", "ücme"), ""},
		{"another case of the claim", "", with("Tenant", "other"), "acme"},
		{"only another case", "TENANT", good(), ""},
		{"another claim", "org", with("org", "umbrella"), "umbrella"},
		{"the named claim missing", "org", good(), ""},
		{"a URL as name", "https://punctual.test/tenant", with("https://punctual.test/tenant", "umbrella"), "umbrella"},
		{"a path", "app.org.id", with("app", map[string]any{"org": map[string]any{"id": "umbrella"}}), "umbrella"},
		{"a path that ends early", "app.org.id", with("app", map[string]any{"org": "umbrella"}), ""},
		{"a path with a dotted end", "app.org.id", with("app", map[string]any{"org.id": "umbrella"}), "umbrella"},
		{"a path through a list", "app.0", with("app", []any{"umbrella"}), ""},
	} {
		b := setup(t, func(d *authorizer.Deps) { d.TenantClaim = c.claim })
		token := rs(t, c.claims)
		if c.want == "" {
			b.requireRefused(t, c.name, token, "tenant claim")
			continue
		}
		if got := b.requireAccepted(t, token); got.Tenant != c.want {
			t.Errorf("%s: tenant %q; want %q", c.name, got.Tenant, c.want)
		}
	}
}

func TestToken_HasScopesAsATextOrAList(t *testing.T) {
	t.Parallel()
	all := []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}
	for _, c := range []struct {
		name   string
		claims map[string]any
		want   []tenant.Scope
		bad    bool
	}{
		{"a text", with("scope", "punctual:admin punctual:read  punctual:write"), all, false},
		{"a list", with("scope", []any{"punctual:read", "x", "punctual:read"}), all[:1], false},
		{"scopes of others", with("scope", "openid profile"), nil, false},
		{"nearly ours", with("scope", "punctual:readx xpunctual:read PUNCTUAL:READ punctual"), nil, false},
		{"a text in a list does not split", with("scope", []any{"punctual:read punctual:admin"}), nil, false},
		{"an empty text", with("scope", ""), nil, false},
		{"a number", with("scope", 7), nil, true},
		{"a list with a number", with("scope", []any{"punctual:read", 7}), nil, true},
		{"an object", with("scope", map[string]any{"punctual:read": true}), nil, true},
		{"missing", with("scope", nil), nil, false},
	} {
		b := setup(t)
		if c.bad {
			b.requireRefused(t, c.name, rs(t, c.claims), "scope claim")
			continue
		}
		if got := b.requireAccepted(t, rs(t, c.claims)); !reflect.DeepEqual(got.Scopes, c.want) {
			t.Errorf("%s: %v; want %v", c.name, got.Scopes, c.want)
		}
	}

	b := setup(t, func(d *authorizer.Deps) { d.WithoutScopes, d.ScopeClaim = all, "app.can" })
	if got := b.requireAccepted(t, rs(t, good())); !reflect.DeepEqual(got.Scopes, all) {
		t.Errorf("a token without the claim may %v", got.Scopes)
	}
	if got := b.requireAccepted(t,
		rs(t, with("app", map[string]any{"can": []any{"punctual:read"}}))); !reflect.DeepEqual(got.Scopes, all[:1]) {
		t.Errorf("a token with a nested claim may %v", got.Scopes)
	}
	if got := b.requireAccepted(t, rs(t, with("app", map[string]any{"can": ""}))); got.Scopes != nil {
		t.Errorf("a token with an empty claim may %v", got.Scopes)
	}
}
