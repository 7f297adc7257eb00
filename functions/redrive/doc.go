// Package redrive handles dead letters in both directions.
//
//	status ─▶ redrive queue ─▶ bury ─▶ (SQS, after three receives) ─▶ dead-letter queue
//	dead-letter queue ─▶ an operator's redrive to source ─▶ redrive queue ─▶ a new job, or a node retried
//
// A new dead letter is buried and refused at once on every receive, until the queue's own redrive policy moves it. A
// message that SQS has moved carries its source, which makes the console's "redrive to source" work. A message that we
// sent to the dead-letter queue ourselves would not carry it.
//
// If REST redrives or purges a job, its dead letter stays in the dead-letter queue and keeps the alarm on. So REST
// sends a message that has this stage go through that queue. It deletes the dead letters of jobs that are redriven or
// gone:
//
//	REST ─▶ redrive queue ─▶ collect ─▶ dead-letter queue, up to some ten thousand dead letters at a time
//
// What always holds: which direction a dead letter takes depends only on its body and when it was enqueued. A job is
// redriven once, however many copies of its dead letter arrive. A dead letter is deleted only when its job was
// redriven or is gone.
//
// How it fails: a dead letter that could not be handled is redelivered. After three receives it is in the dead-letter
// queue, from where it can be redriven once more. So is a message of a kind that only newer code knows, unchanged:
// it waits there for that code.
package redrive
