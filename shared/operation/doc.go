// Package operation is what the store holds of operations: work on many jobs that a caller asked for in one request,
// which goes on step by step, shows its progress and can be stopped. shared/job/PROTOCOL.md, part Backfills, says which
// process writes what, and why. Nothing in here reads a clock or calls a store.
package operation
