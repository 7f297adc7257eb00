package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"

	"punctual/functions/api/admin"
	"punctual/functions/api/dags"
	forecastapi "punctual/functions/api/forecast"
	"punctual/functions/api/jobs"
	limitsapi "punctual/functions/api/limits"
	"punctual/functions/api/operations"
	"punctual/functions/api/rest"
	"punctual/functions/api/schedules"
	"punctual/functions/api/spec"
	statsapi "punctual/functions/api/stats"
	usageapi "punctual/functions/api/usage"
	"punctual/functions/api/webhooks"
	"punctual/shared/contract"
	"punctual/shared/target"
	"punctual/shared/tenant"
)

// Deps holds what the API needs.
type Deps = spec.Deps

// New returns the REST API as an http.Handler.
func New(d Deps) http.Handler {
	d.Base = d.WithDefaults()
	if d.ScheduleQuota == 0 {
		d.ScheduleQuota = contract.ScheduleQuota
	}
	d.AuditKept = cmp.Or(d.AuditKept, contract.AuditKept)
	if d.Entropy == nil {
		d.Entropy = rand.Reader
	}
	core := spec.NewCore(d)
	o := rest.Options{
		Title: "Punctual", Version: "1", About: about, SchemaName: schemaName, Catalogue: spec.Catalogue,
		NoSignIn: d.NoSignIn, Now: d.Clock.Now, AuditKept: d.AuditKept, Log: d.Log,
		Meter: d.Meter,
	}
	if d.RateLimit.Rate > 0 {
		o.Limit = func(ctx context.Context, t tenant.ID) error { return spec.Limited(core.Limit.Allow(ctx, t)) }
		o.Weigh = func(ctx context.Context, t tenant.ID, bytes int) error {
			return spec.Limited(core.Limit.WeighBody(ctx, t, bytes))
		}
	}
	core.Router = rest.NewRouter(o)
	s := schedules.New(core)
	jobs.New(core)
	s.DagRuns = dags.New(core, s)
	limitsapi.New(core)
	operations.New(core)
	statsapi.New(core)
	usageapi.New(core)
	forecastapi.New(core)
	webhooks.New(core)
	admin.New(core, func() ([]byte, error) { return document(core.Router.OpenAPI()) })
	return core.Router
}

// about is the introduction in the OpenAPI document.
const about = "Punctual runs jobs when they are due, retries and orders them, and records their outcomes. " +
	"Version 1 only grows: clients must ignore fields that they do not know. Times are RFC 3339 in UTC with " +
	"milliseconds. Errors are problems of RFC 9457 with a stable code. Every answer has X-Request-Id; 503 has " +
	"Retry-After, and so has 429 where waiting helps."

// WithIdentity returns a context with the caller's identity; see rest.WithIdentity.
func WithIdentity(ctx context.Context, id tenant.Identity) context.Context {
	return rest.WithIdentity(ctx, id)
}

// MustRanges reads address ranges for Deps.HTTPAllow. It panics if one cannot be read.
func MustRanges(cidrs []string) []netip.Prefix {
	ranges, err := target.Ranges(cidrs)
	if err != nil {
		panic(err)
	}
	return ranges
}
