// Package load measures the product on this machine: `make bench` runs it and prints one table with
// the machine's name on top. Every figure is taken over the in-memory implementations, so it is the cost of our
// own code; a queue or a table in AWS adds its own time, which is not measured here.
//
// Nothing here is a unit test: people read the figures, and compare ratios within one run.
package load
