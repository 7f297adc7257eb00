package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"punctual/shared/dag"
	"punctual/shared/fault"
)

// FuzzExpression verifies that no expression panics, hangs, grows without bound, or shows a value
// in its error; a compiled one gives JSON or an ExpressionError.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		"${params.n + 1}", "a ${nodes.extract.result.rows} b", "$${x}", "${'it\\'s }'}", "${r'\\'}",
		"${nodes['a-b'].forced}",
		"${[1,2].map(x, x)}", "${'a'.matches('(a{10}){10}')}", "${{'a':1}}", "${1//\n}", "${\"\"\"}\"\"\"}",
		"${timestamp(run.created_at)}",
		"${b'\\xff'}", "${1.0/0.0}", "${duration('1s')}", "${type(1)}", "${nodes.extract.result.deep.x[0]}",
		"${has(params.limit)}",
	} {
		f.Add(s, "params.n > 1")
	}
	f.Fuzz(func(t *testing.T, text, when string) {
		raw, err := json.Marshal(map[string]string{"x": text})
		if err != nil || !utf8.ValidString(text) || !utf8.ValidString(when) {
			return
		}
		g, err := dag.Compile(etl(dag.Node{Payload: raw, When: when}))
		if err != nil {
			if m := (fault.Violations)(nil); !errors.As(err, &m) || len(m) == 0 {
				t.Fatalf("not a list of mistakes: %v", err)
			}
			return
		}
		known := facts(t)
		got, err := g.Payload(context.Background(), "last", known)
		if err == nil && !json.Valid(got) {
			t.Fatalf("no JSON: %s", got)
		}
		failed := new(dag.ExpressionError)
		if err != nil && !errors.As(err, &failed) {
			t.Fatalf("an unknown error: %v", err)
		}
		if err != nil && !strings.Contains(text, "hunter2") && strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("it shows a value: %v", err)
		}
		if _, err := g.When(context.Background(), "last", known); err != nil && !errors.As(err, &failed) {
			t.Fatalf("an unknown error: %v", err)
		}
	})
}

// FuzzDefinition verifies that a graph of any edges is compiled or refused, and that a compiled one
// has every node on a level after its parents.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2}, byte(3))
	f.Add([]byte{0, 1, 1, 0}, byte(2))
	f.Fuzz(func(t *testing.T, edges []byte, nodes byte) {
		d := dag.Definition{Nodes: map[string]dag.Node{}}
		name := func(b byte) string { return string(rune('a' + b%26)) }
		for i := range nodes % 26 {
			d.Nodes[name(i)] = dag.Node{Task: "echo"}
		}
		for i := 0; i+1 < len(edges); i += 2 {
			n, ok := d.Nodes[name(edges[i])]
			if !ok {
				continue
			}
			n.DependsOn = append(n.DependsOn, name(edges[i+1]))
			d.Nodes[name(edges[i])] = n
		}
		g, err := dag.Compile(d)
		if err != nil {
			return
		}
		level := map[string]int{}
		for i, names := range g.Levels() {
			for _, n := range names {
				level[n] = i
			}
		}
		if len(level) != len(d.Nodes) {
			t.Fatalf("%d of %d nodes have a level", len(level), len(d.Nodes))
		}
		for n := range d.Nodes {
			for _, p := range g.Parents(n) {
				if level[p] >= level[n] {
					t.Fatalf("%s is not after %s", n, p)
				}
			}
		}
	})
}
