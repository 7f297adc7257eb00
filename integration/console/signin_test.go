package console_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"punctual/functions/console"
)

// issuer is an OpenID provider whose user agrees to everything at once. It gives out short tokens and, for
// a refresh token, longer ones.
type issuer struct {
	*httptest.Server

	mu         sync.Mutex
	challenges map[string]string // by code
	redirect   string
	scope      string
	refreshed  int
	revoked    []string   // refresh tokens
	ended      url.Values // what the end of the session was asked with; nil before
	silent     bool       // knows no way to end a session, nor to take a token back
	first      string     // token; it lives for 31 s, and the next ones for an hour
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{challenges: map[string]string{}, first: "first"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		said := map[string]string{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token"}
		if !i.silent {
			said["revocation_endpoint"], said["end_session_endpoint"] = i.URL+"/revoke", i.URL+"/logout?of=pool"
		}
		_ = json.NewEncoder(w).Encode(said)
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		i.mu.Lock()
		defer i.mu.Unlock()
		i.revoked = append(i.revoked, r.FormValue("token")+" of "+r.FormValue("client_id"))
	})
	mux.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.ended = r.URL.Query()
		http.Redirect(w, r, i.ended.Get("post_logout_redirect_uri"), http.StatusFound)
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(http.StatusNotFound)
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.mu.Lock()
	defer i.mu.Unlock()
	if q.Get("response_type") != "code" || q.Get("client_id") != "page" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "this is no code flow with PKCE", http.StatusBadRequest)
		return
	}
	code := fmt.Sprint("code-", len(i.challenges))
	i.challenges[code], i.redirect, i.scope = q.Get("code_challenge"), q.Get("redirect_uri"), q.Get("scope")
	http.Redirect(w, r, i.redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	i.mu.Lock()
	defer i.mu.Unlock()
	said := map[string]any{"access_token": i.first, "refresh_token": "again", "id_token": "who", "expires_in": 31}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		want := i.challenges[r.FormValue("code")]
		delete(i.challenges, r.FormValue("code")) // it works once
		proved := want != "" && base64.RawURLEncoding.EncodeToString(sum[:]) == want
		if !proved || r.FormValue("redirect_uri") != i.redirect {
			w.WriteHeader(http.StatusBadRequest)
			said = map[string]any{"error": "invalid_grant"}
		}
	case "refresh_token":
		i.refreshed++
		said = map[string]any{"access_token": "second", "expires_in": 3600}
	}
	_ = json.NewEncoder(w).Encode(said)
}

// proxyOf leads to the laptop's API.
func proxyOf(t *testing.T, r rest) http.Handler {
	t.Helper()
	to, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(q *httputil.ProxyRequest) {
		q.SetURL(to)
		q.Out.Header.Del("Sec-Fetch-Site") // the laptop answers its own pages alone
		q.Out.Header.Del("Origin")
		q.Out.Header.Del("Authorization")
	}}
}

// ofIssuer says whether the token is one that an issuer gives out.
func ofIssuer(token string) bool { return token == "first" || token == "second" }

// guarded serves the page under /console and, to who has one of the tokens, the laptop's API.
func guarded(t *testing.T, r rest, s console.Settings, believed func(token string) bool) string {
	t.Helper()
	proxy := proxyOf(t, r)
	server := httptest.NewServer(console.Mount(s, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		if !ok || !believed(token) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"title":"Authentication required","status":401,"code":"unauthenticated",` +
				`"detail":"Send a valid bearer token."}`))
			return
		}
		if token == "reader" && q.URL.Path == "/v1/whoami" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"tenant":"acme","subject":"ada","scopes":["punctual:read"]}`))
			return
		}
		proxy.ServeHTTP(w, q)
	})))
	t.Cleanup(server.Close)
	return server.URL
}

//proof:of 195
func TestSignIn_GoesByTheIssuerWithPKCEAndKeepsTokensInMemory(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	i := newIssuer(t)
	ctx, cancel := context.WithCancel(t.Context()) // until the session is ended
	defer cancel()
	address := guarded(t, r, console.Settings{Issuer: i.URL, Client: "page", Scope: "openid punctual:read"},
		func(token string) bool { return ctx.Err() == nil && ofIssuer(token) })
	id := r.post(`{"task":"echo","delay":"1h"}`)
	p := b.open(t, address+"/v1/console/#/jobs/"+id)
	p.shows("Job "+id, "Waits for its due time")
	if at := p.eval("location.href"); at != address+"/v1/console/#/jobs/"+id {
		t.Errorf("after signing in it is at %v, want where it was", at)
	}
	if kept := p.eval("JSON.stringify([localStorage, sessionStorage, document.cookie])"); kept != `[{},{},""]` {
		t.Errorf("the browser keeps %v", kept)
	}
	i.mu.Lock()
	if i.scope != "openid punctual:read" {
		t.Errorf("it asked for the scope %q", i.scope)
	}
	i.mu.Unlock()
	p.await(`performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/token')).length >= 2`)
	i.mu.Lock()
	if i.refreshed != 1 {
		t.Errorf("a token that was about to end was renewed %d times, want once for all who asked", i.refreshed)
	}
	i.mu.Unlock()
	cancel()
	p.shows("Your session has ended.", "Session ended", "Job "+id)
	if n := p.eval("document.querySelectorAll('[role=alert]').length"); n != 1.0 {
		t.Errorf("that the session has ended is told in %v places, want in one", n)
	}
	p.click("Cancel")
	p.shows("This touches 1 job.")
	p.click("Cancel the job")
	p.await("!document.querySelector('dialog')")
	if n := p.eval("document.querySelectorAll('[role=alert]').length"); n != 1.0 {
		t.Errorf("after a verb, that the session has ended is told in %v places, want in one", n)
	}
	p.shoot("session-ended")
}

