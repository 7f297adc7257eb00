// Package load measures the product on this machine: `make bench` runs it and prints one
// table with the machine's name on top. Every figure is taken over the memory twins, so it is
// what our own code costs; a queue or a table in AWS adds its own time, which is no claim of
// ours to make here.
//
// Nothing here is a unit test: figures are read by people, and compared by ratio within one run.
package load
