// The worker's process serves one pool of a deployment until SIGTERM, then drains. Package worker
// says what it does, contract.Env what it is configured with.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // for handlers: the image holds no file of time zones

	_ "golang.org/x/crypto/x509roots/fallback" // the image holds no root certificates; a host's own come first

	"punctual/shared/aws/blob"
	"punctual/shared/aws/function"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/secret"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
	"punctual/workers/handler"
	"punctual/workers/worker"
)

// metricsEvery is how often what was counted is written to the log, for CloudWatch to take.
const metricsEvery = time.Minute

// probeWithin is how long a probe may take to ask.
const probeWithin = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	env := contract.MustEnv(os.LookupEnv, "PUNCTUAL_BUCKET")
	meter := &telemetry.Meter{Namespace: env.Namespace()}
	cfg := session.Metered(session.MustLoad(ctx), meter)
	log := telemetry.Logger(os.Stdout, "worker")
	name, _ := os.Hostname() // of the pod; without one the worker makes up a name

	registry := worker.NewRegistry()
	handler.All(registry)
	w := worker.New(worker.Deps{
		Queues: queue.New(cfg, env.QueueName),
		Store:  store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Executors: executor.Standard(executor.Options{
			Deployment: env.Prefix, Secrets: secret.New(cfg), Functions: function.New(cfg),
			Queues:    queue.NewTenants(cfg),
			HTTPAllow: prefixes(env.HTTPAllow),
		}),
		Registry: registry, Base: process.Base{Clock: clock.System{}, Log: log, Meter: meter},
	}, worker.Options{
		Name: name, Pools: []string{env.Pool}, Slots: env.Slots, Drain: time.Duration(env.DrainSeconds) * time.Second,
		Version: worker.BuildVersion(), Seen: true,
	})

	go flush(w, meter, os.Stdout)
	go serve(w.Ready, log)
	err := w.Run(ctx)
	_ = meter.Flush(os.Stdout, time.Now()) // no caller is left to notify
	if err != nil {
		log.Error("worker failed", telemetry.Err, err)
		os.Exit(1)
	}
}

func flush(w *worker.Worker, meter *telemetry.Meter, to io.Writer) {
	for now := range time.Tick(metricsEvery) {
		w.Gauge()
		_ = meter.Flush(to, now) // a closed log ends the pod anyway
	}
}

// serve answers the cluster: /live as long as the process runs, /ready while it takes work. A pod is
// replaced for the first alone, so that a table that is away takes no workers along.
func serve(ready func(context.Context) error, log *slog.Logger) {
	s := http.Server{Addr: fmt.Sprintf(":%d", contract.HealthPort), Handler: probes(ready, log),
		ReadHeaderTimeout: probeWithin}
	if err := s.ListenAndServe(); err != nil {
		log.Error("could not answer probes", telemetry.Err, err) // the cluster then ends the pod
	}
}

func probes(ready func(context.Context) error, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /ready", func(rw http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			log.Warn("was not ready", telemetry.Err, err)
			http.Error(rw, "not ready", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// prefixes reads the ranges that http jobs may reach although they are special. One that is
// misspelled ends the process: leaving it out would break jobs, guessing could open too much.
func prefixes(ranges []string) []netip.Prefix {
	all := make([]netip.Prefix, len(ranges))
	for i, s := range ranges {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}
