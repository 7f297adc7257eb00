package authorizer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"punctual/functions/authorizer"
	"punctual/shared/process"
)

// S37: rotation locks no caller out, and made-up key ids do not make us hammer the issuer.
//
//proof:of S37
func TestKeyring_FollowsARotation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := with("exp", noon.Add(48*time.Hour).Unix())
	old, fresh := rs(t, long), seal(t, jwa.RS256(), otherRSA(), "rsa-2", long)
	b.requireAccepted(t, old)
	b.requireRefused(t, "before the rotation", fresh, "key is not one")
	b.clock.pass(authorizer.CoolDown)

	was := b.issuer.fetched()
	b.issuer.publish(published(t, rsaKey(), "rsa", nil), published(t, otherRSA(), "rsa-2", nil))
	b.requireAccepted(t, fresh) // at its first token
	b.requireAccepted(t, old)
	if n := b.issuer.fetched() - was; n != 1 {
		t.Errorf("the rotation took %d fetches", n)
	}

	was = b.issuer.fetched()
	for i := range 1000 {
		b.requireRefused(t, "a made-up key id", madeUp(i), "key is not one")
	}
	if n := b.issuer.fetched() - was; n != 0 {
		t.Errorf("1,000 made-up ids within the cool-down caused %d fetches", n)
	}
	for range 5 {
		b.clock.pass(authorizer.CoolDown)
		was = b.issuer.fetched()
		for i := range 1000 {
			b.requireRefused(t, "a made-up key id", madeUp(i), "key is not one")
		}
		if n := b.issuer.fetched() - was; n != 1 {
			t.Errorf("1,000 made-up ids caused %d fetches in a cool-down", n)
		}
	}
	b.requireAccepted(t, fresh)

	b.issuer.publish(published(t, otherRSA(), "rsa-2", nil))
	b.clock.pass(authorizer.FreshFor)
	b.requireRefused(t, "the removed key", old, "key is not one")
	b.requireAccepted(t, fresh)
}

func TestKeyring_SeesARotationRightAfterTheFirstFetch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.requireAccepted(t, rs(t, good()))
	b.issuer.publish(published(t, otherRSA(), "rsa-2", nil))
	b.requireAccepted(t, seal(t, jwa.RS256(), otherRSA(), "rsa-2", good()))
}

//proof:of S37
func TestKeyring_FetchesOnceForAFloodBeforeAnyGoodToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 1000 {
		b.requireRefused(t, "a made-up key id", madeUp(i), "key is not one")
	}
	if n := b.issuer.fetched(); n != 1 {
		t.Errorf("1,000 made-up ids caused %d fetches", n)
	}
}

func TestKeyring_FetchesNothingForTokensRefusedWithoutAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.requireRefused(t, "garbage", "a.b.c", "")
	b.requireRefused(t, "none", forge(`{"alg":"none","kid":"x"}`, good(), func(string) string { return "AAAA" }), "")
	b.requireRefused(t, "HS256", forge(`{"alg":"HS256","kid":"x"}`, good(), hs256(nil)), "")
	b.requireRefused(t, "no key id", forge(`{"alg":"RS256"}`, good(), rs256(rsaKey())), "")
	if n := b.issuer.fetched(); n != 0 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

//proof:of S37
func TestKeyring_KeepsKnownKeysWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := rs(t, with("exp", noon.Add(72*time.Hour).Unix()))
	b.requireAccepted(t, long)
	b.issuer.setDown(true)
	was := b.issuer.fetched()
	hours := 0
	for b.clock.Now().Before(noon.Add(authorizer.MaxStale)) {
		b.requireAccepted(t, long)
		b.requireAccepted(t, long)
		b.clock.pass(time.Hour)
		hours++
	}
	if n := b.issuer.fetched() - was; n != hours-1 {
		t.Errorf("the issuer was asked %d times in %d hours", n, hours)
	}
	b.requireRefused(t, "after the longest time that keys are trusted", long, "could not be fetched")
	if !strings.Contains(b.log.String(), "level=ERROR") {
		t.Errorf("nobody is alarmed: %s", b.log)
	}
	b.issuer.setDown(false)
	b.clock.pass(time.Second)
	b.requireAccepted(t, long)
}

