package account

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The issuer here refuses as Cognito does.
func TestPage_IsSentToAFormOrToldWhyNot(t *testing.T) {
	t.Parallel()
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, to := r.URL.Query(), ""
		switch {
		case r.URL.Path == "/.well-known/openid-configuration":
			_, _ = fmt.Fprintf(w, `{"authorization_endpoint":%q}`, issuer.URL+"/oauth2/authorize")
			return
		case q.Get("client_id") == "down":
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case q.Get("redirect_uri") != "https://api.example/v1/console/index.html":
			to = "/error?error=redirect_mismatch"
		case q.Get("scope") != "openid punctual/read":
			to = q.Get("redirect_uri") + "?error=invalid_scope"
		case q.Get("response_type") == "code" && q.Get("code_challenge_method") == "S256":
			to = "/login?client_id=" + q.Get("client_id")
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	t.Cleanup(issuer.Close)
	good := page{issuer: issuer.URL, client: "c", scope: "openid punctual/read",
		at: "https://api.example/v1/console/index.html"}
	if form, err := good.signIn(t.Context(), issuer.Client()); err != nil || form != issuer.URL+"/login?client_id=c" {
		t.Errorf("the page is sent to %q, %v", form, err)
	}
	for why, change := range map[string]func(*page){
		"redirect_mismatch": func(p *page) { p.at = "https://api.example/v1/console" },
		"invalid_scope":     func(p *page) { p.scope = "openid punctual/tenant.acme" },
		"answers 503":       func(p *page) { p.client = "down" },
	} {
		bad := good
		change(&bad)
		if form, err := bad.signIn(t.Context(), issuer.Client()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the page is sent to %q, %v; want %s", form, err, why)
		}
	}
}
