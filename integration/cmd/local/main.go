// Command local is Punctual on localhost: every stage and a worker in one process, over the
// memory twins, with the real clock. What it holds is gone when it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"log/slog"

	"punctual/functions/api"
	"punctual/integration/system"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/handler"
	"punctual/workers/worker"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to serve; loopback only")
	drain := flag.Duration("drain", 10*time.Second, "how long running jobs may go on after Ctrl-C")
	verbose := flag.Bool("v", false, "log more than faults")
	flag.Parse()
	if err := run(*addr, *drain, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "punctual:", err)
		os.Exit(1)
	}
}

func run(addr string, drain time.Duration, verbose bool) error {
	listener, err := listen(addr)
	if err != nil {
		return err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	log := func(stage string) *slog.Logger {
		return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With(telemetry.Stage, stage)
	}
	meter := new(telemetry.Meter)
	world := memory.New(memory.Options{})
	defer world.Close()
	registry := worker.NewRegistry()
	handler.All(registry)

	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	sys := system.Compose(system.Ports{
		Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(), Queues: world.Queues(),
		Timers: world.Timers(), Secrets: world.Secrets(),
		Clock: clock.System{}, Log: log, Meter: meter,
	}, system.Options{
		HTTPAllow: loopback, OwnPorts: []uint16{uint16(port)}, NoSignIn: true, Registry: registry,
		Worker: worker.Options{Name: "laptop", Pools: []string{"short", "long"}, Drain: drain},
	})

	if err := sys.DefineHandlers(context.Background(), tenant.Local, registry); err != nil {
		return fmt.Errorf("defining a task for each handler: %w", err)
	}

	// The first Ctrl-C drains, the second ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	server := &http.Server{Handler: routes(sys.API, meter, listener.Addr().String()),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: contract.MaxHeaders}
	failed := make(chan error, 1)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
			stop()
		}
	}()
	// Expired items are removed, as in DynamoDB.
	expire := time.NewTicker(time.Hour)
	defer expire.Stop()
	go func() {
		for {
			select {
			case <-expire.C:
				world.Table().Expire()
			case <-ctx.Done():
				return
			}
		}
	}()
	greet(listener.Addr().String())
	err = sys.Run(ctx)
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(closing) // cuts open connections; everything answered is stored
	select {
	case err = <-failed:
	default:
	}
	fmt.Println("drained; goodbye")
	return err
}

// listen refuses any address that other machines could reach: there is no authentication here.
func listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("-addr %q: want host:port, such as localhost:8080", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("-addr %q: want a port from 0 to 65535", addr)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("-addr %q: only loopback addresses (localhost, 127.0.0.1, [::1]) are served, "+
			"because nobody signs in here", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken; try: make run ADDR=localhost:8081", addr)
	}
	return listener, err
}

// routes serves the API for the one tenant of a laptop, and metrics.
func routes(rest http.Handler, meter *telemetry.Meter, addr string) http.Handler {
	local := tenant.Identity{Tenant: tenant.Local, Subject: "laptop",
		Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	// No mux: it would redirect paths that the API answers.
	return api.LoopbackOnly(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_ = meter.WriteText(w) // the client may be gone
			return
		}
		rest.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), local)))
	}))
}

func greet(addr string) {
	fmt.Printf(`Punctual on http://%s (in memory: what it holds is gone when it ends)

  curl --json '{"task":"echo","payload":{"hello":"world"},"delay":"3s"}' http://%[1]s/v1/jobs
  curl http://%[1]s/v1/jobs
  curl http://%[1]s/v1/openapi.json      Ctrl-C drains and ends
`, addr)
}
