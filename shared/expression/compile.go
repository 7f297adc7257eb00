package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser/gen"
	"github.com/antlr4-go/antlr/v4"
)

// Limits of an expression.
const (
	MaxText   = 1 << 10 // bytes
	maxParts  = 1_000
	maxDepth  = 50
	maxMacros = 20 // all, exists, exists_one, filter and map
	maxNested = 5  // macros inside each other
)

// Error is an error in an expression, or of its evaluation.
type Error struct {
	Line, Column int // from 1, in characters; the column may be 0 at the end of a line
	Detail       string
	Cause        error // of a Record; else nil
	final        bool  // nothing in the expression can make up for it
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Detail)
}

func (e *Error) Unwrap() error { return e.Cause }

// Program is one checked expression. It is safe for concurrent use.
type Program struct {
	root  *node
	slots int
	size  int
	texts bool // the expression has literals that are texts or bytes
}

// Type returns what is known of the expression's value.
func (p *Program) Type() *Type { return p.root.typ }

// Size returns about how many bytes of memory the program takes.
func (p *Program) Size() int { return p.size }

// node is one part of a checked expression.
type node struct {
	op           op
	typ          *Type
	line, column int
	value        any    // of a literal
	name         string // of a variable or a field
	slot         int    // of a macro's variable
	args         []*node
	fn           *function
}

type op uint8

const (
	opValue op = iota
	opVariable
	opSlot
	opSelect
	opHas
	opIndex
	opList
	opMap
	opAnd
	opOr
	opChoose
	opCall
	opAll
	opExists
	opExistsOne
	opFilter
	opMapItems
)

func (n *node) fail(detail string) *Error {
	return &Error{Line: n.line, Column: n.column, Detail: detail}
}

func (n *node) failf(format string, args ...any) *Error { return n.fail(fmt.Sprintf(format, args...)) }

// parser is CEL's, without its macros: these are ours.
var parser = func() *cel.Env {
	env, err := cel.NewCustomEnv(cel.ClearMacros(), cel.ParserExpressionSizeLimit(MaxText),
		cel.ParserRecursionLimit(maxDepth))
	if err != nil {
		panic(fmt.Sprintf("making the parser of expressions: %v", err)) // no part of it comes from a user
	}
	return env
}()

// Tokens counts the names, values, operators and brackets of an expression, without parsing it. The time of Compile
// grows with them.
func Tokens(text string) (n int) {
	if len(text) > MaxText { // Compile refuses it at once
		return 0
	}
	lexer := gen.NewCELLexer(antlr.NewInputStream(text))
	lexer.RemoveErrorListeners() // the parser reports what is no token
	for {
		switch t := lexer.NextToken(); {
		case t.GetTokenType() == antlr.TokenEOF:
			return n
		case t.GetChannel() == antlr.TokenDefaultChannel: // no space and no comment
			n++
		}
	}
}

// Compile checks an expression that names these variables.
func Compile(text string, variables map[string]*Type) (p *Program, wrong *Error) {
	start := &node{line: 1, column: 1}
	if len(text) > MaxText {
		return nil, start.failf("the expression has %d bytes; at most %d are allowed", len(text), MaxText)
	}
	defer func() {
		if recover() != nil { // of the parser
			p, wrong = nil, start.fail("the expression cannot be read")
		}
	}()
	parsed, issues := parser.Parse(text)
	if issues.Err() != nil {
		return nil, firstIssue(issues)
	}
	c := &checker{source: parsed.NativeRep().SourceInfo(), variables: variables, size: len(text)}
	root := c.check(parsed.NativeRep().Expr(), 0)
	if c.wrong == nil && root.typ.Kind == RecordKind {
		c.refuse(root, "%s", root.typ.Members.Unnamed())
	}
	if c.wrong != nil {
		return nil, c.wrong
	}
	return &Program{root: root, slots: c.slots, size: c.size, texts: c.texts}, nil
}

