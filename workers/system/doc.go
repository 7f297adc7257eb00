// Package system composes every stage and a worker over given ports, in the order in which a job
// flows through them: the whole product in one process. On a laptop the ports are the in-memory implementations,
// in tests those or an emulator's. In AWS each stage has a main of its own and this package is not
// used.
//
// The pumps do the work of Lambda's event sources, with their rules: batches of ten, only messages
// that did not fail are deleted, and a batch that panics is repeated.
package system
