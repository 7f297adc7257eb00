// Package dagtest judges nodes a second time, for tests. It shares no code with dag.Judge: a mistake in one of
// them shows where they differ.
package dagtest
