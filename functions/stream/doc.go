// Package stream sees what was written to the jobs table and gets firings on their way:
// what is due soon goes to its queue with a delay, what is due later gets a timer, and the
// timer of what an edit or a stop made stale is taken back. When the table lets a row go whose
// time is over, it has dispatch forget what lay beside that: payload, result, tags, attempts.
//
// What always holds: it arms whatever it sees, in whichever lane that is by now, and only when
// version, attempt or due time changed; it never writes the table, so it cannot feed itself; a
// record that it cannot read is set aside and blocks nothing.
//
// How it fails: a record that could not be armed comes again with what lies behind it in its
// shard. A record lost altogether costs its job lateness: the due index brings it back.
package stream
