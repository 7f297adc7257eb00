// Package dispatch turns slices of the due index into firings with the exact delay. A message names a slice, a parking
// place whose pause was lifted, or a row that has expired; the contents of such a row are deleted.
//
//	asked for a slice ─▶ early: its timer is made ─▶ the timer sends the same message at its time
//	                  └▶ in time: it is read, page by page, and each job is sent
//
// What always holds: a slice has one timer, however often it is asked for. It is read when all jobs that it fires have
// long been in it, because a job that is written later goes by the direct lane. A slice is read in pages and sent in
// tens; what an invocation has no time for is carried by a new message. If a timer cannot be made, the slice waits in
// the queue instead. A parking place is read several times over the next minute, because the index shows a parked job
// late.
//
// How it fails: a message that failed is redelivered, and continues from the page that failed. A second firing is
// refused at its claim.
package dispatch
