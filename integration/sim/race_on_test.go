//go:build race

package sim

const raced = true

// fewer divides the number of runs: the race detector makes them eight times slower, and a sample shows it the same code.
const fewer = 64
