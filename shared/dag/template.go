package dag

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"punctual/shared/contract"
	"punctual/shared/text"
)

// MaxExpressions bounds the expressions of one definition.
const MaxExpressions = 2_000

// nodeExprs holds the expressions of a node; nil parts are absent.
type nodeExprs struct {
	when    *expression
	forEach *expression
	payload map[string]*pattern // strings with expressions, by pointer inside the payload
}

// pattern is a string split into literal parts and expressions.
type pattern struct {
	parts []part
	whole bool // it is one expression, whose value keeps its type
}

type part struct {
	literal string
	expr    *expression // nil for a literal
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

// compileExpressions checks every expression of the graph. Those of unsure nodes may name any other node: what comes
// before them is not known.
func (g *Graph) compileExpressions(written Definition, m *mistakes, unsure map[string]bool) {
	plain, err := environment(g.names, false)
	if err == nil {
		var mapped *cel.Env
		if mapped, err = environment(g.names, true); err == nil {
			g.compileNodes(written, plain, mapped, m, unsure)
			return
		}
	}
	panic(fmt.Sprintf("making the environment of expressions: %v", err)) // no part of it comes from a user
}

func (g *Graph) compileNodes(written Definition, plain, mapped *cel.Env, m *mistakes, unsure map[string]bool) {
	g.exprs = map[string]*nodeExprs{}
	ancestors, params := g.ancestorsOf(), g.paramNames()
	count := 0
	for _, name := range g.names {
		if m.full() {
			return
		}
		n := g.Nodes[name]
		at := pointer("nodes", name)
		before := func(node string) bool { return ancestors[name][node] }
		if unsure[name] {
			before = func(node string) bool { return node != name }
		}
		told := func(node string) bool { return slices.Contains(written.Nodes[name].DependsOn, node) }
		s := scope{env: plain, before: before, nodes: g.Nodes, told: told, params: params}
		x := &nodeExprs{payload: map[string]*pattern{}}
		g.exprs[name] = x
		x.when = g.compileWhen(n.When, s, at+"/when", m)
		x.forEach = g.compileForEach(n.ForEach, s, at+"/for_each", m)
		if n.ForEach != "" {
			s.env = mapped
		}
		g.compilePayload(n.Payload, s, at+"/payload", x, &count, m)
	}
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

// KnowsParam reports whether a run may set the parameter.
func (g *Graph) KnowsParam(name string) bool { return g.paramNames()[name] }

// MergeParams puts a run's params over the dag's defaults, name by name. merged is nil where there are none;
// unknown are the names that the dag does not know, in order.
func (g *Graph) MergeParams(given map[string]json.RawMessage) (merged json.RawMessage, unknown []string) {
	all := maps.Clone(g.Params)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !g.KnowsParam(name) {
			unknown = append(unknown, name)
		}
		all[name] = given[name]
	}
	if len(all) == 0 {
		return nil, unknown
	}
	return text.MustJSON(all), unknown
}

func addMistake(m *mistakes, pointer string, wrong *mistake) {
	if wrong.detail != "" {
		m.add(pointer, CodeInvalidExpression, "", "%s", wrong.Error())
	}
}

func (g *Graph) compileWhen(when string, s scope, at string, m *mistakes) *expression {
	if when == "" {
		return nil
	}
	if strings.Contains(when, "${") {
		addMistake(m, at, &mistake{position{1, 1}, "when is a bare expression, without ${…}"})
		return nil
	}
	e, wrong := s.compile(when, position{1, 1})
	if wrong == nil && !isKind(e.ast.OutputType(), types.BoolKind) {
		wrong = &mistake{position{1, 1}, fmt.Sprintf("when is true or false, and this gives %s", e.ast.OutputType())}
	}
	if wrong != nil {
		addMistake(m, at, wrong)
		return nil
	}
	return e
}

func (g *Graph) compileForEach(forEach string, s scope, at string, m *mistakes) *expression {
	if forEach == "" {
		return nil
	}
	t, wrong := s.compileText(forEach)
	if wrong == nil {
		switch {
		case t == nil || !t.whole:
			wrong = &mistake{position{1, 1}, "for_each is one ${…} that gives a list"}
		case !isKind(t.parts[0].expr.ast.OutputType(), types.ListKind):
			wrong = &mistake{position{1, 1}, fmt.Sprintf("for_each needs a list, and this gives %s",
				t.parts[0].expr.ast.OutputType())}
		}
	}
	if wrong != nil {
		addMistake(m, at, wrong)
		return nil
	}
	return t.parts[0].expr
}

// isKind reports whether a value of type t can be of kind k.
func isKind(t *cel.Type, k types.Kind) bool { return t.Kind() == k || t.Kind() == types.DynKind }

// compilePayload checks the expressions in all strings of a payload.
func (g *Graph) compilePayload(payload json.RawMessage, s scope, at string, x *nodeExprs, count *int, m *mistakes) {
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
			addMistake(m, at+where, wrong)
			return !m.full()
		}
		if t == nil {
			return true
		}
		for _, p := range t.parts {
			if p.expr != nil {
				*count++
			}
		}
		if *count > MaxExpressions {
			m.add(at+where, codeOutOfRange, fmt.Sprintf("at most %d expressions in a definition", MaxExpressions),
				"there are too many expressions")
			return false
		}
		x.payload[where] = t
		return true
	})
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
func (s scope) compileText(in string) (*pattern, *mistake) {
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
				return nil, &mistake{start, "this ${ has no closing }"}
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
	var names []string
	x := g.exprs[node]
	for _, e := range []*expression{x.when, x.forEach} {
		if e != nil {
			names = append(names, e.nodes...)
		}
	}
	for _, t := range x.payload {
		for _, p := range t.parts {
			if p.expr != nil {
				names = append(names, p.expr.nodes...)
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
	v, err := e.eval(ctx, f.variables())
	if err == nil {
		if yes, ok := v.Value().(bool); ok {
			return yes, nil
		}
		err = &mistake{e.at, "when is true or false, and this gives something else"}
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

func (e *expression) items(ctx context.Context, f Facts) ([]json.RawMessage, error) {
	v, err := e.eval(ctx, f.variables())
	if err != nil {
		return nil, err
	}
	list, ok := v.(traits.Lister)
	if !ok {
		return nil, &mistake{e.at, "for_each needs a list, and this gives something else"}
	}
	n := int(list.Size().(types.Int))
	if n > MaxItems {
		return nil, &mistake{e.at, fmt.Sprintf("the list has %d items; at most %d are allowed", n, MaxItems)}
	}
	w := &writer{left: contract.MaxPayload}
	items := make([]json.RawMessage, 0, n)
	for i := range n {
		w.out = nil
		if err := w.value(list.Get(types.Int(i))); err != nil {
			return nil, &mistake{e.at, err.Error()}
		}
		items = append(items, w.out)
	}
	return items, nil
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
	r := &renderer{ctx: ctx, writer: writer{left: contract.MaxPayload}, texts: x.payload, vars: f.variables()}
	if err := r.render(v, ""); err != nil {
		return nil, explain(err, node, pointer("nodes", node, "payload")+r.where, r.failed)
	}
	return r.out, nil
}

// explain returns the ExpressionError of a failed expression.
func explain(err error, node, pointer string, e *expression) error {
	wrong := new(mistake)
	if !errors.As(err, &wrong) {
		return err
	}
	x := &ExpressionError{Node: node, Pointer: pointer, At: wrong.at.String(), Detail: wrong.detail}
	if e != nil {
		x.Text = e.text
	}
	return x
}

// renderer writes a payload with its expressions evaluated.
type renderer struct {
	writer
	ctx    context.Context // of one call
	texts  map[string]*pattern
	vars   map[string]any
	where  string // of the current expression
	failed *expression
}

func (r *renderer) render(v any, at string) error {
	switch v := v.(type) {
	case map[string]any:
		return r.object(sortedKeys(v), func(k string) error { return r.render(v[k], at+"/"+escape(k)) })
	case []any:
		return r.array(len(v), func(i int) error { return r.render(v[i], at+"/"+strconv.Itoa(i)) })
	case string:
		if t := r.texts[at]; t != nil {
			err := r.pattern(t)
			if err != nil {
				r.where = at
			}
			return err
		}
	}
	if err := r.json(v); err != nil {
		r.where = at
		return &mistake{position{1, 1}, err.Error()}
	}
	return nil
}

func (r *renderer) pattern(t *pattern) error {
	var whole strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			whole.WriteString(p.literal)
			continue
		}
		r.failed = p.expr
		v, err := p.expr.eval(r.ctx, r.vars)
		if err != nil {
			return err
		}
		if t.whole {
			if err := r.value(v); err != nil {
				return &mistake{p.expr.at, err.Error()}
			}
			return nil
		}
		s, err := words(v, r.left-whole.Len())
		if err != nil {
			return &mistake{p.expr.at, err.Error()}
		}
		whole.WriteString(s)
		if whole.Len() > r.left {
			return &mistake{p.expr.at, errTooLarge.Error()}
		}
	}
	if err := r.json(whole.String()); err != nil {
		return &mistake{position{1, 1}, err.Error()}
	}
	return nil
}

// words returns a value as it stands inside a longer text, of up to so many bytes.
func words(v ref.Val, left int) (string, error) {
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Double:
		return double(v)
	}
	w := &writer{left: left}
	err := w.value(v)
	return string(w.out), err
}

var errTooLarge = fmt.Errorf("it gives more than the %d bytes that a payload may have", contract.MaxPayload)

// writer writes JSON up to a bound.
type writer struct {
	out  []byte
	left int
}

func (w *writer) raw(s string) error {
	if w.left -= len(s); w.left < 0 {
		return errTooLarge
	}
	w.out = append(w.out, s...)
	return nil
}

// json writes a string, a boolean, a number or null.
func (w *writer) json(v any) error { return w.raw(string(text.MustJSON(v))) }

func (w *writer) object(keys []string, value func(key string) error) error {
	for i, k := range keys {
		if err := w.raw([]string{"{", ","}[min(i, 1)]); err != nil {
			return err
		}
		if err := errors.Join(w.json(k), w.raw(":")); err != nil {
			return errTooLarge
		}
		if err := value(k); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return w.raw("{}")
	}
	return w.raw("}")
}

func (w *writer) array(n int, value func(i int) error) error {
	if err := w.raw("["); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if err := w.raw(","); err != nil {
				return err
			}
		}
		if err := value(i); err != nil {
			return err
		}
	}
	return w.raw("]")
}

