// Package runs moves the runs of graphs forward: it releases a node once its parents have ended, ends a node that
// must not run, and ends the run. The protocol is in shared/job/PROTOCOL.md, "Runs".
//
//	end of a job ───────▶ Ended ───── evaluates its children, and the children of those that this ends ─┐
//	wake-up, operation ─▶ Reconcile ─ evaluates the whole run from its rows ───────────────────────────┴▶ rows · end
//
// The files call downwards only; integration/layout holds that:
//
//	operation · redrive · launch · create    what a caller asks for
//	slice · keep · propagate · after         the run's wake-up, and the end of a job
//	reconcile · stop · finish                the whole run, and an operation's second write
//	waiters                                  nodes that wait for a permit of the run
//	node · mapped · release                  what becomes of one node and its items is done
//	evaluate                                 what becomes of a node: it decides, and writes nothing
//	weight · close · row · madefrom · sight  what that is made of: rows as they are put, and what expressions see
//	facts · schema · runs                    what one call reads, once, and hands on
//	permit                                   a package of its own: the permits of a limit
//
// What always holds: a node has at most one row in each generation, and a process that finds that row written leaves it
// as it is. Each call may be repeated, and two may be made at a time.
//
// How it fails: with an error that names the run. What a call leaves undone is done later: by the pending effects of
// the ended job, or at the run's wake-up, which it has until it ends.
package runs