func TestKeyring_WaitsForTheCoolDownBeforeARefresh(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rs(t, good())
	b.requireAccepted(t, token)
	b.issuer.setDown(true)
	b.clock.pass(authorizer.FreshFor)
	for range 100 {
		b.requireAccepted(t, token)
	}
	if n := b.issuer.fetched(); n != 2 {
		t.Errorf("the issuer was asked %d times", n)
	}
	b.issuer.setDown(false)
	b.clock.pass(authorizer.CoolDown)
	b.requireAccepted(t, token)
	b.requireAccepted(t, token)
	if n := b.issuer.fetched(); n != 3 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

func TestKeyring_AsksOnceASecondWhileItHasNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.issuer.setDown(true)
	token := rs(t, good())
	for range 100 {
		b.requireRefused(t, "no keys", token, "could not be fetched")
	}
	if n := b.issuer.fetched(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
	b.issuer.setDown(false)
	b.clock.pass(time.Second)
	b.requireAccepted(t, token)
}

func TestKeyring_IgnoresABadAnswerOfTheIssuer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"an error":     {500, `{"keys":[]}`},
		"not there":    {404, `{"keys":[]}`},
		"no content":   {204, ``},
		"no JSON":      {200, `<html>sign in</html>`},
		"another JSON": {200, `{"error":"x"}`},
		"a list":       {200, `[]`},
		"cut off":      {200, `{"keys":[{"kty":"RSA"`},
		"too much":     {200, `{"keys":[],"x":"` + strings.Repeat("x", 256<<10) + `"}`},
		"nothing":      {200, ``},
		"too many keys": {200, `{"keys":[` + strings.Repeat(`{"kty":"oct","k":"AA"},`, 200) +
			`{"kty":"oct","k":"AA"}]}`},
		"keys as an object": {200, `{"keys":{}}`},
	} {
		b := setup(t)
		token := rs(t, good())
		b.requireAccepted(t, token)
		b.issuer.answer(answer.status, answer.body)
		b.clock.pass(authorizer.FreshFor)
		id, err := b.Verify(t.Context(), token)
		if err != nil || id.Tenant != "acme" {
			t.Errorf("%s: the good keys were lost", name)
		}
		if !strings.Contains(b.log.String(), "level=ERROR") {
			t.Errorf("%s: nobody is told: %s", name, b.log)
		}
	}
}

func TestKeyring_DropsAllKeysWhenTheIssuerHasNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rs(t, good())
	b.requireAccepted(t, token)
	b.issuer.publish()
	b.clock.pass(authorizer.FreshFor)
	b.requireRefused(t, "all keys were taken back", token, "key is not one")
}

func TestKeyring_VerifiesWithKeysMeantForItOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		key  map[string]any
		seal func() string
		ok   bool
	}{
		{"marked for signatures", published(t, rsaKey(), "k", map[string]any{"use": "sig"}),
			func() string { return seal(t, jwa.RS256(), rsaKey(), "k", good()) }, true},
		{"marked for encryption", published(t, rsaKey(), "k", map[string]any{"use": "enc"}),
			func() string { return seal(t, jwa.RS256(), rsaKey(), "k", good()) }, false},
		{"for verifying", published(t, rsaKey(), "k", map[string]any{"key_ops": []string{"verify"}}),
			func() string { return seal(t, jwa.RS256(), rsaKey(), "k", good()) }, true},
		{"for encrypting", published(t, rsaKey(), "k", map[string]any{"key_ops": []string{"encrypt"}}),
			func() string { return seal(t, jwa.RS256(), rsaKey(), "k", good()) }, false},
		{"for another algorithm", published(t, rsaKey(), "k", map[string]any{"alg": "PS256"}),
			func() string { return seal(t, jwa.RS256(), rsaKey(), "k", good()) }, false},
		{"for a longer hash", published(t, rsaKey(), "k", map[string]any{"alg": "RS512"}),
			func() string { return seal(t, jwa.RS256(), rsaKey(), "k", good()) }, false},
		{"too short", published(t, weakRSA(), "k", nil), func() string {
			return forge(`{"alg":"RS256","kid":"k"}`, good(), rs256(weakRSA()))
		}, false},
		{"on another curve", published(t, ec384(), "k", nil),
			func() string { return seal(t, jwa.ES384(), ec384(), "k", good()) }, false},
		{"Ed25519 by its new name", published(t, edKey(), "k", map[string]any{"alg": "Ed25519"}),
			func() string { return seal(t, jwa.EdDSA(), edKey(), "k", good()) }, true},
		{"a shared secret", map[string]any{"kty": "oct", "kid": "k", "k": "c2VjcmV0", "alg": "HS256"}, func() string {
			return forge(`{"alg":"HS256","kid":"k"}`, good(), hs256([]byte("secret")))
		}, false},
		{"a shared secret for RS256", map[string]any{"kty": "oct", "kid": "k", "k": "c2VjcmV0", "alg": "RS256"},
			func() string {
				return forge(`{"alg":"RS256","kid":"k"}`, good(), hs256([]byte("secret")))
			}, false},
	} {
		b := setup(t)
		// With a key of a kind that no version knows yet, which must not spoil the others.
		b.issuer.publish(map[string]any{"kty": "AKP", "kid": "pq", "alg": "ML-DSA-44", "pub": "AA"},
			map[string]any{"kty": "RSA", "kid": "broken"}, c.key)
		if c.ok {
			b.requireAccepted(t, c.seal())
			continue
		}
		b.requireRefused(t, c.name, c.seal(), "")
	}
}

