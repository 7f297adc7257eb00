// Package stop brings open jobs to their end: it asks the worker that owns an attempt to stop it, or fences the
// attempt, so that no worker can start it any more, and then writes the row that ends the job.
//
//	stop on the row ─▶ an owner? ─ yes ─▶ it is asked; its outcome decides
//	                      └ no ─▶ fence ─▶ the row is final
//
// What always holds: no row becomes final while a worker may still start its attempt.
//
// How it fails: with a refusal if the job has changed meanwhile; nothing is lost then, as the row keeps its wake-up.
package stop
