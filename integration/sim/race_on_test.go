//go:build race

package sim

// The race detector makes everything about eight times as slow; it needs to see each kind of
// run, not all of them.
const fewer = 8
