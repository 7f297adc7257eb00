package api

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/netip"

	"punctual/functions/api/spec"
	"punctual/functions/api/wire"
	"punctual/functions/engine"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/schema"
	"punctual/shared/store"
	"punctual/shared/target"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Queue sends firings and dispatches.
type Queue interface {
	// Send sends any number of messages. Those that were not sent come back as *message.Unsent.
	Send(ctx context.Context, queue string, out ...message.Outgoing) error
	// Depth returns about how many messages a queue holds.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Timers arms what is due later than a delayed message can reach.
type Timers interface {
	Arm(ctx context.Context, t message.Timer) error
}

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
	NoSignIn bool      // no token is needed, and the document asks for none: the laptop
	Entropy  io.Reader // of job ids; nil: crypto/rand
	// ScheduleQuota is how many times a minute all schedules of a tenant may run, each counted at its busiest and at
	// least once; 0: contract.ScheduleQuota.
	ScheduleQuota int
	// Unready returns why this process should be sent no requests now, in words for a client; "" for no reason. Nil:
	// there never is one.
	Unready func() string
	// Waiting is how many requests of a tenant may wait at once; 0 is no bound.
	Waiting int
	// Allowance bounds the requests of each tenant, and what they weigh; the zero Allowance is no bound.
	Allowance store.Allowance
}

// stage is the handler, with what its calls share.
type stage struct {
	Deps
	router  *wire.Router
	schemas *schema.Cache
	entropy *entropy
	engine  engine.Engine
	pauses  pausesSeen

	collected  collected
	allowances allowances
}

// New returns the REST API as an http.Handler.
func New(d Deps) http.Handler {
	if d.Clock == nil {
		d.Clock = clock.System{}
	}
	if d.Log == nil {
		d.Log = telemetry.Silent()
	}
	if d.Shards == 0 {
		d.Shards = contract.DefaultShards
	}
	if d.ScheduleQuota == 0 {
		d.ScheduleQuota = contract.ScheduleQuota
	}
	if d.Entropy == nil {
		d.Entropy = rand.Reader
	}
	s := &stage{Deps: d, schemas: schema.NewCache(), entropy: &entropy{r: d.Entropy}}
	s.engine = engine.New(engine.Deps{Store: d.Store, Queue: d.Queues, Clock: d.Clock, Log: d.Log, Meter: d.Meter,
		Shards: d.Shards, Schemas: s.schemas, RateLimit: d.Allowance})
	if s.Runs == nil {
		s.Runs = s.engine.Release
	}
	o := wire.Options{
		Title: "Punctual", Version: "1", About: about, SchemaName: schemaName, Catalogue: spec.Catalogue,
		NoSignIn: d.NoSignIn, Log: d.Log, Meter: d.Meter,
	}
	if d.Allowance.Rate > 0 {
		o.Limit, o.Weigh = s.allow, s.weighBody
	}
	s.router = wire.NewRouter(o)
	s.jobRoutes()
	s.taskRoutes()
	s.deadLetterRoutes()
	s.scheduleRoutes()
	s.occurrenceRoutes()
	s.previewRoutes()
	s.exclusionRoutes()
	s.pauseRoutes()
	s.dagRoutes()
	s.runRoutes()
	s.systemRoutes()
	return s.router
}

// about is the introduction in the OpenAPI document.
const about = "Say what to run and when; it runs once, on time, retried, ordered, and accounted for. " +
	"v1 only grows: ignore what you don't know. Times are RFC 3339 in UTC with milliseconds. " +
	"Errors are problems of RFC 9457 with a stable code. Every answer has X-Request-Id; " +
	"503 carries Retry-After, and 429 where waiting helps."

// WithIdentity returns a context with the caller's identity; see wire.WithIdentity.
func WithIdentity(ctx context.Context, id tenant.Identity) context.Context {
	return wire.WithIdentity(ctx, id)
}

// MustRanges reads address ranges for Deps.HTTPAllow. It panics if one cannot be read.
func MustRanges(cidrs []string) []netip.Prefix {
	ranges, err := target.Ranges(cidrs)
	if err != nil {
		panic(err)
	}
	return ranges
}

// The tags of the OpenAPI document, and short names of the scopes.
const (
	tagJobs      = "jobs"
	tagDead      = "dead letters"
	tagTasks     = "tasks"
	tagPauses    = "pauses"
	tagSchedules = "schedules"
	tagDags      = "dags"
	tagRuns      = "runs"
	tagSystem    = "system"
	mayRead      = tenant.Read
	mayWrite     = tenant.Write
	mayManage    = tenant.Admin
	anybody      = tenant.Scope("") // any scope, but an identity
)
