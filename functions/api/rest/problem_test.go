package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

func TestRouter_CompletesProblemsByItsOwnCatalogue(t *testing.T) {
	t.Parallel()
	type input struct{}
	type output struct{}
	router := func(title string) *Router {
		s := NewRouter(Options{SchemaName: huma.DefaultSchemaNamer, Log: telemetry.Silent(), Catalogue: Catalogue{
			{Code: CodeNotFound, Status: http.StatusNotFound, Title: title},
			{Code: CodeInternal, Status: http.StatusInternalServerError, Title: "Bug"},
		}})
		Get(Resource{Router: s}, "/unheard-of", "a", "",
			func(context.Context, tenant.Identity, *input) (*output, error) {
				return nil, NewProblem("unheard_of", "no catalogue has this code")
			}, Route{Scope: Open})
		return s
	}
	for _, c := range []struct {
		title, path string
		want        Problem
	}{
		{"None", "/nowhere", Problem{Type: "/v1/problems/not_found", Title: "None", Status: 404, Code: "not_found"}},
		{"Gone", "/nowhere", Problem{Type: "/v1/problems/not_found", Title: "Gone", Status: 404, Code: "not_found"}},
		{"Gone", "/unheard-of", Problem{Type: "/v1/problems/internal", Title: "Bug", Status: 500, Code: "internal"}},
	} {
		w := httptest.NewRecorder()
		router(c.title).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody))
		var got Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if w.Code != c.want.Status || got.Type != c.want.Type || got.Title != c.want.Title ||
			got.Status != c.want.Status || got.Code != c.want.Code || got.Detail == "" {
			t.Errorf("%s is answered %d %s", c.path, w.Code, w.Body)
		}
	}
}

// gone is the connection of a client that leaves before it has the body.
type gone struct {
	http.ResponseWriter
	leave    func()
	statuses []int
}

func (g *gone) WriteHeader(status int) { g.statuses = append(g.statuses, status) }

func (g *gone) Write([]byte) (int, error) {
	g.leave()
	return 0, io.ErrClosedPipe
}

func TestRouter_WritesOneStatusToAClientThatLeaves(t *testing.T) {
	t.Parallel()
	s := NewRouter(Options{SchemaName: huma.DefaultSchemaNamer, Log: telemetry.Silent()})
	type output struct{ Body string }
	Get(Resource{Router: s}, "/open", "a", "", func(context.Context, tenant.Identity, *NoInput) (*output, error) {
		return &output{"a body"}, nil
	}, Route{Scope: Open})
	ctx, leave := context.WithCancel(t.Context())
	w := &gone{ResponseWriter: httptest.NewRecorder(), leave: leave}
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/open", http.NoBody))
	if !slices.Equal(w.statuses, []int{http.StatusOK}) {
		t.Errorf("the statuses %v are written", w.statuses)
	}
}

func TestProblemOfStatus_HasAStatusBeforeItIsCompleted(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]Problem{
		400: {Status: 400, Code: CodeInvalidValue}, 422: {Status: 400, Code: CodeInvalidValue},
		413: {Status: 413, Code: CodeTooLarge}, 415: {Status: 415, Code: CodeMediaType},
		500: {Status: 500, Code: CodeInternal}, 406: {Status: 500, Code: CodeInternal},
	} {
		if got := problemOfStatus(status); got.Status != want.Status || got.Code != want.Code {
			t.Errorf("%d becomes %d %s", status, got.Status, got.Code)
		}
	}
}
