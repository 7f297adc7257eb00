package environment

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Region is where everything lives on an emulator.
const Region = "us-east-1"

// secret is both halves of the credentials: emulators accept anything, and a
// real key must never reach them.
const secret = "test"

// installWithin bounds installing and starting at a test's first use. It is
// under go test's own limit of 10 minutes, so that the reason is reported.
const installWithin = 8 * time.Minute

// Emulator is a local AWS that answers at URL.
type Emulator struct {
	URL string // base URL without a trailing slash, as AWS_ENDPOINT_URL wants it
	Log string // the file that holds its output; empty when the endpoint was given

	process *process     // nil when the endpoint was given
	cert    *certificate // nil where callers are not judged
}

// MiniStack returns the MiniStack of this test process, started at first use
// and stopped when the process ends, or the endpoint named by AWS_ENDPOINT_URL.
// It skips t where there can be none, and fails it where CI=true.
func MiniStack(t testing.TB) *Emulator {
	t.Helper()
	return share(t, miniStack)
}

// LocalStack returns the LocalStack of this test process, which serves SQS
// only, started at first use and stopped when the process ends, or the endpoint
// named by AWS_ENDPOINT_URL_SQS.
// It skips t where there can be none, and fails it where CI=true.
func LocalStack(t testing.TB) *Emulator {
	t.Helper()
	return share(t, localStack)
}

// Config is the SDK configuration of a client of e. It reads neither the
// user's environment nor the user's profile.
func (e *Emulator) Config() aws.Config {
	cfg := aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(e.URL),
		Credentials:  credentials.NewStaticCredentialsProvider(secret, secret, ""),
	}
	if e.cert != nil {
		cfg.HTTPClient = e.cert.sdkClient()
	}
	return cfg
}

// Environ is what a process of ours needs in its environment to use e for
// every service. Add it last: later entries win.
func (e *Emulator) Environ() []string {
	environ := []string{
		"AWS_ENDPOINT_URL=" + e.URL,
		"AWS_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=" + secret,
		"AWS_SECRET_ACCESS_KEY=" + secret,
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
	if e.cert != nil {
		environ = append(environ, e.cert.client()...)
	}
	return environ
}

// Done is closed once e has ended, by Stop or by itself; a given endpoint never ends.
func (e *Emulator) Done() <-chan struct{} {
	if e.process == nil {
		return nil
	}
	return e.process.ended
}

// Stop ends e and all it started, and waits for that; a given endpoint is left alone.
func (e *Emulator) Stop() {
	if e.process != nil {
		e.process.stop()
	}
}

// once starts each kind at most once in a process.
var once = map[string]func() (*Emulator, error){
	miniStack.name:  sync.OnceValues(func() (*Emulator, error) { return givenOrStarted(miniStack) }),
	localStack.name: sync.OnceValues(func() (*Emulator, error) { return givenOrStarted(localStack) }),
}

func share(t testing.TB, k Kind) *Emulator {
	t.Helper()
	if testing.Short() {
		SkipOrFail(t, k.name+" is not started with -short")
	}
	e, err := once[k.name]()
	if err != nil {
		SkipOrFail(t, err.Error())
	}
	t.Cleanup(func() {
		if t.Failed() && e.Log != "" {
			t.Logf("%s logged to %s, at the end:\n%s", k.name, e.Log, tail(e.Log))
		}
	})
	return e
}

func givenOrStarted(k Kind) (*Emulator, error) {
	if url := os.Getenv(k.given); url != "" {
		return &Emulator{URL: strings.TrimSuffix(url, "/")}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	e, err := Start(ctx, k, Options{})
	if err != nil {
		return nil, fmt.Errorf("no %s here (%s names another endpoint): %w", k.name, k.given, err)
	}
	return e, nil
}
