package system

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"punctual/functions/api"
	"punctual/functions/bulk"
	"punctual/functions/dispatch"
	"punctual/functions/events"
	"punctual/functions/promoter"
	"punctual/functions/redrive"
	"punctual/functions/search"
	"punctual/functions/stats"
	"punctual/functions/status"
	"punctual/functions/stream"
	"punctual/functions/sweeper"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/workers/executor"
	"punctual/workers/worker"
)

// System is the product, composed.
type System struct {
	API   http.Handler // nil when it is another process
	Store *store.Store

	worker *worker.Worker // nil when it is another process
	index  *search.Stage  // nil: jobs are not indexed
	counts *stats.Stage   // nil: nothing is counted
	pumps  []func(context.Context)
}

// Compose connects the parts in the order in which a job flows through them.
func Compose(p Ports, o Options) *System {
	if o.Pumps == 0 {
		o.Pumps = 2
	}
	base := func(p Ports, stage string) process.Base {
		return process.Base{Clock: p.Clock, Log: p.Log(stage), Meter: p.Meter, Shards: o.Shards,
			Announced: o.Webhooks}
	}
	storeOf := func(p Ports) *store.Store { return store.By(p.Clock, p.Table, p.Blobs) }

	// REST: writes jobs to the table.
	var rest http.Handler
	if !o.NoAPI {
		p := p.of("api")
		rest = api.New(api.Deps{
			Base: base(p, "api"), Store: storeOf(p), Queues: p.Queues, Timers: p.Timers,
			HTTPAllow: o.HTTPAllow, OwnPorts: o.OwnPorts, NoSignIn: o.NoSignIn, Unready: o.Unready,
			Search: searchOf(p), Counted: o.Stats > 0, UsageTags: o.UsageTags,
		})
	}
	// The table's stream: sends what is near, or asks for its slice.
	at := p.of("stream")
	onChange := stream.New(stream.Deps{Queue: at.Queues, Base: base(at, "stream")})
	// All changes of the table: what webhooks may ask for is announced, and what can be searched for is indexed.
	var others []onChanges
	if o.Webhooks {
		at = p.of("events")
		announce := events.New(events.Deps{Store: storeOf(at), Queue: at.Queues, Base: base(at, "events")})
		others = append(others, announce.Changes)
	}
	var index *search.Stage
	if p.Search != nil {
		at = p.of("search")
		index = search.New(search.Deps{Base: base(at, "search"), Store: storeOf(at), Index: at.Search})
		others = append(others, index.Changes)
	}
	// All changes of the table: what became of jobs, counted once the others are done with a change.
	var counts *stats.Stage
	if o.Stats > 0 {
		at = p.of("stats")
		counts = stats.New(stats.Deps{Store: storeOf(at), Base: base(at, "stats"), UsageTags: o.UsageTags})
		others = append(others, counts.Changes)
	}
	// Each minute: slices that enter the horizon, and overdue slices.
	at = p.of("promoter")
	promote := promoter.New(promoter.Deps{
		Store: storeOf(at), Queue: at.Queues, Base: base(at, "promoter"), Heartbeats: o.Heartbeats,
	})
	at = p.of("sweeper")
	sweep := sweeper.New(sweeper.Deps{Store: storeOf(at), Queue: at.Queues, Base: base(at, "sweeper"), Alone: o.Alone})
	// Slices get timers, and become firings at their time.
	at = p.of("dispatch")
	onDispatch := dispatch.New(dispatch.Deps{
		Base: base(at, "dispatch"), Store: storeOf(at), Queue: at.Queues, Timer: at.Timers,
	})
	// Workers run what is due, and report.
	var runner *worker.Worker
	if !o.NoWorker {
		at = p.of("worker")
		reach := at.Executors
		reach.Secrets, reach.HTTPAllow, reach.OwnPorts, reach.Clock = at.Secrets, o.HTTPAllow, o.OwnPorts, at.Clock
		runner = worker.New(worker.Deps{
			Base: base(at, "worker"), Queues: at.Queues, Store: storeOf(at), Registry: o.Registry,
			Executors: executor.Standard(reach),
		}, o.Worker)
	}
	// Reports are settled: the job is done, retried, or dead.
	at = p.of("status")
	onReport := status.New(status.Deps{Store: storeOf(at), Queue: at.Queues, Base: base(at, "status")})
	// Dead letters are buried, and redriven.
	at = p.of("redrive")
	onLetter := redrive.New(redrive.Deps{Store: storeOf(at), Queue: at.Queues, Base: base(at, "redrive")})
	// Operations on many jobs are continued.
	at = p.of("bulk")
	onBulk := bulk.New(bulk.Deps{Store: storeOf(at), Queue: at.Queues, Search: searchOf(at),
		Base: base(at, "bulk")})

	pumpOf := func(p Ports) pump {
		return pump{queues: p.Queues, stream: p.Stream, clock: p.Clock, log: p.Log("pump")}
	}
	source := pumpOf(p.of("source"))
	s := &System{API: rest, Store: storeOf(p), worker: runner, index: index, counts: counts}
	s.pumps = append(s.pumps,
		source.changes(onChange.Handle, others...),
		source.minutes("promoter", func(ctx context.Context) error { _, err := promote.Handle(ctx, nil); return err }),
		source.minutes("sweeper", func(ctx context.Context) error { _, err := sweep.Handle(ctx, nil); return err }),
		source.messages(contract.DispatchQueue, onDispatch.Handle),
		source.messages(contract.RedriveQueue, onLetter.Handle),
		source.messages(contract.BulkQueue, onBulk.Handle),
		source.messages(contract.BulkQueue, onBulk.Handle), // one operation does not keep another waiting
	)
	if o.Alone {
		s.pumps = append(s.pumps, source.once("operations", sweep.Resume))
	}
	if counts != nil {
		s.pumps = append(s.pumps, source.every(o.Stats, "stats", counts.Flush))
	}
	if o.Deadlines > 0 {
		s.pumps = append(s.pumps, source.every(o.Deadlines, "deadlines", sweep.Deadlines))
	}
	for range o.Pumps {
		s.pumps = append(s.pumps, pumpOf(p.of("source")).messages(contract.ReportQueue, onReport.Handle))
	}
	return s
}

