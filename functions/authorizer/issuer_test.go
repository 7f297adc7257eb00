package authorizer_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"punctual/functions/authorizer"
	"punctual/shared/process"
	"punctual/shared/tenant"
)

const (
	issuer   = "https://issuer.test/"
	audience = "punctual"
	jwksURL  = "https://issuer.test/.well-known/jwks.json"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

// Keys are slow to make and never changed, so that all tests share them.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 2048); return k })
	otherRSA = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 2048); return k })
	weakRSA  = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 1024); return k })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey {
		k,
			_ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return k
	})
	ec384 = sync.OnceValue(func() *ecdsa.PrivateKey {
		k,
			_ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		return k
	})
	edKey = sync.OnceValue(func() ed25519.PrivateKey { _, k, _ := ed25519.GenerateKey(rand.Reader); return k })
)

// published is a public key as an issuer shows it, with more fields on top.
func published(t *testing.T, private crypto.Signer, kid string, more map[string]any) map[string]any {
	t.Helper()
	fields := map[string]any{}
	if public, ok := private.Public().(*rsa.PublicKey); ok { // written here: jwk refuses to write weak ones
		fields["kty"], fields["n"], fields["e"] = "RSA", base64.RawURLEncoding.EncodeToString(public.N.Bytes()), "AQAB"
	} else {
		k, err := jwk.Import(private.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(must(json.Marshal(k)), &fields); err != nil {
			t.Fatal(err)
		}
	}
	fields["kid"] = kid
	maps.Copy(fields, more)
	return fields
}

// endpoint is the issuer's, without a network.
type endpoint struct {
	mu      sync.Mutex
	body    string
	status  int
	down    bool
	fetches int
	others  []string // URLs asked for that are not the keys'
}

func (e *endpoint) publish(keys ...map[string]any) {
	if keys == nil {
		keys = []map[string]any{}
	}
	b, _ := json.Marshal(map[string]any{"keys": keys})
	e.answer(200, string(b))
}

func (e *endpoint) answer(status int, body string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.body = status, body
}

func (e *endpoint) setDown(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

func (e *endpoint) fetched() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fetches
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.URL.String() != jwksURL {
		e.others = append(e.others, r.URL.String())
		return nil, errors.New("there is no such issuer")
	}
	e.fetches++
	if e.down {
		return nil, errors.New("the issuer is down")
	}
	return &http.Response{StatusCode: e.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(e.body)),
		Request: r}, nil
}

// watch is a clock that tests move.
type watch struct {
	mu  sync.Mutex
	now time.Time
}

func (w *watch) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *watch) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

type bench struct {
	*authorizer.Authorizer
	issuer *endpoint
	clock  *watch
	log    *bytes.Buffer
}

// setup returns an authorizer whose issuer shows three keys: rsa, ec and ed.
func setup(t *testing.T, change ...func(*authorizer.Deps)) *bench {
	t.Helper()
	b := &bench{issuer: &endpoint{}, clock: &watch{now: noon}, log: &bytes.Buffer{}}
	b.issuer.publish(published(t, rsaKey(), "rsa", map[string]any{"alg": "RS256", "use": "sig"}),
		published(t, ecKey(), "ec", nil), published(t, edKey(), "ed", map[string]any{"alg": "EdDSA"}))
	d := authorizer.Deps{
		JWKSURL: jwksURL, Issuer: issuer, Audiences: []string{audience},
		Base: process.Base{Clock: b.clock, Log: slog.New(slog.NewTextHandler(b.log, nil))},
		HTTP: &http.Client{Transport: b.issuer},
	}
	for _, c := range change {
		c(&d)
	}
	b.Authorizer = authorizer.New(d)
	return b
}

// good are claims that are accepted.
func good() map[string]any {
	return map[string]any{
		"iss": issuer, "aud": audience, "sub": "user-1", "tenant": "acme",
		"scope": "openid punctual:read punctual:write",
		"iat":   noon.Add(-time.Minute).Unix(), "exp": noon.Add(time.Hour).Unix(),
	}
}

func with(name string, value any) map[string]any {
	c := good()
	if value == nil {
		delete(c, name)
	} else {
		c[name] = value
	}
	return c
}

func seal(t *testing.T, alg jwa.SignatureAlgorithm, private any, kid string, claims any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	h := jws.NewHeaders()
	if kid != "" {
		_ = h.Set(jws.KeyIDKey, kid)
	}
	_ = h.Set(jws.TypeKey, "JWT")
	token, err := jws.Sign(payload, jws.WithKey(alg, private, jws.WithProtectedHeaders(h)))
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

// rs is a token by the issuer's RSA key.
func rs(t *testing.T, claims any) string {
	t.Helper()
	return seal(t, jwa.RS256(), rsaKey(), "rsa", claims)
}

// madeUp is a token of a key that the issuer does not have.
func madeUp(i int) string {
	return forge(fmt.Sprintf(`{"alg":"RS256","kid":"made-up-%d"}`, i), good(), func(string) string { return "AAAA" })
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// forge is a token with any header, sealed by any function of what is signed.
func forge(header string, claims any, seal func(signed string) string) string {
	payload, _ := json.Marshal(claims)
	signed := b64(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return signed + "." + seal(signed)
}

func rs256(private *rsa.PrivateKey) func(string) string {
	return func(signed string) string {
		sum := sha256.Sum256([]byte(signed))
		s, _ := rsa.SignPKCS1v15(nil, private, crypto.SHA256, sum[:])
		return base64.RawURLEncoding.EncodeToString(s)
	}
}

func hs256(secret []byte) func(string) string {
	return func(signed string) string {
		m := hmac.New(sha256.New, secret)
		m.Write([]byte(signed))
		return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
}

func (b *bench) requireAccepted(t *testing.T, token string) tenant.Identity {
	t.Helper()
	id, err := b.Verify(context.Background(), token)
	if err != nil {
		t.Fatalf("refused: %v; %s", err, b.log)
	}
	return id
}

// requireRefused asks for the one refusal that there is, for a cause in the log, and for
// nothing of the token there.
func (b *bench) requireRefused(t *testing.T, name, token, because string) {
	t.Helper()
	b.log.Reset()
	id, err := b.Verify(context.Background(), token)
	if err == nil {
		t.Fatalf("%s: accepted as %+v", name, id)
	}
	exact := err == authorizer.ErrUnauthorized //nolint:errorlint // it must be that very error
	if !exact || err.Error() != "Unauthorized" || id.Tenant != "" || id.Scopes != nil {
		t.Fatalf("%s: got %v and %+v", name, err, id)
	}
	if because != "" && !strings.Contains(b.log.String(), because) {
		t.Fatalf("%s: want the cause %q in the log, which says %s", name, because, b.log)
	}
	for _, part := range append(strings.Split(token, "."), "acme", "user-1") {
		if len(part) > 3 && strings.Contains(b.log.String(), part) {
			t.Fatalf("%s: the log holds %q of the token: %s", name, part, b.log)
		}
	}
}
