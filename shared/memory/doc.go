// Package memory is the in-memory implementation of our AWS adapters: a table with sparse, lagging indexes and a
// stream, queues, timers, blobs, secrets and functions, all in one process and with the semantics
// that AWS documents. Tests, the simulation, the benchmarks and the product on localhost run on it.
//
//	w := memory.New(memory.Options{})          // one World: its parts are connected
//	defer w.Close()
//	s := store.New(w.Table(), w.Blobs())       // a timer of w.Timers() fires into w.Queues()
//	w, err := memory.Open(dir, o)              // the same, kept in files
//
// What always holds: a strong read sees every write that was answered; a message that was sent is
// received at least once or is in its dead-letter queue; returned items are copies; waiting uses
// package time, so all of it runs in a bubble of testing/synctest; no goroutine outlives a call, but for
// those that sync and compact the files of a World of [Open], until Close.
//
// How it fails: as AWS does, with the kinds of package fault, and on demand. [Options.Faults] is
// called before every call and can make it fail, hang, lose its answer, or happen twice. What AWS
// leaves open (how late a timer is, how long an index lags) is an option, and derived from identity,
// so that a run can be repeated.
package memory
