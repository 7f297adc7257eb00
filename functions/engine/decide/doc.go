// Package decide finds out from the facts what becomes of an open job, and does it: at a wake-up, at
// a worker's report, or because somebody asks for its end.
//
//	wake-up ─▶ row, claim, pauses, owner ─▶ run · wait · park · skip · expire · settle pending effects
//	report  ─▶ claim's outcome           ─▶ done · retry · dead
//	request ─▶ stop on the row           ─▶ cancelled, or its worker is asked to stop
//	                                                    └▶ final ─▶ OnFinal: metrics, schedule, children
//
// What always holds: every act starts from strongly read facts; every write carries the protocol's
// condition, and a refused one decides anew from what stands there; a wake-up that leaves a job
// unfinished has given it its next one before anything is sent, so a crash in between costs time,
// never the job; doing any of it twice does no more than doing it once, apart from messages that
// their receivers refuse. What ends a job announces it once.
//
// How it fails: with an error that says what was being done to which job. The job keeps a wake-up,
// so trying again is always allowed.
package decide
