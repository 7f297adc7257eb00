package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"punctual/integration/emulator/environment"
)

// recordCalls names the variable that makes our processes record their calls, each once, as package
// session does.
const recordCalls = "PUNCTUAL_RECORD_CALLS"

// calls returns the file with the recorded calls.
func calls() string { return filepath.Join(folder, "calls") }

// startedChecked starts a MiniStack that enforces policies, for functions those of their roles; a
// missing grant makes the stories fail.
var startedChecked = sync.OnceValues(func() (*environment.Emulator, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	return environment.Start(ctx, environment.MiniStackKind(), environment.Options{
		Checked: true, Environ: []string{recordCalls + "=" + calls()},
	})
})

// checkedEmulator returns that emulator, or the endpoint of AWS_ENDPOINT_URL, which may not enforce
// policies.
func checkedEmulator(t *testing.T) *environment.Emulator {
	t.Helper()
	if testing.Short() || os.Getenv("AWS_ENDPOINT_URL") != "" {
		return environment.MiniStack(t)
	}
	e, err := startedChecked()
	if err != nil {
		environment.SkipOrFail(t, err.Error())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the emulator's log is %s", e.Log)
		}
	})
	return e
}

// asWorker returns the environment of a worker of a pool, which assumes that pool's role by itself
// and renews it.
func (d *deployment) asWorker(t *testing.T, pool string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "aws-config")
	role := "arn:aws:iam::000000000000:role/" + prefix + "-worker-" + pool
	profiles := fmt.Sprintf("[profile worker]\nrole_arn = %s\nsource_profile = operator\n"+
		"[profile operator]\naws_access_key_id = test\naws_secret_access_key = test\n", role)
	if err := os.WriteFile(file, []byte(profiles), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(d.aws.Environ(), "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_CONFIG_FILE="+file,
		"AWS_PROFILE=worker",
		"AWS_ENDPOINT_URL_STS="+d.aws.URL, // the SDK ignores the variable for all services when it asks for a role
		recordCalls+"="+calls())
}

// sign signs a request as the account's owner.
func (d *deployment) sign(t testing.TB, r *http.Request, body, service string) error {
	t.Helper()
	keys, err := d.aws.Config().Credentials.Retrieve(t.Context())
	if err != nil {
		return err
	}
	return signAs(t, keys, r, body, service)
}

func signAs(t testing.TB, keys aws.Credentials, r *http.Request, body, service string) error {
	t.Helper()
	digest := sha256.Sum256([]byte(body))
	return v4.NewSigner().SignHTTP(t.Context(), keys, r, hex.EncodeToString(digest[:]), service, environment.Region,
		time.Now())
}
