package spec

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine"
	"punctual/functions/engine/show"
	"punctual/shared/cache"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Deps holds what the stage needs.
type Deps struct {
	Store  Store
	Queues Queue
	Timers Timers
	Runs   Runs             // nil: the engine's
	Clock  clock.Clock      // nil: the system's
	Log    *slog.Logger     // nil: nothing is logged
	Meter  *telemetry.Meter // nil: nothing is counted
	Shards int              // of the due index; 0: contract.DefaultShards
	// Deployment is the prefix in the names of its tenants' secrets; "": contract.DefaultPrefix
	Deployment string
	HTTPAllow  []netip.Prefix // special-purpose ranges that http jobs may reach; none: none
	// OwnPorts are ports on this machine's loopback addresses that no http job may reach, whatever HTTPAllow says.
	OwnPorts []uint16
	NoSignIn bool      // no token is needed, and the document says so: the laptop
	Entropy  io.Reader // of job ids; nil: crypto/rand
	// ScheduleQuota is how many times a minute all schedules of a tenant may run, each counted at its busiest and at
	// least once; 0: contract.ScheduleQuota.
	ScheduleQuota int
	// Unready returns why this process should be sent no requests now, in words for a client; "" for no reason. Nil:
	// there never is one.
	Unready func() string
	// Waiting is how many requests of a tenant may wait at once; 0 is no bound.
	Waiting int
	// RateLimit bounds the requests of each tenant, and what they weigh; the zero RateLimit is no bound.
	RateLimit store.RateLimit
}

// Core is what the handlers of all resources share.
type Core struct {
	Deps
	Router  *rest.Router
	Schemas *schema.Cache
	Entropy *Entropy
	Engine  *engine.Engine
	Read    *show.Reader
	Pauses  *cache.Cache[tenant.ID, job.Pauses]

	collected collected
	lots      lots
}

// NewCore returns a Core, without its Router.
func NewCore(d Deps) *Core {
	c := &Core{Deps: d, Schemas: schema.NewCache(), Entropy: &Entropy{R: d.Entropy}}
	c.Pauses = cache.New[tenant.ID](cache.Options[job.Pauses]{Age: pausesFor, Most: maxPausesSeen, Now: c.Now})
	c.Engine = engine.New(engine.Deps{Store: d.Store, Queue: d.Queues, Clock: d.Clock, Log: d.Log, Meter: d.Meter,
		Shards: d.Shards, Schemas: c.Schemas, RateLimit: d.RateLimit})
	if c.Runs == nil {
		c.Runs = c.Engine.Runs
	}
	c.Read = &show.Reader{Store: d.Store, Nodes: c.Runs.Nodes, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards}
	return c
}

// The tags of the OpenAPI document.
const (
	TagJobs       = "jobs"
	TagDead       = "dead letters"
	TagTasks      = "tasks"
	TagPauses     = "pauses"
	TagSchedules  = "schedules"
	TagExclusions = "exclusions"
	TagDags       = "dags"
	TagRuns       = "runs"
	TagSystem     = "system"
)

// Entropy makes a reader safe for concurrent use.
type Entropy struct {
	mu sync.Mutex
	R  io.Reader
}

// Next returns the random part of a new id.
func (e *Entropy) Next() (b [10]byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err = io.ReadFull(e.R, b[:]); err != nil {
		err = fmt.Errorf("reading entropy for a job id: %w", err)
	}
	return b, err
}

// SendTimeout bounds the sends after a job was written, because the client still waits for the answer.
const SendTimeout = 5 * time.Second

// Fire sends firings of jobs that are due now. A failure is only logged: the jobs are accepted, and the due index
// brings them.
func (s *Core) Fire(ctx context.Context, firings ...job.Firing) {
	if len(firings) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SendTimeout)
	defer cancel()
	s.Engine.Accept.Fire(ctx, string(horizon.Now), firings...)
}

// BatchWriters is how many jobs of one batch are written at the same time.
const BatchWriters = 16

// collected remembers when this process last asked for a collection of dead letters.
type collected struct {
	mu sync.Mutex
	at time.Time
}

// lately reports whether a collection that was asked for before covers a request made now. If not, it records now as
// the time of a new one.
func (c *collected) lately(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := now.Sub(c.at); age >= 0 && age < contract.LettersCollectedAfter/2 {
		return true
	}
	c.at = now
	return false
}

// Collect asks for the removal of dead letters whose jobs are no longer dead. The collection begins after a delay, so
// it covers the jobs of this request. If the message cannot be sent, the letters stay until the next collection, or
// until the queue drops them after contract.DeadLetterKept.
func (s *Core) Collect(ctx context.Context) {
	if s.collected.lately(s.Now()) {
		return
	}
	err := s.Queues.Send(ctx, contract.RedriveQueue, message.Outgoing{
		Body:  message.Encode(message.Collect{V: message.V, Collect: true}),
		Delay: contract.LettersCollectedAfter,
	})
	if err != nil {
		s.Log.WarnContext(ctx, "dead letters were left in their queue", telemetry.Err, err.Error())
	}
}
