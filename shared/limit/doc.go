// Package limit is what the store holds of limits of work: how many jobs of a key may run at a time, and how many may
// start in any window of a length. shared/job/PROTOCOL.md, part Limits of work, says which process writes what, and
// why. Nothing in here reads a clock or calls a store.
package limit
