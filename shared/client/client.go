package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one API. It is safe for concurrent use.
type Client struct {
	base   string // without /v1, which is in the paths of the operations
	caller *caller
	wait   time.Duration
}

// Option changes how a [Client] calls.
type Option func(*caller)

// TokenSource returns the bearer token of one request; "" sends none. It is asked before every
// request and every repetition, so it keeps the token until shortly before it expires.
type TokenSource func(ctx context.Context) (string, error)

// WithToken sends the same bearer token with every request. Default: none. Over plain http a token goes to loopback
// addresses only; a call elsewhere fails and sends nothing.
func WithToken(token string) Option {
	return WithTokenSource(func(context.Context) (string, error) { return token, nil })
}

// WithTokenSource asks source for the bearer token of each request. Default: none is sent.
func WithTokenSource(source TokenSource) Option {
	return func(c *caller) { c.token = source }
}

// WithTimeout bounds each request, its answer included, but not its repetitions: the context does that.
// Default 30 s; 0 means no bound.
func WithTimeout(d time.Duration) Option { return func(c *caller) { c.timeout = d } }

// WithRetries sets how often a call is repeated at most. Default 4; 0 repeats none.
func WithRetries(n int) Option { return func(c *caller) { c.retries = n } }

// WithBackoff sets the first and the longest wait before a repetition; waits double in between.
// Default 500 ms and 20 s.
func WithBackoff(first, longest time.Duration) Option {
	return func(c *caller) { c.first, c.longest = first, longest }
}

// WithHTTPClient sends by h, whose transport may sign requests or go through a proxy. Redirects are never followed,
// whatever its CheckRedirect.
// Default: an http.Client of its own.
func WithHTTPClient(h *http.Client) Option { return func(c *caller) { c.http = h } }

// maxWait is the longest that one request waits for an end; the API takes up to 25 s.
const maxWait = 20 * time.Second

// New returns a client of the API at baseURL, such as https://punctual.example.com; a path before /v1
// is kept, and /v1 itself may be there or not. It sends nothing.
// It returns an error when baseURL is not an absolute http or https URL.
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of an API: want a URL such as https://punctual.example.com", baseURL)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("the address of an API has neither user nor query: %q", u.Redacted())
	}
	c := &caller{http: new(http.Client), timeout: 30 * time.Second, retries: 4,
		first: 500 * time.Millisecond, longest: 20 * time.Second}
	for _, o := range options {
		o(c)
	}
	c.http = withoutRedirects(c.http)
	u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), "/")
	wait := maxWait
	if c.timeout > 0 {
		wait = max(min(wait, c.timeout/2).Truncate(time.Second), time.Second)
	}
	return &Client{base: u.String(), caller: c, wait: wait}, nil
}

// withoutRedirects returns h without redirects. The API has none: one that is followed would take the token or the
// payload to another host.
func withoutRedirects(h *http.Client) *http.Client {
	own := *h
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
