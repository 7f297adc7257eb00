// Package stream reads the changes of the jobs table and fires jobs that are near. A job that is due soon is sent to
// its queue with a delay. For a job that is due later, dispatch is asked to read its slice at its time. When a row
// expires, dispatch is asked to delete its contents: payload, result, tags, attempts.
//
// What always holds: it acts only if version, attempt or due time changed, by the lane that is right when it reads the
// change. It never writes the table, so it never triggers itself. It makes no timer, so that one that fails holds up no
// firing. A record that it cannot read is quarantined and blocks nothing.
//
// How it fails: a record whose message could not be sent is redelivered, with the later records of its shard. If a
// record is lost, its job starts late: the promoter or the sweeper finds it in the due index.
package stream
