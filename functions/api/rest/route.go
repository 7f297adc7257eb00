package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Scopes of routes that need no identity, and of routes that need one with any scope.
const (
	Open     tenant.Scope = "open"
	AnyScope tenant.Scope = "any"
)

// Body documents the body of a request.
type Body interface {
	// Schema returns the schema of the body; schemas that it refers to are added to those that are known.
	Schema(known huma.Registry) *huma.Schema
}

// Resource is what the routes about one kind of thing have in common.
type Resource struct {
	*Router
	Tag  string
	Path string
}

// Route is what one call of the API has besides its path, its name and its summary. The zero Route is enough for many.
type Route struct {
	About        string
	Status       int          // of success, if it is always the same
	Scope        tenant.Scope // "": tenant.Read for a GET, else tenant.Write
	Body         Body         // nil: no body
	OptionalBody bool
	Conflict     bool   // 409 is possible
	Errors       []int  // in addition to those that follow from the method, the path and the input
	Also         []int  // more statuses of success; a PUT always has 201
	AlsoName     bool   // the last element of the path may be a resource's name: other methods mean that resource
	MergePatch   bool   // also accepts application/merge-patch+json (RFC 7396)
	Cursor       string // name of a list in its cursors; "": the last element of the path
	// Action is what the request does, if it leaves an entry in the audit; "": it changes nothing, or makes jobs or
	// runs.
	Action audit.Action

	method, path, id, summary, tag string
}

// Handler answers a request by an identity. The input holds path, query and header parameters.
type Handler[I, O any] = func(ctx context.Context, who tenant.Identity, in *I) (*O, error)

// Get adds a route below the path of a resource. id names the operation in the document, and the route, if there is
// one, says what else is particular about it.
func Get[I, O any](on Resource, path, id, summary string, handle Handler[I, O], r ...Route) {
	register(on, http.MethodGet, path, id, summary, handle, r)
}

// Post adds a route; see Get.
func Post[I, O any](on Resource, path, id, summary string, handle Handler[I, O], r ...Route) {
	register(on, http.MethodPost, path, id, summary, handle, r)
}

// Put adds a route; see Get.
func Put[I, O any](on Resource, path, id, summary string, handle Handler[I, O], r ...Route) {
	register(on, http.MethodPut, path, id, summary, handle, r)
}

// Patch adds a route; see Get.
func Patch[I, O any](on Resource, path, id, summary string, handle Handler[I, O], r ...Route) {
	register(on, http.MethodPatch, path, id, summary, handle, r)
}

// Delete adds a route; see Get.
func Delete[I, O any](on Resource, path, id, summary string, handle Handler[I, O], r ...Route) {
	register(on, http.MethodDelete, path, id, summary, handle, r)
}

// GetPage adds a GET of a list, page by page. A cursor is bound to all path and query parameters of the input. fetch
// reads up to limit items after a position.
func GetPage[I, V any, P interface {
	*I
	paged
}](on Resource, path, id, summary string,
	fetch func(ctx context.Context, who tenant.Identity, in P, after string, limit int) (Found[V], error), r ...Route,
) {
	name := cursorName(on.Path+path, r)
	Get(on, path, id, summary, func(ctx context.Context, who tenant.Identity, in *I) (*Listing[V], error) {
		l := NewList(who.Tenant, name, filtersOf(reflect.ValueOf(in).Elem())...)
		return ReadPage(l, P(in).paging(), func(after string, limit int) (Found[V], error) {
			return fetch(ctx, who, in, after, limit)
		})
	}, r...)
}

