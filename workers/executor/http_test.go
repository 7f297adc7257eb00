package executor_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/workers/executor"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

var only127001 = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

func httpOf(o executor.Options) executor.Executor {
	if o.Clock == nil {
		o.Clock = clock.Fixed(noon)
	}
	return executor.Standard(o)[job.ExecutorHTTP]
}

// seen is what a target saw of one request.
type seen struct {
	Method, Path, Body, Host string
	Header                   http.Header
}

// target is a server on loopback that remembers what it saw.
type target struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seen
}

func newTarget(t *testing.T, handle http.HandlerFunc) *target {
	t.Helper()
	tg := &target{}
	tg.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tg.mu.Lock()
		tg.seen = append(tg.seen, seen{r.Method, r.URL.RequestURI(), string(body), r.Host, r.Header.Clone()})
		tg.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handle(w, r)
	}))
	t.Cleanup(tg.Close)
	return tg
}

func (tg *target) port() string {
	_, port, _ := net.SplitHostPort(tg.Listener.Addr().String())
	return port
}

func (tg *target) requests() []seen {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	return tg.seen
}

func (tg *target) last(t *testing.T) seen {
	t.Helper()
	all := tg.requests()
	if len(all) == 0 {
		t.Fatal("the target saw no request")
	}
	return all[len(all)-1]
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

type result struct {
	Status    int    `json:"status"`
	Body      string `json:"body"`
	Truncated bool   `json:"truncated"`
}

func requireResult(t *testing.T, raw json.RawMessage, err error) result {
	t.Helper()
	if err != nil && !errors.Is(err, executor.ErrShortened) {
		t.Fatalf("failed: %v", err)
	}
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("the result %s is no result: %v", raw, err)
	}
	if r.Truncated != (err != nil) {
		t.Errorf("truncated is %v, and the error %v", r.Truncated, err)
	}
	return r
}

//proof:of 16
func TestHTTP_SendsWhatThePayloadSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ payload, method, body, contentType string }{
		{`{"url":%q}`, "POST", "", ""},
		{`{"url":%q,"body":null}`, "POST", "", ""},
		{`{"url":%q,"body":{"a":[1, 2]}}`, "POST", `{"a":[1, 2]}`, "application/json"},
		{`{"url":%q,"body":"a=1"}`, "POST", "a=1", "text/plain; charset=utf-8"},
		{`{"url":%q,"body":"a=1","headers":{"content-type":"application/x-www-form-urlencoded"}}`, "POST", "a=1",
			"application/x-www-form-urlencoded"},
		{`{"method":"get","url":%q}`, "GET", "", ""},
		{`{"method":"DELETE","url":%q,"body":7}`, "DELETE", "7", "application/json"},
	} {
		tg := newTarget(t, ok)
		raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
			work(fmt.Sprintf(c.payload, tg.URL+"/in?x=1")))
		if r := requireResult(t, raw, err); r != (result{200, "fine", false}) {
			t.Errorf("%s: result %+v", c.payload, r)
		}
		got := tg.last(t)
		if got.Method != c.method || got.Body != c.body || got.Header.Get("Content-Type") != c.contentType ||
			got.Path != "/in?x=1" {
			t.Errorf("%s: the target saw %+v", c.payload, got)
		}
	}
}

//proof:of 85
func TestHTTP_TellsTheTargetWhichWorkItIs(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	w := work(fmt.Sprintf(`{"url":%q,"headers":{"x-mine":"1","Connection":"close","Upgrade":"h2c"}}`, tg.URL))
	w.Attempt = 3
	raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(), w)
	requireResult(t, raw, err)
	h := tg.last(t).Header
	for name, want := range map[string]string{
		"Idempotency-Key": string(w.HandlerKey), "Webhook-Id": string(w.HandlerKey),
		"Webhook-Timestamp": fmt.Sprint(noon.Unix()), "Webhook-Signature": "",
		"Punctual-Job-Id": string(w.Key.ID), "Punctual-Attempt": "3", "Punctual-Token": "7", "User-Agent": "punctual",
		"X-Mine": "1", "Connection": "", "Upgrade": "",
	} {
		if h.Get(name) != want {
			t.Errorf("%s is %q; want %q", name, h.Get(name), want)
		}
	}
}

