package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"punctual/shared/contract"
)

// What a schema may be. A tenant writes it and every payload runs it, so it is checked
// like a program: by what it costs to compile and by how often it can apply itself.
const (
	MaxText         = 32 << 10 // bytes of text: its task is one item, read for every job
	maxSubschemas   = 2000     // objects and booleans in the text, each of which may be a schema
	maxReferences   = 500_000  // references times subschemas: the library copies its notes for some of them
	maxPaths        = 1 << 20  // bytes of the pointers of all its values together; compiled schemas keep them
	maxApplications = 10_000   // subschemas that can be applied to one value
	maxDepth        = 64       // of schemas that apply one another to one value
	maxPattern      = 2500     // instructions of one pattern
	maxPatterns     = 10_000   // instructions of all patterns of a schema
	maxCount        = 1 << 31  // of minLength, maxItems and the like
)

// limit is a schema that is refused although it may be right. It holds nothing of the schema.
type limit struct{ detail, allowed string }

func (e *limit) Error() string { return e.detail }

func tooMuch(allowed, detail string, args ...any) error {
	return &limit{fmt.Sprintf(detail, args...), allowed}
}

// measure refuses what would be dear to compile.
type measure struct{ subschemas, references, paths int }

// of measures a schema's own value and all that it holds. path is how long its pointer is, and name the
// property that it is, if it is one.
func (m *measure) of(v any, path, level int, name string) error {
	if level > contract.MaxDepth {
		return tooMuch(fmt.Sprintf("at most %d levels", contract.MaxDepth),
			"the schema is nested more than %d levels deep", contract.MaxDepth)
	}
	m.paths += path
	switch v := v.(type) {
	case map[string]any:
		m.subschemas++
		for _, name := range slices.Sorted(maps.Keys(v)) {
			// escaped for a URL, three bytes each
			if err := m.of(v[name], path+1+3*len(name), level+below(v[name]), name); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range v {
			if err := m.of(child, path+5, level+below(child), ""); err != nil {
				return err
			}
		}
	case bool:
		m.subschemas++
	case string:
		if name == "$ref" {
			m.references++
		}
	case json.Number:
		return checkNumber(name, v.String())
	}
	return nil
}

// below is how many levels a value adds.
func below(v any) int {
	switch v.(type) {
	case map[string]any, []any:
		return 1
	}
	return 0
}

func checkCost(doc any) error {
	var m measure
	if err := m.of(doc, 0, below(doc), ""); err != nil {
		return err
	}
	switch {
	case m.subschemas > maxSubschemas:
		return tooMuch(fmt.Sprintf("at most %d objects and booleans", maxSubschemas),
			"the schema has %d objects and booleans", m.subschemas)
	case m.references*m.subschemas > maxReferences:
		return tooMuch("fewer references, or a smaller schema",
			"the schema has %d references and %d objects and booleans", m.references, m.subschemas)
	case m.paths > maxPaths:
		return tooMuch("shorter names, or fewer levels", "the names in the schema are too long for its many levels")
	}
	return nil
}

// counts are the keywords whose number the library cuts to a machine's integer.
var counts = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true,
	"minProperties": true, "maxProperties": true, "minContains": true, "maxContains": true,
}

func checkNumber(name, number string) error {
	if !Comparable(number) {
		return tooMuch(ComparableAllowed, "a number in the schema cannot be compared at a fair price")
	}
	if n, ok := new(big.Rat).SetString(number); counts[name] && ok && n.Cmp(big.NewRat(maxCount, 1)) > 0 {
		return tooMuch(fmt.Sprintf("0 to %d", maxCount), "%s is out of range", name)
	}
	return nil
}

// patterns compiles the regular expressions of one schema, each once.
type patterns struct {
	program *program
	known   map[string]jsonschema.Regexp
	size    int
	refused error // why one was refused although it may be right; the library hides it
}

func (p *patterns) refuse(allowed, detail string) error {
	p.refused = tooMuch(allowed, "%s; use smaller repeats, or minLength and maxLength", detail)
	return p.refused
}