// GetSearch adds a GET of a list that can be searched; see GetPage.
func GetSearch[I, V any, P interface {
	*I
	paged
}](on Resource, path, id, summary string,
	fetch func(ctx context.Context, who tenant.Identity, in P, after string, limit int) (Found[V], error), r ...Route,
) {
	name := cursorName(on.Path+path, r)
	Get(on, path, id, summary, func(ctx context.Context, who tenant.Identity, in *I) (*Answer[SearchPage[V]], error) {
		l := NewList(who.Tenant, name, filtersOf(reflect.ValueOf(in).Elem())...)
		var out Answer[SearchPage[V]]
		page, err := ReadPage(l, P(in).paging(), func(after string, limit int) (Found[V], error) {
			found, err := fetch(ctx, who, in, after, limit)
			out.Body.AsOf = At(found.AsOf)
			return found, err
		})
		if err != nil {
			return nil, err
		}
		out.Body.Page = page.Body
		return &out, nil
	}, r...)
}

func cursorName(path string, r []Route) string {
	if len(r) > 0 && r[0].Cursor != "" {
		return r[0].Cursor
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// filtersOf returns the path and query parameters of the input of a list, except those of the page.
func filtersOf(in reflect.Value) (filters []string) {
	for f, v := range in.Fields() {
		switch {
		case f.Tag.Get("query") != "" || f.Tag.Get("path") != "":
			filters = append(filters, fmt.Sprint(v)) // also of a number
		case f.Type == reflect.TypeFor[TagFilters]():
			filters = append(filters, v.Interface().(TagFilters).texts()...)
		case f.Anonymous && f.Type != reflect.TypeFor[Paging]():
			filters = append(filters, filtersOf(v)...)
		}
	}
	return filters
}

// Prepared is an input, or a part of one, that reads its parameters before the handler is called.
type Prepared interface {
	Prepare(ctx context.Context, who tenant.Identity) error
}

func prepare(ctx context.Context, who tenant.Identity, in any) error {
	if p, ok := in.(Prepared); ok {
		return p.Prepare(ctx, who)
	}
	for f, part := range reflect.ValueOf(in).Elem().Fields() {
		if !f.Anonymous {
			continue
		}
		if p, ok := part.Addr().Interface().(Prepared); ok {
			if err := p.Prepare(ctx, who); err != nil {
				return err
			}
		}
	}
	return nil
}

// register does what all calls have in common: it checks the identity and the parameters, and answers an error as a
// problem.
func register[I, O any](on Resource, method, path, id, summary string, handle Handler[I, O], routes []Route) {
	s, r := on.Router, Route{}
	if len(routes) > 0 {
		r = routes[0]
	}
	r.method, r.path, r.id, r.summary, r.tag = method, on.Path+path, id, summary, on.Tag
	if r.Scope == "" {
		r.Scope = map[bool]tenant.Scope{true: tenant.Read, false: tenant.Write}[method == http.MethodGet]
	}
	input := reflect.TypeFor[I]()
	r.completeErrors(input)
	known := namesOf(input, "query")
	huma.Register(s.api, s.operation(r), func(ctx context.Context, in *I) (*O, error) {
		requestOf(ctx).mergePatch = r.MergePatch
		who, err := s.enter(ctx, r, known)
		if r.Action != "" {
			ctx = s.intend(ctx, r, who)
		}
		if err == nil {
			err = prepare(ctx, who, in)
		}
		var out *O
		if err == nil {
			out, err = handle(ctx, who, in)
		}
		if err != nil {
			return nil, s.Refuse(ctx, err)
		}
		return out, nil
	})
	s.describe(r)
	if known[tagPrefix+"NAME"] {
		s.describeTags(r)
	}
	s.noteLiteral(r)
}

// completeErrors adds the statuses that follow from the path and the input.
func (r *Route) completeErrors(input reflect.Type) {
	r.Errors = append([]int{http.StatusBadRequest, http.StatusServiceUnavailable}, r.Errors...)
	headers := namesOf(input, "header")
	for status, possible := range map[int]bool{
		http.StatusNotFound:              strings.Contains(r.path, "{"), // a parameter may make the path invalid
		http.StatusConflict:              r.Conflict,
		http.StatusPreconditionFailed:    headers["If-Match"],
		http.StatusUnprocessableEntity:   headers["Idempotency-Key"],
		http.StatusRequestEntityTooLarge: r.Body != nil,
		http.StatusUnsupportedMediaType:  r.Body != nil,
	} {
		if possible {
			r.Errors = append(r.Errors, status)
		}
	}
}

// operation documents a route.
func (s *Router) operation(r Route) huma.Operation {
	op := huma.Operation{
		Method: r.method, Path: r.path, DefaultStatus: r.Status, OperationID: r.id, Summary: r.summary,
		Description: r.About, Tags: []string{r.tag}, Errors: r.Errors,
		SkipValidateParams: true, SkipValidateBody: true, // our own readers list all violations and repeat no values
	}
	switch {
	case r.Scope == Open:
		op.Security = []map[string][]string{}
	case s.NoSignIn: // requests of other origins are still refused
		op.Security = []map[string][]string{{}, {"bearer": scopesOf(r.Scope)}}
		op.Errors = append(op.Errors, http.StatusForbidden)
	default:
		op.Security = []map[string][]string{{"bearer": scopesOf(r.Scope)}}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	}
	return op
}

// enter checks the identity, the rate limit, the query and the absence of a body.
func (s *Router) enter(ctx context.Context, r Route, known map[string]bool) (who tenant.Identity, err error) {
	if r.Scope != Open {
		if who, err = admit(ctx, r.Scope); err != nil {
			return who, err
		}
		if s.Limit != nil {
			if err := s.Limit(ctx, who.Tenant); err != nil {
				return who, err
			}
		}
		if s.Weigh != nil {
			requestOf(ctx).weigh = func(bytes int) error { return s.Weigh(ctx, who.Tenant, bytes) }
		}
	}
	if err := checkQuery(requestOf(ctx).http.URL.RawQuery, known); err != nil {
		return who, err
	}
	if r.Body == nil && r.method != http.MethodGet && r.method != http.MethodDelete {
		return who, expectNoBody(ctx)
	}
	return who, nil
}

// describe corrects the document where huma cannot know: it must not read the body, so it does not document one, and it
// answers bad parameters with 422.
func (s *Router) describe(r Route) {
	op := Operations(s.api.OpenAPI().Paths[r.path])[r.method]
	if !slices.Contains(r.Errors, http.StatusUnprocessableEntity) {
		delete(op.Responses, "422")
	}
	also := r.Also
	if r.method == http.MethodPut {
		also = append(also, http.StatusCreated)
	}
	for _, status := range also {
		other := *op.Responses[strconv.Itoa(op.DefaultStatus)]
		other.Description = http.StatusText(status)
		op.Responses[strconv.Itoa(status)] = &other
	}
	if r.Body != nil {
		schema := r.Body.Schema(s.api.OpenAPI().Components.Schemas)
		op.RequestBody = &huma.RequestBody{Required: !r.OptionalBody,
			Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
	}
}

// Operations returns the operations on a path, by method.
func Operations(p *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{
		http.MethodGet: p.Get, http.MethodPost: p.Post, http.MethodPut: p.Put, http.MethodPatch: p.Patch,
		http.MethodDelete: p.Delete,
	}
	maps.DeleteFunc(all, func(_ string, op *huma.Operation) bool { return op == nil })
	return all
}

// mergePatchType is the media type of RFC 7396.
const mergePatchType = "application/merge-patch+json"

func scopesOf(s tenant.Scope) []string {
	if s == AnyScope {
		return []string{}
	}
	return []string{string(s)}
}

// namesOf returns the parameters of a kind (path, query or header) in the input type of a route.
func namesOf(t reflect.Type, kind string) map[string]bool {
	names := map[string]bool{}
	for f := range t.Fields() {
		if f.Type == reflect.TypeFor[TagFilters]() && kind == "query" {
			names[tagPrefix+"NAME"] = true
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			maps.Copy(names, namesOf(f.Type, kind))
		}
		if name := f.Tag.Get(kind); name != "" {
			names[name] = true
		}
	}
	return names
}

// checkQuery refuses unknown parameters, because an ignored filter gives a wrong answer.
func checkQuery(raw string, known map[string]bool) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return OneViolation("query", CodeInvalidValue, "name=value pairs joined by &",
			"the query string cannot be read")
	}
	var wrong fault.Violations
	for name, given := range values {
		if len(wrong) >= MaxViolations {
			break
		}
		switch {
		case !known[name] && !(known[tagPrefix+"NAME"] && strings.HasPrefix(name, tagPrefix)):
			wrong = append(wrong, fault.Field{Pointer: text.CutName(name), Code: CodeUnknownField,
				Detail: "no parameter " + text.Quoted(name) + " is known here", Allowed: listed(known)})
		case len(given) > 1:
			wrong = append(wrong, fault.Field{Pointer: name, Code: CodeDuplicateField, Detail: name +
				" is given more than once"})
		case given[0] == "":
			wrong = append(wrong, fault.Field{Pointer: name, Code: CodeInvalidValue, Detail: name +
				" has no value; leave it out instead"})
		}
	}
	sortViolations(wrong)
	return wrong.Err()
}

// ReadBody reads a JSON body of at most limit bytes. An absent body is nil. A larger body, one of another type, and one
// that is not JSON are a *Problem.
func ReadBody(ctx context.Context, limit int64) (*document.Document, error) {
	text, err := bodyText(ctx, limit)
	if err != nil || text == nil {
		return nil, err
	}
	if weigh := requestOf(ctx).weigh; weigh != nil {
		if err := weigh(len(text)); err != nil {
			return nil, err
		}
	}
	d, err := document.Read(text)
	if err != nil {
		return nil, Unreadable(text, err)
	}
	audit.From(ctx).Asked(text)
	return d, nil
}

// Unreadable turns an error of document.Read into a problem with line and column.
func Unreadable(text []byte, err error) error {
	var e *document.Error
	if !errors.As(err, &e) {
		return err
	}
	code := CodeInvalidJSON
	if e.TooDeep {
		code = CodeOutOfRange
	}
	before := text[:min(e.At, len(text))]
	line := 1 + strings.Count(string(before), "\n")
	column := len(before) - strings.LastIndexByte(string(before), '\n')
	p := NewProblem(code, "line %d, column %d: %s", line, column, e.Why)
	p.Errors = []problemError{{Pointer: "", Code: code, Detail: p.Detail}}
	return p
}

// bodyText reads the body. It refuses a body by its Content-Length before it reads.
func bodyText(ctx context.Context, limit int64) ([]byte, error) {
	r := requestOf(ctx).http
	tooLarge := NewProblem(CodeTooLarge, "a body here is at most %d bytes", limit)
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	if err := checkContentType(r.Header, requestOf(ctx).mergePatch); err != nil && r.ContentLength > 0 {
		return nil, err
	}
	var text []byte
	var err error
	if r.ContentLength > 0 {
		text = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, text)
	} else {
		text, err = io.ReadAll(io.LimitReader(r.Body, limit+1))
	}
	switch {
	case err != nil:
		return nil, NewProblem(CodeInvalidJSON, "the body ended before it was complete")
	case int64(len(text)) > limit:
		return nil, tooLarge
	case len(text) == 0:
		return nil, nil
	}
	return text, checkContentType(r.Header, requestOf(ctx).mergePatch)
}

// checkContentType accepts only JSON. It refuses a JSON Patch, which would be read as fields, and a merge patch where
// the route replaces whole fields.
func checkContentType(h http.Header, mergePatch bool) error {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return NewProblem(CodeMediaType, "a body must not be compressed")
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	json := kind == "application/json" || kind == mergePatchType && mergePatch
	charset, named := params["charset"]
	if err != nil || !json || named && !strings.EqualFold(charset, "utf-8") {
		return NewProblem(CodeMediaType, "a body needs the header Content-Type: application/json")
	}
	return nil
}

// expectNoBody accepts no body, or {}.
func expectNoBody(ctx context.Context) error {
	d, err := ReadBody(ctx, contract.MaxBody)
	if err != nil || d == nil {
		return err
	}
	r := NewReader(d)
	r.Object(Value{}, nil)
	return r.Wrong.Err()
}
