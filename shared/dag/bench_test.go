package dag_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"punctual/shared/dag"
)

// large returns a definition at its limits: 500 nodes in levels of 50, 2,000 edges, 2,000
// expressions.
func large() dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}, Params: map[string]json.RawMessage{"n": json.RawMessage("1")}}
	name := func(i int) string { return fmt.Sprintf("node_%03d", i) }
	for i := range 500 {
		n := dag.Node{Task: "echo", Payload: json.RawMessage(`{"n":"${params.n + 1}"}`)}
		if i >= 50 {
			for k := range 4 {
				n.DependsOn = append(n.DependsOn, name(i-50+k*7%50-i%50))
			}
			n.DependsOn = n.DependsOn[:4]
			n.Payload = json.RawMessage(
				fmt.Sprintf(
					`{"a":"${nodes.%s.result.rows}","b":"${nodes.%s.status}","c":"${run.id}","d":"x${params.n}"}`,
					n.DependsOn[0], n.DependsOn[1]))
			n.When = "params.n > 0"
		}
		d.Nodes[name(i)] = n
	}
	return d
}

// BenchmarkCompile_LargestDefinition measures a PUT of the largest definition.
func BenchmarkCompile_LargestDefinition(b *testing.B) {
	d := large()
	for b.Loop() {
		if _, err := dag.Compile(d); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPayload measures the release of one node with four expressions.
func BenchmarkPayload(b *testing.B) {
	g, err := dag.Compile(large())
	if err != nil {
		b.Fatal(err)
	}
	f := dag.Facts{Params: map[string]any{"n": int64(1)}, Nodes: map[string]dag.NodeFacts{}}
	for _, p := range g.Needs("node_499") {
		f.Nodes[p] = dag.NodeFacts{Result: map[string]any{"rows": int64(1)}, Status: "SUCCEEDED"}
	}
	for b.Loop() {
		if _, err := g.Payload(context.Background(), "node_499", f); err != nil {
			b.Fatal(err)
		}
	}
}