// searchOf returns what reads the index, nil if there is none.
func searchOf(p Ports) store.SearchReader {
	if p.Search == nil {
		return nil // and no interface that holds nil
	}
	return p.Search
}

// DefineHandlers puts a task of the tenant for every handler without one.
func (s *System) DefineHandlers(ctx context.Context, t tenant.ID, r *worker.Registry) error {
	for _, name := range r.Names() {
		_, err := s.Store.UpdateTask(ctx, t, name, func(old *job.Task) (job.Task, error) {
			if old != nil {
				return *old, nil
			}
			return job.Task{
				Name: name, Executor: job.ExecutorGo, Pool: contract.DefaultPool, Priority: job.Normal,
				Timeout: contract.DefaultTimeout, Retry: job.DefaultRetry,
			}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Reindex makes the index from the jobs table.
func (s *System) Reindex(ctx context.Context, jobs store.Scanner) error {
	_, err := (&search.Rebuild{Stage: s.index, Jobs: jobs}).Handle(ctx, search.Progress{})
	return err
}

// Gauge measures the worker's taken slots, its sign of life, as its process does before it writes its metrics.
func (s *System) Gauge() {
	if s.worker != nil {
		s.worker.Gauge()
	}
}

// Run runs everything until ctx ends. Then the worker drains while the other stages settle its
// reports; Run returns when all have stopped.
func (s *System) Run(ctx context.Context) error {
	draining, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var stages sync.WaitGroup
	for _, run := range s.pumps {
		stages.Go(func() { run(draining) })
	}
	var err error
	if s.worker != nil {
		err = s.worker.Run(ctx)
	} else {
		<-ctx.Done()
	}
	stop()
	stages.Wait()
	if s.counts != nil {
		err = errors.Join(err, s.counts.Flush(context.WithoutCancel(ctx)))
	}
	return err
}
