// Package queue sends, receives and deletes messages in SQS standard queues.
//
// Queues go by the logical names of package contract; their URLs are asked for once. Sends and
// deletes of any number go in batches of ten, since SQS bills a batch like a single message.
//
// What always holds: a send that returns nil has every message in the queue. Entries that SQS
// did not take although the request succeeded are checked one by one: its own failures are
// retried, ours come back in a [message.Unsent] with the others sent. A message may
// arrive twice (an answer was lost, or SQS delivers twice); none of ours minds. The group is a
// tenant: on a standard queue it keeps one tenant's backlog from delaying the others, and
// orders nothing.
//
// How it fails: by the kinds of package fault. A queue that is not there is fault.NotFound. A
// receipt that is no longer good is no error to Delete, and fault.Invalid to SetVisibility.
package queue
