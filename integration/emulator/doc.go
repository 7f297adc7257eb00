// Package emulator proves what runs on AWS against a local one: the adapters by the conformance
// suite, and whatever else needs a real API on the other side. It holds tests only; package
// environment below starts the emulators.
package emulator