// firstIssue converts the first of the parser's issues.
func firstIssue(issues *cel.Issues) *Error {
	found := issues.Errors()
	if len(found) == 0 {
		return &Error{Line: 1, Column: 1, Detail: shorten(issues.Err().Error())}
	}
	at := found[0].Location
	return &Error{Line: max(at.Line(), 1), Column: max(at.Column(), 0) + 1, Detail: shorten(found[0].Message)}
}

// shorten shortens a sentence that may quote the expression.
func shorten(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:199], "") + "…"
}

// checker converts a parsed expression and finds its first error.
type checker struct {
	source    *ast.SourceInfo
	variables map[string]*Type
	locals    []local
	slots     int
	parts     int
	macros    int
	size      int
	texts     bool
	wrong     *Error
}

// local is the variable of a macro.
type local struct {
	name string
	typ  *Type
	slot int
}

func (c *checker) refuse(n *node, format string, args ...any) {
	if c.wrong == nil {
		c.wrong = n.failf(format, args...)
		c.wrong.Detail = shorten(c.wrong.Detail)
	}
}

// check returns the checked form of an expression. After the first error its types do not matter.
func (c *checker) check(x ast.Expr, depth int) *node {
	const ofNode = 160 // bytes
	at := c.source.GetStartLocation(x.ID())
	n := &node{typ: DynType, line: max(at.Line(), 1), column: max(at.Column(), 0) + 1}
	c.parts++
	c.size += ofNode
	switch {
	case c.wrong != nil:
		return n
	case c.parts > maxParts:
		c.refuse(n, "the expression has more than %d parts", maxParts)
		return n
	case depth > maxDepth*2:
		c.refuse(n, "the expression is too deep")
		return n
	}
	switch x.Kind() {
	case ast.LiteralKind:
		c.literal(n, x)
	case ast.IdentKind:
		c.variable(n, x.AsIdent())
	case ast.SelectKind:
		s := x.AsSelect()
		c.member(n, c.check(s.Operand(), depth+1), s.FieldName())
	case ast.ListKind:
		n.op = opList
		elem := (*Type)(nil)
		for _, e := range x.AsList().Elements() {
			arg := c.operand(e, depth)
			n.args = append(n.args, arg)
			elem = joined(elem, arg.typ)
		}
		n.typ = containerOf(ListKind, orDyn(elem))
	case ast.MapKind:
		c.mapping(n, x.AsMap(), depth)
	case ast.CallKind:
		c.call(n, x.AsCall(), depth)
	default:
		c.refuse(n, "messages are not known here; write a map, such as {\"key\": value}")
	}
	return n
}

// operand checks an expression that is used as a value.
func (c *checker) operand(x ast.Expr, depth int) *node {
	n := c.check(x, depth+1)
	if n.typ.Kind == RecordKind {
		c.refuse(n, "%s", n.typ.Members.Unnamed())
	}
	return n
}

func joined(a, b *Type) *Type {
	if a == nil {
		return b
	}
	if t, ok := unify(a, b); ok {
		return t
	}
	return DynType
}

func orDyn(t *Type) *Type {
	if t == nil {
		return DynType
	}
	return t
}

func (c *checker) literal(n *node, x ast.Expr) {
	n.value = x.AsLiteral()
	switch v := n.value.(type) {
	case types.Null:
		n.value, n.typ = Null{}, nullType
	default:
		n.typ = kindTypes[kindOf(v)]
		c.texts = c.texts || n.typ == StringType || n.typ == bytesType
	}
}

func (c *checker) variable(n *node, name string) {
	for _, l := range slices.Backward(c.locals) {
		if l.name == name {
			n.op, n.slot, n.typ = opSlot, l.slot, l.typ
			return
		}
	}
	if t, ok := c.variables[name]; ok {
		n.op, n.name, n.typ = opVariable, name, t
		return
	}
	if k, ok := typeNames[name]; ok {
		n.value, n.typ = typeValue(k), typeType
		return
	}
	c.refuse(n, "there is no variable %q; known are %s", brief(name),
		strings.Join(slices.Sorted(maps.Keys(c.variables)), ", "))
}

func brief(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:61], "") + "…"
	}
	return name
}

// member checks the selection of a field.
func (c *checker) member(n, of *node, name string) {
	n.op, n.name, n.args = opSelect, name, []*node{of}
	c.field(n, of, name, false)
}

