package dag

import (
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Limits of one evaluation, in CEL's cost units (about one for a step, and one for ten copied
// characters), and of an expression.
const (
	maxCost         = 200_000
	maxExprNodes    = 1_000
	maxExprDepth    = 50
	maxRegexProgram = 1_000
)

// NodeFacts is what an expression sees of an earlier node.
type NodeFacts struct {
	Result  any // from DecodeResult; nil unless it succeeded
	Status  string
	Attempt int64
	Forced  bool // an operator skipped or completed it
}

// RunFacts is what an expression sees of the run. Instants are RFC 3339 with milliseconds.
type RunFacts struct {
	ID        string
	Dag       string // "" for an inline run: null
	Version   int64  // 0 for an inline run: null
	NominalAt string // "" without a schedule: null
	CreatedAt string
}

// Facts is everything that an expression sees.
type Facts struct {
	Params map[string]any // merged, from DecodeResult
	Nodes  map[string]NodeFacts
	Run    RunFacts
	Item   any // of a mapped node
	Index  int
}

const (
	nodeType = "punctual.Node"
	runType  = "punctual.Run"
)

// fieldTypes holds the fields that expressions can name, by type.
var fieldTypes = map[string]map[string]*types.FieldType{
	nodeType: {
		"result":  field(types.DynType, func(n NodeFacts) any { return n.Result }),
		"status":  field(types.StringType, func(n NodeFacts) any { return n.Status }),
		"attempt": field(types.IntType, func(n NodeFacts) any { return n.Attempt }),
		"forced":  field(types.BoolType, func(n NodeFacts) any { return n.Forced }),
	},
	runType: {
		"id":         field(types.StringType, func(r RunFacts) any { return r.ID }),
		"dag":        field(types.DynType, func(r RunFacts) any { return orNull(r.Dag) }),
		"version":    field(types.DynType, func(r RunFacts) any { return orNull(r.Version) }),
		"nominal_at": field(types.DynType, func(r RunFacts) any { return orNull(r.NominalAt) }),
		"created_at": field(types.StringType, func(r RunFacts) any { return r.CreatedAt }),
	},
}

func field[T any](t *types.Type, get func(T) any) *types.FieldType {
	return &types.FieldType{
		Type:    t,
		IsSet:   func(any) bool { return true },
		GetFrom: func(v any) (any, error) { return get(v.(T)), nil },
	}
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// provider adds our two types to the standard ones.
type provider struct{ *types.Registry }

func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := fieldTypes[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := fieldTypes[name]; ok {
		return sortedKeys(fields), true
	}
	return p.Registry.FindStructFieldNames(name)
}

func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ok := fieldTypes[name]; ok {
		f, ok := fields[field]
		return f, ok
	}
	return p.Registry.FindStructFieldType(name, field)
}

// nodeVariable returns the name of a node's variable for the checker.
func nodeVariable(node string) string { return "nodes." + node }

// environment returns what the expressions of a graph are checked against; mapped adds item and
// index.
func environment(nodes []string, mapped bool) (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeProvider(provider{registry}), cel.CustomTypeAdapter(registry),
		cel.CrossTypeNumericComparisons(true), // nodes.a.result.rows > 0, for any kind of number
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxExpression), cel.ParserRecursionLimit(maxExprDepth),
		cel.Variable("params", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("run", cel.ObjectType(runType)),
	}
	for _, n := range nodes {
		options = append(options, cel.Variable(nodeVariable(n), cel.ObjectType(nodeType)))
	}
	if mapped {
		options = append(options, cel.Variable("item", cel.DynType), cel.Variable("index", cel.IntType))
	}
	return cel.NewEnv(options...)
}

// scope says what an expression may name.
type scope struct {
	env    *cel.Env
	before func(node string) bool // says that the node has ended before
	nodes  map[string]Node
	told   func(node string) bool // says that an unknown node is told already: it is a parent
	params map[string]bool        // declared
}

// expression is one checked expression. It is safe for concurrent use.
type expression struct {
	text    string
	at      position // of its first character, in the string that contains it
	ast     *cel.Ast
	nodes   []string // nodes that it names, in order
	program func() (cel.Program, error)
}

// position is a line and a column, both from 1, in characters.
type position struct{ line, column int }

// moved returns the position of a location inside a text that begins at p.
func (p position) moved(l common.Location) position {
	line, column := max(l.Line(), 1), max(l.Column(), 0)
	if line == 1 {
		return position{p.line, p.column + column}
	}
	return position{p.line + line - 1, column + 1}
}

