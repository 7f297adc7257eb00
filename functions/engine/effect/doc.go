// Package effect lists what a call to the engine's verbs leaves for its caller to do: jobs that have ended, runs that
// have ended, jobs to be decided about, runs to be reconciled. engine/finish.go carries it out.
//
// What always holds: a List is a value. Whatever a crash keeps from being carried out is found later: by the pending
// effects of a job, by the wake-up of a run, or by the sweeper among the parked jobs.
//
// How it fails: it does not.
package effect
