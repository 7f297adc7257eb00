//go:build race

package sim

// fewer divides the number of runs: the race detector makes them eight times slower and needs one
// of each kind.
const fewer = 8
