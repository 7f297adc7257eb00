package account

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// page is how the console page signs people in, as its config.json says.
type page struct{ issuer, client, scope, at string }

// signIn asks the issuer as the page does, and returns where it sends the browser. It is an error unless that is a
// form on the issuer's side: Cognito sends who has a wrong client or address to a page of its own, and who asks for a
// wrong scope back to the page, both with an error in the query.
func (p page) signIn(ctx context.Context, c *http.Client) (form string, err error) {
	var issuer struct {
		At string `json:"authorization_endpoint"`
	}
	configuration, err := get(ctx, c, p.issuer+"/.well-known/openid-configuration")
	if err != nil {
		return "", err
	}
	defer configuration.Body.Close()
	if err := json.NewDecoder(configuration.Body).Decode(&issuer); err != nil {
		return "", fmt.Errorf("reading what the issuer says of itself: %w", err)
	}
	stays := *c
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := get(ctx, &stays, issuer.At+"?"+url.Values{
		"response_type": {"code"}, "client_id": {p.client}, "redirect_uri": {p.at}, "scope": {p.scope},
		"state": {"s"}, "code_challenge_method": {"S256"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, // of RFC 7636
	}.Encode())
	if err != nil {
		return "", err
	}
	_ = answer.Body.Close()
	to, err := answer.Location()
	if err != nil {
		return "", fmt.Errorf("the issuer answers %d and sends nobody to a form: %w", answer.StatusCode, err)
	}
	if why := to.Query().Get("error"); why != "" {
		return "", fmt.Errorf("the issuer refuses the page: %s", why)
	}
	return to.Redacted(), nil
}

func get(ctx context.Context, c *http.Client, at string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	return c.Do(r)
}
