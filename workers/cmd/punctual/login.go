package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"punctual/shared/client"
)

// oidc is an issuer of tokens that knows the device flow (RFC 8628): a person signs in by a browser anywhere.
type oidc struct {
	Issuer   string   `yaml:"issuer"`
	ClientID string   `yaml:"client_id"`
	Scopes   []string `yaml:"scopes"`   // default: openid offline_access
	Audience string   `yaml:"audience"` // where the issuer asks for one, such as Auth0
}

// notSignedIn is that there is no token or signature, and why.
type notSignedIn struct{ error }

func (e *notSignedIn) Unwrap() error { return e.error }

// session is what a context has signed in with. It is kept in a file of the user's alone.
type session struct {
	URL      string        `json:"url"` // where the token may go
	Issuer   string        `json:"issuer"`
	ClientID string        `json:"client_id"`
	Token    *oauth2.Token `json:"token"`
}

// sessionPath is the file of a context's session, next to the config file.
func (c commands) sessionPath() (string, error) {
	dir := filepath.Dir(c.Config)
	if c.Config == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(base, "punctual")
	}
	return filepath.Join(dir, "sessions", url.PathEscape(c.Context)+".json"), nil
}

func (n session) write(path string) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + ".new" // so that no reader sees half of it
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// issuerClient follows no redirect: it would take the refresh token elsewhere.
var issuerClient = &http.Client{Timeout: askIssuer,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// askIssuer bounds each request to an issuer.
const askIssuer = 20 * time.Second

func withIssuer(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, issuerClient)
}

// discover asks the issuer where it gives tokens.
func (o oidc) discover(ctx context.Context) (*oauth2.Config, error) {
	if u, err := url.Parse(o.Issuer); err != nil || u.Scheme != "https" && !loopback(o.Issuer) || u.Host == "" {
		return nil, usage{fmt.Errorf("oidc.issuer %q: want an https URL", o.Issuer)}
	}
	if o.ClientID == "" {
		return nil, usage{errors.New("oidc.client_id of the context is empty")}
	}
	at := strings.TrimSuffix(o.Issuer, "/") + "/.well-known/openid-configuration"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := issuerClient.Do(req)
	if err != nil {
		return nil, &notSignedIn{fmt.Errorf("asking the issuer: %w", err)}
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	var says struct {
		Issuer string `json:"issuer"`
		Token  string `json:"token_endpoint"`
		Device string `json:"device_authorization_endpoint"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&says)
	switch {
	case answer.StatusCode != http.StatusOK || err != nil:
		return nil, &notSignedIn{fmt.Errorf("%s is no document of an issuer (%s)", at, answer.Status)}
	case strings.TrimSuffix(says.Issuer, "/") != strings.TrimSuffix(o.Issuer, "/"):
		return nil, &notSignedIn{fmt.Errorf("%s speaks for another issuer, %q", at, says.Issuer)}
	case says.Device == "" || says.Token == "":
		return nil, &notSignedIn{fmt.Errorf("%s has no device flow: use token_command", o.Issuer)}
	}
	scopes := o.Scopes
	if len(scopes) == 0 {
		scopes = []string{"openid", "offline_access"}
	}
	return &oauth2.Config{ClientID: o.ClientID, Scopes: scopes,
		Endpoint: oauth2.Endpoint{TokenURL: says.Token, DeviceAuthURL: says.Device,
			AuthStyle: oauth2.AuthStyleInParams}}, nil
}

type login struct{}

// Run signs in, and keeps what the next commands need.
func (c login) Run(s *shell) error {
	if s.at.OIDC == nil {
		return usage{errors.New("login is for a context with oidc in the config file; --context chooses one")}
	}
	path, err := s.chosen.sessionPath()
	if err != nil {
		return err
	}
	config, err := s.at.OIDC.discover(s.ctx)
	if err != nil {
		return err
	}
	var more []oauth2.AuthCodeOption
	if s.at.OIDC.Audience != "" {
		more = append(more, oauth2.SetAuthURLParam("audience", s.at.OIDC.Audience))
	}
	ctx := withIssuer(s.ctx)
	device, err := config.DeviceAuth(ctx, more...)
	if err != nil {
		return &notSignedIn{fmt.Errorf("beginning to sign in: %w", err)}
	}
	if device.VerificationURIComplete != "" {
		_, _ = fmt.Fprintf(s.err, "Open %s\nand check that it shows %s\n", plain(device.VerificationURIComplete),
			plain(device.UserCode))
	} else {
		_, _ = fmt.Fprintf(s.err, "Open %s\nand type %s\n", plain(device.VerificationURI), plain(device.UserCode))
	}
	token, err := config.DeviceAccessToken(ctx, device)
	if s.ctx.Err() != nil {
		return interrupted("nobody has signed in")
	}
	if err != nil {
		return &notSignedIn{fmt.Errorf("signing in: %w", err)}
	}
	kept := session{URL: s.at.URL, Issuer: s.at.OIDC.Issuer, ClientID: s.at.OIDC.ClientID, Token: token}
	if err := kept.write(path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "signed in to %s until %s\n", s.chosen.Context, until(token))
	return err
}

func until(t *oauth2.Token) string {
	if t.RefreshToken != "" {
		return "the issuer forgets it"
	}
	return instant(&t.Expiry)
}

type logout struct{}

// Run deletes the token. The issuer may accept it until it expires.
func (c logout) Run(s *shell) error {
	if s.chosen.Context == "" {
		return usage{errors.New("no context is chosen to sign out of; --context names one of the config file")}
	}
	path, err := s.chosen.sessionPath()
	if err != nil {
		return err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(s.out, "nobody was signed in to %s\n", s.chosen.Context)
		return err
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "signed out of %s\n", s.chosen.Context)
	return err
}

// tokenOf gives the token that login has kept, and a new one for it when it has expired.
func (o oidc) tokenOf(address, path string) client.TokenSource {
	busy := make(chan struct{}, 1) // full while a request reads the file or asks the issuer
	var kept *session
	return func(ctx context.Context) (string, error) {
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if kept == nil {
			var n session
			text, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(text, &n)
			}
			if err != nil || n.Token == nil || n.URL != address || n.Issuer != o.Issuer || n.ClientID != o.ClientID {
				return "", &notSignedIn{errors.New("nobody is signed in here: punctual login")}
			}
			kept = &n
		}
		if kept.Token.Valid() {
			return kept.Token.AccessToken, nil
		}
		if kept.Token.RefreshToken == "" {
			return "", &notSignedIn{errors.New("the token has expired: punctual login")}
		}
		config, err := o.discover(ctx)
		if err != nil {
			return "", err
		}
		token, err := config.TokenSource(withIssuer(ctx), kept.Token).Token()
		if err != nil {
			return "", &notSignedIn{fmt.Errorf("the token has expired: punctual login (%w)", err)}
		}
		kept.Token = token
		return token.AccessToken, kept.write(path)
	}
}
