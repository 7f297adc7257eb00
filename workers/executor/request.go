package executor

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"

	kind "punctual/shared/executor"
	"punctual/shared/job"
)

// request builds the request of an attempt. An error is a *Failure or the context's end.
func (h httpExecutor) request(ctx context.Context, w Work, secrets *wallet) (*http.Request, error) {
	var p kind.HTTPPayload
	if !decode(w.Payload, &p) {
		return nil, never(job.CodeUnreadablePayload,
			`the payload wants {"method","url","headers","body","auth":{"bearer"},"sign_with"}`)
	}
	return h.build(ctx, w, p, secrets)
}

// build builds the request that a payload describes.
func (h httpExecutor) build(
	ctx context.Context, w Work, p kind.HTTPPayload, secrets *wallet,
) (*http.Request, error) {
	method := strings.ToUpper(p.Method)
	if method == "" {
		method = http.MethodPost
	}
	if !slices.Contains(kind.HTTPMethods, method) {
		return nil, never(job.CodeUnreadablePayload, "method wants one of "+strings.Join(kind.HTTPMethods, " "))
	}
	to, err := url.Parse(p.URL)
	if err != nil {
		return nil, never(job.CodeTargetRefused, "url is no URL") // err quotes it
	}
	if err := h.guard.checkURL(to); err != nil {
		return nil, err
	}
	secrets.to, secrets.allow = to, h.guard.allow
	body, contentType := bodyOf(p.Body)
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, never(job.CodeTargetRefused, "url is no URL")
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("User-Agent", "punctual")
	if err := setHeaders(ctx, req, w, p.Headers, secrets); err != nil {
		return nil, err
	}
	if p.Auth.Bearer != "" {
		if !w.resolves(kind.BearerSecret) {
			return nil, rendered(kind.BearerSecret)
		}
		token, err := secrets.send(ctx, kind.BearerSecret, p.Auth.Bearer)
		if err != nil {
			return nil, err
		}
		if token = strings.TrimSpace(token); !headerValue(token) {
			return nil, never(CodeSecret, "the secret of auth.bearer cannot be sent in a header")
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	setOurs(req, w)
	if p.SignWith != "" && !w.resolves(kind.SignSecret) {
		return nil, rendered(kind.SignSecret)
	}
	return req, h.sign(ctx, req, body, p.SignWith, secrets)
}

// bodyOf returns the bytes to send and what they are.
func bodyOf(body json.RawMessage) ([]byte, string) {
	if len(body) == 0 || string(body) == "null" {
		return nil, ""
	}
	var text string
	if json.Unmarshal(body, &text) == nil {
		return []byte(text), "text/plain; charset=utf-8"
	}
	return body, "application/json"
}

// rendered is the failure of a field that names a secret by an expression.
func rendered(field string) error {
	return never(CodeSecret, field+" names its secret in the definition, or is one parameter of the run; "+
		"what another expression renders is text")
}

// setHeaders puts in what the user wrote.
func setHeaders(
	ctx context.Context, req *http.Request, w Work, headers map[string]string, secrets *wallet,
) error {
	for name, value := range headers {
		switch {
		case !token(name):
			return never(job.CodeUnreadablePayload, "a name in headers is no header's")
		case reserved(http.CanonicalHeaderKey(name)):
			return never(job.CodeUnreadablePayload,
				"the header "+http.CanonicalHeaderKey(name)+" is set by the executor")
		case connections[http.CanonicalHeaderKey(name)]:
			continue
		}
		if isSecretARN(value) && w.resolves(kind.HeaderSecret+name) {
			var err error
			if value, err = secrets.send(ctx, kind.HeaderSecret+name, value); err != nil {
				return err
			}
			value = strings.TrimSpace(value)
		}
		if !headerValue(value) {
			return never(job.CodeUnreadablePayload,
				"the value of the header "+http.CanonicalHeaderKey(name)+" holds a control character")
		}
		req.Header.Set(name, value)
	}
	return nil
}

// instantFormat is RFC 3339 in UTC with milliseconds, as everywhere.
const instantFormat = "2006-01-02T15:04:05.000Z"

// setOurs puts in the times of the work, and what lets the target see a second delivery of the same work. Fences are
// compared by attempt, then by token.
func setOurs(req *http.Request, w Work) {
	req.Header.Set("Idempotency-Key", string(w.HandlerKey))
	req.Header.Set("Punctual-Job-Id", string(w.Key.ID))
	req.Header.Set("Punctual-Attempt", strconv.FormatInt(w.Attempt, 10))
	req.Header.Set("Punctual-Token", strconv.FormatInt(w.Token, 10))
	req.Header.Set("Punctual-Due-At", w.DueAt.UTC().Format(instantFormat))
	if !w.NominalAt.IsZero() {
		req.Header.Set("Punctual-Nominal-At", w.NominalAt.UTC().Format(instantFormat))
	}
}

// sign adds the headers of Standard Webhooks; the signature only if the payload names a key.
func (h httpExecutor) sign(ctx context.Context, req *http.Request, body []byte, arn string, secrets *wallet) error {
	id, now := req.Header.Get("Idempotency-Key"), h.clock.Now()
	req.Header.Set(webhook.HeaderWebhookID, id)
	req.Header.Set(webhook.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if arn == "" {
		return nil
	}
	key, err := secrets.resolve(ctx, kind.SignSecret, arn)
	if err != nil {
		return err
	}
	signature, ok := signature(strings.TrimSpace(key), id, now, body)
	if !ok {
		return never(
			CodeSecret,
			fmt.Sprintf("the secret of sign_with is no key: want whsec_ and at least %d bytes in base64",
				minSigningKey),
		)
	}
	req.Header.Set(webhook.HeaderWebhookSignature, signature)
	return nil
}

// minSigningKey is how many bytes a key must have: what Standard Webhooks asks for. A shorter one can be guessed from
// a request that it has signed.
const minSigningKey = 24

func signature(key, id string, now time.Time, body []byte) (string, bool) {
	signer, err := webhook.NewWebhook(key)
	if err != nil {
		return "", false // err could quote the key
	}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_")); err != nil ||
		len(raw) < minSigningKey {
		return "", false
	}
	signature, err := signer.Sign(id, now, body)
	return signature, err == nil
}

// reserved says whether a header is ours to set. name is canonical.
func reserved(name string) bool {
	return name == "Host" || name == "Content-Length" || name == "Idempotency-Key" ||
		strings.HasPrefix(name, "Webhook-") || strings.HasPrefix(name, "Punctual-")
}

// connections lists the headers that belong to a connection. They come along when a call is
// copied from a browser or a terminal, and are left out: connections are ours.
var connections = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authorization": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
}

// token says whether a header may have that name (RFC 9110).
func token(name string) bool {
	return name != "" &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}

// headerValue says whether a value can be sent: no line ends, no other control characters.
func headerValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
