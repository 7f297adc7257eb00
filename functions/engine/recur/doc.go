// Package recur promotes schedules: it makes jobs of the nominal times that enter the horizon, adopts the jobs that
// an older epoch has made, records missed times in the ledger, and moves the schedule on. The promoter, the sweeper,
// dispatch and the API share it.
//
// What always holds: package schedule decides, from a strongly consistent read. Jobs are made before the schedule
// moves past them, and times without a job are recorded in the transaction that moves it. If two promote at once,
// both make the same jobs, and one moves the schedule; the other decides anew. Work is bounded per call.
//
// A schedule of a dag has rows that represent runs. This package begins such a run at its time, in one transaction
// with slot and count, and ends the row when the run has ended.
//
// How it fails: with an error that says what was being done to which schedule. Every call may be repeated; the
// schedule keeps its wake-up. A schedule that cannot be read, or whose calendar cannot, is a fault.Undecodable, and
// Slice quarantines it.
package recur
