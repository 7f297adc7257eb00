package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Options are the settings of a Router.
type Options struct {
	Title, Version, About string // of the OpenAPI document
	// SchemaName names the schema of a Go type in the document; hint is huma's proposal.
	SchemaName func(t reflect.Type, hint string) string
	Catalogue  Catalogue
	NoSignIn   bool // no token is needed, and the document says so
	// Limit returns an error if a tenant has made too many requests; nil: no limit.
	Limit func(context.Context, tenant.ID) error
	// Weigh returns an error if a tenant may not write so many bytes now; nil: no limit. It is called with the size of
	// each body that was read.
	Weigh func(ctx context.Context, t tenant.ID, bytes int) error
	Now   func() time.Time // for the entries of the audit
	// AuditKept is how long entries of the audit are kept.
	AuditKept time.Duration
	Log       *slog.Logger     // of errors that clients do not see
	Meter     *telemetry.Meter // nil: nothing is counted
}

// Router is the http.Handler of all routes that are registered with it. Every request gets an id, and every answer has
// the same form, even after a panic.
type Router struct {
	Options
	mux     *http.ServeMux
	literal map[string][]string // methods of the paths without a parameter
	api     huma.API
}

// NewRouter returns a router without routes. Get and its like add them, before the first request.
func NewRouter(o Options) *Router {
	mux := http.NewServeMux()
	return &Router{o, mux, map[string][]string{}, humago.New(mux, humaConfig(o))}
}

// OpenAPI returns the document of the routes so far. The caller may change it.
func (s *Router) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

// humaConfig turns off huma's defaults: the documentation page from a CDN, links to schemas in bodies, and formats
// other than JSON.
func humaConfig(o Options) huma.Config {
	format := huma.Format{Marshal: func(w io.Writer, v any) error {
		if p, ok := v.(*Problem); ok { // an error that huma made
			o.Catalogue.complete(p)
		}
		return marshal(w, v)
	}}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: o.Title, Version: o.Version, Description: o.About},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", o.SchemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer",
					BearerFormat: "JWT", Description: "Token with the tenant and the scopes of the caller"}},
			},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
	}
}

func marshal(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

var requestIDPattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func newRequestID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// ServeHTTP gives every request an id, and answers a panic as a problem.
func (s *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{ID: r.Header.Get("X-Request-Id")}
	if !requestIDPattern.MatchString(req.ID) {
		req.ID = newRequestID()
	}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
	req.http = r
	answer := &answer{ResponseWriter: w}
	answer.Header().Set("X-Request-Id", req.ID)
	answer.Header().Set("Cache-Control", "no-store")
	answer.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() {
		if p := recover(); p != nil {
			err := s.Panicked(r.Context(), p)
			if answer.status == 0 {
				s.Catalogue.Write(answer, req.ID, err)
			}
		}
		s.Meter.Count(telemetry.Requests, 1,
			telemetry.Dim{Key: "status", Value: strconv.Itoa(answer.status/100) + "xx"})
	}()
	handler, pattern := s.mux.Handler(r)
	allow, literal := s.literal[r.URL.Path]
	switch {
	case literal && !slices.Contains(allow, r.Method):
		s.Catalogue.Write(answer, req.ID, wrongMethod(strings.Join(allow, ", ")))
	case path.Clean(r.URL.Path) != r.URL.Path: // the mux would redirect; a client that builds such paths has a bug
		s.Catalogue.Write(answer, req.ID, NewProblem(CodeNotFound, "there is no such path"))
	case pattern == "":
		s.Catalogue.Write(answer, req.ID, noRoute(handler, r))
	default:
		s.mux.ServeHTTP(answer, r)
	}
}

// Panicked logs a panic with its stack and returns the problem for the client.
func (s *Router) Panicked(ctx context.Context, p any) *Problem {
	s.Log.ErrorContext(ctx, "a handler panicked", "request_id", requestID(ctx), "panic", fmt.Sprint(p), "stack",
		string(debug.Stack()))
	return internalProblem()
}

// noRoute distinguishes a wrong method from an unknown path by the answer of the mux.
func noRoute(handler http.Handler, r *http.Request) *Problem {
	probe := &answer{ResponseWriter: nowhere{http.Header{}}}
	handler.ServeHTTP(probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return NewProblem(CodeNotFound, "there is no such path")
	}
	return wrongMethod(probe.Header().Get("Allow"))
}

func wrongMethod(allow string) *Problem {
	return NewProblem(CodeMethodNotAllowed, "this path takes %s", allow).with("Allow", allow)
}

// noteLiteral records the methods of each path without a parameter. For any other method the mux would choose a path
// with a parameter: it would take PATCH /v1/jobs/batch as the job called batch. Where that is meant, AlsoName says so.
func (s *Router) noteLiteral(r Route) {
	if strings.Contains(r.path, "{") || r.AlsoName {
		return
	}
	methods := append(slices.Clone(s.literal[r.path]), r.method)
	if r.method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	s.literal[r.path] = methods
}

// Refuse turns an error into a complete problem, and logs what the client does not see.
func (s *Router) Refuse(ctx context.Context, err error) *Problem {
	p := problemOf(err)
	s.Catalogue.complete(p)
	p.RequestID = requestID(ctx)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		s.Log.ErrorContext(ctx, "a request failed", "request_id", p.RequestID, "code", p.Code, telemetry.Err, err)
		s.Meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: p.Code})
	}
	return p
}

// answer records the status that was written. Only the first one is written: if the client leaves while the body is
// written, huma sets another status.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header       { return n.header }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
