package laptop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"log/slog"

	"punctual/functions/api"
	"punctual/functions/console"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/usage"
	"punctual/shared/zonefile"
	"punctual/workers/handler"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// Options say where and how to serve.
type Options struct {
	Addr string // loopback only, because no one signs in; port 0 is any free one
	// Handlers registers the handlers that there are; nil: those of workers/handler.
	Handlers func(*worker.Registry)

	Drain time.Duration // how long running jobs may go on after Ctrl-C
	Info  bool          // log more than faults
	Data  string        // folder that keeps what is held; "": it is gone when the process ends
	// Secrets is a file of secrets that payloads may name: a JSON object of strings, or lines of NAME=value.
	// "" is none. Variables PUNCTUAL_SECRET_NAME of the environment are secrets, too.
	Secrets string
	// UsageTags are the names of the tags by which GET /v1/usage can be asked, at most three.
	UsageTags []string
	// At is what time it is at the start; the zero time is the real one. Speed is how many times as fast
	// time passes while nothing is under way, up to 600; 0 and 1 are as fast as it does. With either,
	// nothing can be kept.
	At    time.Time
	Speed int
	// Serving, if it is there, is called with the address once requests are taken, and Ending when the drain begins.
	Serving func(addr string)
	Ending  func()

	disk func(memory.Folder) memory.Folder // lets a test have a disk that fails; nil: the folder as it is
}

// leaps reports whether the time is another than the machine's.
func (o Options) leaps() bool { return !o.At.IsZero() || o.Speed > 1 }

// check returns what is wrong with the options together.
func (o Options) check() error {
	if o.Speed < 0 || o.Speed > maxSpeed {
		return fmt.Errorf("speed %d: want 1 to %d", o.Speed, maxSpeed)
	}
	if !o.At.IsZero() && (o.At.UTC().Year() < firstYear || o.At.UTC().Year() > lastYear) {
		return fmt.Errorf("time %s: want one of the years %d to %d: ids hold no time before 1970, and passes look back",
			o.At.Format(time.RFC3339), firstYear, lastYear)
	}
	if len(o.UsageTags) > usage.MaxTags {
		return fmt.Errorf("usage tags %s: want at most %d", strings.Join(o.UsageTags, ", "), usage.MaxTags)
	}
	if o.leaps() && o.Data != "" {
		return errors.New("with another time nothing is kept: what a folder holds goes on in real time")
	}
	return nil
}

// kept says what becomes of what is held.
func (o Options) kept() string {
	if o.Data == "" {
		return "in memory: what it holds is gone when it ends"
	}
	return "kept in " + o.Data
}

// Serve serves until ctx ends, or the process is interrupted, and then drains: the first Ctrl-C drains, the
// second ends the process at once. It returns an error when it cannot serve at Addr, and when what was answered may
// not be kept.
func Serve(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	listener, err := listen(o.Addr)
	if err != nil {
		return err
	}
	values, err := secrets(o.Secrets, os.Environ())
	if err != nil {
		return errors.Join(fmt.Errorf("reading secrets: %w", err), listener.Close())
	}
	var now clock.Clock = clock.System{}
	var ahead *leaping
	if o.leaps() {
		ahead = leapingFrom(o.At)
		now = ahead
	}
	zonefile.Take(os.Getenv("PUNCTUAL_ZONEINFO"), o.log("laptop"))
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	world, closeWorld, err := o.open(memory.Options{Clock: now}, o.log("laptop"), fail)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	for name, value := range values {
		world.Secrets().Put(secretARN(name), value)
	}
	s := server{Options: o, world: world, clock: now, ahead: ahead, listener: listener, fail: fail,
		drain: newDrain()}
	err = s.serve(ctx)
	if lost := context.Cause(ctx); lost != nil && !errors.Is(lost, context.Canceled) {
		err = errors.Join(err, lost)
	}
	_ = listener.Close() // it may be closed already
	return errors.Join(err, closeWorld())
}

