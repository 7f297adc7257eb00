// Package decide reads the facts about an open job, decides what becomes of it, and does it: at a wake-up, at a
// worker's report, or when a caller cancels it.
//
//	wake-up ─▶ row, claim, pauses, owner ─▶ run · wait · park · skip · expire · settle pending effects
//	report  ─▶ claim's outcome           ─▶ done · retry · dead
//	request ─▶ stop on the row           ─▶ cancelled, or its worker is asked to stop
//	                                                    └▶ final ─▶ OnFinal: metrics, schedule, children
//
// What always holds: every operation starts from strongly consistent reads. Every write carries the protocol's
// condition; if it is refused, the facts are read once more. A job that stays open gets its next wake-up before
// anything is sent, so a crash in between delays the job and never loses it. Everything may be done twice: the only
// trace is a second message, which its receiver refuses. The process that ends a job announces the end once.
//
// How it fails: with an error that says what was being done to which job. The job keeps a wake-up, so every call
// may be repeated.
package decide
