package docs

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
)

// Each line that starts a server does so in a copy of the repository, at an address of the test's; it answers
// there until Ctrl-C.
func TestDocuments_StartServers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		environment.SkipOrFail(t, "make is not here")
	}
	if testing.Short() {
		environment.SkipOrFail(t, "servers are built")
	}
	repository := t.TempDir()
	copied(t, repository)
	write(t, filepath.Join(repository, "secrets.json"), []byte(`{"hook":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}`))
	build(t, repository, filepath.Join(repository, "bin/punctual"), "./workers/cmd/punctual")
	lines := map[string]string{}
	for _, path := range documents(t) {
		p, err := read(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, b := range p.blocks {
			if b.info != serves {
				continue
			}
			for line := range strings.Lines(b.body) {
				line, _, _ = strings.Cut(line, "#")
				if line = strings.TrimSpace(line); line != "" && lines[line] == "" {
					lines[line] = fmt.Sprintf("%s:%d", path, b.line)
				}
			}
		}
	}
	for line, at := range lines {
		t.Run(line, func(t *testing.T) {
			if !strings.HasPrefix(line, "make ") { // which all build at the same place
				t.Parallel()
			}
			started(t, repository, line, at)
		})
	}
	t.Logf("%d lines started a server", len(lines))
	if len(lines) < 5 {
		t.Errorf("only %d lines start a server: this test reads the wrong ones", len(lines))
	}
}

// started starts a server by a line, sees it answer, and ends it as Ctrl-C does.
func started(t *testing.T, dir, line, page string) {
	at := free(t)
	environ := append(os.Environ(), "GOFLAGS="+goFlags, "GOWORK=")
	if strings.HasPrefix(line, "make ") {
		line += " ADDR=" + at
	} else {
		line += " --addr " + at
		environ = append(environ, "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "PUNCTUAL_CONFIG=") // ~ of the line
	}
	cmd, end, err := environment.Tied("bash", "-c", line)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	cmd.Dir, cmd.Env = dir, environ
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said := func() string { text, _ := os.ReadFile(out.Name()); return string(text) }
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for until := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		answer, err := client.Get("http://" + at + "/v1/health")
		if err == nil {
			_, bad := io.Copy(io.Discard, answer.Body)
			if bad = errors.Join(bad, answer.Body.Close()); bad != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: health is %s, %v", page, line, answer.Status, bad)
			}
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("%s: %s ended with %v\n%s", page, line, err, said())
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("%s: %s serves nothing\n%s", page, line, said())
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended: // make says that it was interrupted
	case <-time.After(time.Minute):
		t.Errorf("%s: %s does not end on Ctrl-C\n%s", page, line, said())
	}
}
