// Package stream sees what was written to the jobs table and gets firings on their way: what is due
// soon goes to its queue with a delay, what is due later waits for its slice, and dispatch is asked
// to have that read at its time. When the table lets a row go whose time is over, it has dispatch
// forget what lay beside that: payload, result, tags, attempts.
//
// What always holds: it acts on whatever it sees, in whichever lane that is by now, and only when
// version, attempt or due time changed; it never writes the table, so it cannot feed itself; it makes
// no timer, so that one which fails holds up no firing; a record that it cannot read is set aside and
// blocks nothing.
//
// How it fails: a record whose message could not be sent comes again with what lies behind it in its
// shard. A record lost altogether costs its job lateness: the due index brings it back.
package stream
