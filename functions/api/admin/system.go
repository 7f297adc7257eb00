package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/calendar"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Handler serves tasks, pauses, the audit and what concerns the whole deployment.
type Handler struct {
	*spec.Core
	document func() ([]byte, error)
}

// New registers the routes. document makes the OpenAPI document, once all routes are registered.
func New(core *spec.Core, document func() ([]byte, error)) *Handler {
	h := &Handler{core, document}
	h.taskRoutes()
	h.pauseRoutes()
	h.auditRoutes()
	h.systemRoutes()
	h.workerRoutes()
	return h
}

func (s *Handler) systemRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagSystem, Path: "/v1"}
	rest.Get(on, "/health", "getHealth", "Check that the API answers", s.health, rest.Route{Scope: rest.Open})
	rest.Get(on, "/ready", "getReadiness", "Check that what the API needs answers", s.ready, rest.Route{
		Scope: rest.AnyScope,
		About: "Shows the progress of the passes, and the tenant's use of its quotas. The answer is 503 while the " +
			"process shuts down, and where it cannot store data (on a laptop with a full disk).",
	})
	rest.Get(on, "/whoami", "whoAmI", "Show the identity of the caller", s.whoami, rest.Route{Scope: rest.AnyScope})
	rest.GetPage(on, "/problems", "listProblems", "List the codes of problems", s.listProblems,
		rest.Route{Scope: rest.Open, About: "Ordered by status."})
	rest.Get(on, "/problems/{code}", "getProblem", "Explain the code of a problem", s.explain,
		rest.Route{Scope: rest.Open})
	document := sync.OnceValues(s.document)
	rest.Get(on, "/openapi.json", "getDocument", "Get this document",
		func(context.Context, tenant.Identity, *rest.NoInput) (*documentAnswer, error) {
			text, err := document()
			return &documentAnswer{"application/openapi+json", text}, err
		}, rest.Route{Scope: rest.Open})
}

type documentAnswer struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

type healthAnswer struct {
	Body struct {
		Status    string `json:"status" enum:"ok" doc:"Status of the API"`
		ZoneRules string `json:"zone_rules" doc:"Release of the IANA time zone database in use" example:"2026f"`
	}
}

func (s *Handler) health(context.Context, tenant.Identity, *rest.NoInput) (*healthAnswer, error) {
	out := &healthAnswer{}
	out.Body.Status, out.Body.ZoneRules = "ok", calendar.Zones().Version
	return out, nil
}

type readyAnswer struct {
	Body struct {
		Status          string       `json:"status" enum:"ready" doc:"Status of the process"`
		Now             rest.Instant `json:"now" doc:"Time by the clock that decides what is due"`
		PromotedThrough rest.Instant `json:"promoted_through,omitzero" doc:"Time through which the pass ahead of every shard has come; absent before the first"`
		SweptThrough    rest.Instant `json:"swept_through,omitzero" doc:"Time through which the pass behind of every shard has come; absent before the first"`
		Held            []string     `json:"held,omitempty" doc:"Names of restored tables, whose jobs do not start until an operator releases them"`
		Quotas          []quotaView  `json:"quotas" doc:"Quotas of the tenant"`

		ZoneRules zoneRulesView `json:"zone_rules" doc:"Time zone rules in use"`
		Warnings  []string      `json:"warnings,omitempty" doc:"Sentences about conditions that need an operator, although everything works now"`
	}
}

type zoneRulesView struct {
	Version    string       `json:"version" doc:"Release of the IANA time zone database in use" example:"2026f"`
	ReleasedAt rest.Instant `json:"released_at" doc:"Date of the release, in UTC"`
	Old        bool         `json:"old" doc:"Whether the rules are more than {=zone_rules_days} days old, so that time zones may have changed since"`
}

// zoneRules returns the rules in use, and a warning where they are old.
func zoneRules(now time.Time) (zoneRulesView, []string) {
	rules := calendar.Zones()
	view := zoneRulesView{rules.Version, rest.At(rules.ReleasedAt), rules.Old(now)}
	if !view.Old {
		return view, nil
	}
	return view, []string{fmt.Sprintf("the time zone rules %s are %d days old: times in zones that have changed their "+
		"clocks since are wrong; infra/runbook/zone-rules.md says how to renew them", rules.Version,
		int(rules.Age(now).Hours()/24))}
}

