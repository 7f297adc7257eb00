// Package amend changes schedules and exclusions on request, and makes a job or a run of a schedule in addition to its
// times.
//
// What always holds: before a change takes effect, the jobs that are due by then are made; after it, those of the near
// future. Each change is one of package schedule's named writes, decided from the schedule as it is; where another
// writer comes first, it is decided once more. The package calls the engine, and nothing of the engine calls it.
//
// How it fails: with an error that says what is wrong with the request (Stale, QuotaExceeded, DagGone, Unfit, NoRun, a
// *calendar.Error), with a fault.NotFound for an absent or deleted schedule, or with the store's error. Each call may
// be repeated; what it leaves undone is done by dispatch or the sweeper.
package amend
