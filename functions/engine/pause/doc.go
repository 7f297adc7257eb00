// Package pause reads the pauses that hold a tenant's jobs, and keeps them for a moment. An Editor changes those of all
// jobs or of one task; package recur has the pauses of schedules.
//
// What always holds: a copy is never older than FactAge.
//
// How it fails: with the error of the read. Without its pauses a job is not decided about.
package pause
