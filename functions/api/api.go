package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"punctual/functions/engine"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/target"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Queue is where firings and dispatches go.
type Queue interface {
	// Send sends any number of messages; those that were not taken come back as *message.Unsent.
	Send(ctx context.Context, queue string, out ...message.Outgoing) error
	// Depth says about how much a queue holds.
	Depth(ctx context.Context, queue string) (message.Depth, error)
}

// Timers arms what is due beyond the reach of a queue's delay.
type Timers interface {
	Arm(ctx context.Context, t message.Timer) error
}

// Deps is what the stage works with.
type Deps struct {
	Store     *store.Store
	Queues    Queue
	Timers    Timers
	Clock     clock.Clock      // nil: the system's
	Log       *slog.Logger     // nil: nothing is logged
	Meter     *telemetry.Meter // nil: nothing is counted
	Shards    int              // of the due index; 0: contract.DefaultShards
	HTTPAllow []netip.Prefix   // special-purpose ranges that http jobs may name; none: none
	OwnPorts  []uint16         // on this machine's loopback addresses no http job may name them, whatever HTTPAllow says
	NoSignIn  bool             // nobody is asked for a token, so the document asks for none: the laptop
	Entropy   io.Reader        // of job ids; nil: crypto/rand
	// ScheduleQuota is how many times a minute a tenant's schedules may run in all, each counted
	// at its busiest and at least once; 0: contract.ScheduleQuota.
	ScheduleQuota int
}

// stage is the handler with all that its calls share.
type stage struct {
	Deps
	mux     *http.ServeMux
	literal map[string][]string // methods of the paths without a parameter
	huma    huma.API
	schemas *schemaCache
	entropy *entropy
	engine  engine.Engine
	pauses  pausesSeen
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
	s := &stage{Deps: d, mux: http.NewServeMux(), schemas: newSchemaCache(), entropy: &entropy{r: d.Entropy}}
	s.engine = engine.New(engine.Deps{Store: d.Store, Queue: d.Queues, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Shards: d.Shards})
	s.huma = humago.New(s.mux, humaConfig())
	if d.NoSignIn {
		s.huma.OpenAPI().Components.SecuritySchemes = nil
	}
	s.jobRoutes()
	s.taskRoutes()
	s.deadLetterRoutes()
	s.scheduleRoutes()
	s.occurrenceRoutes()
	s.previewRoutes()
	s.exclusionRoutes()
	s.pauseRoutes()
	s.systemRoutes()
	s.literal = literalPaths(s.huma.OpenAPI().Paths)
	return s
}

// MustRanges reads address ranges for Deps.HTTPAllow; one that cannot be read ends the process.
func MustRanges(cidrs []string) []netip.Prefix {
	ranges, err := target.Ranges(cidrs)
	if err != nil {
		panic(err)
	}
	return ranges
}

// humaConfig is all that we take of huma's defaults: no documentation page from somebody's CDN,
// no links to schemas in bodies, no formats but JSON.
func humaConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Punctual", Version: "1",
				Description: "Say what to run and when; it runs once, on time, retried, ordered, and accounted for. " +
					"v1 only grows: ignore what you don't know. Times are RFC 3339 in UTC with milliseconds. " +
					"Errors are problems of RFC 9457 with a stable code. Every answer has X-Request-Id; " +
					"503 carries Retry-After, and 429 where waiting helps.",
			},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT"}},
			},
		},
		Formats:       map[string]huma.Format{"application/json": {Marshal: marshal}, "json": {Marshal: marshal}},
		DefaultFormat: "application/json",
	}
}

func marshal(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// tags of the OpenAPI document, and scopes under names that read well in a table of routes.
const (
	tagJobs      = "jobs"
	tagDead      = "dead letters"
	tagTasks     = "tasks"
	tagPauses    = "pauses"
	tagSchedules = "schedules"
	tagSystem    = "system"
	mayRead      = tenant.Read
	mayWrite     = tenant.Write
	mayManage    = tenant.Admin
	anybody      = tenant.Scope("") // who is named, whatever they may do
)
