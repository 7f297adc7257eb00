package engine

import (
	"log/slog"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/release"
	"punctual/shared/clock"
	"punctual/shared/telemetry"
)

// Store is what the verbs need of the table, each for its part.
type Store interface {
	accept.Jobs
	decide.Jobs
	recur.Store
}

// Deps is what the verbs need. A nil Meter drops metrics.
type Deps struct {
	Store  Store
	Queue  decide.Queue
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  *telemetry.Meter
	Shards int // of the due index; 0: contract.DefaultShards
}

// Engine is the verbs, each of which knows those below it.
type Engine struct {
	Arm    arm.Armer
	Accept *accept.Acceptor
	Decide *decide.Decider
	Recur  *recur.Recurrer
}

// New puts the verbs together: what ends a job is brought to its schedule and to its children.
func New(d Deps) Engine {
	r := recur.New(recur.Deps{Store: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards})
	return Engine{
		Arm:    arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		Accept: accept.New(accept.Deps{Jobs: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter}),
		Decide: decide.New(decide.Deps{
			Jobs: d.Store, Queue: d.Queue, Clock: d.Clock, Log: d.Log, Meter: d.Meter,
			Judge: r.Judge, OnFinal: []decide.OnFinal{r.Ended, release.Ended},
		}),
		Recur: r,
	}
}
