package dag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"punctual/shared/contract"
	"punctual/shared/expression"
	"punctual/shared/text"
)

// MaxExpressions bounds the expressions of one definition.
const MaxExpressions = 2_000

// nodeExprs holds the expressions of a node; nil parts are absent.
type nodeExprs struct {
	when    *expr
	forEach *expr
	payload map[string]*pattern // strings with expressions, by pointer inside the payload
	limits  map[int]*pattern    // keys of limits with expressions, by their numbers
}

// size returns about how many bytes of memory the expressions of a node take.
func (x *nodeExprs) size() int {
	size := x.when.size() + x.forEach.size()
	for t := range x.jobTexts() {
		for _, p := range t.parts {
			size += len(p.literal) + p.expr.size()
		}
	}
	return size
}

// jobTexts are the texts with expressions from which the node's job is made.
func (x *nodeExprs) jobTexts() iter.Seq[*pattern] {
	return func(yield func(*pattern) bool) {
		for _, t := range x.payload {
			if !yield(t) {
				return
			}
		}
		for _, t := range x.limits {
			if !yield(t) {
				return
			}
		}
	}
}

// pattern is a string split into literal parts and expressions.
type pattern struct {
	parts []part
	whole bool // it is one expression, whose value keeps its type
}

type part struct {
	literal string
	expr    *expr // nil for a literal
}

// ancestorsOf returns, for each node, all nodes that have ended before it.
func (g *Graph) ancestorsOf() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, level := range g.levels { // parents are on earlier levels
		for _, name := range level {
			mine := map[string]bool{}
			for _, p := range g.Nodes[name].DependsOn {
				mine[p] = true
				for a := range all[p] {
					mine[a] = true
				}
			}
			all[name] = mine
		}
	}
	return all
}

