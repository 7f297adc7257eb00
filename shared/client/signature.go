package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// ErrSignature is a request that none of the secrets has signed, or whose signature is older than five
// minutes old.
var ErrSignature = errors.New("the signature is missing, wrong or old")

// maxSigned is the longest body that ReadSigned reads: a payload's.
const maxSigned = 1 << 20

// ReadSigned reads the body of a request that a job of executor http has sent, and checks that one of
// secrets (whsec_ and base64) has signed it, as Standard Webhooks says. Give the old secret with the
// new one while you change them.
//
// Deduplicate by the header webhook-id: it is signed, and the same for every attempt and redrive of a job.
// Idempotency-Key repeats it without a signature. A request whose Idempotency-Key differs from its signed
// webhook-id is refused; where a proxy has removed the header, ReadSigned sets it to the signed id.
//
// It returns [ErrSignature] when the request must not be trusted, and another error when the body cannot
// be read or a secret is none.
func ReadSigned(r *http.Request, secrets ...string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxSigned+1))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if len(body) > maxSigned {
		return nil, fmt.Errorf("the body is longer than %d bytes", maxSigned)
	}
	for i, secret := range secrets {
		key, err := webhook.NewWebhook(secret)
		if err != nil || secret == "" || secret == "whsec_" {
			return nil, fmt.Errorf("secret %d is no key: want whsec_ and base64", i) // err could quote it
		}
		if key.Verify(body, r.Header) == nil {
			if !keyIsSigned(r.Header) {
				return nil, ErrSignature
			}
			return body, nil
		}
	}
	return nil, ErrSignature
}

// idempotencyKey is the header that repeats the signed id for receivers that know no Standard Webhooks.
const idempotencyKey = "Idempotency-Key"

// keyIsSigned reports whether each Idempotency-Key is the only webhook-id of a verified request. An absent one
// is set to it.
func keyIsSigned(h http.Header) bool {
	signed := h.Values(webhook.HeaderWebhookID)
	if len(signed) != 1 {
		return false // the receiver could read another one than was verified
	}
	for _, key := range h.Values(idempotencyKey) {
		if key != signed[0] {
			return false
		}
	}
	h.Set(idempotencyKey, signed[0])
	return true
}
