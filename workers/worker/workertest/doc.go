// Package workertest runs a handler in a test as a worker would: the payload goes through JSON
// and back, a panic is a failure, the context has a timeout and can end for every reason that it
// ends for in a worker.
//
//	got := workertest.Run(t, charge, Invoice{Cents: 100})
//	if got.Err != nil || got.Result.Receipt == "" { … }
//
// What always holds: the handler sees what it would see in production, and [Ended] says what the
// system would make of its return. What it does not do: retry. A handler's second attempt is
// another Run, with [Attempt] and the same [Key].
package workertest
