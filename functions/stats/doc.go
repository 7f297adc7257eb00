// Package stats reads the changes of the jobs table and keeps the counts of package shared/stats. It adds up the
// changes of a while in memory, so that a span of a busy task is written once for many jobs.
//
// What always holds: it holds up no other reader of the same changes, and none fails because of it. What it holds in
// memory is bounded: a sum of too many series is added early, and takes nothing more while it cannot be added.
//
// How it fails: counts that could not be added stay in the sum and are added later. Those of a process that dies are
// lost, and those of records that are delivered twice count twice.
package stats
