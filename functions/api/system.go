package api

import (
	"context"
	"net/http"
	"sync"

	"punctual/shared/calendar"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *stage) systemRoutes() {
	register(s, route{method: http.MethodGet, path: "/v1/health", id: "getHealth", tag: tagSystem, scope: open, summary: "Check that the API answers"}, s.health)
	register(s, route{
		method: http.MethodGet, path: "/v1/ready", id: "getReadiness", tag: tagSystem, scope: anybody,
		summary: "Check that what the API needs answers", about: "And how far the passes have come.",
	}, s.ready)
	register(s, route{method: http.MethodGet, path: "/v1/whoami", id: "whoAmI", tag: tagSystem, scope: anybody, summary: "Show whom the token names"}, s.whoami)
	register(s, route{
		method: http.MethodGet, path: "/v1/problems", id: "listProblems", tag: tagSystem, scope: open,
		summary: "List the codes of problems", about: "In the order of their statuses.",
	}, s.listProblems)
	register(s, route{
		method: http.MethodGet, path: "/v1/problems/{code}", id: "getProblem", tag: tagSystem, scope: open,
		summary: "Explain the code of a problem", errors: []int{http.StatusNotFound},
	}, s.explain)
	document := sync.OnceValues(s.document)
	register(s, route{
		method: http.MethodGet, path: "/v1/openapi.json", id: "getDocument", tag: tagSystem, scope: open, summary: "Get this document",
	}, func(context.Context, tenant.Identity, *nothing) (*documentAnswer, error) {
		text, err := document()
		return &documentAnswer{"application/openapi+json", text}, err
	})
}

type documentAnswer struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

type nothing struct{}

type healthAnswer struct {
	Body struct {
		Status    string `json:"status" enum:"ok"`
		ZoneRules string `json:"zone_rules" doc:"Release of the IANA time zone database that calendars are read by" example:"2025c"`
	}
}

func (s *stage) health(context.Context, tenant.Identity, *nothing) (*healthAnswer, error) {
	out := &healthAnswer{}
	out.Body.Status, out.Body.ZoneRules = "ok", calendar.ZoneRules
	return out, nil
}

type readyAnswer struct {
	Body struct {
		Status          string  `json:"status" enum:"ready"`
		PromotedThrough instant `json:"promoted_through,omitzero" doc:"By the slowest shard's pass ahead; absent before the first"`
		SweptThrough    instant `json:"swept_through,omitzero" doc:"By the slowest shard's pass behind; absent before the first"`
	}
}

// ready reads what every call needs. Watermarks that lag are told, not judged: jobs are
// accepted and kept all the same, and an alarm looks after the lag.
func (s *stage) ready(ctx context.Context, _ tenant.Identity, _ *nothing) (*readyAnswer, error) {
	out := &readyAnswer{}
	out.Body.Status = "ready"
	promoted, _, err := s.Store.Slowest(ctx, store.Promoted)
	if err != nil {
		return nil, err
	}
	swept, _, err := s.Store.Slowest(ctx, store.Swept)
	if err != nil {
		return nil, err
	}
	out.Body.PromotedThrough, out.Body.SweptThrough = instant{promoted}, instant{swept}
	return out, nil
}

type whoamiAnswer struct {
	Body struct {
		Tenant  tenant.ID      `json:"tenant"`
		Subject string         `json:"subject,omitempty"`
		Scopes  []tenant.Scope `json:"scopes"`
	}
}

func (s *stage) whoami(_ context.Context, who tenant.Identity, _ *nothing) (*whoamiAnswer, error) {
	out := &whoamiAnswer{}
	out.Body.Tenant, out.Body.Subject, out.Body.Scopes = who.Tenant, who.Subject, append([]tenant.Scope{}, who.Scopes...)
	return out, nil
}

type problemsAnswer struct{ Body page[explanation] }

func (s *stage) listProblems(_ context.Context, _ tenant.Identity, in *struct{ Paging }) (*problemsAnswer, error) {
	limit, err := in.limit()
	if err != nil {
		return nil, err
	}
	l := list{"", "problems", nil} // of nobody: it is the same for everybody
	items, next, err := cut(l, in.Cursor, limit, catalogue)
	return &problemsAnswer{page[explanation]{items, next}}, err
}

type explainInput struct {
	Code string `path:"code"`
}

type explainAnswer struct{ Body explanation }

func (s *stage) explain(_ context.Context, _ tenant.Identity, in *explainInput) (*explainAnswer, error) {
	e, ok := explained(in.Code)
	if !ok {
		return nil, newProblem(codeNotFound, "there is no such code")
	}
	return &explainAnswer{e}, nil
}