//proof:of 193
func TestHTTP_SignsSoThatStandardWebhooksVerifies(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	o := executor.Options{HTTPAllow: loopback, Clock: clock.System{}, Secrets: vault{arnOf("acme", "hook"): key + "\n"}}
	raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":%q,"body":{"a":1},"sign_with":%q}`, tg.URL,
		arnOf("acme", "hook"))))
	requireResult(t, raw, err)
	verifier, err := webhook.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	got := tg.last(t)
	if err := verifier.Verify([]byte(got.Body), got.Header); err != nil {
		t.Errorf("the receiver says: %v", err)
	}
	if verifier.Verify([]byte(got.Body+" "), got.Header) == nil {
		t.Error("another body verifies, too")
	}
}

func TestHTTP_KeepsOfAnAnswerWhatFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer    string
		truncated bool
		starts    string
	}{
		"short text": {"hello", false, "hello"},
		"nothing":    {"", false, ""},
		"NUL":        {"a\x00b", false, "a\x00b"},
		"as much as is kept": {strings.Repeat("x", contract.MaxResult), false, strings.Repeat("x",
			contract.MaxResult)},
		"one byte more than is kept":        {strings.Repeat("x", contract.MaxResult+1), true, "xxx"},
		"text that grows when it is quoted": {strings.Repeat("\x01\"<\u2028", 50_000), true, "\x01\"<\u2028"},
		"rows that grow when quoted":        {strings.Repeat(`{"a":"b"},`, 25_000), false, strings.Repeat(`{"a":"b"},`, 25_000)},
		"a character across the limit":      {"x" + strings.Repeat("ü", contract.MaxResult), true, "xüü"},
		"as much as is read":                {strings.Repeat("y", 1<<20), true, "yyy"},
		"more than is read":                 {strings.Repeat("z", 3<<20), true, "zzz"},
	} {
		t.Run("keeps of an answer what fits: "+name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.answer) })
			raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
				work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
			r := requireResult(t, raw, err)
			if r.Truncated != c.truncated || !strings.HasPrefix(r.Body, c.starts) || !c.truncated &&
				r.Body != c.starts {
				t.Errorf("truncated %v, body starts %.40q", r.Truncated, r.Body)
			}
			if n := len(r.Body); c.truncated && (n < contract.MaxResult-4 || n > contract.MaxResult) {
				t.Errorf("%d bytes of the body were kept", n)
			}
		})
	}
}

func TestHTTP_CutsABodyAtTheTasksLimit(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "["+strings.Repeat("1,", 1000)+"1]")
	})
	w := work(fmt.Sprintf(`{"url":%q}`, tg.URL))
	w.MaxResult = 1 << 10
	raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(), w)
	r := requireResult(t, raw, err)
	if !errors.Is(err, executor.ErrShortened) || !r.Truncated || len(r.Body) != 1<<10 || r.Status != 200 {
		t.Errorf("%v %+v", err, r)
	}
	if !strings.Contains(string(raw), `"content_type":"application/json"`) {
		t.Errorf("%s", raw)
	}
}

//proof:of F17
func TestHTTP_MarksAnAnswerThatIsNoUTF8AndKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer      string
		base64, all bool
	}{
		"a few bytes":                         {"a\xff\xfeb", true, true},
		"more than is kept":                   {strings.Repeat("\xff\x00", contract.MaxResult), true, false},
		"text that is cut within a character": {"x" + strings.Repeat("ü", 1<<20), false, false},
		"text that ends within a character":   {"x\xc3", true, true},
	} {
		t.Run("marks an answer that is not UTF-8: "+name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.answer) })
			raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
				work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
			if err != nil && !errors.Is(err, executor.ErrShortened) {
				t.Fatal(err)
			}
			var r struct {
				Body, Encoding string
				Truncated      bool
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				t.Fatal(err)
			}
			got := r.Body
			if c.base64 {
				bytes, err := base64.StdEncoding.DecodeString(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				got = string(bytes)
			}
			if (r.Encoding == "base64") != c.base64 || r.Truncated == c.all || !strings.HasPrefix(c.answer, got) ||
				c.all && got != c.answer {
				t.Errorf("encoding %q, truncated %v, %d bytes of %d", r.Encoding, r.Truncated, len(got), len(c.answer))
			}
			if len(got) > contract.MaxResult || !c.all && len(got) < contract.MaxResult-4 {
				t.Errorf("%d bytes were kept", len(got))
			}
		})
	}
}

