package docs

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/tenant"
	workers "punctual/workers/executor"
)

// The receiver in Python that the guide shows takes what a worker signs, and nothing else. That in Go is the
// client's, which has tests of its own.
func TestReceiver_InPythonTakesWhatAWorkerSigns(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		environment.SkipOrFail(t, "python3 is not here")
	}
	const (
		secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		arn    = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/local/hooks-AbCdEf"
		other  = arn + "2"
	)
	p, err := read("shared/docs/http-targets.md")
	if err != nil {
		t.Fatal(err)
	}
	at, file := free(t), filepath.Join(t.TempDir(), "receiver.py")
	write(t, file, []byte(p.files["receiver.py"]))
	receiver := exec.CommandContext(t.Context(), "python3", file, at)
	receiver.Env = append(os.Environ(), "SECRET="+secret)
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Wait() }) // killed by its context
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", at); err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatal("the receiver does not listen")
		}
	}

	world := memory.New(memory.Options{})
	t.Cleanup(world.Close)
	world.Secrets().Put(arn, secret)
	world.Secrets().Put(other, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	http := workers.Standard(workers.Options{
		Secrets: world.Secrets(), HTTPAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})[executor.HTTP]
	send := func(body, signWith string) string {
		id := job.DeterministicID(time.Unix(0, 0), body)
		payload, err := json.Marshal(executor.HTTPPayload{URL: "http://" + at + "/", Body: json.RawMessage(body),
			SignWith: signWith})
		if err != nil {
			t.Fatal(err)
		}
		result, err := http.Run(t.Context(), workers.Work{Key: job.Key{Tenant: tenant.Local, ID: id}, HandlerKey: id,
			Task: executor.HTTP, Attempt: 1, Token: 1, DueAt: time.Now(), Payload: payload})
		if err != nil {
			return err.Error()
		}
		return string(result)
	}
	for _, body := range []string{`{"order":17}`, `"ä text"`, `null`} {
		if got := send(body, arn); !strings.Contains(got, `"status":200,"body":"done"`) {
			t.Errorf("%s, signed: %s", body, got)
		}
		if got := send(body, other); !strings.Contains(got, "401") {
			t.Errorf("%s, signed by another secret: %s", body, got)
		}
		if got := send(body, ""); !strings.Contains(got, "401") {
			t.Errorf("%s, not signed: %s", body, got)
		}
	}
}
