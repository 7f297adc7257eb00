// Package redrive handles dead letters in both directions.
//
//	status ─▶ redrive queue ─▶ bury ─▶ (SQS, after three receives) ─▶ dead-letter queue
//	dead-letter queue ─▶ somebody's redrive to source ─▶ redrive queue ─▶ a new job, or a node retried
//
// A new dead letter is buried and refused at once on every receive, until the queue's own redrive
// policy moves it. A message that SQS moved carries its source, which makes the console's "redrive to
// source" work; one that we had sent there ourselves would not.
//
// What was brought back or deleted by REST leaves its letter behind in the dead-letter queue, and the
// alarm on. So REST asks for a go through that queue, which deletes the letters whose jobs are dead no
// more, and leaves the others as they are:
//
//	REST ─▶ redrive queue ─▶ collect ─▶ dead-letter queue, up to some ten thousand letters at a time
//
// What always holds: only the dead letter and when it was enqueued say which direction it takes, no
// other state does; a job is brought back once, however many copies of its dead letter arrive; a dead
// letter is deleted only when its job was brought back or is gone.
//
// How it fails: a dead letter that could not be handled is redelivered, and after three receives it
// is in the dead-letter queue, from where it can be redriven once more.
package redrive
