package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"punctual/functions/api/wire"
	"punctual/shared/cache"
)

// schemaCache keeps compiled payload schemas by the hash of their text, which never changes its meaning.
type schemaCache struct {
	programs *cache.Cache[[sha256.Size]byte, *program]
}

// maxCached bounds what the compiled schemas of a process weigh together, in bytes.
const maxCached = 32 << 20

func newSchemaCache() *schemaCache {
	return &schemaCache{cache.New[[sha256.Size]byte](cache.Options[*program]{
		Most: maxCached, Weigh: func(p *program) int { return p.weight },
	})}
}

// has says whether a schema need not be compiled.
func (c *schemaCache) has(text json.RawMessage) bool {
	_, ok := c.programs.Peek(sha256.Sum256(text))
	return ok
}

// noLoader keeps a schema from making us fetch anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema must not refer to other documents")
}

// program is a compiled schema that pays for every step that it takes. It judges one payload
// at a time, because the library hands its hooks nothing that would tell two apart.
type program struct {
	schema *jsonschema.Schema
	turn   chan struct{}
	meter  *meter // of the payload that is being judged
	weight int    // about how many bytes it takes
}

func (p *program) spend(n int) { p.meter.spend(n) }

// compile returns a *schemaLimit for what is right but too dear.
func (c *schemaCache) compile(text json.RawMessage) (*program, error) {
	// Compiling is bounded, so nobody needs to give up waiting for it.
	return c.programs.Get(context.Background(), sha256.Sum256(text), func(context.Context) (*program, error) {
		return compile(text)
	})
}

func compile(text json.RawMessage) (*program, error) {
	if err := checkSchemaText(text); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading a payload schema: %w", err)
	}
	const at = "mem:payload_schema"
	p := &program{turn: make(chan struct{}, 1), meter: &meter{}}
	res := &patterns{program: p, known: map[string]jsonschema.Regexp{}}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(res.compile)
	err = compiler.AddResource(at, doc)
	if err == nil {
		p.schema, err = compiler.Compile(at)
	}
	if err != nil {
		return nil, fmt.Errorf("compiling a payload schema: %w", cmp.Or(res.limit, err))
	}
	d := dissection{program: p, seen: map[*jsonschema.Schema]*reach{}, weight: 8*len(text) + 100*res.size}
	if err := d.all(p.schema); err != nil {
		return nil, err
	}
	p.weight = d.weight
	return p, nil
}

// meter is the work that is left for judging payloads. A unit is about 100 ns.
type meter struct {
	ctx    context.Context
	price  int // of a unit: deep payloads and long numbers make every step dearer
	left   int
	looked int // what was left when the context was last looked at
}

const (
	workPerPayload = 1_000_000 // about 120 ms; 100,000 values by a simple schema
	lookEvery      = 10_000    // units between two looks at the context, about 1 ms
)

// stopped ends a judgement from within the library.
type stopped struct{ err error }

var errTooMuchWork = errors.New("judging the payload takes more work than is allowed")

func (m *meter) spend(n int) {
	m.left -= n * m.price
	if m.left < 0 {
		panic(stopped{errTooMuchWork})
	}
	if m.looked-m.left < lookEvery {
		return
	}
	m.looked = m.left
	if m.ctx.Err() != nil {
		panic(stopped{context.Cause(m.ctx)})
	}
}

// judge says by a *jsonschema.ValidationError where a payload does not fit. errTooMuchWork
// says that finding out costs too much; the context's error that nobody waits any more.
func (p *program) judge(ctx context.Context, instance any, work, price int) (err error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() {
		p.meter = nil
		<-p.turn
		switch stop := recover().(type) {
		case nil:
		case stopped:
			err = stop.err
		default:
			panic(stop)
		}
	}()
	p.meter = &meter{ctx, price, work, work}
	p.spend(1)
	return p.schema.Validate(instance)
}

// freshSchemas is how many bytes of schemas one request may have compiled that no other has
// needed before.
const freshSchemas = 256 << 10

// judge blames each part of a payload that does not fit the schema: where, and by which
// keyword, but never with what is there.
func (c *schemaCache) judge(
	ctx context.Context, r *reader, v wire.Value, schema json.RawMessage, payload []byte,
) error {
	if !c.has(schema) && r.fresh.Add(-int64(len(schema))) < 0 {
		r.Mistake(v.Pointer, wire.CodeOutOfRange, "jobs of fewer tasks in one batch",
			"the payload schemas of the batch's tasks are too large together")
		return nil
	}
	p, err := c.compile(schema)
	var limit *schemaLimit
	if errors.As(err, &limit) { // the task was put when more was allowed
		r.Mistake(v.Pointer, wire.CodeOutOfRange, limit.allowed,
			"the task's payload_schema is not taken any more: %s; put the task again", limit.detail)
		return nil
	}
	if err != nil {
		return err // it was compiled when the task was put
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		r.Mistake(v.Pointer, wire.CodeInvalidValue, "", "the payload has a number that cannot be compared")
		return nil
	}
	err = p.judge(ctx, instance, r.work, r.stepPrice(v.Node))
	var bad *jsonschema.ValidationError
	switch {
	case errors.As(err, &bad):
		r.misfits(v.Pointer, "of the task's payload_schema", bad)
		return nil
	case errors.Is(err, errTooMuchWork):
		r.Mistake(v.Pointer, wire.CodeOutOfRange, "a smaller payload, or a simpler payload_schema",
			"judging this payload by the task's payload_schema takes more work than is allowed")
		return nil
	}
	return err
}

