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

// Region is the region of everything on an emulator.
const Region = "us-east-1"

// secret is both halves of the credentials: emulators accept anything, and must never get a real
// key.
const secret = "test"

// installWithin bounds installing and starting at a test's first use. It is less than go test's
// limit of 10 minutes, so that the reason is reported.
const installWithin = 8 * time.Minute

// Emulator is a local AWS that answers at URL.
type Emulator struct {
	URL string // base URL without a trailing slash, as in AWS_ENDPOINT_URL
	Log string // the file with its output; empty for a given endpoint

	process *process     // nil for a given endpoint
	cert    *certificate // nil where policies are not enforced
}

// MiniStack returns the MiniStack of this test process, which is started at first use and stopped
// when the process ends, or the endpoint of AWS_ENDPOINT_URL. Where there is none it skips t, and
// fails it where CI=true.
func MiniStack(t testing.TB) *Emulator {
	t.Helper()
	return share(t, miniStack)
}

// LocalStack returns the LocalStack of this test process, which serves SQS only. It is started at
// first use and stopped when the process ends, or is the endpoint of AWS_ENDPOINT_URL_SQS. Where
// there is none it skips t, and fails it where CI=true.
func LocalStack(t testing.TB) *Emulator {
	t.Helper()
	return share(t, localStack)
}

// Config returns the SDK configuration for e. It reads neither the user's environment nor the
// user's profile.
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

// Environ returns the environment that makes a process of ours use e for every service. Add it
// last: later entries win.
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

// Done returns a channel that is closed once e has ended, by Stop or by itself; a given endpoint
// never ends.
func (e *Emulator) Done() <-chan struct{} {
	if e.process == nil {
		return nil
	}
	return e.process.ended
}

// Stop ends e and all that it started, and waits for that; it leaves a given endpoint alone.
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
