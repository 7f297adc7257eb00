// Package dagtest says a second time how a dag must end, for tests: of each node by the ends of its parents, and of the
// run by the ends of its nodes. It is written from the documented table of trigger rules and shares no code with
// dag.Evaluate and Graph.Outcome: an error in one of them shows where they differ.
package dagtest
