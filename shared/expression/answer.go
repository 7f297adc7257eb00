package expression

import (
	"encoding/json"
	"mime"
	"strings"
	"sync"

	"cel.dev/cel-go/common/types"
)

// answer is the body of an HTTP answer, as expressions see it under json.
type answer struct {
	body  string
	why   string // there is no JSON; "" if there may be some
	value func() (any, bool)
}

// Fields of the result of an HTTP request.
const (
	fieldBody        = "body"
	fieldTruncated   = "truncated"
	fieldEncoding    = "encoding"
	fieldContentType = "content_type"
	fieldJSON        = "json"
)

// Answer returns the result of an HTTP request: a map that also has json, the parsed body, where the answer's
// Content-Type is JSON and the body is whole. json is no part of the map's JSON. Any other value stays as it is.
func Answer(v any) any {
	m, ok := v.(*Map)
	if !ok {
		return v
	}
	value := func(name string) any {
		v, _ := m.Field(name)
		return v
	}
	body, ok := value(fieldBody).(types.String)
	if !ok || value(fieldJSON) != nil {
		return v
	}
	out := *m
	out.answer = &answer{
		body:  string(body),
		value: sync.OnceValues(func() (any, bool) { return readJSON(string(body)) }),
	}
	contentType, _ := value(fieldContentType).(types.String)
	switch {
	case value(fieldTruncated) == types.True:
		out.answer.why = "the body of the answer was cut, so it is not read as JSON"
	case value(fieldEncoding) != nil:
		out.answer.why = "the body of the answer is no text, so it is not read as JSON"
	case contentType == "":
		out.answer.why = "the answer has no Content-Type, so its body is not read as JSON"
	case !isJSON(string(contentType)):
		out.answer.why = "the Content-Type of the answer is not JSON"
	case body == "":
		out.answer.why = "the body of the answer is empty"
	}
	return &out
}

// readJSON parses a text that is one JSON value.
func readJSON(text string) (any, bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	v, err := Decode([]byte(text))
	return v, err == nil
}

// isJSON reports whether a media type is application/json or ends in +json.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// member returns a field of a map. The error says why the json of an answer is absent.
func (m *machine) member(n *node, v *Map, name string) (any, error) {
	if x, ok := v.Field(name); ok {
		return x, nil
	}
	if name != fieldJSON || v.answer == nil {
		return nil, n.fail(noField)
	}
	if v.answer.why != "" {
		return nil, n.fail(v.answer.why)
	}
	if !m.parsed[v.answer] {
		if err := m.payForJSON(n, v.answer.body); err != nil {
			return nil, err
		}
		if m.parsed == nil {
			m.parsed = map[*answer]bool{}
		}
		m.parsed[v.answer] = true
	}
	x, ok := v.answer.value()
	if !ok {
		return nil, n.fail("the body of the answer is not valid JSON, though its Content-Type says so")
	}
	return x, nil
}

// payForJSON pays for parsing a text, before it is parsed.
func (m *machine) payForJSON(n *node, text string) error {
	const ofElement = 120 // bytes that the parser and the value take for each element
	elements := 1
	for i := range len(text) {
		switch text[i] {
		case ',', '[', '{', ':':
			elements++
		}
	}
	if err := m.pay(n, len(text)/8+4*elements); err != nil {
		return err
	}
	return m.allocate(n, 2*len(text)+ofElement*elements)
}
