package schema

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"punctual/shared/cache"
	"punctual/shared/fault"
	"punctual/shared/text"
)

// Cache keeps compiled schemas by the hash of their text, which never changes its meaning. It is safe for
// concurrent use.
type Cache struct {
	programs *cache.Cache[[sha256.Size]byte, *program]
}

// maxCached bounds what the compiled schemas of a process weigh together, in bytes.
const maxCached = 32 << 20

// NewCache returns an empty Cache.
func NewCache() *Cache {
	return &Cache{cache.New[[sha256.Size]byte](cache.Options[*program]{
		Most: maxCached, Weigh: func(p *program) int { return p.weight },
	})}
}

// Has says whether a schema need not be compiled.
func (c *Cache) Has(schema json.RawMessage) bool {
	_, ok := c.programs.Peek(sha256.Sum256(schema))
	return ok
}

// Check compiles a schema. One that does not compile, or is too dear to compile or to apply, is a
// fault.Violations whose pointers are below the schema.
func (c *Cache) Check(schema json.RawMessage) error {
	_, err := c.compile(schema)
	if err == nil {
		return nil
	}
	var b blames
	if dear := new(limit); errors.As(err, &dear) {
		b.add("", codeOutOfRange, dear.allowed, "%s", dear.detail)
	} else {
		b.uncompiled(err)
	}
	return b.Err()
}

// Notes returns sentences about what a schema says and nothing checks; none for a schema that does not compile.
func (c *Cache) Notes(schema json.RawMessage) (notes []string) {
	if len(schema) == 0 {
		return nil
	}
	p, err := c.compile(schema)
	if err != nil {
		return nil
	}
	for _, format := range p.unchecked[:min(len(p.unchecked), maxNotes)] {
		notes = append(notes, fmt.Sprintf("the format %s is not known and not checked", text.Quoted(format)))
	}
	return notes
}

// maxNotes is how many notes one schema gets at most.
const maxNotes = 10

// Use is one use of a schema, which was checked when it was given.
type Use struct {
	Schema json.RawMessage
	// Owner and Field are whose it is, for the violations: "task" and "payload_schema".
	Owner, Field string
	// Work is what validating may cost, in units of about 100 ns. 0: WorkPerValue.
	Work int
}

func (u Use) name() string { return fmt.Sprintf("the %s's %s", u.Owner, u.Field) }

// Validate says where a value does not fit a schema: a fault.Violations whose pointers are below the value. They
// say where, and by which keyword, but never what is there. A value that costs too much to validate is one,
// too. A schema that cannot be compiled is a fault.Undecodable; the context's cause says that no caller waits
// any more.
func (c *Cache) Validate(ctx context.Context, value []byte, u Use) error {
	var b blames
	p, err := c.compile(u.Schema)
	if dear := new(limit); errors.As(err, &dear) { // it was put when more was allowed
		b.add("", codeOutOfRange, dear.allowed, "%s is not taken any more: %s; put the %s again", u.name(), dear.detail,
			u.Owner)
		return b.Err()
	}
	if err != nil {
		return fault.New(fault.Undecodable, err, "applying %s", u.name())
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		b.add("", codeInvalidValue, "", "the payload has a number that cannot be compared")
		return b.Err()
	}
	var size extent
	if size.measure(instance, 0); size.wild {
		b.wild(u, instance, "")
		return b.Err()
	}
	err = p.validate(ctx, instance, cmp.Or(u.Work, WorkPerValue), size.price())
	var bad *jsonschema.ValidationError
	switch {
	case errors.As(err, &bad):
		b.addEach("of "+u.name(), bad)
		return b.Err()
	case errors.Is(err, errTooMuchWork):
		b.add("", codeOutOfRange, "a smaller payload, or a simpler payload_schema",
			"judging this payload by %s takes more work than is allowed", u.name())
		return b.Err()
	}
	return err
}

// extent is how deep a value is and how long its numbers are.
type extent struct {
	depth, longest int
	wild           bool // a number cannot be compared at a fair price
}