func (p *patterns) compile(written string) (jsonschema.Regexp, error) {
	if re, ok := p.known[written]; ok {
		return re, nil
	}
	text := asECMA(written)
	tree, err := syntax.Parse(text, syntax.Perl)
	var bad *syntax.Error
	if errors.As(err, &bad) && (bad.Code == syntax.ErrLarge || bad.Code == syntax.ErrInvalidRepeatSize) {
		return nil, p.refuse(fmt.Sprintf("at most %d instructions a pattern", maxPattern),
			"a pattern of the schema is too large")
	}
	if err != nil {
		return nil, err
	}
	size := patternSize(tree) // before compiling it: a pattern of 8 bytes can need thousands of instructions
	if size > maxPattern {
		return nil, p.refuse(fmt.Sprintf("at most %d instructions a pattern", maxPattern),
			"a pattern of the schema is too large")
	}
	if p.size += size; p.size > maxPatterns {
		return nil, p.refuse(fmt.Sprintf("at most %d instructions in all patterns", maxPatterns),
			"the patterns of the schema are too large together")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p.known[written] = &pattern{re, size, p.program}
	return p.known[written], nil
}

// patternSize is about how many instructions an expression compiles to. It stops counting
// beyond what is allowed.
func patternSize(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCharClass:
		size += len(re.Rune) / 16 // a class of many ranges takes longer to look at
	}
	for _, sub := range re.Sub {
		if size += patternSize(sub); size > maxPattern {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min+1, re.Max, 1)
	}
	return size
}

// pattern is a regular expression that spends from its program's meter.
type pattern struct {
	*regexp.Regexp
	size    int
	program *program
}

// MatchString charges for what the slowest matcher would do.
func (p *pattern) MatchString(s string) bool {
	const small = 30 // instructions; such patterns mostly run without keeping many places at once
	if p.size <= small {
		p.program.spend(1 + len(s)*(p.size+10)/50)
	} else {
		p.program.spend(1 + len(s)*p.size/6)
	}
	return p.Regexp.MatchString(s)
}

// checkPattern says whether a payload's string is a regular expression, without compiling it.
func checkPattern(v any) error {
	if s, ok := v.(string); ok {
		if _, err := syntax.Parse(s, syntax.Perl); err != nil {
			return errors.New("no regular expression")
		}
	}
	return nil
}

// maxExponent is beyond what a float64 can hold, and maxDigits beyond what it can distinguish.
// Comparing numbers exactly, as a schema asks for, takes as many digits as they have.
const (
	maxExponent = 400
	maxDigits   = 400
)

// ComparableAllowed says what numbers can be compared.
const ComparableAllowed = "at most 400 digits, and an exponent from -400 to 400"

// Comparable says whether a number of a JSON text can be compared at a fair price.
func Comparable(s string) bool {
	mantissa, exponent, found := strings.Cut(strings.ToLower(s), "e")
	if len(mantissa) > maxDigits {
		return false
	}
	if !found {
		return true
	}
	digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
	return len(digits) <= 3 && atoi(digits) <= maxExponent
}

// atoi reads a few digits, 0 from anything else.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// cost is what applying one schema to one value takes, in units of about 100 ns.
type cost struct {
	fixed       int // for any value
	perProperty int // for each of an object's
	perItem     int // for each of an array's
	listed      int // how many of an array's items have a schema of their own
	numeric     int // for a number
}

// dissection walks over a compiled schema. It refuses one that applies itself too often, and
// puts hooks into all others that spend from the program's meter.
type dissection struct {
	program     *program
	seen        map[*jsonschema.Schema]*reach
	unevaluated bool
	weight      int
	unchecked   []string // formats
}

// reach is what applying a schema to one value applies to the same value, itself included.
type reach struct {
	applications, depth int
	open                bool // being counted: meeting it again is a cycle
}

func (d *dissection) count(s *jsonschema.Schema) (*reach, error) {
	if r, ok := d.seen[s]; ok {
		if r.open {
			return nil, tooMuch("references that lead into a part of the value",
				"the schema refers to itself for the same value, without end")
		}
		return r, nil
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return nil, tooMuch("$ref",
			"$dynamicRef and $recursiveRef are not taken; within one document $ref says the same")
	}
	r := &reach{applications: 1, depth: 1, open: true}
	d.seen[s] = r
	for _, same := range sameValue(s) {
		below, err := d.count(same)
		if err != nil {
			return nil, err
		}
		r.applications = min(r.applications+below.applications, maxApplications+1)
		r.depth = max(r.depth, below.depth+1)
	}
	r.open = false
	switch {
	case r.applications > maxApplications:
		return nil, tooMuch(fmt.Sprintf("at most %d", maxApplications),
			"the schema applies more than %d subschemas to one value", maxApplications)
	case r.depth > maxDepth:
		return nil, tooMuch(fmt.Sprintf("at most %d", maxDepth),
			"more than %d schemas of the schema refer to one another in a row", maxDepth)
	}
	d.unevaluated = d.unevaluated || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
	d.weight += 1000 + 2*len(s.Location)
	return r, nil
}

