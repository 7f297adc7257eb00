package system_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"punctual/functions/api"
	"punctual/integration/system"
	"punctual/shared/clock"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/worker"
)

// The commands about dags in the README and the recipes are pasted into a shell, line by line. The answer that a line
// must get is written after "# →".
func TestRecipes_WorkAsPasted(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not here")
		}
	}
	at := serve(t)
	n := 0
	for _, file := range []string{"../../README.md", "../../shared/docs/dags.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range strings.Split(string(text), "```sh\n")[1:] {
			block, _, _ := strings.Cut(after, "```")
			if !strings.Contains(block, "# →") {
				continue
			}
			n++
			t.Run(strings.Fields(block[strings.LastIndex(block, "/dags/"):])[0], func(t *testing.T) {
				t.Parallel()
				paste(t, strings.ReplaceAll(block, "localhost:8080", at))
			})
		}
	}
	if n != 5 {
		t.Errorf("found %d blocks", n)
	}
}

// paste runs a block in a shell, and checks the answer of each line that has one.
func paste(t *testing.T, block string) {
	var script strings.Builder
	var wants []string
	for line := range strings.Lines(block) {
		script.WriteString(line)
		if _, want, ok := strings.Cut(line, "# →"); ok {
			wants = append(wants, strings.TrimSpace(want))
			script.WriteString("echo; echo '=== answered'\n")
		}
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-e", "-c", script.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answers := strings.Split(string(out), "=== answered")
	for i, want := range wants {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d lacks %s:\n%s", i+1, want, answers[i])
		}
	}
}

// serve runs the product as make run does and returns where.
func serve(t *testing.T) string {
	world := memory.New(memory.Options{})
	ports := system.Ports{
		Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
		Timers: world.Timers(), Secrets: world.Secrets(), Clock: clock.System{},
		Log:   func(string) *slog.Logger { return telemetry.Silent() },
		Meter: new(telemetry.Meter),
	}
	sys := system.Compose(ports, system.Options{
		Registry: worker.NewRegistry(), Worker: worker.Options{Name: "w"},
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sys.Run(ctx) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	who := tenant.Identity{Tenant: tenant.Local, Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			sys.API.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), who)))
		})}
	go server.Serve(listener) // ends with ErrServerClosed
	t.Cleanup(func() {
		server.Close()
		stop()
		<-done
		world.Close()
	})
	return listener.Addr().String()
}
