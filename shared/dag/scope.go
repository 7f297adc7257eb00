package dag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"punctual/shared/expression"
)

// nodeWork bounds the steps of all expressions in a node's payload: about one second. The items of a mapped node share
// it evenly, so that an item's budget does not depend on how many are released together.
const nodeWork = 20 * expression.MaxWork

// MaxTokens bounds the tokens of all expressions of a definition, so that a request which checks them takes at most
// 200 ms of a processor: nearly all of it is the parser's, up to 3 µs a token.
const MaxTokens = 40_000

// NodeFacts is what an expression sees of an earlier node.
type NodeFacts struct {
	Result any // from DecodeResult or DecodeAnswer; nil unless it succeeded
	Size   int // bytes of the result as JSON
	// Unusable is why an expression that reads the result fails; nil if none does.
	Unusable *ResultError
	Status   string
	Attempt  int64
	Forced   bool // an operator skipped or completed it
}

// ResultError says why the result of a node cannot be used, such as one that is larger than what is kept.
type ResultError struct{ Code, Message string }

func (e *ResultError) Error() string { return e.Message }

// CodeResultTooLarge is the code of an expression that reads results which are too large.
const CodeResultTooLarge = "result_too_large"

// maxResultsRead bounds the results that one expression reads, in bytes of JSON together.
const maxResultsRead = 4 << 20

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
	Params any // merged, from DecodeResult
	Nodes  map[string]NodeFacts
	Run    RunFacts
	Item   any // of a mapped node, from DecodeResult
	Index  int
	Items  int // of a mapped node: its items share the steps of a node; 0 counts as 1
}

// Member returns a fact of a node.
func (n NodeFacts) member(node, field string) (any, error) {
	switch field {
	case "status":
		return n.Status, nil
	case "attempt":
		return n.Attempt, nil
	case "forced":
		return n.Forced, nil
	}
	if n.Unusable != nil {
		return nil, n.Unusable
	}
	if v := expression.From(n.Result); v != (expression.Null{}) {
		return v, nil
	}
	return expression.Null{Why: n.whyNull(node)}, nil
}

// whyNull says why the result of a node is null, where its status does.
func (n NodeFacts) whyNull(node string) string {
	what := map[string]string{"SKIPPED": "was skipped", "DEAD": "failed", "CANCELLED": "was cancelled",
		"EXPIRED": "expired"}[n.Status]
	if what == "" {
		return ""
	}
	return fmt.Sprintf("%s %s, its result is null", node, what)
}

// record is a variable whose members are facts.
type record func(name string) (any, error)

// Member returns a fact.
func (r record) Member(name string) (any, error) { return r(name) }

// nodeFacts are the facts of all nodes.
type nodeFacts map[string]NodeFacts

// Member returns the facts of a node.
func (n nodeFacts) Member(name string) (any, error) {
	return record(func(field string) (any, error) { return n[name].member(name, field) }), nil
}

// variables returns the facts by the names that expressions use.
func (f Facts) variables() map[string]any {
	params := expression.From(f.Params)
	if params == (expression.Null{}) {
		params = expression.NewMap(nil)
	}
	return map[string]any{
		"params": params, "item": expression.From(f.Item), "index": int64(f.Index), "run": record(f.Run.member),
		"nodes": nodeFacts(f.Nodes),
	}
}

