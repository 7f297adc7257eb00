// Package recur promotes schedules: it makes jobs of their nominal times as these enter the
// horizon, adopts those that an older epoch left, records what was missed, and moves the
// schedule on. It is the part that the promoter, the sweeper, dispatch and the API share, and
// no stage itself.
//
// What always holds: what is decided comes from package schedule and from a strongly read
// item; jobs are made before the schedule moves past them, and what is not made is recorded in
// the transaction that moves it. Of two who promote at once both make the same jobs and one
// moves the schedule; the other decides again. Work is bounded per call.
//
// A schedule of a dag has rows that stand for runs. This package begins these at their time, in one
// transaction with slot and count, and ends them when their runs are over. Runs are handed to it.
//
// How it fails: with an error that says what was being done to which schedule. Doing it again
// is always allowed; the schedule keeps its wake-up. A schedule that cannot be read, or whose
// calendar cannot, is a fault of kind Undecodable, which Slice sets aside for a while.
package recur
