// Package emulator tests against a local AWS what runs on AWS: the adapters by the conformance
// suite, and whatever else needs a real API on the other side. It holds tests only; package
// environment below starts the emulators.
//
// Exercises that wait for minutes (a timer that fires, a visibility timeout that ends) run when
// PUNCTUAL_TEST_PATIENCE says how long one may wait; 4m is enough for all.
package emulator