//proof:of F17
func TestHTTP_TellsTheTargetTheTimes(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	w := work(fmt.Sprintf(`{"url":%q}`, tg.URL))
	w.DueAt, w.NominalAt = noon.Add(1500*time.Millisecond), noon
	raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(), w)
	requireResult(t, raw, err)
	if h := tg.last(t).Header; h.Get("Punctual-Due-At") != "2027-03-28T12:00:01.500Z" ||
		h.Get("Punctual-Nominal-At") != "2027-03-28T12:00:00.000Z" {
		t.Errorf("the target saw %v", h)
	}
	w.NominalAt = time.Time{}
	raw, err = httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(), w)
	requireResult(t, raw, err)
	if h := tg.last(t).Header; h.Get("Punctual-Nominal-At") != "" {
		t.Errorf("a job of no schedule has the nominal time %q", h.Get("Punctual-Nominal-At"))
	}
}

func TestHTTP_StopsReadingAnAnswerWithoutAnEnd(t *testing.T) {
	t.Parallel()
	hungUp := make(chan struct{})
	tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(hungUp)
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(), work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
	if r := requireResult(t, raw, err); !r.Truncated {
		t.Error("an endless answer was kept whole")
	}
	<-hungUp
}

func TestHTTP_ReadsACompressedAnswerToTheSameLimit(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(make([]byte, 8<<20))
		_ = z.Close()
	})
	raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(), work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
	if r := requireResult(t, raw, err); !r.Truncated || strings.Trim(r.Body, "\x00") != "" {
		t.Error("a bomb went off")
	}
}

func TestHTTP_JudgesAnswersByTheirStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		200: "success", 201: "success", 202: "success", 204: "success", 226: "success",
		408: "retry", 425: "retry", 429: "retry", 500: "retry", 501: "retry", 502: "retry", 503: "retry", 504: "retry",
		599: "retry",
		300: "final", 301: "final", 302: "final", 304: "final", 307: "final", 308: "final",
		400: "final", 401: "final", 403: "final", 404: "final", 409: "final", 410: "final", 422: "final", 451: "final",
		499: "final",
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				if status != 204 && status != 304 {
					_, _ = io.WriteString(w, "what the body says")
				}
			})
			_, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
				work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
			if want == "success" {
				if err != nil {
					t.Errorf("failed: %v", err)
				}
				return
			}
			f := requireFailure(t, err, executor.CodeHTTPStatus, want == "final")
			if !strings.Contains(f.Message, fmt.Sprint(status)) || strings.Contains(f.Message, "body says") {
				t.Errorf("message %q", f.Message)
			}
		})
	}
}

func TestHTTP_HonoursRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "7": 7 * time.Second, "-5": 0, "soon": 0, "1.5": 0,
		"3600": time.Hour, "3601": contract.MaxRetryAfter, "99999999999999999999": contract.MaxRetryAfter,
		noon.Add(90 * time.Second).Format(http.TimeFormat):           90 * time.Second,
		noon.Add(90 * time.Second).Format(time.RFC850):               90 * time.Second,
		noon.Add(-time.Hour).Format(http.TimeFormat):                 0,
		noon.Add(200 * 365 * 24 * time.Hour).Format(http.TimeFormat): contract.MaxRetryAfter,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{429, 503} {
				tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", header)
					w.WriteHeader(status)
				})
				_, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
					work(fmt.Sprintf(`{"url":%q}`, tg.URL)))
				if f := requireFailure(t, err, executor.CodeHTTPStatus, false); f.RetryAfter != want {
					t.Errorf("%q reads as %v; want %v", header, f.RetryAfter, want)
				}
			}
		})
	}
}

