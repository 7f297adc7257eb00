// Package engine puts the verbs together that the stages share: one package each, importing only
// downwards.
//
//	recur, release   schedules; runs of graphs, and the children of what has ended
//	   └▶ decide     what becomes of an open job; announces each end once
//	       └▶ accept contents ▸ row ▸ key ▸ firing: the only way in
//	           └▶ arm   the only sender of firings; asks for slices
//	scan             passes over slices, watermarks, budgets of time; knows none of the others
//
// What always holds: the verbs act over ports; what a job comes to is judged in shared/job,
// shared/schedule, shared/dag and shared/run.
//
// How it fails: it wires and does nothing else, so it does not.
package engine
