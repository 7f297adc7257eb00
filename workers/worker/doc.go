// Package worker runs jobs: it polls the firing queues, claims an attempt, runs it, records its
// outcome and reports it.
//
//	receive ─▶ hold till due − 500 ms ─▶ a slot ─▶ the steps of an attempt ─▶ run ─▶ outcome ─▶ report ─▶ delete
//	                                                                           └ heartbeats: lease, visibility,
//	                                                                             progress; they see the cancel flag
//
// The steps are in one list (attend.go): row, place of the task, claim, facts, payload, due time, last check,
// admission to the schedule, run. Each goes on to the next or returns a disposition (give the message back, delete it,
// settle the attempt …), and one switch carries it out.
//
// The first read of the row decides nothing that a claim could change. A task that this fleet does
// not know must be given back before it is claimed, and only the row names the task.
//
// The files call downwards only; integration/layout holds that:
//
//	work · poll                        Run and its drain; one loop for each queue, one for the slots of each pool
//	attend                             the steps of an attempt, and what becomes of it
//	run · schedule · check · claim     the steps that need more than a few lines
//	settle · flush · call              outcomes, reports in batches, calls and what follows one without an answer
//	giveback · deletes · report        what becomes of a message
//	worker · attempt                   what all of these belong to
//	intake · polls · pause · trouble   what the worker knows of slots, receives, pauses and failed calls
//
// What always holds:
//   - The worker writes claims and nothing else. A job's row is settled by the status stage,
//     from reports.
//   - No attempt starts before it is due, without a claim of its own whose lease has time left
//     by the monotonic clock, or on a row or pauses read more than two seconds ago.
//   - A message is deleted only after its report was sent, or after a row read from the table
//     showed that it is stale.
//   - Everything is bounded: messages held, claims under way, reports waiting to be sent.
//   - Shutting down loses nothing and costs no job an attempt.
//
// How it fails: a worker that dies leaves its lease to run out and its messages to become
// visible again, and another takes over with a higher token. A worker that cannot reach the
// table gives its messages back and polls less and less often until a claim, an outcome or a heartbeat
// gets through. Trouble of a single key (a conflict, a hot partition, an item that cannot be read)
// keeps only its own message away. A message that it cannot read stays in the queue, whose redrive
// policy moves it away. A report that can never be sent is given up: its message is received again, and
// the sweeper finds the outcome on the claim.
//
// # Priorities
//
// Each queue, of every pool and priority that the worker serves, has a goroutine of its own with
// a receive always waiting, while slots are free: a job that is due now is picked up as soon as it
// is sent. Slots are given in strict order of priority, and messages are received only for
// slots that are free: a message is not taken away from other workers to wait here. The receive
// of a queue that was last found empty asks for one message and reserves nothing, so at most one
// message for each idle queue can come too many. A queue whose last receive brought something is
// polled without waiting, and until it has answered, slots for a full receive are kept for it from
// all lower ones, those in hand included. What gets no slot within a second of being due is given
// back. Each pool has slots of its own. Some of them (Options.Reserve) are kept for critical jobs, so
// that 10,000 long low ones in the queue do not hold them up.
package worker
