package dag_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/job"
)

// fifty is a graph of fifty nodes in several levels, each of which waits for up to three.
func fifty(t *testing.T) (*dag.Graph, map[string]dag.NodeView) {
	t.Helper()
	statuses := []job.Status{job.Succeeded, job.Running, job.Queued, "", job.Dead, job.Cancelled, job.Skipped}
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	appearances := map[string]dag.NodeView{}
	for n := range 50 {
		node := dag.Node{Task: "echo"}
		for p := range min(n/8, 3) {
			node.DependsOn = append(node.DependsOn, fmt.Sprintf("node-%02d", (n/8-1-p%2)*8+(n*7+p*3)%8))
		}
		if len(node.DependsOn) > 1 && node.DependsOn[0] == node.DependsOn[len(node.DependsOn)-1] {
			node.DependsOn = node.DependsOn[:1]
		}
		name := fmt.Sprintf("node-%02d", n)
		d.Nodes[name] = node
		appearances[name] = dag.NodeView{Status: statuses[n%len(statuses)]}
	}
	g, err := dag.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g, appearances
}

//proof:of 140
func TestSVG_ShowsEachNodeOnceWithoutOverlap(t *testing.T) {
	t.Parallel()
	g, appearances := fifty(t)
	svg := g.SVG("etl <1>", appearances)
	if to := os.Getenv("PUNCTUAL_DRAW"); to != "" {
		if err := os.WriteFile(to, []byte(svg), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boxes := map[string]bool{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it is no XML: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "text" {
			continue
		}
		at := ""
		for _, a := range start.Attr {
			if a.Name.Local == "x" || a.Name.Local == "y" {
				at += a.Value + " "
			}
		}
		if boxes[at] {
			t.Errorf("two texts stand at %s", at)
		}
		boxes[at] = true
	}
	if len(boxes) != 2*50+1 {
		t.Errorf("%d texts are shown", len(boxes))
	}
	if edges := strings.Count(svg, "marker-end"); edges != g.Edges() {
		t.Errorf("%d edges are drawn of %d", edges, g.Edges())
	}
}

//proof:of 140
func TestMermaid_ShowsNodesEdgesAndStates(t *testing.T) {
	t.Parallel()
	g, err := dag.Compile(dag.Definition{Nodes: map[string]dag.Node{
		"a": {Task: "echo"}, "end": {Task: "echo", DependsOn: []string{"a"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := `flowchart TD
  n0[["a<br/>DEAD"]]:::dead
  n1["end<br/>BLOCKED<br/>1 of 2 items"]:::blocked
  n0 --> n1
  classDef blocked fill:#f6f8fa,stroke:#8c959f,color:#1f2328
  classDef dead fill:#ffebe9,stroke:#cf222e,color:#1f2328
`
	if got := g.Mermaid(map[string]dag.NodeView{"a": {Status: job.Dead}, "end": {Note: "1 of 2 items"}}); got != want {
		t.Errorf("drew\n%s", got)
	}
}

func TestSVG_BreaksALongNameWhereItsPartsMeet(t *testing.T) {
	t.Parallel()
	long := "load_the_very_long_named_warehouse_table_of_orders_and_items_001"
	g, err := dag.Compile(dag.Definition{Nodes: map[string]dag.Node{
		long: {Task: "echo"}, strings.Repeat("x", 64): {Task: "echo"}, "a": {Task: "echo"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	svg := g.SVG("", map[string]dag.NodeView{"a": {Status: job.Succeeded, Note: "3 of 3 items"}})
	for _, want := range []string{
		">load_the_very_long_named_warehouse_<", ">table_of_orders_and_items_001<",
		"<title>" + long + ": BLOCKED</title>", ">" + strings.Repeat("x", 32) + "<", ">SUCCEEDED, 3 of 3 items<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not shown in\n%s", want, svg)
		}
	}
}