// log returns the logger of a stage.
func (o Options) log(stage string) *slog.Logger {
	level := slog.LevelWarn
	if o.Info {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With(telemetry.Stage, stage)
}

// server is what serves once everything is open.
type server struct {
	Options
	world    *memory.World
	clock    clock.Clock
	ahead    *leaping // nil: the clock does not leap
	listener net.Listener
	fail     func(error) // ends the serving because of an error
	drain    *drain
}

// unready says why no request should be sent to this process; "" for no reason.
func (s *server) unready() string {
	if s.drain.begun() {
		return "the process is ending"
	}
	return unwritable(s.world)
}

// serve serves until ctx ends and everything is drained.
func (s *server) serve(ctx context.Context) error {
	registry := worker.NewRegistry()
	if s.Handlers == nil {
		s.Handlers = handler.All
	}
	s.Handlers(registry)
	addr := s.listener.Addr().(*net.TCPAddr)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	meter := new(telemetry.Meter)
	sys := system.Compose(system.Ports{
		Table: s.world.Table(), Blobs: s.world.Blobs(), Stream: s.world.Table(), Queues: s.world.Queues(),
		Timers: s.world.Timers(), Secrets: s.world.Secrets(), Search: s.world.Search(),
		Clock: s.clock, Log: s.log, Meter: meter,
	}, system.Options{
		HTTPAllow: loopback, OwnPorts: []uint16{uint16(addr.Port)}, NoSignIn: true, Registry: registry,
		Worker: worker.Options{Name: "laptop", Pools: []string{"short", "long"}, Drain: s.Drain, Seen: true,
			Version: worker.BuildVersion(), CancelCheck: time.Second},
		Unready: s.unready, Alone: true, Deadlines: time.Second, Stats: 5 * time.Second,
		UsageTags: s.UsageTags, Webhooks: true,
	})
	if err := sys.DefineHandlers(context.Background(), tenant.Local, registry); err != nil {
		return fmt.Errorf("defining a task for each handler: %w", err)
	}
	if err := sys.Reindex(context.WithoutCancel(ctx), s.world.Table()); err != nil {
		return fmt.Errorf("indexing the jobs: %w", err)
	}

	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var writes atomic.Int64
	if s.Speed > 1 {
		go s.ahead.run(ctx, s.world, s.Speed, &writes)
	}
	server := &http.Server{
		Handler:           s.drain.guard(writing(routes(sys.API, meter, addr.String()), &writes)),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: contract.MaxHeaders,
	}
	go func() {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(err)
		}
	}()
	go s.expire(ctx)
	if s.Serving != nil {
		s.Serving(addr.String())
	}
	begun := make(chan struct{})
	context.AfterFunc(ctx, func() { // once it has said that it serves
		defer close(begun)
		s.drain.begin()
		stop() // the next signal ends the process
		if s.Ending != nil {
			s.Ending()
		}
	})
	err := sys.Run(ctx)
	stop()
	<-begun
	s.drain.finish()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(closing) // cuts open connections; everything answered is stored
	return err
}

// expireEvery is how often expired items are removed, by the clock of the server.
const expireEvery = time.Hour

// expire removes expired items, as DynamoDB does, at the start and then each hour, until ctx ends.
func (s *server) expire(ctx context.Context) {
	s.world.Table().Expire()
	last := s.clock.Now()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if now := s.clock.Now(); now.Sub(last) >= expireEvery {
			s.world.Table().Expire()
			last = now
		}
	}
}

// listen refuses any address that other machines could reach: there is no authentication here.
func listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: want host:port, such as localhost:8080", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("address %q: want a port from 0 to 65535", addr)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("address %q: only loopback addresses (localhost, 127.0.0.1, [::1]) are served, "+
			"because nobody signs in here", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		next := n%65535 + 1
		return nil, fmt.Errorf("another process uses port %d of %s, perhaps another punctual serve or make run; "+
			"try another port: punctual serve --port %d, or make run ADDR=%s", n, host, next,
			net.JoinHostPort(host, strconv.Itoa(next)))
	}
	return listener, err
}

// routes serves the API for the one tenant of a laptop, the console page, and metrics.
func routes(rest http.Handler, meter *telemetry.Meter, addr string) http.Handler {
	local := tenant.Identity{Tenant: tenant.Local, Subject: "laptop",
		Scopes: []tenant.Scope{tenant.Read, tenant.Write, tenant.Admin}}
	page := console.New(console.Settings{})
	// No mux: it would redirect paths that the API answers.
	return loopbackOnly(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_ = meter.WriteText(w) // the client may be gone
			return
		}
		if console.Has(r.URL.Path) {
			page.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), local)))
	}))
}

// AnnounceDrain writes what goes on after the first Ctrl-C: an idle worker's last look at its queue takes seconds, too.
func (o Options) AnnounceDrain(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\ndraining: running jobs have %s to end; a second Ctrl-C ends everything at once\n", o.Drain)
}

// Greet writes how to use what is served at addr, and how payloads name the secrets.
func (o Options) Greet(w io.Writer, addr string) {
	_, _ = fmt.Fprintf(w, `Punctual on http://%s (%s)

  console    http://%[1]s/
  metrics    http://%[1]s/metrics
  API        http://%[1]s/v1/openapi.json
  documents  shared/docs

  curl --json '{"task":"echo","payload":{"hello":"world"},"delay":"3s"}' http://%[1]s/v1/jobs
  curl http://%[1]s/v1/jobs      Ctrl-C drains and ends
`, addr, o.kept())
	if !o.At.IsZero() {
		_, _ = fmt.Fprintf(w, "\nIt is %s.\n", o.At.Format(time.RFC3339))
	}
	if o.Speed > 1 {
		_, _ = fmt.Fprintf(w, "\nWhile nothing is under way, time passes %d times as fast.\n", o.Speed)
	}
	if values, err := secrets(o.Secrets, os.Environ()); err == nil && len(values) > 0 {
		_, _ = fmt.Fprint(w, "\nSecrets, for auth and sign_with of payloads:\n")
		for _, name := range slices.Sorted(maps.Keys(values)) {
			_, _ = fmt.Fprintln(w, "  "+secretARN(name))
		}
	}
}
