package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/fault"
	"punctual/shared/secret"
	"punctual/shared/text"
)

// The codes of problems and violations about no resource. Their meaning never changes.
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

// Explanation is the answer of GET /v1/problems/{code}.
type Explanation struct {
	Code   string `json:"code" doc:"Stable code, by which a program decides"`
	Status int    `json:"status" doc:"HTTP status of the code"`
	Title  string `json:"title" doc:"Short name of the problem"`
	Help   string `json:"help" doc:"Meaning of the code, and its remedy"`
}

// Catalogue explains every code of an API. It holds at least the codes of this package.
type Catalogue []Explanation

// Explain returns the explanation of a code; false if there is no such code.
func (c Catalogue) Explain(code string) (Explanation, bool) {
	at := slices.IndexFunc(c, func(e Explanation) bool { return e.Code == code })
	if at < 0 {
		return Explanation{}, false
	}
	return c[at], true
}

// complete fills in type, title and status from the catalogue. An unknown code becomes CodeInternal.
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

// Write answers with p and the id of the request; "" gives it one.
func (c Catalogue) Write(w http.ResponseWriter, id string, p *Problem) {
	c.complete(p)
	id = cmp.Or(id, newRequestID())
	p.RequestID = id
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = marshal(w, p) // an error means that the client has left
}

// problemError is one error in a request: a fault.Field with a schema.
type problemError struct {
	Pointer string `json:"pointer" doc:"JSON pointer into the body (/field), or the bare name of a parameter or header"`
	Code    string `json:"code" doc:"Stable code; GET /v1/problems/{code} explains it"`
	Detail  string `json:"detail" doc:"Sentence that explains the error"`
	Allowed string `json:"allowed,omitempty" doc:"Values that are allowed"`
}

// Problem is the answer to a request that failed (RFC 9457), and an error. It never has a payload or a secret in it. It
// gets type, title and status from the Catalogue when it is answered.
type Problem struct {
	Type       string         `json:"type" doc:"Address of the explanation, /v1/problems/{code}"`
	Title      string         `json:"title" doc:"Short name of the problem"`
	Status     int            `json:"status" doc:"HTTP status"`
	Code       string         `json:"code" doc:"Stable code; GET /v1/problems/{code} explains it"`
	Detail     string         `json:"detail" doc:"Sentence that explains this problem"`
	RequestID  string         `json:"request_id,omitempty" doc:"Identifier of the request, also in X-Request-Id"`
	Errors     []problemError `json:"errors,omitempty" doc:"All errors in the request"`
	Allowed    []string       `json:"allowed,omitempty" doc:"States in which the operation is possible"`
	RedrivenBy string         `json:"redriven_by,omitempty" doc:"Identifier of the job that repeats this dead job"`
	JobID      string         `json:"job_id,omitempty" doc:"Identifier of the job that holds the unique key"`

	header http.Header
	cause  error // for the log only
}

// NewProblem returns a problem with a code of the catalogue; any other code becomes CodeInternal. If there are args,
// detail is a format.
func NewProblem(code, detail string, args ...any) *Problem {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return &Problem{Code: code, Detail: shown(detail, maxDetail)}
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Unwrap returns the cause, which is logged and not answered.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// After adds Retry-After: the client may repeat the request after that many seconds.
func (p *Problem) After(seconds int) *Problem { return p.with("Retry-After", strconv.Itoa(seconds)) }

func (p *Problem) with(header, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(header, value)
	return p
}

// violated makes one problem of a list of violations. Its code and detail are those of the first.
func violated(fields fault.Violations) *Problem {
	p := NewProblem(fields[0].Code, fields[0].Detail)
	if len(fields) > 1 {
		p.Detail = fmt.Sprintf("%d errors; the first: %s", len(fields), fields[0].Detail)
	}
	for _, f := range fields[:min(len(fields), MaxViolations)] {
		p.Errors = append(p.Errors, problemError{shown(f.Pointer, maxPointer), f.Code,
			shown(f.Detail, maxDetail), shown(f.Allowed, maxDetail)})
	}
	return p
}

// The longest pointer and the longest sentence in a problem, in bytes.
const (
	maxPointer = secret.MaxPointer
	maxDetail  = 1024
)

// shown cuts a text for a problem. It hides a text that looks like a secret, because some details repeat values of the
// request.
func shown(s string, most int) string {
	switch {
	case text.TokenShaped(s):
		return "…"
	case len(s) > most:
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// OneViolation returns the problem of a single field or parameter. allowed may be "".
func OneViolation(pointer, code, allowed, detail string, args ...any) *Problem {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return violated(fault.Violations{{Pointer: pointer, Code: code, Detail: detail, Allowed: allowed}})
}

// retryAfterSeconds is the Retry-After of 503. It is short, because the adapters have retried already.
const retryAfterSeconds = 2

// problemOf turns an error into a problem: a *Problem stays as it is, fault.Violations become one problem, and any
// other error depends on its fault.Kind.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var m fault.Violations
	if errors.As(err, &m) && len(m) > 0 {
		return violated(m)
	}
	switch fault.KindOf(err) {
	case fault.NotFound:
		p = NewProblem(CodeNotFound, "there is no such thing here")
	case fault.Conflict, fault.Throttled, fault.Unavailable:
		p = Unavailable("something that is needed does not answer at the moment; try again")
	default:
		p = internalProblem()
	}
	p.cause = err
	return p
}

// Unavailable returns the problem of a request that may succeed if it is repeated.
func Unavailable(detail string) *Problem {
	return NewProblem(CodeUnavailable, "%s", detail).with("Retry-After", strconv.Itoa(retryAfterSeconds))
}

func internalProblem() *Problem {
	return NewProblem(CodeInternal, "something went wrong on our side; it has been logged")
}

// Huma makes an error itself only where we do not read the request first. It has no other hook for its form than these
// two variables.
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

// problemOfStatus returns a problem with its status, because huma reads the status before anything is written.
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

// request is the part of an HTTP request that handlers need.
type request struct {
	ID         string
	http       *http.Request
	mergePatch bool // the route takes application/merge-patch+json as well
	weigh      func(bytes int) error
}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// HeaderOf returns the header of the request in ctx.
func HeaderOf(ctx context.Context) http.Header { return requestOf(ctx).http.Header }

func requestID(ctx context.Context) string {
	if r := requestOf(ctx); r != nil {
		return r.ID
	}
	return ""
}
