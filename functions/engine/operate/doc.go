// Package operate carries out operations on rows: it notes which jobs or runs match a filter, and then does one action
// to each of them, in chunks. The protocol is in shared/job/PROTOCOL.md, "Operations on rows".
//
//	COUNTING ─▶ CANARY ─▶ RUNNING ─▶ SUCCEEDED or FAILED
//	note ids    the oldest    the others, as fast as the rate allows
//
// What always holds: an operation works on the ids that it has noted, each once. A chunk is begun by a write that notes
// the versions of its rows, and counted by another one; a chunk whose process crashed between the two is done by the
// next, which recognises the rows that were done. One process at a time works on an operation, as long as it has the
// lease. Every action is the one of a single row, by the rules of package edit and of the runs.
//
// How it fails: with an error of the store. The operation stays as it is then, and is continued after a wait; the
// sweeper asks for that, too.
package operate
