package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// caller sends the requests of all calls.
type caller struct {
	http           *http.Client
	token          TokenSource
	timeout        time.Duration
	retries        int
	first, longest time.Duration
}

// repeatable marks a context whose call changes nothing when it is made twice.
type repeatable struct{}

func mayRepeat(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatable{}, true)
}

// Do sends a request, again where that is safe and may help, and makes errors of refusals.
func (c *caller) Do(req *http.Request) (*http.Response, error) {
	safe := isSafe(req)
	for repeated := 0; ; repeated++ {
		answer, err := c.once(req)
		if err == nil || repeated >= c.retries {
			return answer, err
		}
		after, ok := retry(req.Context(), err, safe)
		if !ok {
			return nil, err
		}
		if !pause(req.Context(), max(after, c.backoff(repeated))) {
			return nil, err // which says more than that time is up
		}
	}
}

func (c *caller) once(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if c.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
	}
	sent := req.Clone(ctx)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			cancel()
			return nil, err
		}
		sent.Body = body
	}
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("getting a token: %w", err)
		}
		if token != "" && !mayCarryToken(sent.URL) {
			cancel()
			return nil, fmt.Errorf("a token is not sent over plain http to %s: use https", sent.URL.Host)
		}
		if token != "" {
			sent.Header.Set("Authorization", "Bearer "+token)
		}
	}
	answer, err := c.http.Do(sent)
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = &bounded{answer.Body, cancel}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // only the problem counts
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", req.URL.Path, err)
	}
	return nil, problem(answer, text)
}

// mayCarryToken reports whether a token may be sent to an address: no one can read it on the way.
func mayCarryToken(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// bounded is a body that ends its request's time limit when it is closed.
type bounded struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *bounded) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// isSafe reports whether a request may be sent twice. One with If-Match may not: the second would be
// refused for what the first has done.
func isSafe(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false // the body is gone
	}
	if req.Header.Get("Idempotency-Key") != "" || req.Context().Value(repeatable{}) != nil {
		return true
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return req.Header.Get("If-Match") == ""
	}
	for _, verb := range []string{"/cancel", "/preview", "/validate", "/dry-run"} {
		if strings.HasSuffix(req.URL.Path, verb) {
			return true
		}
	}
	return false
}

// retry reports whether to repeat a call that failed with err, and how long to wait at least.
func retry(ctx context.Context, err error, safe bool) (after time.Duration, ok bool) {
	if ctx.Err() != nil {
		return 0, false
	}
	e, answered := errors.AsType[*Error](err)
	if !answered {
		return 0, safe && isNetwork(err)
	}
	switch e.Status {
	case http.StatusTooManyRequests:
		return e.RetryAfter, e.RetryAfter > 0 // without Retry-After it is a quota, which waiting does not free
	case http.StatusConflict:
		return e.RetryAfter, safe && e.RetryAfter > 0 // the same request is still being answered
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e.RetryAfter, safe
	}
	return 0, false
}

// backoff is the wait before repetition n, from 0.
func (c *caller) backoff(n int) time.Duration {
	d := c.longest
	if n < 16 {
		d = min(c.first<<n, c.longest)
	}
	return d - time.Duration(rand.Float64()*float64(d)/2) // half of it at least
}

// pause waits for d; it does not begin a wait that ctx would cut off.
func pause(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryAfter reads Retry-After, in seconds or as a date; 0 if there is none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
