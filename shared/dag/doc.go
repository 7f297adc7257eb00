// Package dag says what a graph of jobs is and decides what happens to each of its nodes.
//
// A Definition is what a user writes. Compile checks all of it, expressions included, and returns a
// Graph, which answers every question about one run: which nodes come after which, whether a node
// runs once its parents have ended, what its payload is, and which status the run has.
//
//	Definition ─ Compile ─▶ Graph ─┬─ Evaluate(rule, parents)   run | cancel | skip | hold | wait
//	                               ├─ When, Items, Payload      the node's expressions
//	                               └─ Outcome, CriticalPath     of a run
//
// What always holds: the same facts give the same answer; there is no clock and no I/O. A graph
// that Compile accepts has no cycle, names only nodes, parameters and fields that exist, and its
// expressions end within a bounded number of steps and bytes (package expression).
//
// How it fails: Compile names every violation by JSON pointer and code. An expression that fails
// when it is evaluated gives an *ExpressionError, which names the expression and shows no value.
package dag
