// Package bulk continues operations on many jobs or runs: each message of the bulk queue names one, works on it for
// some seconds, and is followed by another message until the operation has ended.
//
//	API, sweeper ─▶ bulk queue ─▶ some chunks of rows ─▶ bulk queue ─▶ …
//
// What always holds: all state is in the operation's item and pages, so a message may be lost, or arrive twice: the
// process that works on an operation has its lease, and the sweeper asks for those that do not come forward.
//
// How it fails: a step that failed is repeated after a wait that the operation notes. A message that cannot be read is
// quarantined.
package bulk
