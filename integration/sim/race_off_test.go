//go:build !race

package sim

const raced = false

// fewer divides the number of runs: with 1 they take a quarter of an hour.
const fewer = 4
