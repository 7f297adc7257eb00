// Package system composes every stage and a worker over given ports, in the order in which a
// job flows through them: the whole product in one process. On a laptop the ports are the
// memory twins, in tests those or an emulator's; in AWS each stage has a door of its own and
// this package is not there.
//
// The pumps stand in for Lambda's event sources and do what those do: batches of ten, only
// the messages that did not fail are deleted, a batch that panics comes again.
package system
