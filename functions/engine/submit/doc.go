// Package submit accepts the jobs and makes the runs that requests ask for. A request with an idempotency key takes
// effect once: the key is written in one transaction with the job or the run, and a repeated request finds that one.
//
// What always holds: the key is looked up before the request is read, because a time or a task that was right in the
// first request may be wrong by now. Of two requests with one key at the same time, one makes the job and the other
// finds it. A job or run that was deleted frees its key.
//
// How it fails: with ErrKeyReused for a key of another body, and with a fault.Conflict for a key that was freed while
// the request ran. What the caller's functions return is returned as it is.
package submit