// compileExpressions checks every expression of the graph, until the context ends. Those of unsure nodes may name any
// other node: what comes before them is not known.
func (g *Graph) compileExpressions(
	ctx context.Context, written Definition, m *violations, unsure map[string]bool,
) error {
	g.exprs = map[string]*nodeExprs{}
	ancestors, params := g.ancestorsOf(), g.paramNames()
	count, tokens := 0, 0
	for _, name := range g.names {
		if m.full() {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n := g.Nodes[name]
		at := pointer("nodes", name)
		before := func(node string) bool { return ancestors[name][node] }
		if unsure[name] {
			before = func(node string) bool { return node != name }
		}
		reported := func(node string) bool { return slices.Contains(written.Nodes[name].DependsOn, node) }
		s := scope{
			ctx: ctx, kept: g.kept, tokens: &tokens, before: before, nodes: g.Nodes, reported: reported, params: params,
		}
		x := &nodeExprs{payload: map[string]*pattern{}, limits: map[int]*pattern{}}
		g.exprs[name] = x
		x.when = g.compileWhen(n.When, s, at+"/when", m)
		x.forEach = g.compileForEach(n.ForEach, s, at+"/for_each", m)
		s.mapped = n.ForEach != ""
		g.compilePayload(n.Payload, s, at+"/payload", x, &count, m)
		g.compileLimits(n.Limits, s, at+"/limits", x, &count, m)
		g.size += x.size() + len(n.Payload) + len(n.When) + len(n.ForEach)
	}
	return ctx.Err()
}

// paramNames returns the parameters that the definition declares, by a default or in the schema.
func (g *Graph) paramNames() map[string]bool {
	names := map[string]bool{}
	for name := range g.Params {
		names[name] = true
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(g.ParamsSchema, &schema) == nil {
		for name := range schema.Properties {
			names[name] = true
		}
	}
	return names
}

// UnknownParams returns the names, in order, that a run may not set.
func (g *Graph) UnknownParams(given map[string]json.RawMessage) (unknown []string) {
	known := g.paramNames()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// MergeParams puts a run's params over the dag's defaults, name by name. merged is nil where there are none;
// unknown are the names that the dag does not know, in order.
func (g *Graph) MergeParams(given map[string]json.RawMessage) (merged json.RawMessage, unknown []string) {
	all := maps.Clone(g.Params)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	unknown = g.UnknownParams(given)
	maps.Copy(all, given)
	if len(all) == 0 {
		return nil, unknown
	}
	return text.MustJSON(all), unknown
}

func addViolation(m *violations, pointer string, wrong *violation) {
	if wrong.detail != "" {
		m.add(pointer, CodeInvalidExpression, "", "%s", wrong.Error())
	}
}

func (g *Graph) compileWhen(when string, s scope, at string, m *violations) *expr {
	if when == "" {
		return nil
	}
	if strings.Contains(when, "${") {
		addViolation(m, at, &violation{at: position{1, 1}, detail: "when is a bare expression, without ${…}"})
		return nil
	}
	e, wrong := s.compile(when, position{1, 1})
	if wrong == nil && e.program != nil && !e.program.Type().Could(expression.BoolKind) {
		wrong = &violation{at: position{1, 1},
			detail: fmt.Sprintf("when is true or false, and this gives %s", e.program.Type().Kind)}
	}
	if wrong != nil {
		addViolation(m, at, wrong)
		return nil
	}
	return e
}

func (g *Graph) compileForEach(forEach string, s scope, at string, m *violations) *expr {
	if forEach == "" {
		return nil
	}
	t, wrong := s.compileText(forEach)
	if wrong == nil {
		switch {
		case t == nil || !t.whole:
			wrong = &violation{at: position{1, 1}, detail: "for_each is one ${…} that gives a list"}
		case t.parts[0].expr.program != nil && !t.parts[0].expr.program.Type().Could(expression.ListKind):
			wrong = &violation{at: position{1, 1}, detail: fmt.Sprintf("for_each needs a list, and this gives %s",
				t.parts[0].expr.program.Type().Kind)}
		}
	}
	if wrong != nil {
		addViolation(m, at, wrong)
		return nil
	}
	return t.parts[0].expr
}

// compilePayload checks the expressions in all strings of a payload.
func (g *Graph) compilePayload(payload json.RawMessage, s scope, at string, x *nodeExprs, count *int, m *violations) {
	if raw := string(payload); !strings.Contains(raw, "$") && !strings.Contains(raw, `\u0024`) {
		return
	}
	v, err := decode(payload)
	if err != nil {
		m.add(at, codeInvalidValue, "JSON", "the payload is no JSON")
		return
	}
	walkStrings(v, "", func(where, s2 string) bool {
		t, wrong := s.compileText(s2)
		if wrong != nil {
			addViolation(m, at+where, wrong)
			return !m.full()
		}
		if t == nil {
			return true
		}
		if !t.counted(count, at+where, m) {
			return false
		}
		x.payload[where] = t
		return true
	})
}

// counted counts the expressions of a text; false if the definition has too many.
func (t *pattern) counted(count *int, at string, m *violations) bool {
	for _, p := range t.parts {
		if p.expr != nil {
			*count++
		}
	}
	if *count <= MaxExpressions {
		return true
	}
	m.add(at, codeOutOfRange, fmt.Sprintf("at most %d expressions in a definition", MaxExpressions),
		"there are too many expressions")
	return false
}

// walkStrings calls visit for every string value in v, with its JSON pointer, in a fixed order,
// until visit returns false.
func walkStrings(v any, at string, visit func(pointer, s string) bool) bool {
	switch v := v.(type) {
	case string:
		return visit(at, v)
	case []any:
		for i, e := range v {
			if !walkStrings(e, at+"/"+strconv.Itoa(i), visit) {
				return false
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if !walkStrings(v[k], at+"/"+escape(k), visit) {
				return false
			}
		}
	}
	return true
}

// compileText splits a string at its expressions; nil when there is nothing to evaluate or
// unescape.
func (s scope) compileText(in string) (*pattern, *violation) {
	if !strings.Contains(in, "${") {
		return nil, nil
	}
	t := &pattern{}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	rest := in
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, "$${"):
			literal.WriteString("${")
			rest = rest[3:]
		case strings.HasPrefix(rest, "${"):
			start := positionOf(in, len(in)-len(rest))
			end := closingBrace(rest[2:])
			if end < 0 {
				return nil, &violation{at: start, detail: "this ${ has no closing }"}
			}
			flush()
			start.column += 2
			e, wrong := s.compile(rest[2:2+end], start)
			if wrong != nil {
				return nil, wrong
			}
			t.parts = append(t.parts, part{expr: e})
			rest = rest[2+end+1:]
		default:
			_, size := utf8.DecodeRuneInString(rest)
			literal.WriteString(rest[:size])
			rest = rest[size:]
		}
	}
	flush()
	t.whole = len(t.parts) == 1 && t.parts[0].expr != nil
	return t, nil
}

// ChoosesHost reports whether an expression in a template of a URL can change the host: it is in front of the path, and
// not the whole URL. In https://example.com${x} it can, too.
func ChoosesHost(url string) bool {
	at := 0
	for at < len(url) && !strings.HasPrefix(url[at:], "${") {
		if strings.HasPrefix(url[at:], "$${") {
			at += 2
		}
		at++
	}
	if at >= len(url) {
		return false
	}
	if end := closingBrace(url[at+2:]); at == 0 && end >= 0 && at+2+end+1 == len(url) {
		return false
	}
	_, authority, ok := strings.Cut(url[:at], "://")
	return !ok || !strings.ContainsAny(authority, "/?#")
}

// positionOf returns the line and column of the character at a byte.
func positionOf(s string, at int) position {
	before := s[:at]
	line := strings.Count(before, "\n")
	if line > 0 {
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	return position{line + 1, utf8.RuneCountInString(before) + 1}
}

// closingBrace returns the index of the } that ends an expression: braces nest, and those in string
// literals and comments do not count. It returns -1 when there is none.
func closingBrace(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '/':
			if strings.HasPrefix(s[i:], "//") {
				end := strings.IndexByte(s[i:], '\n')
				if end < 0 {
					return -1
				}
				i += end
			}
		case '"', '\'':
			quote := strings.Repeat(string(c), 3)
			if !strings.HasPrefix(s[i:], quote) {
				quote = quote[:1]
			}
			raw := i > 0 && (s[i-1] == 'r' || s[i-1] == 'R')
			end := closingQuote(s[i+len(quote):], quote, raw)
			if end < 0 {
				return -1
			}
			i += len(quote) + end + len(quote) - 1
		}
	}
	return -1
}

