// Package arm gets firings on their way, and is the only sender of firings.
//
//	now, direct ─▶ a message in the firing queue, with a delay
//	timer       ─▶ a timer, which sends the message to dispatch just before it is due
//	store       ─▶ nothing yet: the due index brings the job to the promoter
//
// What always holds: what is due first goes first; one firing that fails harms no other; sending or
// arming the same again does no harm, because a second firing is refused at its claim.
//
// How it fails: with one error for each plan or firing. The job keeps its wake-up all the same.
package arm
