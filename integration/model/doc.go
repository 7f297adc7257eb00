// Package model searches the protocol of runs (shared/job/PROTOCOL.md, "Runs") exhaustively on small
// graphs: it visits every state that any order of steps can lead to.
//
// A state is the table (the run item, the rows of all generations, counters, a slot) and what each actor does and
// remembers: two releasers, a worker, two operators. Each conditional write of the protocol is one step; between a
// read and the write that follows from it all others may act. Any of them may crash anywhere, and a message may arrive
// twice.
//
//	Search ─ all states ─▶ check each step                       (check.go shares no code with the protocol)
//	       └ each state ─▶ follow it until nothing happens by itself (ended, held or paused; never stuck)
//
// dag.Evaluate decides what a step does, as in the product; dagtest.Evaluate says what it should do. Every condition
// can be left out (Broken), and the tests show that the search then finds a violation.
//
// The tests search a sample of the worlds. MODEL_FULL=1 searches all: some hours, and 4 GB.
package model