// value writes the value of an expression.
func (w *writer) value(v ref.Val) error {
	switch v := v.(type) {
	case types.Null:
		return w.raw("null")
	case types.Bool:
		return w.raw(strconv.FormatBool(bool(v)))
	case types.Int:
		return w.raw(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return w.raw(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		s, err := double(v)
		if err != nil {
			return err
		}
		if !strings.ContainsAny(s, ".e") {
			s += ".0" // it stays a double for whoever reads it next: CEL knows no 1 * 0.5
		}
		return w.raw(s)
	case types.String:
		return w.json(string(v))
	case types.Bytes:
		return w.json(base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		return w.json(v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return w.json(v.Duration.String())
	case traits.Lister:
		return w.array(int(v.Size().(types.Int)), func(i int) error { return w.value(v.Get(types.Int(i))) })
	case traits.Mapper:
		return w.mapping(v)
	}
	return errors.New("it gives something that JSON does not have")
}

// double writes a double as JSON, whole ones without a fraction.
func double(v types.Double) (string, error) {
	f := float64(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", errors.New("it gives a number that JSON does not have")
	}
	return string(text.MustJSON(f)), nil
}

func (w *writer) mapping(m traits.Mapper) error {
	values := map[string]ref.Val{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		name, ok := k.ConvertToType(types.StringType).(types.String)
		if !ok {
			return errors.New("it gives something that JSON does not have")
		}
		values[string(name)] = m.Get(k)
	}
	return w.object(sortedKeys(values), func(k string) error { return w.value(values[k]) })
}

// DecodeResult decodes JSON as expressions see it: integers as ints, other numbers as doubles.
func DecodeResult(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return numbers(v), nil
}

// numbers converts every json.Number to an int64, a uint64 or a float64, whichever holds it first.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range it is ±Inf, which has no JSON form
		return f
	}
	return v
}
