package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	webhook "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"punctual/shared/client"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// signed is a request as the http executor sends it.
func signed(t *testing.T, secret, body string, at time.Time) *http.Request {
	t.Helper()
	key, err := webhook.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign("job-1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", "job-1")
	r.Header.Set("Webhook-Id", "job-1")
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Webhook-Signature", signature)
	return r
}

func TestReadSigned_TakesEachOfItsSecrets(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{oldSecret, newSecret} {
		body, err := client.ReadSigned(signed(t, secret, `{"n":1}`, time.Now()), newSecret, oldSecret)
		if err != nil || string(body) != `{"n":1}` {
			t.Errorf("%s %v", body, err)
		}
	}
}

func TestReadSigned_TrustsNothingElse(t *testing.T) {
	t.Parallel()
	now := time.Now()
	other := signed(t, newSecret, `{}`, now)
	changed := signed(t, oldSecret, `{}`, now)
	changed.Body = http.NoBody
	renamed := signed(t, oldSecret, `{}`, now)
	renamed.Header.Set("Webhook-Id", "job-2")
	rekeyed := signed(t, oldSecret, `{}`, now)
	rekeyed.Header.Set("Idempotency-Key", "job-2")
	twoKeys := signed(t, oldSecret, `{}`, now)
	twoKeys.Header.Add("Idempotency-Key", "job-2")
	twoIDs := signed(t, oldSecret, `{}`, now)
	twoIDs.Header.Add("Webhook-Id", "job-2")
	bare := signed(t, oldSecret, `{}`, now)
	bare.Header.Del("Webhook-Signature")
	for name, r := range map[string]*http.Request{
		"another secret": other, "another body": changed, "another id": renamed, "no signature": bare,
		"another idempotency key": rekeyed, "a second idempotency key": twoKeys, "a second id": twoIDs,
		"too old": signed(t, oldSecret, `{}`, now.Add(-6*time.Minute)),
		"too new": signed(t, oldSecret, `{}`, now.Add(6*time.Minute)),
	} {
		if body, err := client.ReadSigned(r, oldSecret); !errors.Is(err, client.ErrSignature) || body != nil {
			t.Errorf("%s: %s %v", name, body, err)
		}
	}
	if _, err := client.ReadSigned(signed(t, oldSecret, `{}`, now)); !errors.Is(err, client.ErrSignature) {
		t.Errorf("no secret: %v", err)
	}
}

func TestReadSigned_SetsAMissingIdempotencyKeyToTheSignedID(t *testing.T) {
	t.Parallel()
	r := signed(t, oldSecret, `{}`, time.Now())
	r.Header.Del("Idempotency-Key")
	if _, err := client.ReadSigned(r, oldSecret); err != nil {
		t.Fatal(err)
	}
	if key := r.Header.Get("Idempotency-Key"); key != "job-1" {
		t.Errorf("the key is %q", key)
	}
}

func TestReadSigned_SaysWhatIsNoSecretWithoutIt(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "whsec_", "whsec_not base64!"} {
		_, err := client.ReadSigned(signed(t, oldSecret, `{}`, time.Now()), secret)
		if err == nil || errors.Is(err, client.ErrSignature) || strings.Contains(err.Error(), "not base64!") {
			t.Errorf("%q: %v", secret, err)
		}
	}
	long := signed(t, oldSecret, strings.Repeat("x", 1<<20+1), time.Now())
	if _, err := client.ReadSigned(long, oldSecret); err == nil || errors.Is(err, client.ErrSignature) {
		t.Errorf("a long body: %v", err)
	}
}
