package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
)

// The codes of problems and of single mistakes. They never change their meaning.
const (
	codeInvalidJSON       = "invalid_json"
	codeUnknownField      = "unknown_field"
	codeDuplicateField    = "duplicate_field"
	codeMissingField      = "missing_field"
	codeInvalidValue      = "invalid_value"
	codeOutOfRange        = "out_of_range"
	codeConflictingFields = "conflicting_fields"
	codeInThePast         = "in_the_past"
	codeUnknownTask       = "unknown_task"
	codeUnknownPool       = "unknown_pool"
	codeNeverFires        = "never_fires"
	codeCycle             = "cycle"
	codeSecretInPayload   = "secret_in_payload"
	codeTargetRefused     = "target_refused"
	codeInvalidCursor     = "invalid_cursor"
	codeUnauthenticated   = "unauthenticated"
	codeForbidden         = "forbidden"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeAlreadyStarted    = "already_started"
	codeAlreadyFinished   = "already_finished"
	codeNotFinished       = "not_finished"
	codeWrongState        = "wrong_state"
	codeStaleVersion      = "stale_version"
	codeTooLarge          = "too_large"
	codeMediaType         = "unsupported_media_type"
	codeKeyReused         = "idempotency_key_reused"
	codeRateLimited       = "rate_limited"
	codeInternal          = "internal"
	codeUnavailable       = "unavailable"
)

// explanation is what GET /v1/problems/{code} says.
type explanation struct {
	Code   string `json:"code" doc:"Stable; what a program decides by"`
	Status int    `json:"status" doc:"The HTTP status that it comes with"`
	Title  string `json:"title"`
	Help   string `json:"help" doc:"What it means and what to do"`
}

// catalogue lists every code. The order is that of the statuses.
var catalogue = []explanation{
	{codeInvalidJSON, 400, "The body is not JSON", "The body must be one JSON value in UTF-8, without anything after it. The detail says where reading stopped."},
	{codeUnknownField, 400, "A field or parameter is not known", "Names are compared exactly, capital letters included. Remove the field, or spell it as the detail suggests."},
	{codeDuplicateField, 400, "A field or parameter is given twice", "Readers of JSON disagree about which of the two counts, so neither does. Give it once."},
	{codeMissingField, 400, "A field is missing", "The pointer names it."},
	{codeInvalidValue, 400, "A value is not of the right form", "The pointer names the field; allowed says what would be taken."},
	{codeOutOfRange, 400, "A value is beyond its limits", "The pointer names the field; allowed says the limits."},
	{codeConflictingFields, 400, "Two fields exclude each other", "Give one of the two."},
	{codeInThePast, 400, "The time lies in the past", "A run_at may be up to 60 s ago, which runs the job at once. Older times are refused, because running late is probably not what was meant."},
	{codeUnknownTask, 400, "No such task", "Tasks are defined by PUT /v1/tasks/{name}; " + inWords(executor.BuiltIn()) + " are there from the start."},
	{codeUnknownPool, 400, "No such pool", "The pools are short and long."},
	{codeNeverFires, 400, "The calendar never fires", "No nominal time lies ahead of it."},
	{codeCycle, 400, "The graph has a cycle", "A node would wait for itself."},
	{codeSecretInPayload, 400, "A secret stands where it would be kept in the clear", "Put it into Secrets Manager under punctual/<tenant>/ and give its ARN; the worker resolves it. If it is none, name its pointer in allow_literals. Looked at are fields whose name contains password, passwd, secret, api_key, apikey, access_token, private_key or authorization, in any case style, with a string of 8 or more characters (names that end in _url, _id, _name, _at, _status and the like are facts about a secret), what objects under such names hold, tags, passwords and parameters in URLs, and the well-known forms of tokens."},
	{codeTargetRefused, 400, "The target may not be reached", "Only http and https to public addresses; ranges of your own can be opened when Punctual is deployed (http_allow). Names are checked again when connecting."},
	{codeInvalidCursor, 400, "The cursor does not belong here", "Use next_cursor as it was given, with the same parameters, as the same tenant."},
	{codeUnauthenticated, 401, "Who are you?", "Send a valid bearer token."},
	{codeForbidden, 403, "That is not allowed", "The token lacks a scope, or the request came from another origin."},
	{codeNotFound, 404, "There is no such thing", "It never was, has been forgotten, or is not yours."},
	{codeMethodNotAllowed, 405, "The method does not fit the path", "Allow lists those that do."},
	{codeAlreadyStarted, 409, "The job has started", "What runs cannot be edited. Cancel it, or wait for its end."},
	{codeAlreadyFinished, 409, "The job is over", "A final status is never left. A dead job can be redriven as a new one."},
	{codeNotFinished, 409, "The job is not over yet", "Cancel it first, or wait for its end."},
	{codeWrongState, 409, "The state does not allow it", "The detail says which state it is and what would do."},
	{codeStaleVersion, 412, "Somebody changed it meanwhile", "Read it again, decide again, and send the new ETag in If-Match."},
	{codeTooLarge, 413, "The body is too large", "The limit is in the detail."},
	{codeMediaType, 415, "The body's type is not taken", "Send Content-Type: application/json, uncompressed."},
	{codeKeyReused, 422, "The idempotency key was used for another body", "A key names one request for 24 hours. Use a new key for a new request."},
	{codeRateLimited, 429, "Too many requests, or too much of something", "Try again after Retry-After seconds. Without that header waiting does not help: the detail names a limit of what a tenant may have; make room first."},
	{codeInternal, 500, "We have made a mistake", "It has been logged under the request_id; trying again may not help."},
	{codeUnavailable, 503, "Not available at the moment", "Something that we need does not answer. The same request may work after Retry-After seconds; with an Idempotency-Key it is safe to repeat."},
}