func (r RunFacts) member(name string) (any, error) {
	switch name {
	case "id":
		return r.ID, nil
	case "dag":
		return orNull(r.Dag), nil
	case "version":
		return orNull(r.Version), nil
	case "nominal_at":
		return orNull(r.NominalAt), nil
	}
	return r.CreatedAt, nil
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// fields are the members of a record by name.
type fields struct {
	types   map[string]*expression.Type
	unnamed string
}

// Member returns the type of a field.
func (f fields) Member(name string, _ bool) (*expression.Type, string) {
	if t := f.types[name]; t != nil {
		return t, ""
	}
	return nil, f.unnamed
}

// Unnamed says which fields there are.
func (f fields) Unnamed() string { return f.unnamed }

var (
	nodeFields = fields{map[string]*expression.Type{
		"result": expression.DynType, "status": expression.StringType, "attempt": expression.IntType,
		"forced": expression.BoolType,
	}, "of a node only result, status, attempt and forced are known"}
	runFields = fields{map[string]*expression.Type{
		"id": expression.StringType, "dag": expression.DynType, "version": expression.DynType,
		"nominal_at": expression.DynType, "created_at": expression.StringType,
	}, "of the run only created_at, dag, id, nominal_at, version are known"}
	nodeType = &expression.Type{Kind: expression.RecordKind, Members: nodeFields}
	runType  = &expression.Type{Kind: expression.RecordKind, Members: runFields}
)

// scope says what an expression may name.
type scope struct {
	ctx      context.Context        // of one Compile: what is not compiled when it ends never is
	kept     bool                   // the definition was accepted before: what is refused today fails when used
	before   func(node string) bool // says that the node has ended before
	nodes    map[string]Node
	reported func(node string) bool // says that an unknown node is reported already: it is a parent
	params   map[string]bool        // declared
	mapped   bool                   // item and index are known
	tokens   *int                   // of all expressions so far
}

// naming is the scope of one expression, and notes the nodes that it names.
type naming struct {
	scope
	found    *[]string
	results  *[]string // those of them whose results it reads
	reported *bool     // an error is reported elsewhere
}

// nodeNames are the members of nodes.
type nodeNames struct{ naming }

// Member returns the type of a node.
func (n nodeNames) Member(name string, _ bool) (*expression.Type, string) {
	switch _, exists := n.nodes[name]; {
	case !exists && n.scope.reported(name):
		*n.reported = true
	case !exists:
		return nodeType, fmt.Sprintf("there is no node %q%s", shorten(name), didYouMean(name, sortedKeys(n.nodes)))
	case !n.before(name):
		return nodeType, fmt.Sprintf("node %q does not come before this one, so that it need not have ended",
			shorten(name))
	default:
		*n.found = append(*n.found, name)
		return &expression.Type{Kind: expression.RecordKind, Members: factsOf{nodeFields, name, n.results}}, ""
	}
	return nodeType, ""
}

// factsOf are the members of one node.
type factsOf struct {
	fields
	node    string
	results *[]string
}

// Member returns the type of a fact, and notes that the result is read.
func (f factsOf) Member(name string, test bool) (*expression.Type, string) {
	if name == "result" {
		*f.results = append(*f.results, f.node)
	}
	return f.fields.Member(name, test)
}

// Unnamed says how nodes are named.
func (n nodeNames) Unnamed() string { return `a node is named in full, as nodes.X or nodes["X"]` }

// paramNames are the members of params.
type paramNames struct{ naming }

// Member returns the type of a parameter.
func (p paramNames) Member(name string, test bool) (*expression.Type, string) {
	if test || p.params[name] {
		return expression.DynType, ""
	}
	return expression.DynType, fmt.Sprintf("there is no parameter %q%s", shorten(name),
		didYouMean(name, sortedKeys(p.params)))
}

// Unnamed is not used: params can be used as a whole.
func (p paramNames) Unnamed() string { return "" }

// expr is one checked expression. It is safe for concurrent use.
type expr struct {
	text    string
	at      position // of its first character, in the string that contains it
	nodes   []string // nodes that it names, in order
	results []string // those of them whose results it reads
	program *expression.Program
	wrong   *violation // of a kept definition that is refused today; the program is nil
}

// size returns about how many bytes of memory the expression takes; nil takes none.
func (e *expr) size() int {
	const around = 256
	if e == nil || e.program == nil {
		return 0
	}
	return around + len(e.text) + e.program.Size()
}

// position is a line and a column, both from 1, in characters.
type position struct{ line, column int }

// moved returns the position of an error inside a text that begins at p.
func (p position) moved(e *expression.Error) position {
	if e.Line <= 1 {
		return position{p.line, p.column + max(e.Column-1, 0)}
	}
	return position{p.line + e.Line - 1, e.Column}
}

func (p position) String() string { return fmt.Sprintf("line %d, column %d", p.line, p.column) }

// violation is an error in an expression, and its position. Without a detail it is reported elsewhere.
type violation struct {
	at     position
	detail string
	code   string // of a result that cannot be used
}

// program compiles an expression, unless those of the definition have too many tokens: then it is not parsed. A
// definition that was accepted before is read whatever it has.
func (s scope) program(text string, variables map[string]*expression.Type) (*expression.Program, *expression.Error) {
	if !s.kept {
		if *s.tokens += expression.Tokens(text); *s.tokens > MaxTokens {
			return nil, &expression.Error{Line: 1, Column: 1, Detail: fmt.Sprintf("the expressions of the definition "+
				"have more than %d tokens together: names, values, operators and brackets", MaxTokens)}
		}
	}
	return expression.Compile(text, variables)
}

func (m *violation) Error() string { return m.at.String() + ": " + m.detail }

// compile checks an expression that begins at that position.
func (s scope) compile(text string, at position) (*expr, *violation) {
	if s.ctx.Err() != nil {
		return nil, &violation{at: at}
	}
	e := &expr{text: text, at: at}
	n := naming{scope: s, found: &e.nodes, results: &e.results, reported: new(bool)}
	variables := map[string]*expression.Type{
		"nodes":  {Kind: expression.RecordKind, Members: nodeNames{n}},
		"params": {Kind: expression.MapKind, Elem: expression.DynType, Members: paramNames{n}},
		"run":    runType,
	}
	if s.mapped {
		variables["item"], variables["index"] = expression.DynType, expression.IntType
	}
	program, wrong := s.program(text, variables)
	if wrong == nil && *n.reported {
		return nil, &violation{at: at}
	}
	if wrong != nil {
		m := &violation{at: at.moved(wrong), detail: wrong.Detail + s.quoted(text)}
		if s.kept {
			e.wrong = m
			return e, nil
		}
		return nil, m
	}
	slices.Sort(e.nodes)
	e.nodes = slices.Compact(e.nodes)
	slices.Sort(e.results)
	e.results = slices.Compact(e.results)
	e.program = program
	return e, nil
}

// dotted finds names after a dot that CEL reads as more than a name.
var dotted = regexp.MustCompile(`\b(nodes|params)\.([A-Za-z0-9_-]+)`)

// quoted says how a name is written that CEL does not read after a dot: one with a dash, or that begins with a digit.
func (s scope) quoted(text string) string {
	for _, found := range dotted.FindAllStringSubmatch(text, -1) {
		of, name := found[1], found[2]
		known := s.params
		if of == "nodes" {
			known = map[string]bool{}
			for n := range s.nodes {
				known[n] = true
			}
		}
		for name != "" && !known[name] { // a - b may also be a difference
			name = name[:max(strings.LastIndexByte(name, '-'), 0)]
		}
		if strings.ContainsRune(name, '-') || name != "" && name[0] <= '9' && name[0] >= '0' {
			return fmt.Sprintf("; this name is written %s[%q]", of, name)
		}
	}
	return ""
}

// ExpressionError says which expression failed at run time. Its text shows no value.
type ExpressionError struct {
	Node    string
	Pointer string // of the string that contains it, such as /nodes/report/when
	Text    string // of the expression
	At      string // the line and column in that string
	Detail  string
	Code    string // of a *ResultError; "" for any other failure
}

func (e *ExpressionError) Error() string {
	return fmt.Sprintf("%s, %s, in %q: %s", e.Pointer, e.At, shorten(e.Text), e.Detail)
}

// eval evaluates the expression. The error is a *violation, or the context's.
func (e *expr) eval(ctx context.Context, facts map[string]any, meter *expression.Meter) (any, error) {
	if e.wrong != nil {
		return nil, e.wrong
	}
	if wrong := e.readable(facts); wrong != nil {
		return nil, &violation{e.at, wrong.Message, wrong.Code}
	}
	v, err := e.program.Eval(ctx, facts, meter)
	wrong := new(expression.Error)
	if !errors.As(err, &wrong) {
		return v, err
	}
	m := &violation{at: e.at.moved(wrong), detail: wrong.Detail}
	if unusable := new(ResultError); errors.As(wrong.Cause, &unusable) {
		m.code = unusable.Code
	}
	return nil, m
}

// readable returns an error if the results that the expression reads are too large together.
func (e *expr) readable(facts map[string]any) *ResultError {
	nodes, _ := facts["nodes"].(nodeFacts)
	left := maxResultsRead
	for _, name := range e.results {
		if left -= nodes[name].Size; left < 0 {
			return &ResultError{
				CodeResultTooLarge,
				fmt.Sprintf("with the result of node %s the expression reads more than "+
					"%d MiB of results together", shorten(name), maxResultsRead>>20),
			}
		}
	}
	return nil
}

// meter returns the steps of a node's expressions, or of those of one item.
func (f Facts) meter() *expression.Meter {
	return expression.NewMeter(nodeWork / cmp.Or(max(f.Items, 0), 1))
}
