package decide

import (
	"time"

	"punctual/functions/engine/arm"
	"punctual/functions/engine/limits"
	"punctual/functions/engine/pause"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/stop"
	"punctual/shared/cache"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Jobs are the rows that a Decider decides about, with their claims and pauses.
type Jobs interface {
	store.JobWriter
	store.ClaimReader
	store.PauseReader
	store.NoteWriter
	store.WaitingKeys
	store.Writes
}

// Queue sends firings and reports, and says how full the queues of firings are.
type Queue interface {
	message.Sender
	message.Depths
}

// Deps is what a Decider needs.
type Deps struct {
	process.Base
	Jobs  Jobs
	Queue Queue
	// Schedules, Runs and Limits are asked before a job of theirs starts.
	Schedules *recur.Recurrer
	Runs      *runs.Controller
	Limits    *limits.Limits
}

// Decider decides about single jobs. What follows the ends that it brings about it leaves to its caller, as an
// effect.List. It is safe for concurrent use.
type Decider struct {
	Deps
	armer  arm.Armer
	stop   stop.Stopper
	pauses *pause.Pauses
	depths *cache.Cache[string, int]
}

const (
	depthAge  = 30 * time.Second // SQS's own numbers are as old
	maxDepths = 1000
)

// New returns a Decider.
func New(d Deps) *Decider {
	d.Base = d.WithDefaults()
	return &Decider{
		Deps: d, armer: arm.Armer{Queue: d.Queue, Log: d.Log, Meter: d.Meter},
		stop:   stop.Stopper{Jobs: d.Jobs, Log: d.Log},
		pauses: pause.New(d.Jobs.PausesOf, d.Clock),
		depths: cache.New[string](cache.Options[int]{Age: depthAge, Most: maxDepths, Now: d.Clock.Now}),
	}
}

// Reread makes the next decision about a tenant's jobs read its pauses from the table; the caller knows that one
// has just changed.
func (d *Decider) Reread(t tenant.ID) { d.pauses.Drop(t) }
