// Package arm sends firings; nothing else does.
//
//	now, direct ─▶ a message in the firing queue, with a delay
//	timer       ─▶ dispatch is asked for the slice: it has a timer made, and then sends all that the slice holds
//	store       ─▶ nothing yet: the due index brings the job to the promoter
//
// What always holds: the earliest due is sent first. One firing that fails harms no other. Nothing here waits for
// a timer. Sending or asking twice does no harm, because a second firing is refused at its claim.
//
// How it fails: with one error for each firing or slice. The job still has its wake-up.
package arm