func (e *extent) measure(v any, level int) {
	switch v := v.(type) {
	case map[string]any:
		e.depth = max(e.depth, level+1)
		for _, part := range v {
			e.measure(part, level+1)
		}
	case []any:
		e.depth = max(e.depth, level+1)
		for _, part := range v {
			e.measure(part, level+1)
		}
	case json.Number:
		if !Comparable(v.String()) {
			e.wild = true
			return
		}
		digits := len(v)
		if _, exponent, ok := strings.Cut(strings.ToLower(v.String()), "e"); ok {
			digits += atoi(strings.TrimLeft(exponent, "+-"))
		}
		e.longest = max(e.longest, digits)
	}
}

// price is how much dearer than usual a step is with this value: violations hold the way to their place, and
// numbers are compared digit by digit.
func (e *extent) price() int { return 1 + e.depth/16 + e.longest/16 }

// wild blames numbers that cannot be compared at a fair price.
func (b *blames) wild(u Use, v any, at string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b.wild(u, v[name], at+"/"+text.EscapePointer(name))
		}
	case []any:
		for i, part := range v {
			b.wild(u, part, at+"/"+strconv.Itoa(i))
		}
	case json.Number:
		if !Comparable(v.String()) {
			b.add(at, codeOutOfRange, ComparableAllowed,
				"the number is too large, too long or too near to nothing to be judged by %s", u.name())
		}
	}
}

// noLoader keeps a schema from making us fetch anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema must not refer to other documents")
}

// program is a compiled schema that pays for every step that it takes. It validates one value
// at a time, because the library hands its hooks nothing that would distinguish two.
type program struct {
	schema *jsonschema.Schema
	turn   chan struct{}
	meter  *meter // of the value that is being validated
	weight int    // about how many bytes it takes

	unchecked []string // formats that are named and not checked, sorted
}

func (p *program) spend(n int) { p.meter.spend(n) }

// compile returns a *limit for what is right but too dear.
func (c *Cache) compile(text json.RawMessage) (*program, error) {
	// Compiling is bounded, so no caller needs to give up waiting for it.
	return c.programs.Get(context.Background(), sha256.Sum256(text), func(context.Context) (*program, error) {
		return compile(text)
	})
}

func compile(text json.RawMessage) (*program, error) {
	if len(text) > MaxText {
		return nil, tooMuch(fmt.Sprintf("at most %d bytes", MaxText), "the schema has %d bytes", len(text))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	if err := checkCost(doc); err != nil {
		return nil, err
	}
	const at = "mem:schema"
	p := &program{turn: make(chan struct{}, 1), meter: &meter{}}
	res := &patterns{program: p, known: map[string]jsonschema.Regexp{}}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(res.compile)
	compiler.AssertFormat()
	for name := range formatsIn(doc) {
		if !checkedFormats[name] {
			compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: unchecked})
		}
	}
	err = compiler.AddResource(at, doc)
	if err == nil {
		p.schema, err = compiler.Compile(at)
	}
	if err != nil {
		return nil, fmt.Errorf("compiling a schema: %w", cmp.Or(res.refused, err))
	}
	d := dissection{program: p, seen: map[*jsonschema.Schema]*reach{}, weight: 8*len(text) + 100*res.size}
	if err := d.all(p.schema); err != nil {
		return nil, err
	}
	p.weight = d.weight
	slices.Sort(d.unchecked)
	p.unchecked = slices.Compact(d.unchecked)
	return p, nil
}

// meter is the work that is left for validating a value. A unit is about 100 ns.
type meter struct {
	ctx     context.Context
	price   int // of a unit: deep values and long numbers make every step dearer
	left    int
	checked int // what was left when the context was last looked at
}

// WorkPerValue is what validating one value may cost: about 120 ms, or 100,000 values by a simple schema.
const WorkPerValue = 1_000_000

// checkEvery is how many units lie between two looks at the context, about 1 ms.
const checkEvery = 10_000

// stopped ends a judgement from within the library.
type stopped struct{ err error }

var errTooMuchWork = errors.New("judging the value takes more work than is allowed")

func (m *meter) spend(n int) {
	m.left -= n * m.price
	if m.left < 0 {
		panic(stopped{errTooMuchWork})
	}
	if m.checked-m.left < checkEvery {
		return
	}
	m.checked = m.left
	if m.ctx.Err() != nil {
		panic(stopped{context.Cause(m.ctx)})
	}
}

// validate says by a *jsonschema.ValidationError where a value does not fit. errTooMuchWork
// says that finding out costs too much; the context's error that no caller waits any more.
func (p *program) validate(ctx context.Context, instance any, work, price int) (err error) {
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
