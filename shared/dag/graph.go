package dag

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"punctual/shared/fault"
	"punctual/shared/text"
)

// Limits of a definition.
const (
	MaxNodes      = 500
	MaxEdges      = 2_000
	MaxItems      = 1_000 // of one for_each
	MaxJobs       = 5_000 // of one run: its nodes, and of those with for_each the items instead
	MaxDefinition = 256 << 10
	MaxExpression = 1 << 10 // bytes
)

// Codes of violations in graphs.
const (
	CodeCycle             = "cycle"
	CodeUnknownNode       = "unknown_node"
	CodeDuplicateEdge     = "duplicate_edge"
	CodeSelfEdge          = "self_edge"
	CodeInvalidExpression = "invalid_expression"
	codeOutOfRange        = "out_of_range"
	codeInvalidValue      = "invalid_value"
	codeMissingField      = "missing_field"
)

// Graph is a checked definition. It is immutable and safe for concurrent use.
type Graph struct {
	Definition
	names    []string            // of the nodes, in order
	children map[string][]string // in order
	levels   [][]string
	exprs    map[string]*nodeExprs
	readers  map[string][]string // no children that name the node in expressions, in order
	kept     bool                // the definition was accepted before
	size     int                 // of the expressions and texts, in bytes
}

// Size returns about how many bytes of memory the graph takes.
func (g *Graph) Size() int {
	const ofNode, ofEdge = 1_000, 100
	return g.size + len(g.ParamsSchema) + ofNode*len(g.Nodes) + ofEdge*g.Edges()
}

// Names returns the nodes in alphabetical order.
func (g *Graph) Names() []string { return g.names }

// Plain returns how many nodes have no for_each: each is one job.
func (g *Graph) Plain() int {
	n := 0
	for _, node := range g.Nodes {
		if node.ForEach == "" {
			n++
		}
	}
	return n
}

// Parents returns the nodes that must have ended before node, in the order written.
func (g *Graph) Parents(node string) []string { return g.Nodes[node].DependsOn }

// Children returns the nodes that wait for node, in alphabetical order.
func (g *Graph) Children(node string) []string { return g.children[node] }

// Levels returns the nodes by the length of the longest chain before each: the roots come first. A
// level is in alphabetical order.
func (g *Graph) Levels() [][]string { return g.levels }

// HasAlways reports whether a node runs also where the run is stopped.
func (g *Graph) HasAlways() bool {
	for _, n := range g.Nodes {
		if n.RunIf == Always {
			return true
		}
	}
	return false
}

// Edges returns the number of dependencies.
func (g *Graph) Edges() int {
	n := 0
	for _, node := range g.Nodes {
		n += len(node.DependsOn)
	}
	return n
}

// Below returns node and all nodes after it, directly or not, in alphabetical order.
func (g *Graph) Below(node string) []string {
	seen := map[string]bool{node: true}
	for todo := []string{node}; len(todo) > 0; todo = todo[1:] {
		for _, c := range g.children[todo[0]] {
			if !seen[c] {
				seen[c] = true
				todo = append(todo, c)
			}
		}
	}
	return sortedKeys(seen)
}

