package engine

import (
	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/backfill"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/limits"
	"punctual/functions/engine/notify"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/stop"
	"punctual/shared/process"
	"punctual/shared/store"
)

// Store is what the verbs need of the table.
type Store interface {
	accept.Jobs
	decide.Jobs
	recur.Store
	runs.Store
	limits.Store
	backfill.Store
	notify.Store
}

// Deps is what the verbs need.
type Deps struct {
	process.Base
	Store Store
	Queue decide.Queue
	// RateLimit is what each tenant may do; what runs release draws on it. The zero RateLimit is no bound.
	RateLimit store.RateLimit
	// Schemas validates payloads and params. Nil: a schema.Cache of its own.
	Schemas runs.Schemas
}

// Engine carries out what happens to jobs, schedules and runs. It is safe for concurrent use.
type Engine struct {
	Arm    arm.Armer
	Accept *accept.Acceptor
	Recur  *recur.Recurrer
	Runs   *Runs
	Notify *notify.Notifier // of webhooks
	// Backfills makes past times of schedules.
	Backfills *backfill.Backfiller

	deps   Deps
	ask    arm.Asker
	decide *decide.Decider
	runs   *runs.Controller
	limits *limits.Limits
}

// New returns an Engine.
func New(d Deps) *Engine {
	d.Base = d.WithDefaults()
	acceptor := accept.New(accept.Deps{Base: d.Base, Jobs: d.Store, Queue: d.Queue})
	ask := arm.Asker{Queue: d.Queue}
	announcer := notify.New(notify.Deps{Base: d.Base, Store: d.Store, Accept: acceptor})
	controller := runs.New(runs.Deps{
		Base: d.Base, Store: d.Store, Jobs: nodeJobs{acceptor, stop.Stopper{Jobs: d.Store, Log: d.Log}, ask},
		Schemas: d.Schemas, RateLimit: d.RateLimit, Webhooks: announcer,
	})
	schedules := recur.New(recur.Deps{Base: d.Base, Store: d.Store, Queue: d.Queue, Notify: announcer})
	ofWork := &limits.Limits{Base: d.Base, Store: d.Store}
	e := &Engine{
		Arm: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter}, Accept: acceptor, Recur: schedules,
		Notify:    announcer,
		Backfills: &backfill.Backfiller{Base: d.Base, Store: d.Store, Accept: acceptor, Notify: announcer},
		deps:      d, ask: ask, runs: controller, limits: ofWork,
		decide: decide.New(decide.Deps{
			Base: d.Base, Jobs: d.Store, Queue: d.Queue,
			Schedules: schedules, Runs: controller, Limits: ofWork,
		}),
	}
	e.Runs = &Runs{Controller: controller, Performer: e}
	return e
}

// nodeJobs is what runs do with the jobs of their nodes.
type nodeJobs struct {
	*accept.Acceptor
	stop.Stopper
	arm.Asker
}
