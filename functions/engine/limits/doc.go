// Package limits decides whether the limits of work of a job let an attempt of it start, and which of the jobs that
// wait for a permit may start next. The protocol is in shared/job/PROTOCOL.md, "Limits of work": a worker takes the
// permits, just before it starts the attempt, and gives them back once its outcome is recorded. Here are given back
// those of an attempt whose worker did not.
//
// What always holds: a permit is given back only after its attempt has ended, or its claim was fenced; and the
// process that gives one back learns whether a job waits for it.
//
// How it fails: with an error of the store. Jobs that wait are then found by the sweeper's next pass.
package limits
