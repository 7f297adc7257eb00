// Package model searches the protocol of runs (shared/job/PROTOCOL.md, "Runs") exhaustively on small
// graphs: it visits every state that any order of steps can lead to.
//
// A state is the table (the run item, the rows of all generations, counters, a slot) and the place and
// memory of everybody who acts: two who release, a worker, two operators. Each conditional write of the
// protocol is one step; between a read and the write that follows from it everybody else may act. One
// of them may crash anywhere, and a message may come twice.
//
//	Search ─ all states ─▶ each step against the contract   (check.go: written apart from the protocol)
//	       └ each state ─▶ where it comes to rest by itself (ended, held or paused; never stuck)
//
// What a step may do is judged by dag.Judge, as in the product; what it should have done, by a table
// written once more. Every condition can be left out (Broken), and the tests show that its loss is found.
//
// The tests take one world of each lot. MODEL_FULL=1 takes all: some hours, and 4 GB.
package model
