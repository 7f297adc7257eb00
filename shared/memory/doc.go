// Package memory is the twin of our AWS adapters: a table with sparse, lagging indexes and a
// stream, queues, timers, blobs, secrets and functions, all in one process and with the semantics that AWS
// documents. Tests, the simulation, the benchmarks and the product on localhost run on it.
//
//	w := memory.New(memory.Options{})          // one World: its parts know each other
//	defer w.Close()
//	s := store.New(w.Table(), w.Blobs())       // a timer of w.Timers() fires into w.Queues()
//
// What always holds: an answer given is never taken back (a write is there for the next strong
// read, a message sent is received at least once or lies in its dead-letter queue); items handed
// out are copies; waiting uses package time, so all of it runs in a bubble of testing/synctest;
// there is no goroutine that outlives a call.
//
// How it fails: as AWS does, by kinds of package fault, and on demand. [Options.Faults] is asked
// before every call and may refuse it, let it hang, lose its answer, or do it twice. What AWS
// leaves open (how late a timer is, how long an index lags) is an option derived from
// identity, so that a run can be repeated.
package memory
