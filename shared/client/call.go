package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"punctual/shared/client/rest"
)

// maxAnswer is the longest body that is read. API Gateway answers 10 MB at most, and Punctual less.
const maxAnswer = 64 << 20

// Request is the content of one call. Its zero value sends no parameter and no body.
type Request struct {
	// Path holds the values of the parameters in the path of the operation, in their order.
	Path []string
	// Params holds the query and the headers, in the type that package rest has for the operation, such as
	// *rest.ListJobsParams; nil sends none.
	Params any
	// Body is sent as JSON. A json.RawMessage is sent with the digits that it has; nil sends no body.
	Body any
	// Answered receives the headers of the answer; nil drops them.
	Answered http.Header

	cursor *string // of the page, in place of that of Params
}

// Call calls an operation and returns the body of its answer as T, such as rest.JobView; an answer without a body is
// the zero T, and []byte is a body of any type as it came. Every method of [Client] calls by it, so it signs in,
// repeats and fails as they do. It serves requests that exist as JSON already, and parameters that no method takes:
//
//	body := json.RawMessage(`{"executor":"go"}`)
//	task, err := client.Call[rest.TaskView](ctx, c, rest.PutTask, client.Request{Path: []string{"copy"}, Body: body})
func Call[T any](ctx context.Context, c *Client, operation rest.Operation, r Request) (T, error) {
	var v T
	request, err := c.request(ctx, operation, r)
	if err != nil {
		return v, fmt.Errorf("calling %s: %w", operation.ID, err)
	}
	answer, err := c.caller.Do(request)
	if err != nil {
		return v, err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return v, fmt.Errorf("reading the answer to %s: %w", answer.Request.URL.Path, err)
	}
	if len(text) > maxAnswer {
		return v, fmt.Errorf("the answer to %s is longer than %d bytes", answer.Request.URL.Path, maxAnswer)
	}
	if r.Answered != nil {
		maps.Copy(r.Answered, answer.Header)
	}
	return decode[T](answer, text)
}

// decode reads the body of an answer that is no refusal.
func decode[T any](answer *http.Response, text []byte) (T, error) {
	var v T
	kind := answer.Header.Get("Content-Type")
	raw, isRaw := any(&v).(*[]byte)
	switch {
	case answer.StatusCode == http.StatusNoContent:
		return v, nil
	case isRaw && !strings.Contains(kind, "html"): // no operation answers a page: it would be a proxy's
		*raw = text
		return v, nil
	case !strings.Contains(kind, "json"):
		return v, notOurs(answer, text)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("reading the answer to %s: %w", answer.Request.URL.Path, err)
	}
	return v, nil
}

// request makes the request of one call.
func (c *Client) request(ctx context.Context, operation rest.Operation, r Request) (*http.Request, error) {
	path, err := fill(operation.Path, r.Path)
	if err != nil {
		return nil, err
	}
	query, header, err := parameters(r.Params)
	if err != nil {
		return nil, err
	}
	if r.cursor != nil {
		query.Set("cursor", *r.cursor)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		text, err := encode(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
	}
	request, err := http.NewRequestWithContext(ctx, operation.Method, address, body)
	if err != nil {
		return nil, err
	}
	request.Header = header
	return request, nil
}

// fill puts values in place of the parameters of a path.
func fill(path string, values []string) (string, error) {
	if n := strings.Count(path, "{"); n != len(values) {
		return "", fmt.Errorf("the path %s has %d parameters, and %d values are given", path, n, len(values))
	}
	for _, value := range values {
		before, parameter, _ := strings.Cut(path, "{")
		name, after, _ := strings.Cut(parameter, "}")
		if value == "" || value == "." || value == ".." { // the path would be another operation's
			return "", fmt.Errorf("%s is %q, which names nothing", name, value)
		}
		path = before + url.PathEscape(value) + after
	}
	return path, nil
}

// parameters splits the parameters of an operation into its query and its headers, whose names begin with a capital
// letter.
func parameters(params any) (url.Values, http.Header, error) {
	query, header := url.Values{}, http.Header{}
	text, err := encode(params)
	if err != nil {
		return nil, nil, err
	}
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	var all map[string]any
	if err := numbers.Decode(&all); err != nil {
		return nil, nil, fmt.Errorf("parameters of the type %T: %w", params, err)
	}
	for name, value := range all {
		object, isObject := value.(map[string]any)
		switch {
		case isObject: // its properties are parameters of their own, such as tag.NAME
			for own, v := range object {
				query.Set(own, fmt.Sprint(v))
			}
		case name[0] >= 'A' && name[0] <= 'Z':
			header.Set(name, fmt.Sprint(value))
		default:
			query.Set(name, fmt.Sprint(value))
		}
	}
	return query, header, nil
}

// encode is the JSON of a value, with markup as it is: escaped it would be longer.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// page is one page of a list.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// list iterates over the items of all pages of an operation that lists.
func list[T any](ctx context.Context, c *Client, operation rest.Operation, r Request) iter.Seq2[T, error] {
	return pages(func(cursor *string) (page[T], error) {
		r.cursor = cursor
		return Call[page[T]](ctx, c, operation, r)
	}, func(p page[T]) ([]T, *string) { return p.Items, p.NextCursor })
}

// pages iterates over the items of pages; fetch is given nil for the first.
func pages[P, T any](fetch func(cursor *string) (P, error), split func(P) ([]T, *string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var cursor *string
		for {
			page, err := fetch(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			items, after := split(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if cursor = after; cursor == nil {
				return
			}
		}
	}
}

// wait repeats a get, which waits itself, until the status is final.
func wait[T any](
	ctx context.Context, c *Client, operation rest.Operation, r Request, status func(T) string,
) (T, error) {
	for {
		r.Answered = http.Header{}
		v, err := Call[T](ctx, c, operation, r)
		if err != nil || Over(status(v)) {
			return v, err
		}
		if !pause(ctx, retryAfter(r.Answered)) {
			return v, context.DeadlineExceeded
		}
	}
}

// Condition restricts a change to one version of what is changed.
type Condition struct{ tag string }

// IfVersion has a change refused by [StaleVersion] unless the job or the schedule still has this version, which its
// view shows. Such a change is not repeated after a failure of the network.
func IfVersion(version int64) Condition { return Condition{fmt.Sprintf(`"%d"`, version)} }

// ifMatch is the header of the conditions of a change, of which there is one at most; nil is none.
func ifMatch(conditions []Condition) *string {
	if len(conditions) == 0 {
		return nil
	}
	return &conditions[len(conditions)-1].tag
}
