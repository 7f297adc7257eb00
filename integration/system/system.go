package system

import (
	"context"
	"net/http"
	"sync"

	"punctual/functions/api"
	"punctual/functions/dispatch"
	"punctual/functions/promoter"
	"punctual/functions/redrive"
	"punctual/functions/status"
	"punctual/functions/stream"
	"punctual/functions/sweeper"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/workers/executor"
	"punctual/workers/worker"
)

// System is the product, composed.
type System struct {
	API   http.Handler
	Store *store.Store

	worker *worker.Worker // nil when it is a process of its own
	pumps  []func(context.Context)
}

// Compose puts the parts together in the order in which a job flows through them.
func Compose(p Ports, o Options) *System {
	if o.Shards == 0 {
		o.Shards = contract.DefaultShards
	}
	if o.Pumps == 0 {
		o.Pumps = 2
	}
	st := store.New(p.Table, p.Blobs)

	// REST: a job is accepted into the table.
	rest := api.New(api.Deps{
		Store: st, Queues: p.Queues, Timers: p.Timers, Clock: p.Clock, Log: p.Log("api"), Meter: p.Meter,
		Shards: o.Shards, HTTPAllow: o.HTTPAllow,
	})
	// The table's stream: what is near is armed, or sent.
	onChange := stream.New(stream.Deps{Queue: p.Queues, Timer: p.Timers, Clock: p.Clock, Log: p.Log("stream"), Meter: p.Meter})
	// Each minute: slices that enter the horizon, slices left behind.
	promote := promoter.New(promoter.Deps{Store: st, Queue: p.Queues, Timer: p.Timers, Clock: p.Clock, Log: p.Log("promoter"), Meter: p.Meter, Shards: o.Shards})
	sweep := sweeper.New(sweeper.Deps{Store: st, Queue: p.Queues, Clock: p.Clock, Log: p.Log("sweeper"), Meter: p.Meter, Shards: o.Shards})
	// Timers and crowded slices become firings.
	onDispatch := dispatch.New(dispatch.Deps{Store: st, Queue: p.Queues, Clock: p.Clock, Log: p.Log("dispatch"), Meter: p.Meter})
	// Workers run what is due, and report.
	var runner *worker.Worker
	if !o.NoWorker {
		runner = worker.New(worker.Deps{
			Queues: p.Queues, Store: st, Registry: o.Registry, Clock: p.Clock, Log: p.Log("worker"), Meter: p.Meter,
			Executors: executor.Standard(executor.Options{
				Secrets: p.Secrets, Functions: p.Functions, HTTPAllow: o.HTTPAllow, OwnPorts: o.OwnPorts, Clock: p.Clock,
			}),
		}, o.Worker)
	}
	// Reports are settled: done, again, or dead.
	onReport := status.New(status.Deps{Store: st, Queue: p.Queues, Clock: p.Clock, Log: p.Log("status"), Meter: p.Meter})
	// Dead letters are buried, and brought back.
	onLetter := redrive.New(redrive.Deps{Store: st, Queue: p.Queues, Clock: p.Clock, Log: p.Log("redrive"), Meter: p.Meter})

	source := pump{queues: p.Queues, stream: p.Stream, clock: p.Clock, log: p.Log("pump")}
	s := &System{API: rest, Store: st, worker: runner}
	s.pumps = append(s.pumps,
		source.changes(onChange.Handle),
		source.minutes("promoter", func(ctx context.Context) error { _, err := promote.Handle(ctx, nil); return err }),
		source.minutes("sweeper", func(ctx context.Context) error { _, err := sweep.Handle(ctx, nil); return err }),
		source.messages(contract.DispatchQueue, onDispatch.Handle),
		source.messages(contract.RedriveQueue, onLetter.Handle),
	)
	for range o.Pumps {
		s.pumps = append(s.pumps, source.messages(contract.ReportQueue, onReport.Handle))
	}
	return s
}

// Run runs everything until ctx ends. Then the worker drains first, while the other stages
// still settle what it reports; Run returns when all have come to rest.
func (s *System) Run(ctx context.Context) error {
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var stages sync.WaitGroup
	for _, run := range s.pumps {
		stages.Go(func() { run(behind) })
	}
	var err error
	if s.worker != nil {
		err = s.worker.Run(ctx)
	} else {
		<-ctx.Done()
	}
	stop()
	stages.Wait()
	return err
}
