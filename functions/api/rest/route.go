package rest

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Open is the scope of routes that need no identity.
const Open tenant.Scope = "open"

// Body documents the body of a request.
type Body interface {
	// Schema returns the schema of the body; schemas that it refers to are added to those that are known.
	Schema(known huma.Registry) *huma.Schema
}

// Route is one call of the API: its documentation and its conditions.
type Route struct {
	Method, Path string
	Status       int // of success, if it is always the same
	ID           string
	Summary      string
	About        string
	Tag          string
	Scope        tenant.Scope // "" needs only an identity
	Body         Body         // nil: no body
	OptionalBody bool
	Errors       []int // in addition to those of every call
	Also         []int // more statuses of success; a PUT always has 201
	AlsoName     bool  // the last element of Path may be a resource's name: other methods mean that resource
	MergePatch   bool  // also accepts application/merge-patch+json (RFC 7396)
}

// Register adds a route to s. It does what all calls have in common: it checks the identity and the query parameters,
// and answers an error as a problem. The input of handle holds path, query and header parameters.
func Register[I, O any](
	s *Router, r Route, handle func(ctx context.Context, who tenant.Identity, in *I) (*O, error),
) {
	op := huma.Operation{
		Method: r.Method, Path: r.Path, DefaultStatus: r.Status, OperationID: r.ID, Summary: r.Summary,
		Description: r.About, Tags: []string{r.Tag},
		SkipValidateParams: true, SkipValidateBody: true, // our own readers list all mistakes and repeat no values
		Errors: append([]int{http.StatusBadRequest, http.StatusServiceUnavailable}, r.Errors...),
	}
	switch {
	case r.Scope == Open:
		op.Security = []map[string][]string{}
	case s.noSignIn: // requests of other origins are still refused
		op.Security = []map[string][]string{{}, {"bearer": scopesOf(r.Scope)}}
		op.Errors = append(op.Errors, http.StatusForbidden)
	default:
		op.Security = []map[string][]string{{"bearer": scopesOf(r.Scope)}}
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	}
	if strings.Contains(r.Path, "{") { // a parameter may make the path invalid
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	if r.Body != nil {
		op.Errors = append(op.Errors, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	known := queryNames(reflect.TypeFor[I]())
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		requestOf(ctx).mergePatch = r.MergePatch
		out, err := func() (*O, error) {
			var who tenant.Identity
			var err error
			if r.Scope != Open {
				if who, err = admit(ctx, r.Scope); err != nil {
					return nil, err
				}
				if s.limit != nil {
					if err := s.limit(ctx, who.Tenant); err != nil {
						return nil, err
					}
				}
				if s.weigh != nil {
					requestOf(ctx).weigh = func(bytes int) error { return s.weigh(ctx, who.Tenant, bytes) }
				}
			}
			if err := checkQuery(requestOf(ctx).http.URL.RawQuery, known); err != nil {
				return nil, err
			}
			if r.Body == nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
				if err := expectNoBody(ctx); err != nil {
					return nil, err
				}
			}
			return handle(ctx, who, in)
		}()
		if err != nil {
			return nil, s.Refuse(ctx, err)
		}
		return out, nil
	})
	s.describe(r)
	s.noteLiteral(r)
}

// describe corrects the document where huma cannot know: it must not read the body, so it does not document one, and it
// answers bad parameters with 422.
func (s *Router) describe(r Route) {
	path := s.api.OpenAPI().Paths[r.Path]
	op := map[string]*huma.Operation{
		http.MethodGet: path.Get, http.MethodPost: path.Post, http.MethodPut: path.Put, http.MethodPatch: path.Patch,
		http.MethodDelete: path.Delete,
	}[r.Method]
	if !slices.Contains(r.Errors, http.StatusUnprocessableEntity) {
		delete(op.Responses, "422")
	}
	also := r.Also
	if r.Method == http.MethodPut {
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

// mergePatchType is the media type of RFC 7396.
const mergePatchType = "application/merge-patch+json"

func scopesOf(s tenant.Scope) []string {
	if s == "" {
		return []string{}
	}
	return []string{string(s)}
}

// queryNames returns the query parameters in the input type of a route.
func queryNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			for name := range queryNames(f.Type) {
				names[name] = true
			}
		}
		if name, _, _ := strings.Cut(f.Tag.Get("query"), ","); name != "" {
			names[name] = true
		}
	}
	return names
}

// checkQuery refuses unknown parameters, because an ignored filter gives a wrong answer.
func checkQuery(raw string, known map[string]bool) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return OneMistake("query", CodeInvalidValue, "name=value pairs joined by &", "the query string cannot be read")
	}
	var wrong fault.Violations
	for name, given := range values {
		if len(wrong) >= MaxMistakes {
			break
		}
		switch {
		case !known[name]:
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
	sortMistakes(wrong)
	return wrong.Err()
}

// ReadBody reads a JSON body of at most limit bytes. An absent body is nil. A larger body, one of another type, and one
// that is not JSON are a *Problem.
func ReadBody(ctx context.Context, limit int64) (*Document, error) {
	text, err := bodyText(ctx, limit)
	if err != nil || text == nil {
		return nil, err
	}
	if weigh := requestOf(ctx).weigh; weigh != nil {
		if err := weigh(len(text)); err != nil {
			return nil, err
		}
	}
	d, err := ReadDocument(text)
	if err != nil {
		return nil, Unreadable(text, err)
	}
	return d, nil
}

// Unreadable turns an error of ReadDocument into a problem with line and column.
func Unreadable(text []byte, err error) error {
	var e *syntaxError
	if !errors.As(err, &e) {
		return err
	}
	before := text[:min(e.at, len(text))]
	line := 1 + strings.Count(string(before), "\n")
	column := len(before) - strings.LastIndexByte(string(before), '\n')
	p := NewProblem(e.code, "line %d, column %d: %s", line, column, e.why)
	p.Errors = []problemError{{Pointer: "", Code: e.code, Detail: p.Detail}}
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
	r.Object(0, "", nil)
	return r.Wrong.Err()
}
