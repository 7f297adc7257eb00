package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/fault"
	"punctual/shared/text"
)

// The codes of problems and of single mistakes that are about no resource. They never change their
// meaning.
const (
	CodeInvalidJSON       = "invalid_json"
	CodeUnknownField      = "unknown_field"
	CodeDuplicateField    = "duplicate_field"
	CodeMissingField      = "missing_field"
	CodeInvalidValue      = "invalid_value"
	CodeOutOfRange        = "out_of_range"
	CodeConflictingFields = "conflicting_fields"
	CodeInThePast         = "in_the_past"
	CodeSecretInPayload   = "secret_in_payload"
	CodeInvalidCursor     = "invalid_cursor"
	CodeUnauthenticated   = "unauthenticated"
	CodeForbidden         = "forbidden"
	CodeNotFound          = "not_found"
	CodeMethodNotAllowed  = "method_not_allowed"
	CodeTooLarge          = "too_large"
	CodeMediaType         = "unsupported_media_type"
	CodeRateLimited       = "rate_limited"
	CodeInternal          = "internal"
	CodeUnavailable       = "unavailable"
)

// Explanation is what GET /v1/problems/{code} says.
type Explanation struct {
	Code   string `json:"code" doc:"Stable; what a program decides by"`
	Status int    `json:"status" doc:"The HTTP status that it comes with"`
	Title  string `json:"title"`
	Help   string `json:"help" doc:"What it means and what to do"`
}

// Catalogue explains every code of an API. It holds at least the codes of this package.
type Catalogue []Explanation

// Explain returns what the catalogue says of a code, false if there is no such code.
func (c Catalogue) Explain(code string) (Explanation, bool) {
	at := slices.IndexFunc(c, func(e Explanation) bool { return e.Code == code })
	if at < 0 {
		return Explanation{}, false
	}
	return c[at], true
}

// complete fills in what the catalogue says of p's code. A code that it does not have becomes CodeInternal.
func (c Catalogue) complete(p *Problem) {
	e, ok := c.Explain(p.Code)
	if !ok {
		e, _ = c.Explain(CodeInternal)
	}
	p.Type, p.Title, p.Status, p.Code = "/v1/problems/"+e.Code, e.Title, e.Status, e.Code
	if p.Detail == "" {
		p.Detail = e.Title
	}
}

// Write answers with p, under the id of the request.
func (c Catalogue) Write(w http.ResponseWriter, id string, p *Problem) {
	c.complete(p)
	p.RequestID = id
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = marshal(w, p) // the client has gone
}

// mistake is one mistake in a request; it is a fault.Field with its schema.
type mistake struct {
	Pointer string `json:"pointer" doc:"JSON pointer into the body (/field), or the bare name of a parameter or header"`
	Code    string `json:"code" doc:"Stable; GET /v1/problems/{code} explains it"`
	Detail  string `json:"detail"`
	Allowed string `json:"allowed,omitempty" doc:"What would have been taken"`
}

// Problem is the answer to a request that failed (RFC 9457), and an error. It never holds a payload or
// a secret. Until it is answered it has neither type, title nor status: they come from the Router's Catalogue.
type Problem struct {
	Type       string    `json:"type" doc:"/v1/problems/{code}"`
	Title      string    `json:"title"`
	Status     int       `json:"status"`
	Code       string    `json:"code" doc:"Stable; GET /v1/problems/{code} explains it"`
	Detail     string    `json:"detail"`
	RequestID  string    `json:"request_id,omitempty"`
	Errors     []mistake `json:"errors,omitempty" doc:"Every mistake in the request"`
	Allowed    []string  `json:"allowed,omitempty" doc:"States in which it would be possible"`
	RedrivenBy string    `json:"redriven_by,omitempty" doc:"The job that this dead one was brought back as"`

	header http.Header
	cause  error // for the log only
}

