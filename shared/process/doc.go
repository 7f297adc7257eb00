// Package process holds what each stage, the engine and the worker get of the process that they run in, and the
// defaults for what they do not get. It decides nothing and never fails.
package process
