// Package engine wires together the verbs that the stages share. Each verb is a package of its own and imports
// only those below it.
//
//	recur, runs      schedules; runs of graphs, and the children of what has ended
//	   └▶ decide     what becomes of an open job; announces each end once
//	       └▶ accept contents ▸ row ▸ key ▸ firing: the only way in
//	           └▶ arm   the only sender of firings; asks for slices
//	scan             passes over slices, watermarks, budgets of time; knows none of the others
//
// What always holds: the verbs read and write only through interfaces. What becomes of a job is decided in
// shared/job, shared/schedule, shared/dag and shared/run.
//
// How it fails: it does not. It only wires.
package engine