// inWords lists words as a sentence does: "a, b and c".
func inWords(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func explained(code string) (explanation, bool) {
	at := slices.IndexFunc(catalogue, func(e explanation) bool { return e.Code == code })
	if at < 0 {
		return explanation{}, false
	}
	return catalogue[at], true
}

// problemCode is a code in the OpenAPI document.
type problemCode string

// Schema lists every code.
func (problemCode) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "Stable; GET /v1/problems/{code} explains it"}
	for _, e := range catalogue {
		s.Enum = append(s.Enum, e.Code)
	}
	return s
}

// mistake is one mistake in a request; it is a fault.Field with its schema.
type mistake struct {
	Pointer string      `json:"pointer" doc:"JSON pointer into the body (/field), or the bare name of a parameter or header"`
	Code    problemCode `json:"code"`
	Detail  string      `json:"detail"`
	Allowed string      `json:"allowed,omitempty" doc:"What would have been taken"`
}

// problem is an answer that is none: RFC 9457. It never holds a payload or a secret.
type problem struct {
	Type       string      `json:"type" doc:"/v1/problems/{code}"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Code       problemCode `json:"code"`
	Detail     string      `json:"detail"`
	RequestID  string      `json:"request_id,omitempty"`
	Errors     []mistake   `json:"errors,omitempty" doc:"Every mistake in the request"`
	RedrivenBy job.ID      `json:"redriven_by,omitempty" doc:"The job that this dead one was brought back as"`

	header http.Header
	cause  error // for the log only
}

// newProblem returns a problem of that code; detail is formatted with args.
func newProblem(code, detail string, args ...any) *problem {
	e, ok := explained(code)
	if !ok {
		e, _ = explained(codeInternal)
	}
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return &problem{Type: "/v1/problems/" + e.Code, Title: e.Title, Status: e.Status, Code: problemCode(e.Code), Detail: shown(detail, maxDetail)}
}

func (p *problem) Error() string { return string(p.Code) + ": " + p.Detail }

// Unwrap gives the log what the client is not told.
func (p *problem) Unwrap() error { return p.cause }

// GetStatus makes a problem an answer of huma's.
func (p *problem) GetStatus() int { return p.Status }

// ContentType makes huma send it as what it is.
func (p *problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders makes huma send the problem's own headers.
func (p *problem) GetHeaders() http.Header { return p.header }

func (p *problem) with(header, value string) *problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(header, value)
	return p
}

// mistakes turns a list of mistakes into one problem; it speaks for the first.
func mistaken(fields fault.Mistakes) *problem {
	p := newProblem(fields[0].Code, fields[0].Detail)
	if len(fields) > 1 {
		p.Detail = fmt.Sprintf("%d mistakes; the first: %s", len(fields), fields[0].Detail)
	}
	for _, f := range fields[:min(len(fields), maxMistakes)] {
		p.Errors = append(p.Errors, mistake{shown(f.Pointer, maxPointer), problemCode(f.Code), shown(f.Detail, maxDetail), shown(f.Allowed, maxDetail)})
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
func shown(text string, most int) string {
	switch {
	case tokenShaped(text):
		return "…"
	case len(text) > most:
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// oneMistake is a problem of a single field or parameter.
func oneMistake(pointer, code, allowed, detail string, args ...any) *problem {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return mistaken(fault.Mistakes{{Pointer: pointer, Code: code, Detail: detail, Allowed: allowed}})
}

// retryAfter is what 503 answers ask for: adapters have retried already.
const retryAfterSeconds = 2

// problemOf says what a client is told of an error.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var m fault.Mistakes
	if errors.As(err, &m) && len(m) > 0 {
		return mistaken(m)
	}
	switch fault.KindOf(err) {
	case fault.NotFound:
		p = newProblem(codeNotFound, "there is no such thing here")
	case fault.Conflict, fault.Throttled, fault.Unavailable:
		p = newProblem(codeUnavailable, "something that is needed does not answer at the moment; try again").with("Retry-After", strconv.Itoa(retryAfterSeconds))
	default:
		p = newProblem(codeInternal, "something went wrong on our side; it has been logged")
	}
	p.cause = err
	return p
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

func problemOfStatus(status int) *problem {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	for _, code := range []string{codeInvalidValue, codeTooLarge, codeMediaType, codeInternal} {
		if e, _ := explained(code); e.Status == status {
			return newProblem(code, e.Title)
		}
	}
	return newProblem(codeInternal, "something went wrong on our side; it has been logged")
}

type requestKey struct{}

// request is what the handlers need of the HTTP request.
type request struct {
	id   string
	http *http.Request
}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

func requestID(ctx context.Context) string {
	if r := requestOf(ctx); r != nil {
		return r.id
	}
	return ""
}