// stepPrice is how much dearer than usual a step is with this payload: mistakes hold the way
// to their place, and numbers are compared digit by digit.
func (r *reader) stepPrice(n int) int {
	longest := 0
	for _, raw := range r.Doc.Numbers(n) {
		digits := len(raw)
		if _, exponent, ok := strings.Cut(strings.ToLower(raw), "e"); ok {
			digits += int(number(strings.TrimLeft(exponent, "+-")))
		}
		longest = max(longest, digits)
	}
	return 1 + r.Doc.Depth(n)/16 + longest/16
}

// exact judges enum, const and uniqueItems in the library's place: by what values say, in time
// that grows with their length. The library compares each with each, and numbers by parsing
// both every time.
type exact struct {
	program *program
	enum    map[string]bool // nil for none
	longest int             // of enum and fixed
	fixed   string          // "" for no const
	unique  bool
	misfit  jsonschema.ErrorKind // of enum
	other   jsonschema.ErrorKind // of const
}

// newExact takes the three keywords out of a schema; nil if it has none.
func newExact(p *program, s *jsonschema.Schema) *exact {
	if s.Enum == nil && s.Const == nil && !s.UniqueItems {
		return nil
	}
	e := &exact{program: p, unique: s.UniqueItems}
	if s.Enum != nil {
		e.enum, e.misfit = map[string]bool{}, &schemakind.Enum{Want: s.Enum.Values}
		for _, v := range s.Enum.Values {
			said := e.said(v)
			e.enum[said], e.longest = true, max(e.longest, len(said))
		}
	}
	if s.Const != nil {
		e.fixed, e.other = e.said(*s.Const), &schemakind.Const{Want: *s.Const}
		e.longest = max(e.longest, len(e.fixed))
	}
	s.Enum, s.Const, s.UniqueItems = nil, nil, false
	return e
}

func (e *exact) weight() int {
	weight := 200 + len(e.fixed)
	for said := range e.enum {
		weight += 50 + len(said)
	}
	return weight
}

// said writes a schema's own value, which is short.
func (e *exact) said(v any) string {
	var b strings.Builder
	writeExact(&b, v, maxSchema*2, func(int) {})
	return b.String()
}

// Validate is called by the library after all other keywords.
func (e *exact) Validate(ctx *jsonschema.ValidatorContext, v any) {
	if e.enum != nil || e.fixed != "" {
		var b strings.Builder
		whole := writeExact(&b, v, e.longest, e.program.spend)
		if e.enum != nil && !(whole && e.enum[b.String()]) {
			ctx.AddError(e.misfit)
		}
		if e.fixed != "" && !(whole && e.fixed == b.String()) {
			ctx.AddError(e.other)
		}
	}
	items, _ := v.([]any)
	if !e.unique || len(items) < 2 {
		return
	}
	first := map[string]int{}
	for i, item := range items {
		var b strings.Builder
		writeExact(&b, item, maxExact, e.program.spend)
		if j, again := first[b.String()]; again {
			ctx.AddError(&schemakind.UniqueItems{Duplicates: [2]int{j, i}})
			return
		}
		first[b.String()] = i
	}
}

// maxExact is more than any payload says.
const maxExact = 1 << 30

// writeExact writes what a value says, so that two values are equal exactly if their texts are.
// It returns false, having written a part, when that takes more than limit bytes.
func writeExact(b *strings.Builder, v any, limit int, spend func(int)) bool {
	if b.Len() > limit {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		spend(1 + 2*len(v))
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(b, "{%d:", len(v))
		for _, name := range names {
			if !writeExact(b, name, limit, spend) || !writeExact(b, v[name], limit, spend) {
				return false
			}
		}
	case []any:
		spend(2)
		fmt.Fprintf(b, "[%d:", len(v))
		for _, item := range v {
			if !writeExact(b, item, limit, spend) {
				return false
			}
		}
	case string:
		spend(1 + len(v)/256)
		if b.Len()+len(v) > limit {
			return false
		}
		fmt.Fprintf(b, "\"%d:%s", len(v), v)
	case json.Number:
		spend(2)
		b.WriteString(wire.CanonicalNumber(v.String()))
		b.WriteByte(';')
	default:
		spend(1)
		fmt.Fprintf(b, "%v;", v)
	}
	return b.Len() <= limit
}
