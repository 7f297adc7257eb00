// Package dagtest evaluates nodes a second time, for tests. It shares no code with dag.Evaluate: an error in one of
// them shows where they differ.
package dagtest