func TestSignOut_EndsTheSessionHereAndAtTheIssuer(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	i := newIssuer(t)
	address := guarded(t, r, console.Settings{Issuer: i.URL, Client: "page"}, ofIssuer)
	p := b.open(t, address+"/v1/console/#/pauses")
	p.shows("Nothing is paused.")
	p.resize(360, false)
	p.shoot("signed-in-360")
	p.resize(1600, false)
	p.shoot("signed-in")
	other := p.secondTab(address + "/v1/console/#/jobs")
	other.shows("Tenant local")
	p.click("Sign out")
	p.shows("You are signed out.")
	other.shows("You are signed out.")
	i.mu.Lock()
	page := address + "/v1/console/"
	for name, want := range map[string]string{"of": "pool", "client_id": "page", "id_token_hint": "who",
		"post_logout_redirect_uri": page, "logout_uri": page} {
		if got := i.ended.Get(name); got != want {
			t.Errorf("the issuer is told the %s %q, want %q", name, got, want)
		}
	}
	if len(i.revoked) != 1 || i.revoked[0] != "again of page" {
		t.Errorf("taken back: %q", i.revoked)
	}
	i.mu.Unlock()
	if kept := p.eval("JSON.stringify([localStorage, sessionStorage, document.cookie])"); kept != `[{},{},""]` {
		t.Errorf("the browser keeps %v", kept)
	}
	p.click("Sign in")
	p.shows("Tenant local")
}

func TestSignOut_SaysThatTheIssuerStillKnowsTheUser(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	i := newIssuer(t)
	i.silent = true
	p := b.open(t, guarded(t, r, console.Settings{Issuer: i.URL, Client: "page"}, ofIssuer)+"/console/")
	p.shows("Tenant local")
	p.click("Sign out")
	p.shows("You are signed out.", "Sign out there as well.")
	p.shoot("signed-out")
}

func TestPage_OffersOnlyWhatTheTokenAllows(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	i := newIssuer(t)
	i.first = "reader"
	address := guarded(t, r, console.Settings{Issuer: i.URL, Client: "page"}, func(string) bool { return true })
	id := r.post(`{"task":"echo","delay":"1h"}`)
	run := r.startETL()
	p := b.open(t, address+"/console/#/jobs/"+id)
	p.shows("Job "+id, "Tenant acme")
	for hash, text := range map[string]string{
		"#/jobs/" + id: "Waits for its due time", "#/pauses": "Nothing is paused.",
		"#/runs/" + run + "/refunds": "attempt 1 was asked to fail", "#/dead-letters": "2 letters",
		"#/schedules": "No schedules yet.", "#/dags/etl": "Version 1",
	} {
		p.visit(hash)
		p.shows(text)
		verbs := p.eval(`[...document.querySelectorAll('main button, main a.button')].map((e) => e.textContent)
			.filter((s) => !['Close', 'Its job', 'Show the jobs'].includes(s)).join(', ')`)
		if verbs != "" {
			t.Errorf("%s offers %v to a token that may only read", hash, verbs)
		}
	}
}

func TestSignIn_RefusesAnAnswerThatItDidNotAskFor(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	i := newIssuer(t)
	address := guarded(t, r, console.Settings{Issuer: i.URL, Client: "page"}, ofIssuer)
	i.mu.Lock()
	i.challenges["forged"] = "of another's verifier"
	i.mu.Unlock()
	p := b.open(t, address+"/console/?code=forged&state=forged")
	p.shows("Overview", "running")
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.challenges["forged"] == "" {
		t.Error("the forged code was redeemed")
	}
}

func TestSignIn_SaysWhyNobodyCan(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	r := serve(t)
	refused := func(string) bool { return false }
	for want, s := range map[string]console.Settings{
		"which a page cannot make":                   {Signed: true},
		"has no client for the console":              {Issuer: newIssuer(t).URL},
		"does not describe itself: 404":              {Issuer: newIssuer(t).URL + "/elsewhere", Client: "page"},
		"Send a valid bearer token. unauthenticated": {},
	} {
		b.open(t, guarded(t, r, s, refused)+"/console/index.html").shows(want)
	}
}