// ready reads what every call needs. It is a 503 while the process drains or cannot write. It shows watermarks that lag
// and is ready all the same: jobs are still accepted, and an alarm watches the lag.
func (s *Handler) ready(ctx context.Context, who tenant.Identity, _ *rest.NoInput) (*readyAnswer, error) {
	if s.Unready != nil {
		if why := s.Unready(); why != "" {
			return nil, rest.Unavailable(why)
		}
	}
	out := &readyAnswer{}
	out.Body.Status, out.Body.Now = "ready", rest.At(s.Now())
	promoted, _, err := s.Store.Slowest(ctx, store.Promoted)
	if err != nil {
		return nil, err
	}
	swept, _, err := s.Store.Slowest(ctx, store.Swept)
	if err != nil {
		return nil, err
	}
	if out.Body.Held, err = s.Store.Held(ctx); err != nil {
		return nil, err
	}
	if out.Body.Quotas, err = s.quotas(ctx, who.Tenant); err != nil {
		return nil, err
	}
	out.Body.ZoneRules, out.Body.Warnings = zoneRules(s.Now())
	out.Body.PromotedThrough, out.Body.SweptThrough = rest.At(promoted), rest.At(swept)
	return out, nil
}

type whoamiAnswer struct {
	Body struct {
		Tenant  tenant.ID      `json:"tenant" doc:"Tenant of the caller"`
		Subject string         `json:"subject,omitempty" doc:"Subject of the token"`
		Scopes  []tenant.Scope `json:"scopes" doc:"Scopes of the token"`
	}
}

func (s *Handler) whoami(_ context.Context, who tenant.Identity, _ *rest.NoInput) (*whoamiAnswer, error) {
	out := &whoamiAnswer{}
	out.Body.Tenant, out.Body.Subject, out.Body.Scopes = who.Tenant, who.Subject,
		append([]tenant.Scope{}, who.Scopes...)
	return out, nil
}

// listProblems lists the same for every tenant.
func (s *Handler) listProblems(
	_ context.Context, _ tenant.Identity, _ *rest.PageInput, after string, limit int,
) (rest.Found[rest.Explanation], error) {
	return rest.FoundIn(spec.Catalogue, after, limit), nil
}

type explainInput struct {
	Code string `path:"code"`
}

func (s *Handler) explain(
	_ context.Context, _ tenant.Identity, in *explainInput,
) (*rest.Answer[rest.Explanation], error) {
	e, ok := spec.Catalogue.Explain(in.Code)
	if !ok {
		return nil, rest.NoSuch("code")
	}
	return &rest.Answer[rest.Explanation]{Body: e}, nil
}

type quotaView struct {
	Name  string `json:"name" enum:"schedule_runs,requests" doc:"Name of the quota. schedule_runs: runs a minute of all schedules, each counted at its busiest minute and at least once; requests: requests that can be made at once after a time without requests."`
	Used  int64  `json:"used" doc:"Used part of the limit; more than the limit after it was lowered. requests falls as time passes, and can count some before they are made; schedule_runs falls when a schedule is deleted or runs less often."`
	Limit int64  `json:"limit" doc:"Maximum, beyond which requests are answered 429"`
}

// quotas returns what a tenant has used of each of its quotas. A deployment without a rate limit has none of requests.
func (s *Handler) quotas(ctx context.Context, t tenant.ID) ([]quotaView, error) {
	runs, err := s.Store.UsedBySchedules(ctx, t)
	if err != nil {
		return nil, err
	}
	all := []quotaView{{Name: "schedule_runs", Used: runs, Limit: int64(s.ScheduleQuota)}}
	if s.RateLimit.Rate == 0 {
		return all, nil
	}
	requests, err := s.Store.UsedByRequests(ctx, t, s.RateLimit, s.Now())
	if err != nil {
		return nil, err
	}
	return append(all, quotaView{Name: "requests", Used: requests, Limit: int64(s.RateLimit.Burst)}), nil
}
