package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/telemetry"
)

var requestIDPattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// ServeHTTP gives every request an id and every answer a form, whatever happens inside.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{id: r.Header.Get("X-Request-Id")}
	if !requestIDPattern.MatchString(req.id) {
		var id [8]byte
		_, _ = rand.Read(id[:]) // never fails
		req.id = hex.EncodeToString(id[:])
	}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
	req.http = r
	answer := &answer{ResponseWriter: w}
	answer.Header().Set("X-Request-Id", req.id)
	answer.Header().Set("Cache-Control", "no-store")
	answer.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() {
		if p := recover(); p != nil {
			err := s.panicked(r.Context(), p)
			if answer.status == 0 {
				writeProblem(answer, req.id, err)
			}
		}
		s.Meter.Count(telemetry.Requests, 1, telemetry.Dim{Key: "status", Value: strconv.Itoa(answer.status/100) + "xx"})
	}()
	handler, pattern := s.mux.Handler(r)
	allow, literal := s.literal[r.URL.Path]
	switch {
	case literal && !slices.Contains(allow, r.Method):
		writeProblem(answer, req.id, wrongMethod(strings.Join(allow, ", ")))
	case path.Clean(r.URL.Path) != r.URL.Path: // the mux would redirect; a client that builds such paths has a bug
		writeProblem(answer, req.id, newProblem(codeNotFound, "there is no such path"))
	case pattern == "":
		writeProblem(answer, req.id, noRoute(handler, r))
	default:
		s.mux.ServeHTTP(answer, r)
	}
}

// panicked logs a panic where it happened and returns what the client is told of it.
func (s *stage) panicked(ctx context.Context, p any) *problem {
	s.Log.ErrorContext(ctx, "a handler panicked", "request_id", requestID(ctx), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return newProblem(codeInternal, "something went wrong on our side; it has been logged")
}

// noRoute tells a wrong method from an unknown path by what the mux would have answered.
func noRoute(handler http.Handler, r *http.Request) *problem {
	probe := &answer{ResponseWriter: nowhere{http.Header{}}}
	handler.ServeHTTP(probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return newProblem(codeNotFound, "there is no such path")
	}
	return wrongMethod(probe.Header().Get("Allow"))
}

func wrongMethod(allow string) *problem {
	return newProblem(codeMethodNotAllowed, "this path takes %s", allow).with("Allow", allow)
}

// literalPaths lists the methods of each path without a parameter. The mux would give a method that
// such a path lacks to a path with a parameter: PATCH /v1/jobs/batch to the job called batch.
func literalPaths(paths map[string]*huma.PathItem) map[string][]string {
	literal := map[string][]string{}
	for path, item := range paths {
		if strings.Contains(path, "{") {
			continue
		}
		methods := slices.Collect(maps.Keys(operations(item)))
		if item.Get != nil {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		literal[path] = methods
	}
	return literal
}

func writeProblem(w http.ResponseWriter, id string, p *problem) {
	p.RequestID = id
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = marshal(w, p) // the client has gone
}

// refuse turns an error into the problem that the client is told, and logs what it is not told.
func (s *stage) refuse(ctx context.Context, err error) *problem {
	p := problemOf(err)
	p.RequestID = requestID(ctx)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		s.Log.ErrorContext(ctx, "a request failed", "request_id", p.RequestID, "code", p.Code, telemetry.Err, err)
		s.Meter.Count(telemetry.Faults, 1, telemetry.Dim{Key: "kind", Value: string(p.Code)})
	}
	return p
}

// answer remembers the status that was written.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
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

// cutName and quoted make a name that came from a stranger fit to be shown.
func cutName(name string) string {
	const limit = 64
	if tokenShaped(name[:min(len(name), lookedAt)]) {
		return "…"
	}
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return name
}

func quoted(name string) string { return strconv.Quote(cutName(name)) }
