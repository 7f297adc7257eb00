// Package laptop is Punctual on localhost: every stage and a worker in one process, over the memory
// in-memory implementations, with the real clock. What it holds is gone when it ends, unless Options.Data names a
// folder that keeps it.
//
// With a folder, an answered call is in a file: whatever ends the process, the next one goes on from
// there, and what had been received and not handled is received again at once. The file is synced each
// second, so that a failure of the machine costs the last second at most. What was about to start when
// the process was killed starts when its lease ends, after 30 s.
//
// Options.At and Speed show another time: a clock that leaps over what no person needs to see. Between the leaps, while
// a job runs or is about to start, it is even, so that leases, timeouts and lateness are what
// they always are. The HTTP server and whom jobs call stay in real time.
package laptop
