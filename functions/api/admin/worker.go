package admin

import (
	"context"

	"golang.org/x/sync/errgroup"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *Handler) workerRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagSystem, Path: "/v1/workers"}
	rest.Get(on, "", "listWorkers", "List the workers, and how full the queues are", s.workers, rest.Route{
		Scope: tenant.Admin,
		About: "Lists the workers of the deployment, which all tenants share. A worker notes every " +
			"{=worker_seen_s} s what it does. One that ends is not listed any more at once, and one that is lost " +
			"{=worker_gone_min} minutes after its last note. The numbers of queues are approximate on AWS.",
	})
}

type workerView struct {
	Worker    string       `json:"worker" doc:"Name of the worker, as attempts show it"`
	Pool      string       `json:"pool" doc:"Pool that it serves; a worker of several pools is listed once for each"`
	Version   string       `json:"version" doc:"Version or commit of its program; empty if it is not known"`
	StartedAt rest.Instant `json:"started_at" doc:"Time at which it started"`
	SeenAt    rest.Instant `json:"seen_at" doc:"Time of its newest note"`
	Slots     int          `json:"slots" doc:"Number of attempts that it runs at a time"`
	Busy      int          `json:"busy" doc:"Number of slots in use at the newest note"`
	Draining  bool         `json:"draining" doc:"Whether it takes no new work because it is about to end"`
}

type queueView struct {
	Pool     string `json:"pool" doc:"Pool of the queue"`
	Priority string `json:"priority" doc:"Priority of the queue"`
	Waiting  int    `json:"waiting" doc:"Number of starts in the queue that a worker can take now"`
	Delayed  int    `json:"delayed" doc:"Number of starts in the queue whose time has not come"`
	OldestS  *int   `json:"oldest_s" doc:"Age in seconds of the oldest start that a worker can take; null if there is none, and always on AWS, where CloudWatch has it"`
}

type workersAnswer struct {
	Body struct {
		Items  []workerView `json:"items" doc:"Workers, by pool and then by name"`
		Queues []queueView  `json:"queues" doc:"Queues of the pools, by priority, critical first"`
	}
}

func (s *Handler) workers(ctx context.Context, _ tenant.Identity, _ *rest.NoInput) (*workersAnswer, error) {
	out := &workersAnswer{}
	found, err := s.Store.Workers(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	out.Body.Items = make([]workerView, len(found))
	for n, w := range found {
		out.Body.Items[n] = viewWorker(w)
	}
	out.Body.Queues, err = s.queues(ctx)
	return out, err
}

func viewWorker(w store.Worker) workerView {
	return workerView{Worker: w.Name, Pool: w.Pool, Version: w.Version, StartedAt: rest.At(w.StartedAt),
		SeenAt: rest.At(w.SeenAt), Slots: w.Slots, Busy: w.Busy, Draining: w.Draining}
}

// queues asks all firing queues at once what they hold.
func (s *Handler) queues(ctx context.Context) ([]queueView, error) {
	views := make([]queueView, 0, len(contract.Pools)*len(contract.Priorities))
	for _, pool := range contract.Pools {
		for _, priority := range contract.Priorities {
			views = append(views, queueView{Pool: pool, Priority: priority})
		}
	}
	now := s.Now()
	g, ctx := errgroup.WithContext(ctx)
	for n := range views {
		v := &views[n]
		g.Go(func() error {
			depth, err := s.Deps.Queues.Depth(ctx, contract.FiringQueue(v.Pool, v.Priority))
			v.Waiting, v.Delayed = depth.Visible, depth.Delayed
			if !depth.OldestAt.IsZero() {
				v.OldestS = new(int(max(0, now.Sub(depth.OldestAt)).Seconds()))
			}
			return err
		})
	}
	return views, g.Wait()
}
