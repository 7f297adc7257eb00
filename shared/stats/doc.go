// Package stats counts what becomes of jobs, minute by minute: how many were made, started and ended, and how late they
// started. The counts of a change of a job follow from the row before and after it. They are added up in memory and
// then added to stored spans of five minutes, one for each task and one for all tasks of a tenant.
//
// What always holds: the counts of two sums added together are those of the changes of both, in any order. Nothing in
// here reads a clock or calls a store.
//
// How it fails: counts are close, not exact. A change that is delivered twice counts twice, and what a process has not
// added yet is lost with it.
package stats