// all counts a schema and everything that it can reach.
func (d *dissection) all(root *jsonschema.Schema) error {
	todo := []*jsonschema.Schema{root}
	queued := map[*jsonschema.Schema]bool{root: true}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, err := d.count(s); err != nil {
			return err
		}
		for _, next := range append(sameValue(s), partsOfValue(s)...) {
			if !queued[next] {
				queued[next] = true
				todo = append(todo, next)
			}
		}
	}
	for s := range queued {
		d.hook(s)
	}
	return nil
}

// sameValue are the schemas that are applied to the value that s is applied to.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	all = appendSchemas(all, s.Ref, s.Not, s.If, s.Then, s.Else)
	all = appendSchemas(all, s.AllOf...)
	all = appendSchemas(all, s.AnyOf...)
	all = appendSchemas(all, s.OneOf...)
	for _, each := range s.DependentSchemas {
		all = appendSchemas(all, each)
	}
	for _, each := range s.Dependencies {
		all = appendAny(all, each)
	}
	return all
}

// partsOfValue are the schemas that are applied to what the value holds.
func partsOfValue(s *jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	all = appendSchemas(all, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems,
		s.ContentSchema)
	all = appendSchemas(all, s.PrefixItems...)
	for _, each := range s.Properties {
		all = appendSchemas(all, each)
	}
	for _, each := range s.PatternProperties {
		all = appendSchemas(all, each)
	}
	return appendAny(appendAny(appendAny(all, s.AdditionalProperties), s.Items), s.AdditionalItems)
}

func appendSchemas(all []*jsonschema.Schema, some ...*jsonschema.Schema) []*jsonschema.Schema {
	for _, s := range some {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

func appendAny(all []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return appendSchemas(all, v)
	case []*jsonschema.Schema:
		return appendSchemas(all, v...)
	}
	return all
}

// hook makes a schema pay before it is applied. Format is the first keyword that the library
// hands to a function, before any subschema.
func (d *dissection) hook(s *jsonschema.Schema) {
	if s.Bool != nil {
		return // its parent pays
	}
	p := d.program
	if w := newParts(p, s); w != nil {
		s.Extensions = append(s.Extensions, w)
	}
	c := d.costOf(s)
	inner := s.Format
	if inner != nil && !checkedFormats[inner.Name] {
		d.unchecked = append(d.unchecked, inner.Name)
	}
	hooked := &jsonschema.Format{Validate: func(v any) error {
		p.spend(c.of(v))
		if inner == nil {
			return nil
		}
		if s, ok := v.(string); ok {
			p.spend(formatPrice(inner.Name, s))
		}
		if inner.Name == "regex" {
			return checkPattern(v)
		}
		return inner.Validate(v)
	}}
	if inner != nil {
		hooked.Name = inner.Name
	}
	s.Format = hooked
	if e := newExact(p, s); e != nil {
		s.Extensions = append(s.Extensions, e)
		d.weight += e.weight()
	}
}

// perPart is what applying a schema to an item or a property costs before its own hook is
// called, a violation included.
const perPart = 4

// perUnevaluated is the same for a part that no other keyword may read. The library keeps the violations of all of
// them.
const perUnevaluated = 12

// costOf returns what the library does for a schema; see parts for the rest.
func (d *dissection) costOf(s *jsonschema.Schema) cost {
	c := cost{
		fixed: 2 + 2*len(sameValue(s)) + len(s.Required) + len(s.DependentRequired) + len(s.DependentSchemas) +
			len(s.Dependencies),
		perProperty: 1,
	}
	if s.Properties != nil {
		c.perProperty += perPart
	}
	if s.UnevaluatedProperties != nil {
		c.perProperty += perUnevaluated
	}
	if s.Contains != nil {
		c.perItem += perPart
	}
	each, _ := s.Items.([]*jsonschema.Schema)
	c.listed = len(each) + len(s.PrefixItems)
	if s.UnevaluatedItems != nil {
		c.perItem += perUnevaluated
	}
	if d.unevaluated { // every schema may have to note what it has seen
		c.perProperty += 2
		c.perItem += 2
	}
	for _, bound := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf} {
		if bound != nil {
			c.numeric += 3 + (bound.Num().BitLen()+bound.Denom().BitLen())/32
		}
	}
	for _, required := range s.DependentRequired {
		c.fixed += len(required)
	}
	return c
}

func (c cost) of(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return c.fixed + len(v)*c.perProperty
	case []any:
		return c.fixed + len(v)*c.perItem + min(len(v), c.listed)*perPart
	case string:
		return c.fixed + len(v)/128
	case nil, bool:
		return c.fixed
	}
	return c.fixed + c.numeric
}