func (c *checker) field(n, of *node, name string, test bool) {
	switch t := of.typ; {
	case t.Members != nil:
		found, problem := t.Members.Member(name, test)
		where := n
		if t.Kind == RecordKind && of.op == opSelect { // a field of a node: the node's own dot
			where = of
		}
		if n.typ = orDyn(found); problem != "" {
			c.refuse(where, "%s", problem)
		}
	case t.Kind == MapKind:
		n.typ = t.Elem
	case t.Kind != Dyn && c.wrong == nil:
		c.refuse(n, "%s has no field %q", t.Kind, brief(name))
	}
}

func (c *checker) mapping(n *node, m ast.MapExpr, depth int) {
	n.op = opMap
	elem := (*Type)(nil)
	for _, e := range m.Entries() {
		entry := e.AsMapEntry()
		key, value := c.operand(entry.Key(), depth), c.operand(entry.Value(), depth)
		switch key.typ.Kind {
		case Dyn, StringKind, IntKind, UintKind, BoolKind:
		default:
			c.refuse(key, "the key of a map is text, an int, a uint or a boolean, and this is %s", key.typ.Kind)
		}
		n.args = append(n.args, key, value)
		elem = joined(elem, value.typ)
	}
	n.typ = containerOf(MapKind, orDyn(elem))
}

func (c *checker) call(n *node, call ast.CallExpr, depth int) {
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		if space := call.Target(); space.Kind() == ast.IdentKind && functions[space.AsIdent()+"."+name] != nil {
			c.function(n, space.AsIdent()+"."+name, c.operands(args, depth))
			return
		}
		if c.macro(n, name, call.Target(), args, depth) {
			return
		}
		c.function(n, "."+name, append([]*node{c.operand(call.Target(), depth)}, c.operands(args, depth)...))
		return
	}
	switch name {
	case "has":
		c.has(n, args, depth)
	case operators.LogicalAnd, operators.LogicalOr:
		n.op, n.typ, n.args = opAnd, BoolType, c.operands(args, depth)
		if name == operators.LogicalOr {
			n.op = opOr
		}
		for _, a := range n.args {
			if !a.typ.Could(BoolKind) {
				c.refuse(n, "%s takes booleans, and this is %s", strings.Trim(name, "_"), a.typ.Kind)
			}
		}
	case operators.Conditional:
		c.choose(n, c.operands(args, depth))
	case operators.Index:
		c.index(n, args, depth)
	default:
		c.function(n, name, c.operands(args, depth))
	}
}

func (c *checker) operands(args []ast.Expr, depth int) []*node {
	all := make([]*node, 0, len(args))
	for _, a := range args {
		all = append(all, c.operand(a, depth))
	}
	return all
}

func (c *checker) has(n *node, args []ast.Expr, depth int) {
	n.op, n.typ = opHas, BoolType
	if len(args) != 1 || args[0].Kind() != ast.SelectKind {
		c.refuse(n, "has takes one field, such as has(params.x)")
		return
	}
	s := args[0].AsSelect()
	inner := &node{typ: DynType, line: n.line, column: n.column}
	of := c.check(s.Operand(), depth+1)
	c.field(inner, of, s.FieldName(), true)
	n.name, n.args = s.FieldName(), []*node{of}
}

func (c *checker) choose(n *node, args []*node) {
	n.op, n.args = opChoose, args
	if !args[0].typ.Could(BoolKind) {
		c.refuse(n, "the condition before ? is true or false, and this is %s", args[0].typ.Kind)
	}
	t, ok := unify(args[1].typ, args[2].typ)
	if n.typ = t; !ok {
		c.refuse(n, "both values of a condition have the same type, and these are %s and %s", args[1].typ.Kind,
			args[2].typ.Kind)
	}
}