// Compile checks a definition and returns its graph, or every violation by JSON pointer. The caller
// checks the fields that a job has, too (task, pool, timeout …).
func Compile(d Definition) (*Graph, error) {
	g, err := CompileContext(context.Background(), d)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// CompileContext is Compile that ends with its context. With violations it also returns what has been compiled, for
// Constants alone.
func CompileContext(ctx context.Context, d Definition) (*Graph, error) { return compile(ctx, d, false) }

// Load returns the graph of a definition that was accepted before. An expression that is refused today fails when it is
// evaluated.
func Load(ctx context.Context, d Definition) (*Graph, error) {
	g, err := compile(ctx, d, true)
	if err != nil {
		return nil, err
	}
	return g, nil
}

func compile(ctx context.Context, d Definition, kept bool) (*Graph, error) {
	g := &Graph{Definition: d.WithDefaults(), names: sortedKeys(d.Nodes), children: map[string][]string{}, kept: kept}
	m := &violations{}
	g.checkShape(d, m)
	if len(d.Nodes) == 0 || len(d.Nodes) > MaxNodes || m.full() {
		return nil, m.list
	}
	bad := map[string]map[string]bool{}
	if g.Edges() <= MaxEdges {
		bad = g.checkCycles(d, m)
	} else {
		for _, name := range g.names { // their cycles are not looked for
			bad[name] = nil
			n := g.Nodes[name]
			n.DependsOn = nil
			g.Nodes[name] = n
		}
	}
	unsure := g.dropBadEdges(d, bad)
	for _, name := range g.names {
		for _, p := range g.Nodes[name].DependsOn {
			g.children[p] = append(g.children[p], name)
		}
	}
	g.levels = g.level()
	if err := g.compileExpressions(ctx, d, m, g.belowAll(unsure)); err != nil {
		return nil, fmt.Errorf("compiling a definition: %w", err)
	}
	if len(m.list) > 0 {
		return g, m.list
	}
	g.readers = g.indirectReaders()
	return g, nil
}

// dropBadEdges leaves only dependencies on other nodes that are there, each once and none that closes a cycle. It
// returns the nodes of which it is not known what comes before them: those of closes, and those with an unknown parent.
func (g *Graph) dropBadEdges(d Definition, closes map[string]map[string]bool) (unsure []string) {
	for _, name := range g.names {
		n := g.Nodes[name]
		closing, sure := closes[name]
		sure = !sure
		n.DependsOn = slices.DeleteFunc(slices.Compact(n.DependsOn), func(p string) bool {
			_, there := d.Nodes[p]
			sure = sure && there
			return !there || p == name || closing[p]
		})
		if g.Nodes[name] = n; !sure {
			unsure = append(unsure, name)
		}
	}
	return unsure
}

// belowAll are those nodes and all after any of them.
func (g *Graph) belowAll(names []string) map[string]bool {
	below := map[string]bool{}
	for _, name := range names {
		for _, n := range g.Below(name) {
			below[n] = true
		}
	}
	return below
}

// violations collects the violations of a definition, up to a bound.
type violations struct{ list fault.Violations }

// maxViolations bounds the violations of one answer.
const maxViolations = 50

func (m *violations) full() bool { return len(m.list) >= maxViolations }

func (m *violations) add(pointer, code, allowed, detail string, args ...any) {
	if !m.full() {
		m.list = append(m.list, fault.Field{Pointer: pointer, Code: code, Allowed: allowed, Detail: fmt.Sprintf(detail,
			args...)})
	}
}

// checkShape checks everything but cycles and expressions.
func (g *Graph) checkShape(d Definition, m *violations) {
	switch {
	case len(d.Nodes) == 0:
		m.add("/nodes", codeMissingField, fmt.Sprintf("1 to %d nodes", MaxNodes), "a dag has at least one node")
	case len(d.Nodes) > MaxNodes:
		m.add("/nodes", codeOutOfRange, fmt.Sprintf("1 to %d nodes", MaxNodes), "there are %d nodes", len(d.Nodes))
	}
	if edges := g.Edges(); edges > MaxEdges {
		m.add("/nodes", codeOutOfRange, fmt.Sprintf("at most %d dependencies in all", MaxEdges),
			"there are %d dependencies", edges)
	}
	for _, name := range g.names {
		if m.full() {
			return
		}
		n := d.Nodes[name]
		at := pointer("nodes", name)
		seen := map[string]bool{}
		for i, p := range n.DependsOn {
			here := at + pointer("depends_on", fmt.Sprint(i))
			_, exists := d.Nodes[p]
			switch {
			case p == name:
				m.add(here, CodeSelfEdge, "other nodes", "node %q depends on itself", name)
			case !exists:
				m.add(here, CodeUnknownNode, "names of nodes of this dag", "there is no node %q%s", shorten(p),
					didYouMean(p, g.names))
			case seen[p]:
				m.add(here, CodeDuplicateEdge, "each node once", "node %q is named twice", p)
			}
			seen[p] = true
		}
		if n.RunIf != "" && !slices.Contains(Rules, string(n.RunIf)) {
			m.add(at+"/run_if", codeInvalidValue, strings.Join(Rules, ", "), "there is no such rule")
		}
		switch {
		case n.MaxParallel != 0 && n.ForEach == "":
			m.add(at+"/max_parallel", codeInvalidValue, "together with for_each",
				"only a node with for_each has items that run in parallel")
		case n.MaxParallel < 0 || n.MaxParallel > MaxItems:
			m.add(at+"/max_parallel", codeOutOfRange, fmt.Sprintf("1 to %d", MaxItems), "max_parallel is %d",
				n.MaxParallel)
		}
		n.MaxFailed.check(at+"/max_failed", n, m)
	}
	if d.OnFailure != "" && !slices.Contains(Policies, string(d.OnFailure)) {
		m.add("/on_failure", codeInvalidValue, strings.Join(Policies, ", "), "there is no such policy")
	}
	if d.MaxConcurrency < 0 || d.MaxConcurrency > MaxJobs {
		m.add("/max_concurrency", codeOutOfRange, fmt.Sprintf("1 to %d", MaxJobs), "max_concurrency is %d",
			d.MaxConcurrency)
	}
}

// checkCycles reports each cycle once, in the order of execution: a → b means that b waits for a. It returns the
// parents that close one, by node: without these there is none.
func (g *Graph) checkCycles(d Definition, m *violations) map[string]map[string]bool {
	closes := map[string]map[string]bool{}
	const (
		unseen = iota
		open
		closed
	)
	state := map[string]int{}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		path = append(path, name)
		for i, p := range d.Nodes[name].DependsOn {
			if _, there := d.Nodes[p]; !there || p == name { // blamed already
				continue
			}
			switch state[p] {
			case unseen:
				visit(p)
			case open: // path from p to name leads against the order of execution
				cycle := slices.Clone(path[slices.Index(path, p):])
				slices.Reverse(cycle)
				first := slices.Index(cycle, slices.Min(cycle))
				cycle = append(slices.Concat(cycle[first:], cycle[:first]), cycle[first])
				m.add(pointer("nodes", name, "depends_on", fmt.Sprint(i)), CodeCycle, "a graph without cycles",
					"these nodes wait for each other: %s", strings.Join(cycle, " → "))
				if closes[name] == nil {
					closes[name] = map[string]bool{}
				}
				closes[name][p] = true
			}
		}
		path = path[:len(path)-1]
		state[name] = closed
	}
	for _, name := range g.names {
		if state[name] == unseen {
			visit(name)
		}
	}
	return closes
}

// level sorts the nodes into levels; the graph has no cycle.
func (g *Graph) level() [][]string {
	of := map[string]int{}
	var depth func(name string) int
	depth = func(name string) int {
		if n, ok := of[name]; ok {
			return n
		}
		n := 0
		for _, p := range g.Nodes[name].DependsOn {
			n = max(n, depth(p)+1)
		}
		of[name] = n
		return n
	}
	var levels [][]string
	for _, name := range g.names {
		n := depth(name)
		for len(levels) <= n {
			levels = append(levels, nil)
		}
		levels[n] = append(levels[n], name)
	}
	return levels
}

// pointer returns a JSON pointer (RFC 6901).
func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(escape(shorten(p)))
	}
	return b.String()
}

var escape = strings.NewReplacer("~", "~0", "/", "~1").Replace

// shorten shortens a name that may be as long as the request.
func shorten(s string) string {
	if len(s) <= 64 {
		return s
	}
	return strings.ToValidUTF8(s[:61], "") + "…"
}

// didYouMean suggests the nearest name, if one is near.
func didYouMean(name string, names []string) string {
	if near := text.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
