// Package dispatch turns what timers and crowded slices say into firings with the exact delay.
// A message names one job's firing, or a slice of the due index, or a parking place whose
// pause was lifted, or a row that the table has let go: then what lay beside that goes too.
//
// What always holds: a slice is paged and sent in tens, and what an invocation has no time for
// goes on in a message of its own; what a parking place holds is decided again from its rows,
// several times over the next minute, because the index that lists it lags behind a parking.
//
// How it fails: a message that failed comes again whole. Firings sent twice are refused at
// their claim.
package dispatch
