// Package handler is yours: it holds the Go functions that run tasks of executor "go", and All,
// which registers them by the tasks' names.
//
// A handler is func(ctx, worker.Job[P]) (R, error): the job's payload is decoded into P, what it
// returns becomes the job's result. It may be run more than once for one job (a worker can die
// after the work and before saying so), so what it does to the world goes by Job.Key, which stays
// the same. It should end soon after its context does; context.Cause says why that ended.
package handler
