package executor_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"punctual/shared/job"
	"punctual/workers/executor"
)

// redirecting answers /302/x with a redirect to the n-th of to, by the path's first element.
func redirecting(status int, to func(path string) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if next := to(r.URL.Path); next != "" {
			w.Header().Set("Location", next)
			w.Header().Set("Set-Cookie", "session=1")
			w.WriteHeader(status)
			return
		}
		ok(w, r)
	}
}

var hosts = resolver{"a.localhost": {{"127.0.0.1"}}, "b.localhost": {{"127.0.0.1"}}, "sub.a.localhost": {{"127.0.0.1"}}}

const signingKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var hostSecrets = vault{arnOf("acme", "token"): "t0p-secret", arnOf("acme", "hook"): signingKey}

func full(url string) executor.Work {
	return work(fmt.Sprintf(`{"url":%q,"body":{"a":1},"headers":{"X-Api-Key":"mine","Cookie":"c=1",`+
		`"Accept":"text/html"},"auth":{"bearer":%q},"sign_with":%q}`,
		url, arnOf("acme", "token"), arnOf("acme", "hook")))
}

// asking is a signed request with credentials; body is JSON, or "" for none.
func asking(method, url, body string) executor.Work {
	if body == "" {
		body = "null"
	}
	return work(fmt.Sprintf(`{"method":%q,"url":%q,"body":%s,"headers":{"X-Api-Key":"mine","Cookie":"c=1"},`+
		`"auth":{"bearer":%q},"sign_with":%q}`, method, url, body, arnOf("acme", "token"), arnOf("acme", "hook")))
}

//proof:of F17
func TestHTTP_SaysWhereARefusedAddressCameFrom(t *testing.T) {
	t.Parallel()
	hosts := resolver{"a.test": {{"127.0.0.1"}}, "inside.test": {{"10.0.0.1"}}}
	for name, c := range map[string]struct {
		next     string
		redirect bool
	}{
		"the payload's URL":            {"", false},
		"a redirect to an address":     {"http://10.0.0.1/", true},
		"a redirect to a name":         {"http://inside.test/", true},
		"a redirect to another scheme": {"ftp://a.test/", true},
	} {
		t.Run("says that a refused address came from "+name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, redirecting(307, func(string) string { return c.next }))
			url := "http://a.test:" + tg.port() + "/"
			if !c.redirect {
				url = "http://inside.test/"
			}
			_, err := httpOf(executor.Options{Resolver: hosts, HTTPAllow: loopback}).Run(t.Context(),
				work(fmt.Sprintf(`{"url":%q}`, url)))
			var f *executor.Failure
			if !errors.As(err, &f) || f.Code != job.CodeTargetRefused || !f.Permanent {
				t.Fatalf("it failed with %v", err)
			}
			if strings.Contains(f.Message, "redirect") != c.redirect {
				t.Errorf("it says %q", f.Message)
			}
		})
	}
}

func TestHTTP_FollowsRedirectsThatKeepTheRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status       int
		method, body string
	}{
		{301, "GET", ""}, {302, "GET", ""}, {303, "GET", ""}, {307, "GET", ""}, {308, "GET", ""},
		{301, "HEAD", ""}, {302, "HEAD", ""}, {303, "HEAD", ""},
		{307, "POST", `{"a":1}`}, {308, "POST", `{"a":1}`}, {307, "PUT", `{"a":1}`}, {308, "PATCH", `{"a":1}`},
		{308, "DELETE", ""}, {307, "GET", `{"a":1}`},
	} {
		t.Run(fmt.Sprintf("follows %d of %s %s", c.status, c.method, c.body), func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, redirecting(c.status, func(path string) string {
				return map[string]string{"/": "/next"}[path]
			}))
			raw, err := httpOf(executor.Options{
				Resolver: hosts, HTTPAllow: loopback, Secrets: hostSecrets,
			}).Run(t.Context(), asking(c.method, "http://a.localhost:"+tg.port()+"/", c.body))
			requireResult(t, raw, err)
			got := tg.last(t)
			if got.Method != c.method || got.Body != c.body || got.Path != "/next" {
				t.Errorf("the target saw %s %s %q", got.Method, got.Path, got.Body)
			}
			h := got.Header
			if h.Get("Authorization") != "Bearer t0p-secret" || h.Get("X-Api-Key") != "mine" ||
				h.Get("Cookie") != "c=1" || h.Get("Webhook-Signature") == "" {
				t.Errorf("the same host did not get its credentials and signature: %v", h)
			}
			if typed := h.Get("Content-Type") != ""; typed != (c.body != "") {
				t.Errorf("Content-Type %q with body %q", h.Get("Content-Type"), got.Body)
			}
			if h.Get("Referer") != "" {
				t.Errorf("the URL before was told: %q", h.Get("Referer"))
			}
		})
	}
}

//proof:of F70
func TestHTTP_FailsOnARedirectThatChangesTheRequest(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303} {
		for _, c := range []struct{ method, body string }{
			{"POST", `{"a":1}`}, {"POST", ""}, {"PUT", `{"a":1}`}, {"PATCH", `{"a":1}`}, {"DELETE", ""},
			{"GET", `{"a":1}`},
		} {
			t.Run(fmt.Sprintf("fails on %d of %s %s", status, c.method, c.body), func(t *testing.T) {
				t.Parallel()
				tg := newTarget(t, redirecting(status, func(path string) string {
					return map[string]string{"/": "/next/t0p-secret?key=hidden"}[path]
				}))
				_, err := httpOf(executor.Options{
					Resolver: hosts, HTTPAllow: loopback, Secrets: hostSecrets,
				}).Run(t.Context(), asking(c.method, "http://a.localhost:"+tg.port()+"/", c.body))
				requireFailure(t, err, executor.CodeRedirectChanges, true)
				to := "http://a.localhost:" + tg.port() + "/next/[secret],"
				if said := err.Error(); !strings.Contains(said, to) || strings.Contains(said, "hidden") {
					t.Errorf("it says %q", said)
				}
				if n := len(tg.requests()); n != 1 {
					t.Errorf("%d requests went out", n)
				}
			})
		}
	}
}