// NewProblem returns a problem of a code of the catalogue; of any other code it becomes an internal one.
// detail is formatted with args, if there are any.
func NewProblem(code, detail string, args ...any) *Problem {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return &Problem{Code: code, Detail: shown(detail, maxDetail)}
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Unwrap gives the log what the client is not told.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus makes a problem an answer of huma's.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType makes huma send it as what it is.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders makes huma send the problem's own headers.
func (p *Problem) GetHeaders() http.Header { return p.header }

// After says that the same request may be made again after that many seconds.
func (p *Problem) After(seconds int) *Problem { return p.with("Retry-After", strconv.Itoa(seconds)) }

func (p *Problem) with(header, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(header, value)
	return p
}

// mistakes turns a list of mistakes into one problem; it speaks for the first.
func mistaken(fields fault.Mistakes) *Problem {
	p := NewProblem(fields[0].Code, fields[0].Detail)
	if len(fields) > 1 {
		p.Detail = fmt.Sprintf("%d mistakes; the first: %s", len(fields), fields[0].Detail)
	}
	for _, f := range fields[:min(len(fields), MaxMistakes)] {
		p.Errors = append(p.Errors, mistake{shown(f.Pointer, maxPointer), f.Code,
			shown(f.Detail, maxDetail), shown(f.Allowed, maxDetail)})
	}
	return p
}

// What a problem shows of a pointer and of a sentence at most, in bytes.
const (
	maxPointer = 256
	maxDetail  = 1024
)

// shown cuts a text for a problem. One that holds what looks like a secret is not shown at
// all: values of requests are repeated here and there, to say what is wrong with them.
func shown(s string, most int) string {
	switch {
	case text.TokenShaped(s):
		return "…"
	case len(s) > most:
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// OneMistake returns a problem of a single field or parameter. allowed is "" where it says nothing.
func OneMistake(pointer, code, allowed, detail string, args ...any) *Problem {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return mistaken(fault.Mistakes{{Pointer: pointer, Code: code, Detail: detail, Allowed: allowed}})
}

// retryAfter is what 503 answers ask for: adapters have retried already.
const retryAfterSeconds = 2

// ProblemOf returns what a client is told of an error: a *Problem itself, fault.Mistakes all together,
// and of anything else what its fault.Kind says.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var m fault.Mistakes
	if errors.As(err, &m) && len(m) > 0 {
		return mistaken(m)
	}
	switch fault.KindOf(err) {
	case fault.NotFound:
		p = NewProblem(CodeNotFound, "there is no such thing here")
	case fault.Conflict, fault.Throttled, fault.Unavailable:
		p = NewProblem(CodeUnavailable, "something that is needed does not answer at the moment; try "+
			"again").with("Retry-After", strconv.Itoa(retryAfterSeconds))
	default:
		p = internalProblem()
	}
	p.cause = err
	return p
}

func internalProblem() *Problem {
	return NewProblem(CodeInternal, "something went wrong on our side; it has been logged")
}

// Huma makes errors of its own only where our own reading of a request does not come first; it
// has no other hook for their form than these two variables.
func init() {
	huma.DefaultArrayNullable = false // our lists are never null
	huma.NewError = func(status int, _ string, _ ...error) huma.StatusError { return problemOfStatus(status) }
	huma.NewErrorWithContext = func(ctx huma.Context, status int, _ string, errs ...error) huma.StatusError {
		p := problemOfStatus(status)
		p.cause = errors.Join(errs...)
		if ctx != nil {
			p.RequestID = requestID(ctx.Context())
		}
		return p
	}
}

// problemOfStatus has its status at once, because huma asks for it before anything is written.
func problemOfStatus(status int) *Problem {
	p := &Problem{Status: status, Code: CodeInternal}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		p.Status, p.Code = http.StatusBadRequest, CodeInvalidValue
	case http.StatusRequestEntityTooLarge:
		p.Code = CodeTooLarge
	case http.StatusUnsupportedMediaType:
		p.Code = CodeMediaType
	case http.StatusInternalServerError:
	default:
		p = internalProblem()
		p.Status = http.StatusInternalServerError
	}
	return p
}

type requestKey struct{}

// request is what the handlers need of the HTTP request.
type request struct {
	ID         string
	http       *http.Request
	mergePatch bool // the route takes application/merge-patch+json as well
}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// HeaderOf returns the header fields of the request that a handler answers.
func HeaderOf(ctx context.Context) http.Header { return requestOf(ctx).http.Header }

func requestID(ctx context.Context) string {
	if r := requestOf(ctx); r != nil {
		return r.ID
	}
	return ""
}