func (p position) String() string { return fmt.Sprintf("line %d, column %d", p.line, p.column) }

// mistake is an error in an expression, and its position. Without a detail it is told elsewhere.
type mistake struct {
	at     position
	detail string
}

func (m *mistake) Error() string { return m.at.String() + ": " + m.detail }

// compile checks an expression that begins at that position.
func (s scope) compile(text string, at position) (*expression, *mistake) {
	if len(text) > MaxExpression {
		return nil, &mistake{at, fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(text),
			MaxExpression)}
	}
	parsed, issues := s.env.Parse(text)
	if issues.Err() != nil {
		return nil, issueOf(issues, at)
	}
	e := &expression{text: text, at: at}
	if wrong := s.resolve(parsed, e); wrong != nil {
		return nil, wrong
	}
	checked, issues := s.env.Check(parsed)
	if issues.Err() != nil {
		return nil, issueOf(issues, at)
	}
	e.ast = checked
	e.program = sync.OnceValues(func() (cel.Program, error) {
		return s.env.Program(checked, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	})
	return e, nil
}

// issueOf converts the first of CEL's issues.
func issueOf(issues *cel.Issues, at position) *mistake {
	found := issues.Errors()
	if len(found) == 0 {
		return &mistake{at, shortenText(issues.Err().Error())}
	}
	detail := strings.ReplaceAll(found[0].Message, " (in container '')", "")
	return &mistake{at.moved(found[0].Location), shortenText(detail)}
}

// resolve finds the nodes and parameters that an expression names, refuses those outside its scope,
// and rewrites each nodes.X to the variable that the checker knows.
func (s scope) resolve(parsed *cel.Ast, e *expression) *mistake {
	native := parsed.NativeRep()
	if n := ast.NodeCount(native); n > maxExprNodes {
		return &mistake{e.at, fmt.Sprintf("the expression has %d parts; at most %d are allowed", n, maxExprNodes)}
	}
	where := func(x ast.Expr) position { return e.at.moved(native.SourceInfo().GetStartLocation(x.ID())) }
	var wrong *mistake
	refuse := func(x ast.Expr, detail string, args ...any) {
		if wrong == nil || wrong.detail == "" {
			wrong = &mistake{where(x), fmt.Sprintf(detail, args...)}
		}
	}
	root := ast.NavigateAST(native)
	for _, x := range ast.MatchDescendants(root, ast.AllMatcher()) {
		switch x.Kind() {
		case ast.ComprehensionKind:
			c := x.AsComprehension()
			for _, v := range []string{c.IterVar(), c.IterVar2()} {
				if slices.Contains([]string{"nodes", "params", "run", "item", "index"}, v) {
					refuse(x, "%q already has a meaning; name the variable differently", v)
				}
			}
		case ast.CallKind:
			if call := x.AsCall(); call.FunctionName() == "matches" {
				if why := badPattern(call.Args()[len(call.Args())-1]); why != "" {
					refuse(x, "%s", why)
				}
			}
		case ast.IdentKind:
			switch x.AsIdent() {
			case "nodes":
				s.resolveNode(x, e, refuse)
			case "params":
				s.resolveParam(x, refuse)
			case "run":
				if _, _, ok := member(x); !ok {
					refuse(x, "of the run only %s are known", strings.Join(sortedKeys(fieldTypes[runType]), ", "))
				}
			}
		}
	}
	slices.Sort(e.nodes)
	e.nodes = slices.Compact(e.nodes)
	return wrong
}

// badPattern returns why a regular expression is refused, "" if it is not. It must be a literal, so
// that its cost is known before anything runs. (CEL's own limit cannot be used: v0.32.0 measures a
// pattern before it is simplified, and panics on counted repetitions.)
func badPattern(x ast.Expr) string {
	if x.Kind() != ast.LiteralKind {
		return "the pattern of matches is written out as a string"
	}
	pattern, ok := x.AsLiteral().Value().(string)
	if !ok {
		return "" // the checker refuses it
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "the pattern of matches is not a regular expression (RE2)"
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return "the pattern of matches cannot be compiled"
	}
	if len(program.Inst) > maxRegexProgram {
		return fmt.Sprintf("the pattern of matches is too large: it compiles to %d steps; at most %d are allowed",
			len(program.Inst), maxRegexProgram)
	}
	return ""
}