func TestHTTP_FailsOnALaterRedirectThatChangesTheRequest(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"/": 308, "/moved": 303}[r.URL.Path]
		w.Header().Set("Location", map[string]string{"/": "/moved", "/moved": "/end"}[r.URL.Path])
		w.WriteHeader(max(status, 200))
	})
	_, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
		work(fmt.Sprintf(`{"url":%q,"body":{"a":1}}`, tg.URL)))
	requireFailure(t, err, executor.CodeRedirectChanges, true)
	if n := len(tg.requests()); n != 2 {
		t.Errorf("%d requests went out", n)
	}
}

func TestHTTP_LeavesCredentialsBehindWhenARedirectChangesTheHost(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{
		"another host": "http://b.localhost:%s/end", "a host below": "http://sub.a.localhost:%s/end",
		"the address itself": "http://127.0.0.1:%s/end",
		"there and back":     "http://b.localhost:%s/back",
	} {
		t.Run("credentials of a redirect to "+name, func(t *testing.T) {
			t.Parallel()
			var tg *target
			tg = newTarget(t, redirecting(307, func(path string) string {
				return map[string]string{"/": fmt.Sprintf(to, tg.port()),
					"/back": fmt.Sprintf("http://a.localhost:%s/end", tg.port())}[path]
			}))
			raw, err := httpOf(executor.Options{
				Resolver: hosts, HTTPAllow: loopback, Secrets: hostSecrets,
			}).Run(t.Context(), full("http://a.localhost:"+tg.port()+"/"))
			requireResult(t, raw, err)
			got := tg.last(t)
			if got.Path != "/end" || got.Method != http.MethodPost || got.Body != `{"a":1}` {
				t.Fatalf("the target saw %+v", got)
			}
			for _, gone := range []string{"Authorization", "Cookie", "X-Api-Key", "Webhook-Id", "Webhook-Timestamp",
				"Webhook-Signature", "Referer"} {
				if got.Header.Get(gone) != "" {
					t.Errorf("%s went along: %q", gone, got.Header.Get(gone))
				}
			}
			for _, kept := range []string{"Accept", "Content-Type", "Idempotency-Key", "Punctual-Job-Id",
				"Punctual-Attempt", "Punctual-Token", "Punctual-Due-At", "User-Agent"} {
				if got.Header.Get(kept) == "" {
					t.Errorf("%s was lost", kept)
				}
			}
		})
	}
}

func TestHTTP_LeavesCredentialsBehindWhenARedirectChangesThePort(t *testing.T) {
	t.Parallel()
	second := newTarget(t, ok)
	first := newTarget(t, redirecting(308, func(string) string { return "http://a.localhost:" + second.port() + "/" }))
	raw, err := httpOf(executor.Options{Resolver: hosts, HTTPAllow: loopback, Secrets: hostSecrets}).Run(t.Context(),
		full("http://a.localhost:"+first.port()+"/"))
	requireResult(t, raw, err)
	if h := second.last(t).Header; h.Get("Authorization")+h.Get("Webhook-Signature")+h.Get("X-Api-Key") != "" {
		t.Errorf("another port of the host got credentials: %v", h)
	}
}

//proof:of S38
func TestHTTP_JudgesEveryRedirectAsItJudgedTheFirstTarget(t *testing.T) {
	t.Parallel()
	tr := newTrap(t, "tcp", "127.0.0.2:0")
	names := resolver{"ok.test": {{"127.0.0.1"}}, "inside.test": {{"127.0.0.2"}}}
	for _, to := range []string{
		"http://127.0.0.2:%s/", "http://2130706434:%s/", "http://[::ffff:127.0.0.2]:%s/", "http://inside.test:%s/",
		"//inside.test:%s/", "https://inside.test:%s/",
		"http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "gopher://127.0.0.2:%s/",
		"http://user:pw@ok.test:%s/", "http://:%s/", "data:text/plain,x",
	} {
		if strings.Contains(to, "%s") {
			to = fmt.Sprintf(to, tr.port())
		}
		for _, hops := range []int{1, 3} {
			tg := newTarget(t, redirecting(307, func(path string) string {
				if path == "/"+strings.Repeat("x", hops-1) {
					return to
				}
				return path + "x"
			}))
			o := executor.Options{Resolver: names, HTTPAllow: only127001}
			_, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":"http://ok.test:%s/"}`, tg.port())))
			requireFailure(t, err, job.CodeTargetRefused, true)
			if n := len(tg.requests()); n != hops {
				t.Errorf("%s: the target saw %d requests; want %d", to, n, hops)
			}
		}
	}
}

func TestHTTP_FollowsFiveRedirectsAndNotSix(t *testing.T) {
	t.Parallel()
	for hops, wantErr := range map[int]bool{5: false, 6: true} {
		tg := newTarget(t, redirecting(307, func(path string) string {
			if len(path) > hops {
				return ""
			}
			return path + "x"
		}))
		raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
			work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
		if wantErr {
			requireFailure(t, err, executor.CodeRedirects, true)
			if n := len(tg.requests()); n != 6 {
				t.Errorf("%d requests went out", n)
			}
			continue
		}
		requireResult(t, raw, err)
	}
}
