// Package release brings the runs of graphs on: it releases what may run once its parents have ended,
// ends what may not, and ends the run. The protocol is shared/job/PROTOCOL.md, "Runs".
//
//	end of a job ─▶ Ended ── judges the children, tells on what it ends itself ─┐
//	wake-up, acts ─▶ Derive ─ judges the whole run from its rows ───────────────┴▶ rows · the run's end
//
// What always holds: a node's fact is one row for each of its generations; whoever finds that row
// written leaves it as it is. Each call may be repeated, and two may be made at a time.
//
// How it fails: with an error that names the run. What a call has left undone is found again: by what
// the ended job owes, or by the run's wake-up, which is there until the run is over.
package release
