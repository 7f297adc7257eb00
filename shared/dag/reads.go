package dag

import "slices"

// Readers returns the nodes whose expressions name node and that are no children of it, in alphabetical order. Their
// release waits for its end, too.
func (g *Graph) Readers(node string) []string { return g.readers[node] }

// indirectReaders computes Readers for all nodes.
func (g *Graph) indirectReaders() map[string][]string {
	readers := map[string][]string{}
	for _, name := range g.names {
		for _, of := range g.Needs(name) {
			if !slices.Contains(g.Nodes[name].DependsOn, of) {
				readers[of] = append(readers[of], name)
			}
		}
	}
	return readers
}

// Reads returns the nodes that the expressions of node name and that are no parents of it, in alphabetical order.
func (g *Graph) Reads(node string) []string {
	return slices.DeleteFunc(g.Needs(node), func(of string) bool {
		return slices.Contains(g.Nodes[node].DependsOn, of)
	})
}

// AwaitsRead returns the first ancestor that the expressions of node name and that has not ended, "" if all have. An
// ancestor that is no parent may run although all parents have ended: a retry has begun it anew, or an operator has
// ended a node between the two.
func (g *Graph) AwaitsRead(node string, states map[string]NodeState) string {
	for _, of := range g.Reads(node) {
		if !states[of].Status.Final() {
			return of
		}
	}
	return ""
}

// PayloadNeeds returns the nodes whose facts the payload of node and the keys of its limits name, in order.
func (g *Graph) PayloadNeeds(node string) []string {
	var names []string
	for t := range g.exprs[node].jobTexts() {
		for _, p := range t.parts {
			if p.expr != nil {
				names = append(names, p.expr.nodes...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