func closingQuote(s, quote string, raw bool) int {
	for i := 0; i < len(s); i++ {
		if !raw && s[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i
		}
	}
	return -1
}

// Needs returns the nodes whose facts node's expressions name, in order.
func (g *Graph) Needs(node string) []string {
	return g.named(node, func(e *expr) []string { return e.nodes })
}

// ResultsRead returns those of them whose results the expressions read.
func (g *Graph) ResultsRead(node string) []string {
	return g.named(node, func(e *expr) []string { return e.results })
}

// named returns what of gives for all expressions of a node, in order, each name once.
func (g *Graph) named(node string, of func(*expr) []string) []string {
	var names []string
	x := g.exprs[node]
	for _, e := range []*expr{x.when, x.forEach} {
		if e != nil {
			names = append(names, of(e)...)
		}
	}
	for t := range x.jobTexts() {
		for _, p := range t.parts {
			if p.expr != nil {
				names = append(names, of(p.expr)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// When evaluates the node's when; without one it is true. The error is an *ExpressionError.
func (g *Graph) When(ctx context.Context, node string, f Facts) (bool, error) {
	e := g.exprs[node].when
	if e == nil {
		return true, nil
	}
	v, err := e.eval(ctx, f.variables(), f.meter())
	if err == nil {
		if yes, ok := expression.Truth(v); ok {
			return yes, nil
		}
		err = &violation{at: e.at, detail: "when is true or false, and this gives something else"}
	}
	return false, explain(err, node, pointer("nodes", node, "when"), e)
}

// Items evaluates the node's for_each and returns each item as JSON. An expression that fails, or
// gives no list or more than MaxItems, is an *ExpressionError.
func (g *Graph) Items(ctx context.Context, node string, f Facts) ([]json.RawMessage, error) {
	e := g.exprs[node].forEach
	items, err := e.items(ctx, f)
	return items, explain(err, node, pointer("nodes", node, "for_each"), e)
}

func (e *expr) items(ctx context.Context, f Facts) ([]json.RawMessage, error) {
	v, err := e.eval(ctx, f.variables(), f.meter())
	if err != nil {
		return nil, err
	}
	list, ok := v.(*expression.List)
	if null, is := v.(expression.Null); is && null.Why != "" {
		return nil, &violation{at: e.at, detail: null.Why + "; for_each needs a list"}
	}
	if !ok {
		return nil, &violation{at: e.at, detail: "for_each needs a list, and this gives something else"}
	}
	if list.Len() > MaxItems {
		return nil, &violation{at: e.at, detail: fmt.Sprintf(
			"the list has %d items; at most %d are allowed", list.Len(),
			MaxItems)}
	}
	items, left := make([]json.RawMessage, 0, list.Len()), contract.MaxPayload
	for i := range list.Len() {
		item, err := expression.AppendJSON(nil, list.At(i), left)
		if err != nil {
			return nil, &violation{at: e.at, detail: plain(err).Error()}
		}
		left -= len(item)
		items = append(items, item)
	}
	return items, nil
}

// plain says what a value that is too long exceeds.
func plain(err error) error {
	if errors.Is(err, expression.ErrTooLong) {
		return errTooLarge
	}
	return err
}

// Payload returns the payload of the node's job; nil when the node has none. An expression that
// fails, or a payload over its limit, is an *ExpressionError.
func (g *Graph) Payload(ctx context.Context, node string, f Facts) (json.RawMessage, error) {
	x, payload := g.exprs[node], g.Nodes[node].Payload
	if len(x.payload) == 0 {
		return payload, nil
	}
	v, err := decode(payload)
	if err != nil {
		return nil, err // cannot fail after Compile
	}
	r := &renderer{ctx: ctx, left: contract.MaxPayload, texts: x.payload, vars: f.variables(), meter: f.meter()}
	if err := r.render(v, ""); err != nil {
		return nil, explain(err, node, pointer("nodes", node, "payload")+r.where, r.failed)
	}
	return r.out, nil
}

// explain returns the ExpressionError of a failed expression.
func explain(err error, node, pointer string, e *expr) error {
	wrong := new(violation)
	if !errors.As(err, &wrong) {
		return err
	}
	x := &ExpressionError{Node: node, Pointer: pointer, At: wrong.at.String(), Detail: wrong.detail, Code: wrong.code}
	if e != nil {
		x.Text = e.text
	}
	return x
}

// renderer writes a payload with its expressions evaluated, up to a bound.
type renderer struct {
	out    []byte
	left   int
	ctx    context.Context // of one call
	texts  map[string]*pattern
	vars   map[string]any
	meter  *expression.Meter
	where  string // of the current expression
	failed *expr
}

// raw writes JSON.
func (r *renderer) raw(s string) error {
	if r.left -= len(s); r.left < 0 {
		return errTooLarge
	}
	r.out = append(r.out, s...)
	return nil
}

func (r *renderer) render(v any, at string) error {
	err := r.part(v, at)
	if err != nil && r.where == "" {
		r.where = at
	}
	if wrong := (*violation)(nil); errors.Is(err, errTooLarge) && !errors.As(err, &wrong) {
		return &violation{at: position{1, 1}, detail: err.Error()}
	}
	return err
}

// part writes a part of the payload.
func (r *renderer) part(v any, at string) error {
	switch v := v.(type) {
	case map[string]any:
		between := "{"
		for _, k := range sortedKeys(v) {
			if err := r.raw(between + string(text.MustJSON(k)) + ":"); err != nil {
				return err
			}
			if err := r.render(v[k], at+"/"+escape(k)); err != nil {
				return err
			}
			between = ","
		}
		return r.raw(strings.Repeat("{", max(1-len(v), 0)) + "}")
	case []any:
		between := "["
		for i, e := range v {
			if err := r.raw(between); err != nil {
				return err
			}
			if err := r.render(e, at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
			between = ","
		}
		return r.raw(strings.Repeat("[", max(1-len(v), 0)) + "]")
	case string:
		if t := r.texts[at]; t != nil {
			return r.pattern(t)
		}
	}
	return r.raw(string(text.MustJSON(v)))
}

// pattern writes a string with its expressions evaluated.
func (r *renderer) pattern(t *pattern) error {
	var whole strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			whole.WriteString(p.literal)
			continue
		}
		r.failed = p.expr
		v, err := p.expr.eval(r.ctx, r.vars, r.meter)
		if err != nil {
			return err
		}
		if t.whole {
			before := len(r.out)
			r.out, err = expression.AppendJSON(r.out, v, r.left)
			if r.left -= len(r.out) - before; err != nil {
				return &violation{at: p.expr.at, detail: plain(err).Error()}
			}
			return nil
		}
		s, err := expression.Text(v, max(r.left-whole.Len(), 0))
		if err != nil {
			return &violation{at: p.expr.at, detail: plain(err).Error()}
		}
		if whole.WriteString(s); whole.Len() > r.left {
			return &violation{at: p.expr.at, detail: errTooLarge.Error()}
		}
	}
	return r.raw(string(text.MustJSON(whole.String())))
}

var errTooLarge = fmt.Errorf("it gives more than the %d bytes that a payload may have", contract.MaxPayload)

// DecodeResult decodes JSON as expressions see it: integers as ints, other numbers as doubles that keep their digits.
func DecodeResult(raw json.RawMessage) (any, error) { return expression.Decode(raw) }

// DecodeAnswer decodes the result of an HTTP request: expressions also see its body under json, parsed.
func DecodeAnswer(raw json.RawMessage) (any, error) {
	v, err := expression.Decode(raw)
	return expression.Answer(v), err
}

// Weigh returns about how many bytes of memory a decoded result takes.
func Weigh(result any) int { return expression.Weight(result) }

// ResultList returns the result of a mapped node from those of its items, in order.
func ResultList(results []any) any { return expression.From(results) }
