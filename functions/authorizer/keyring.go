package authorizer

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"punctual/shared/clock"
	"punctual/shared/telemetry"
)

// How long keys are trusted, and how often they are asked for.
const (
	// FreshFor is how long fetched keys are used without asking again.
	FreshFor = 10 * time.Minute
	// MaxStale is how long they are used while the issuer cannot be asked.
	MaxStale = 24 * time.Hour
	// CoolDown is the least time between two fetches for key ids that are not known, and
	// between two tries to refresh old keys.
	CoolDown = 30 * time.Second

	emptyCoolDown = time.Second // without any key nothing works, so it is tried sooner
	fetchWithin   = 3 * time.Second
	maxJWKS       = 256 << 10 // bytes
	maxKeys       = 100
)

// key is a public key with the one algorithm that it verifies.
type key struct {
	alg    string
	public any
}

// known is what is known of the issuer's keys at some instant.
type known struct {
	keys      map[string][]key // by id; ids need not be unique
	loadedAt  time.Time        // when the issuer last answered; zero for never
	triedAt   time.Time        // when it was last asked
	unknownAt time.Time        // when it was last asked for the sake of an id that was not known
}

// usable says whether the keys may still be trusted.
func (k known) usable(now time.Time) bool {
	return !k.loadedAt.IsZero() && now.Sub(k.loadedAt) < MaxStale
}

func (k known) has(kid string) bool { return len(k.keys[kid]) > 0 }

// worthAsking says whether the issuer should be asked now, by a caller who wants that key.
// Fetches for unknown ids have a cool-down of their own: a rotation right after a regular
// fetch is seen at its first token, and still a flood of made-up ids causes one fetch only.
func (k known) worthAsking(kid string, now time.Time) bool {
	switch {
	case !k.usable(now):
		return now.Sub(k.triedAt) >= emptyCoolDown
	case now.Sub(k.loadedAt) >= FreshFor && now.Sub(k.triedAt) >= CoolDown:
		return true
	}
	return !k.has(kid) && now.Sub(k.unknownAt) >= CoolDown
}

// keyring holds the issuer's keys and asks for them when that helps.
type keyring struct {
	url   string
	http  *http.Client
	clock clock.Clock
	log   *slog.Logger
	meter *telemetry.Meter

	asking chan struct{} // holds one while another call asks the issuer
	mu     sync.Mutex
	known  known
}

func newKeyring(d Deps) *keyring {
	return &keyring{url: d.JWKSURL, http: d.HTTP, clock: d.Clock, log: d.Log, meter: d.Meter,
		asking: make(chan struct{}, 1)}
}

func (r *keyring) current() known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

// find returns the keys of that id for that algorithm; none is possible. loaded is false when
// there are no keys to look at.
func (r *keyring) find(ctx context.Context, kid string, alg jwa.SignatureAlgorithm) (found []any, loaded bool) {
	if now := r.clock.Now(); r.current().worthAsking(kid, now) {
		r.refresh(ctx, kid)
	}
	k := r.current()
	if !k.usable(r.clock.Now()) {
		return nil, false
	}
	for _, key := range k.keys[kid] {
		if key.alg == alg.String() {
			found = append(found, key.public)
		}
	}
	return found, true
}

// refresh asks the issuer, unless another call has just done so.
func (r *keyring) refresh(ctx context.Context, kid string) {
	if k := r.current(); k.usable(r.clock.Now()) && k.has(kid) {
		// The keys are only old: who finds another asking goes on with them.
		select {
		case r.asking <- struct{}{}:
		default:
			return
		}
	} else {
		select {
		case r.asking <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	defer func() { <-r.asking }()

	before, now := r.current(), r.clock.Now()
	if !before.worthAsking(kid, now) {
		return
	}
	after := before
	after.triedAt = now
	keys, err := r.fetch(ctx)
	if err == nil {
		after.keys, after.loadedAt = keys, now
	} else {
		r.meter.Count(telemetry.KeysUnfetched, 1)
		r.log.ErrorContext(ctx, "could not fetch the issuer's keys", telemetry.Err, err.Error(), "usable",
			before.usable(now))
	}
	if before.usable(now) && !before.has(kid) || !after.has(kid) {
		after.unknownAt = now
	}
	r.mu.Lock()
	r.known = after
	r.mu.Unlock()
}

// fetch asks the issuer for its keys. An empty set is an answer: it takes all keys away.
func (r *keyring) fetch(ctx context.Context) (map[string][]key, error) {
	// The caller may give up; the next one needs the keys all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for keys: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	answer, err := r.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking for keys: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking for keys: the issuer answered %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxJWKS+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading keys: %w", err)
	case len(body) > maxJWKS:
		return nil, fmt.Errorf("reading keys: more than %d bytes", maxJWKS)
	}
	// A key that we cannot read is not ours to complain about: it leaves the others good.
	set, err := jwk.Parse(body, jwk.WithIgnoreParseError(true), jwk.WithMaxKeys(maxKeys))
	if err != nil {
		return nil, fmt.Errorf("reading keys: %w", err)
	}
	keys := map[string][]key{}
	for i := range set.Len() {
		each, _ := set.Key(i)
		if kid, k, ok := usable(each); ok {
			keys[kid] = append(keys[kid], k)
		}
	}
	if len(keys) == 0 {
		r.log.WarnContext(ctx, "the issuer has no usable key", "keys", set.Len())
	}
	return keys, nil
}

// usable turns a published key into one that verifies exactly one algorithm; false for keys
// that are for something else, unnamed, weak, or of another kind.
func usable(published jwk.Key) (kid string, k key, ok bool) {
	kid, _ = published.KeyID()
	if kid == "" {
		return "", key{}, false
	}
	if use, ok := published.KeyUsage(); ok && use != "" && use != string(jwk.ForSignature) {
		return "", key{}, false
	}
	if ops, ok := published.KeyOps(); ok && !slices.Contains(ops, jwk.KeyOpVerify) {
		return "", key{}, false
	}
	public, err := jwk.PublicRawKeyOf(published)
	if err != nil {
		return "", key{}, false
	}
	k.public = public
	switch public := public.(type) {
	case *rsa.PublicKey:
		k.alg, ok = "RS256", true // jwk has left out those under 2048 bits
	case *ecdsa.PublicKey:
		k.alg, ok = "ES256", public.Curve == elliptic.P256()
	case ed25519.PublicKey:
		k.alg, ok = "EdDSA", true
	}
	if stated, is := published.Algorithm(); is && stated.String() != "" {
		// Ed25519 is what RFC 9864 calls EdDSA with this kind of key.
		ok = ok && (stated.String() == k.alg || k.alg == "EdDSA" && stated.String() == "Ed25519")
	}
	return kid, k, ok
}
