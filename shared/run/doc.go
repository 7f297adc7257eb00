// Package run is one execution of a graph: its item, what it says of its nodes, and every write of it
// with the exact condition of the protocol (shared/job/PROTOCOL.md, "Runs").
//
//	BUILDING ─▶ RUNNING ─▶ SUCCEEDED · FAILED · CANCELLED
//	              ▲  └─▶ HELD  │
//	              └─────┴──────┘  an operator's retry, skip or complete
//
// What a node has come to is not here: that is the row of its job, under the id that Key.Job derives
// from run, node and generation. The run only says which generation counts.
//
// What always holds: a write is refused once another process has acted since the run was read; the epoch only
// grows; a run that has not ended has a wake-up.
//
// It knows no graph, so that a worker can ask a run whether a node may start without the expressions of
// package dag.
package run