//proof:of 103
func TestHTTP_RefusesPayloadsItCannotRead(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	for payload, code := range map[string]string{
		``: job.CodeUnreadablePayload, `null`: job.CodeTargetRefused, `[]`: job.CodeUnreadablePayload,
		`{}`: job.CodeTargetRefused, `{"url":7}`: job.CodeUnreadablePayload,
		`{"url":"URL","verb":"GET"}`:                           job.CodeUnreadablePayload,
		`{"url":"URL"} {"url":"URL"}`:                          job.CodeUnreadablePayload,
		`{"url":"URL","method":"CONNECT"}`:                     job.CodeUnreadablePayload,
		`{"url":"URL","method":"GET / HTTP/1.1\r\nX:"}`:        job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"Host":"internal"}}`:          job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"idempotency-key":"1"}}`:      job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"CONTENT-LENGTH":"1"}}`:       job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"webhook-signature":"v1,x"}}`: job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"Punctual-Token":"99"}}`:      job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"X\r\nY":"1"}}`:               job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"":"1"}}`:                     job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"X":"1\r\nHost: internal"}}`:  job.CodeUnreadablePayload,
		`{"url":"URL","headers":{"X":["1"]}}`:                  job.CodeUnreadablePayload,
		`{"url":"URL","auth":{"basic":"u:p"}}`:                 job.CodeUnreadablePayload,
		`{"url":"ftp://example.com/"}`:                         job.CodeTargetRefused,
		`{"url":"file:///etc/passwd"}`:                         job.CodeTargetRefused,
		`{"url":"//example.com"}`:                              job.CodeTargetRefused,
		`{"url":"http:example.com"}`:                           job.CodeTargetRefused,
		`{"url":"http://"}`:                                    job.CodeTargetRefused,
		`{"url":"http://:80/"}`:                                job.CodeTargetRefused,
		`{"url":"http://user:pw@example.com/"}`:                job.CodeTargetRefused,
		`{"url":"http://example.com@127.0.0.1/"}`:              job.CodeTargetRefused,
		`{"url":"http://example.com:99999/"}`:                  job.CodeTargetRefused,
		`{"url":"http://example.com:0/"}`:                      job.CodeTargetRefused,
		`{"url":"http://exa mple.com/"}`:                       job.CodeTargetRefused,
		`{"url":"http://example.com/\u0000"}`:                  job.CodeTargetRefused,
		`{"url":"http://[::1/"}`:                               job.CodeTargetRefused,
		`{"url":"http://%31%32%37.0.0.1:99999/"}`:              job.CodeTargetRefused,
	} {
		_, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
			work(strings.ReplaceAll(payload, "URL", tg.URL)))
		f := requireFailure(t, err, code, true)
		requireWithout(t, "the message of "+payload, f.Message, "internal", "etc", "pw")
	}
	if n := len(tg.requests()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}

func TestHTTP_CallsABrokenExchangeRetryableAndQuotesNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no answer":                    "",
		"a head that breaks off":       "HTTP/1.1 200 OK\r\nContent-Le",
		"a body that breaks off":       "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsecret-looking",
		"chunks that break off":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsecre",
		"something else than HTTP":     "secret-looking 220 smtp ready\r\n",
		"a header that is none":        "HTTP/1.1 200 OK\r\nsecret-looking\r\n\r\n",
		"more header than is accepted": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("secret-looking", 10000) + "\r\n\r\n",
		"a redirect that is no URL": "HTTP/1.1 302 Found\r\nLocation: " +
			"http://secret-looking:%zz/\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run("a broken exchange is retried: "+name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						_, _ = conn.Read(make([]byte, 4096))
						_, _ = io.WriteString(conn, answer)
						_ = conn.Close()
					}()
				}
			}()
			_, err = httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
				work(fmt.Sprintf(`{"url":"http://%s/?key=secret-looking","body":"secret-looking"}`, l.Addr())))
			f := requireFailure(t, err, executor.CodeNetwork, false)
			requireWithout(t, "the message", f.Message, "secret")
		})
	}
}

func TestHTTP_CallsAnUnreachableHostRetryable(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := newTarget(t, ok)
	for url, want := range map[string]string{
		closed.URL:          "the connection was refused",
		"http://none.test/": "there is no such host",
		untrusted.URL:       "the certificate is not to be trusted",
		"https://" + plain.Listener.Addr().String(): "TLS could not be agreed on",
	} {
		_, err := httpOf(executor.Options{HTTPAllow: loopback, Resolver: resolver{}}).Run(t.Context(),
			work(fmt.Sprintf(`{"url":%q}`, url)))
		f := requireFailure(t, err, executor.CodeNetwork, false)
		if !strings.HasSuffix(f.Message, want) {
			t.Errorf("%s: message %q; want %q", url, f.Message, want)
		}
	}
}

func TestHTTP_GivesTheReasonWhyItsContextEnded(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the head", "in the body"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			cause := errors.New("cancelled by the user")
			ctx, cancel := context.WithCancelCause(t.Context())
			tg := newTarget(t, func(w http.ResponseWriter, r *http.Request) {
				if when == "in the body" {
					_, _ = io.WriteString(w, "half")
					w.(http.Flusher).Flush()
				}
				cancel(cause)
				<-r.Context().Done()
			})
			if _, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(ctx,
				work(fmt.Sprintf(`{"url":%q}`, tg.URL))); !errors.Is(err, cause) {
				t.Errorf("got %v", err)
			}
		})
	}
}
