package executor_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"punctual/shared/clock"
	kind "punctual/shared/executor"
	"punctual/shared/job"
	"punctual/workers/executor"
)

// hooked runs a delivery to a server.
func hooked(t *testing.T, o executor.Options, url string, more func(*kind.WebhookPayload)) (json.RawMessage, error) {
	t.Helper()
	p := kind.WebhookPayload{Webhook: "ops", EventID: "evt_1", URL: url,
		Event: json.RawMessage(`{"id":"evt_1","data":{"status":"DEAD"}}`)}
	if more != nil {
		more(&p)
	}
	payload, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	return executor.Standard(o)[kind.Webhook].Run(ctx, executor.Work{
		Key: job.Key{Tenant: "acme", ID: "01KB4YJ2V0S6Y3Q4M5N6P7R8T9"}, HandlerKey: "01KB4YJ2V0S6Y3Q4M5N6P7R8T9",
		Attempt: 1, Token: 1, Payload: payload,
	})
}

func TestWebhook_SendsASignedCloudEvent(t *testing.T) {
	t.Parallel()
	arn, key := arnOf("acme", "hook"), signingKey
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	result, err := hooked(t, executor.Options{HTTPAllow: loopback, Secrets: vault{arn: key}},
		server.URL, func(p *kind.WebhookPayload) {
			p.SignWith, p.Headers = arn, map[string]string{"X-Team": "ops"}
		})
	if err != nil || string(result) != `{"status":204}` {
		t.Fatalf("%s, %v", result, err)
	}
	if got.Method != http.MethodPost || got.Header.Get("Content-Type") != "application/cloudevents+json" ||
		got.Header.Get("Webhook-Id") != "evt_1" || got.Header.Get("Idempotency-Key") != "evt_1" ||
		got.Header.Get("X-Team") != "ops" || string(body) != `{"id":"evt_1","data":{"status":"DEAD"}}` {
		t.Errorf("%s %v %s", got.Method, got.Header, body)
	}
	verifier, err := webhook.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(body, got.Header); err != nil {
		t.Errorf("the library's verifier says %v", err)
	}
	if err := verifier.Verify(append(body, ' '), got.Header); err == nil {
		t.Error("another body has the same signature")
	}
}

// The vector that the libraries of Standard Webhooks are tested with.
func TestWebhook_SignsThePublishedVector(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, func(http.ResponseWriter, *http.Request) {})
	arn := arnOf("acme", "hook")
	o := executor.Options{HTTPAllow: loopback, Clock: clock.Fixed(time.Unix(1614265330, 0)),
		Secrets: vault{arn: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	w := work(`{"webhook":"ops","event_id":"msg_p5jXN8AQM9LWM0D4loKWxJek","url":"` + tg.URL + `","sign_with":"` + arn +
		`","event":{"test": 2432232314}}`)
	if _, err := executor.Standard(o)[kind.Webhook].Run(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := tg.seen[0].Header.Get("Webhook-Signature"); got != want {
		t.Errorf("signed as %s, want %s", got, want)
	}
}

func TestWebhook_TriesOnceMoreAfterAnythingButA410(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{
		400: executor.CodeHTTPStatus, 401: executor.CodeHTTPStatus, 404: executor.CodeHTTPStatus,
		429: executor.CodeHTTPStatus, 500: executor.CodeHTTPStatus,
		410: kind.CodeWebhookGone,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
		}))
		_, err := hooked(t, executor.Options{HTTPAllow: loopback}, server.URL, nil)
		server.Close()
		f := new(executor.Failure)
		if !errors.As(err, &f) || f.Code != code || f.Permanent != (status == 410) {
			t.Errorf("%d: %+v", status, err)
		}
	}
}

// A hostile endpoint neither reaches what is not public nor holds a worker or fills its memory.
func TestWebhook_IsBoundedWhateverTheEndpointDoes(t *testing.T) {
	t.Parallel()
	read := make(chan int, 1)
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		code   string // "": it succeeds
	}{
		"sends on to the address of the machine's metadata": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
		}, job.CodeTargetRefused},
		"answers without an end": {func(w http.ResponseWriter, r *http.Request) {
			n := 0
			for r.Context().Err() == nil {
				m, err := w.Write(make([]byte, 64<<10))
				if n += m; err != nil {
					break
				}
			}
			read <- n
		}, ""},
		"sends round in circles": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		}, executor.CodeRedirects},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.handle)
			defer server.Close()
			_, err := hooked(t, executor.Options{HTTPAllow: loopback}, server.URL, nil)
			f := new(executor.Failure)
			switch {
			case c.code == "" && err != nil:
				t.Errorf("%v", err)
			case c.code != "" && (!errors.As(err, &f) || f.Code != c.code || f.Permanent):
				t.Errorf("%+v", err)
			}
			if c.code == "" {
				if n := <-read; n > 16<<20 {
					t.Errorf("%d bytes were taken", n)
				}
			}
		})
	}
	for _, url := range []string{"http://169.254.169.254/", "http://10.0.0.1/", "http://127.0.0.1:1/"} {
		_, err := hooked(t, executor.Options{}, url, nil)
		f := new(executor.Failure)
		if !errors.As(err, &f) || f.Code != job.CodeTargetRefused {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestWebhook_RefusesAPayloadThatIsNone(t *testing.T) {
	t.Parallel()
	_, err := executor.Standard(executor.Options{})[kind.Webhook].Run(t.Context(),
		executor.Work{Payload: json.RawMessage(`[]`)})
	f := new(executor.Failure)
	if !errors.As(err, &f) || f.Code != job.CodeUnreadablePayload || !f.Permanent {
		t.Errorf("%+v", err)
	}
}
