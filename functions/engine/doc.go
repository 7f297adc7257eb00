// Package engine is what the stages share: what becomes of jobs, schedules and runs. Each verb is a package of its own
// and imports only those below it; finish.go says what follows the end of a job.
//
//	amend            changes schedules and exclusions on request
//	 └▶ engine       one call for each event; what follows it, in order
//	     └▶ decide   what becomes of an open job: asks its schedule or its run, and acts
//	         └▶ recur, runs   schedules, and runs of graphs: what they say of a job, and what an end means to them
//	             └▶ accept    contents ▸ row ▸ key ▸ firing: the only way in
//	             └▶ stop      fence ▸ row: how an open job is brought to its end
//	                 └▶ arm   the only sender of firings; asks for slices, and for work in other invocations
//	effect           what a call leaves to its caller to do
//	edit             changes, cancels and forgets single jobs, and forgets runs, on request
//	show             reads what users see; writes nothing
//	limit            bounds the requests of tenants; knows none of the others
//	scan             passes over slices, watermarks, budgets of time; knows none of the others
//
// What always holds: calls go down, values come back, between packages and between the files of each. The verbs read
// and write only through interfaces. What becomes of a job is decided in shared/job, shared/schedule, shared/dag and
// shared/run.
//
// How it fails: with the errors of what it called, joined. What an error kept from being done is done later: by the
// pending effects of a job, at the wake-up of a run, or by the sweeper.
package engine
