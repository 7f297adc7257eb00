// Package dispatch turns slices of the due index into firings with the exact delay. A message names a
// slice, or a parking place whose pause was lifted, or a row that the table has let go: then what lay
// beside that goes too.
//
//	asked for a slice ─▶ early: its timer is made ─▶ the timer sends the same message at its time
//	                  └▶ in time: it is read, page by page, and each job is sent
//
// What always holds: a slice has one timer, whoever asks for it and however often; it is read once all
// that it fires has long been in it, because what is written later goes by the direct lane; a slice is
// paged and sent in tens, and what an invocation has no time for goes on in a message of its own; a
// timer that cannot be had holds up nothing, and its slice comes by the queue; what a parking place
// holds is decided again from its rows, several times over the next minute, because the index that
// lists it lags behind a parking.
//
// How it fails: a message that failed comes again, from the page that failed on. Firings sent twice
// are refused at their claim.
package dispatch