func TestKeyring_TriesAllKeysThatShareAnID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.issuer.publish(published(t, otherRSA(), "k", nil), published(t, ecKey(), "k", nil),
		published(t, rsaKey(), "k", nil))
	b.requireAccepted(t, seal(t, jwa.RS256(), rsaKey(), "k", good()))
	b.requireAccepted(t, seal(t, jwa.RS256(), otherRSA(), "k", good()))
	b.requireAccepted(t, seal(t, jwa.ES256(), ecKey(), "k", good()))
}

func TestKeyring_FetchesOnceForManyAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tokens := []string{rs(t, good()), seal(t, jwa.ES256(), ecKey(), "ec", good()),
		seal(t, jwa.EdDSA(), edKey(), "ed", good())}
	synctest.Test(t, func(t *testing.T) {
		slow := &slowly{b.issuer}
		a := authorizer.New(authorizer.Deps{JWKSURL: jwksURL, Issuer: issuer, Audiences: []string{audience},
			Base: process.Base{Clock: b.clock}, HTTP: &http.Client{Transport: slow}})
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				if _, err := a.Verify(t.Context(), tokens[i%3]); err != nil {
					t.Errorf("token %d: %v", i, err)
				}
			})
		}
		all.Wait()
	})
	if n := b.issuer.fetched(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

func TestKeyring_FinishesAFetchWhoseCallerGaveUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rs(t, good())
	synctest.Test(t, func(t *testing.T) {
		a := authorizer.New(authorizer.Deps{JWKSURL: jwksURL, Issuer: issuer, Audiences: []string{audience},
			Base: process.Base{Clock: b.clock}, HTTP: &http.Client{Transport: &slowly{b.issuer}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = a.Verify(ctx, token)
		if _, err := a.Verify(t.Context(), token); err != nil {
			t.Error(err)
		}
	})
	if n := b.issuer.fetched(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

// slowly is an issuer that takes a second to answer.
type slowly struct{ *endpoint }

func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	select { // in a synctest bubble
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return s.endpoint.RoundTrip(r)
}

func TestKeyring_GivesUpAnIssuerThatNeverAnswers(t *testing.T) {
	t.Parallel()
	token := rs(t, good())
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := authorizer.New(authorizer.Deps{JWKSURL: jwksURL, Issuer: issuer, Audiences: []string{audience},
			HTTP: &http.Client{Transport: silent{}}})
		_, err := a.Verify(t.Context(), token)
		if err != authorizer.ErrUnauthorized { //nolint:errorlint // that very error
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestKeyring_FetchesKeysOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(b.issuer.body))
	}))
	t.Cleanup(server.Close)
	a := authorizer.New(authorizer.Deps{JWKSURL: server.URL, Issuer: issuer, Audiences: []string{audience},
		Base: process.Base{Clock: b.clock}})
	if _, err := a.Verify(t.Context(), rs(t, good())); err != nil {
		t.Error(err)
	}
}