// index checks x[i]; with text in its place, x["name"] is x.name.
func (c *checker) index(n *node, args []ast.Expr, depth int) {
	n.op = opIndex
	of := c.check(args[0], depth+1)
	if of.typ.Members != nil {
		if key := args[1]; key.Kind() == ast.LiteralKind {
			if name, ok := key.AsLiteral().Value().(string); ok {
				c.member(n, of, name)
				return
			}
		}
		if of.typ.Kind == RecordKind {
			c.refuse(of, "%s", of.typ.Members.Unnamed())
			return
		}
	}
	key := c.operand(args[1], depth)
	n.args = []*node{of, key}
	switch {
	case of.typ.Kind == ListKind:
		n.typ = of.typ.Elem
		if !key.typ.Could(IntKind) && !key.typ.numeric() {
			c.refuse(n, "the index of a list is a number, and this is %s", key.typ.Kind)
		}
	case of.typ.Kind == MapKind:
		n.typ = of.typ.Elem
	case of.typ.Kind != Dyn:
		c.refuse(n, "%s has no elements", of.typ.Kind)
	}
}

var macros = map[string]op{"all": opAll, "exists": opExists, "exists_one": opExistsOne, "filter": opFilter,
	"map": opMapItems}

// macro checks a macro; false if the call is none.
func (c *checker) macro(n *node, name string, over ast.Expr, args []ast.Expr, depth int) bool {
	op, ok := macros[name]
	if !ok || len(args) != 2 && (op != opMapItems || len(args) != 3) {
		return false
	}
	n.op = op
	switch c.macros++; {
	case c.macros > maxMacros:
		c.refuse(n, "the expression has more than %d macros (all, exists, exists_one, filter, map)", maxMacros)
		return true
	case len(c.locals) >= maxNested:
		c.refuse(n, "at most %d macros (all, exists, exists_one, filter, map) stand inside each other", maxNested)
		return true
	case args[0].Kind() != ast.IdentKind:
		c.refuse(n, "%s names a variable first, such as %s(x, …)", name, name)
		return true
	}
	items := c.operand(over, depth)
	l := local{name: args[0].AsIdent(), typ: DynType, slot: len(c.locals)}
	if _, taken := c.variables[l.name]; taken || l.name == "item" || l.name == "index" {
		c.refuse(n, "%q already has a meaning; name the variable differently", l.name)
	}
	switch items.typ.Kind {
	case ListKind:
		l.typ = items.typ.Elem
	case Dyn, MapKind:
	default:
		c.refuse(n, "%s goes over a list or a map, and this is %s", name, items.typ.Kind)
	}
	c.locals = append(c.locals, l)
	c.slots = max(c.slots, len(c.locals))
	bodies := c.operands(args[1:], depth)
	c.locals = c.locals[:len(c.locals)-1]
	n.slot, n.args = l.slot, append([]*node{items}, bodies...)
	if test := bodies[0]; (op != opMapItems || len(bodies) == 2) && !test.typ.Could(BoolKind) {
		c.refuse(n, "%s takes a condition, and this is %s", name, test.typ.Kind)
	}
	switch op {
	case opMapItems:
		n.typ = containerOf(ListKind, bodies[len(bodies)-1].typ)
	case opFilter:
		n.typ = containerOf(ListKind, l.typ)
	default:
		n.typ = BoolType
	}
	return true
}

// function checks the call of a function or an operator.
func (c *checker) function(n *node, name string, args []*node) {
	n.op, n.args = opCall, args
	f := functions[name]
	shown := strings.Trim(name, "._@")
	if f == nil {
		c.refuse(n, "there is no function %q", brief(shown))
	}
	if c.wrong != nil {
		return
	}
	n.fn = f
	kinds := make([]*Type, len(args))
	for i, a := range args {
		kinds[i] = a.typ
	}
	t, ok := f.check(kinds)
	if n.typ = t; !ok {
		c.refuse(n, "%s does not take %s", shown, listed(kinds))
	}
	if !ok || f.prepare == nil {
		return
	}
	if why := f.prepare(n, args); why != "" {
		c.refuse(n, "%s", why)
	}
	const ofPattern = 64 << 10 // bytes
	c.size += ofPattern
}

func listed(kinds []*Type) string {
	names := make([]string, len(kinds))
	for i, t := range kinds {
		names[i] = t.Kind.String()
	}
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, " and ")
}
