package spec

import (
	"io"
	"net/netip"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/ahead"
	"punctual/functions/engine/amend"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/decide"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/notify"
	"punctual/functions/engine/operate"
	"punctual/functions/engine/pause"
	"punctual/functions/engine/ratelimit"
	"punctual/functions/engine/show"
	"punctual/functions/engine/submit"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/schema"
	"punctual/shared/store"
)

// Deps holds what the stage needs.
type Deps struct {
	process.Base
	Store  Store
	Search store.SearchReader // nil: jobs are not indexed
	// Counted says that what became of jobs is counted.
	Counted bool
	// UsageTags are the names of the tags by which it is counted what jobs used.
	UsageTags []string
	Queues    decide.Queue
	Timers    message.Timers
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
	// AuditKept is how long entries of the audit are kept; 0: contract.AuditKept.
	AuditKept time.Duration
	// RateLimit bounds the requests of each tenant, and what they weigh; the zero RateLimit is no bound.
	RateLimit store.RateLimit
}

// Core is what the handlers of all resources share.
type Core struct {
	Deps
	Router  *rest.Router
	Schemas *schema.Cache
	Entropy *accept.Entropy
	Engine  *engine.Engine
	Runs    *engine.Runs // of Engine
	Read    *show.Reader
	Ahead   *ahead.Forecaster
	Editor  *amend.Editor // of schedules
	Jobs    *edit.Editor
	Notify  *notify.Notifier // of webhooks
	Submit  *submit.Submitter
	Bulk    *operate.Operator
	Limit   *ratelimit.Limiter
	Pauses  *pause.Editor // of all jobs, or of one task
	Wake    arm.Waker     // asks dispatch to decide about jobs that wait
}

// NewCore returns a Core, without its Router.
func NewCore(d Deps) *Core {
	c := &Core{Deps: d, Schemas: schema.NewCache(), Entropy: &accept.Entropy{R: d.Entropy}}
	c.Engine = engine.New(engine.Deps{Base: d.Base, Store: d.Store, Queue: d.Queues, Schemas: c.Schemas,
		RateLimit: d.RateLimit})
	c.Runs = c.Engine.Runs
	c.Read = &show.Reader{Base: d.Base, Store: d.Store, Nodes: c.Runs.Nodes, Search: d.Search}
	c.Ahead = ahead.New(d.Base, d.Store)
	wake := arm.Waker{Queue: d.Queues, Timers: d.Timers, Clock: d.Clock, Log: d.Log}
	c.Editor = &amend.Editor{Store: d.Store, Engine: c.Engine, Read: c.Read, Wake: wake, Entropy: c.Entropy,
		Log: d.Log, Quota: d.ScheduleQuota}
	c.Jobs = &edit.Editor{Store: d.Store, Read: c.Read, Accept: c.Engine.Accept, Decisions: c.Engine,
		Queue: d.Queues, Log: d.Log}
	c.Bulk = &operate.Operator{Base: d.Base, Store: d.Store, Queue: d.Queues, Read: c.Read, Edit: c.Jobs, Runs: c.Runs,
		Entropy: c.Entropy, Schemas: c.Schemas, Notify: c.Engine.Notify}
	c.Submit = &submit.Submitter{Base: d.Base, Store: d.Store, Accept: c.Engine.Accept, Runs: c.Runs,
		Edit: c.Jobs, Backfills: c.Engine.Backfills, Bulk: c.Bulk, Entropy: c.Entropy}
	c.Notify = c.Engine.Notify
	c.Pauses, c.Wake = pause.NewEditor(d.Store, wake, d.Clock), wake
	c.Limit = &ratelimit.Limiter{Store: d.Store, Clock: d.Clock, Log: d.Log, RateLimit: d.RateLimit, Waiting: d.Waiting}
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
	TagLimits     = "limits"
	TagOperations = "operations"
	TagWebhooks   = "webhooks"
	TagDags       = "dags"
	TagRuns       = "runs"
	TagStats      = "stats"
	TagForecast   = "forecast"
	TagAudit      = "audit"
	TagSystem     = "system"
)

// BatchWriters is how many jobs of one batch are written at the same time.
const BatchWriters = 16