// member returns the constant name that x.name or x["name"] selects from x, and the selecting
// expression; false for any other use of x.
func member(x ast.NavigableExpr) (name string, by ast.NavigableExpr, ok bool) {
	parent, ok := x.Parent()
	if !ok {
		return "", nil, false
	}
	switch parent.Kind() {
	case ast.SelectKind:
		return parent.AsSelect().FieldName(), parent, true
	case ast.CallKind:
		call := parent.AsCall()
		if call.FunctionName() != "_[_]" || len(call.Args()) != 2 || call.Args()[0].ID() != x.ID() {
			return "", nil, false
		}
		if key := call.Args()[1]; key.Kind() == ast.LiteralKind {
			name, ok := key.AsLiteral().Value().(string)
			return name, parent, ok
		}
	}
	return "", nil, false
}

func (s scope) resolveNode(x ast.NavigableExpr, e *expression, refuse func(ast.Expr, string, ...any)) {
	name, by, ok := member(x)
	if !ok {
		refuse(x, `a node is named in full, as nodes.X or nodes["X"]`)
		return
	}
	switch _, exists := s.nodes[name]; {
	case !exists && s.told(name):
		refuse(by, "")
		return
	case !exists:
		refuse(by, "there is no node %q%s", shorten(name), didYouMean(name, sortedKeys(s.nodes)))
		return
	case !s.before(name):
		refuse(by, "node %q does not come before this one, so that it need not have ended", shorten(name))
		return
	}
	if f, _, ok := member(by); !ok || fieldTypes[nodeType][f] == nil {
		refuse(by, "of a node only result, status, attempt and forced are known")
		return
	}
	e.nodes = append(e.nodes, name)
	by.SetKindCase(ast.NewExprFactory().NewIdent(by.ID(), nodeVariable(name)))
}

func (s scope) resolveParam(x ast.NavigableExpr, refuse func(ast.Expr, string, ...any)) {
	name, by, ok := member(x)
	if !ok || s.params[name] {
		return
	}
	if by.Kind() == ast.SelectKind && by.AsSelect().IsTestOnly() { // has(params.x)
		return
	}
	refuse(by, "there is no parameter %q%s", shorten(name), didYouMean(name, sortedKeys(s.params)))
}

// ExpressionError says which expression failed at run time. Its text shows no value.
type ExpressionError struct {
	Node    string
	Pointer string // of the string that contains it, such as /nodes/report/when
	Text    string // of the expression
	At      string // the line and column in that string
	Detail  string
}

func (e *ExpressionError) Error() string {
	return fmt.Sprintf("%s, %s, in %q: %s", e.Pointer, e.At, shorten(e.Text), e.Detail)
}

// eval evaluates the expression; the error is a *mistake.
func (e *expression) eval(ctx context.Context, facts map[string]any) (ref.Val, error) {
	program, err := e.program()
	if err != nil {
		return nil, &mistake{e.at, "the expression cannot be evaluated"}
	}
	v, _, err := program.ContextEval(ctx, facts)
	if err == nil {
		return v, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	at := e.at
	if failed := new(types.Err); errors.As(err, &failed) && failed.NodeID() > 0 {
		at = e.at.moved(e.ast.NativeRep().SourceInfo().GetStartLocation(failed.NodeID()))
	}
	return nil, &mistake{at, plainFailure(err.Error())}
}

// plainFailure returns a failure without the values that CEL's messages may quote.
func plainFailure(message string) string {
	for _, known := range []struct{ part, plain string }{
		{"no such key", "there is no such field"},
		{"no such attribute", "there is no such field"},
		{"index out of bounds", "the list has no such index"},
		{"division by zero", "division by zero"},
		{"modulus by zero", "modulus by zero"},
		{"overflow", "the number is too large"},
		{"no such overload", "the values have types that do not fit the operation"},
		{"cost limit exceeded", "the expression costs too much"},
		{"conversion", "the value cannot be converted"},
		{"parsing", "the value cannot be converted"},
	} {
		if strings.Contains(message, known.part) {
			return known.plain
		}
	}
	return "the expression cannot be evaluated with these values"
}

// shortenText shortens a sentence that may quote the expression.
func shortenText(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:199], "") + "…"
}

// variables returns the facts by the names that expressions use.
func (f Facts) variables() map[string]any {
	v := map[string]any{"params": f.Params, "run": f.Run, "item": f.Item, "index": int64(f.Index)}
	if f.Params == nil {
		v["params"] = map[string]any{}
	}
	for name, n := range f.Nodes {
		v[nodeVariable(name)] = n
	}
	return v
}
