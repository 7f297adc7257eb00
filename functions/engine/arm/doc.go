// Package arm gets firings on their way, and is the only sender of firings.
//
//	now, direct ─▶ a message in the firing queue, with a delay
//	timer       ─▶ dispatch is asked for the slice: it has a timer made, and then sends all that the slice holds
//	store       ─▶ nothing yet: the due index brings the job to the promoter
//
// What always holds: what is due first goes first; one firing that fails harms no other; nobody
// waits here for a timer; sending or asking for the same again does no harm, because a second
// firing is refused at its claim.
//
// How it fails: with one error for each firing or slice. The job keeps its wake-up all the same.
package arm
