// Package schedule decides about recurring work: what a tenant's rule makes of each nominal time,
// and what an edit, a pause, an outage or an overlapping run changes. It is pure: no clock, no dice,
// no I/O; the caller acts on what is decided here.
//
//	create ─▶ active ─ pause ─▶ paused ─ resume ─▶ active      each arrow raises the epoch
//	             └─ edit ─▶ active         └─ delete ─▶ tombstone (keeps its epoch)
//	promotion: next ─▶ jobs (put or adopted) ▸ {ledger, advance} in one transaction
//
// What always holds: every nominal time of an active schedule ends in one job or in one entry of the
// ledger; where there are both, the job counts. A job's id is derived from the schedule and the
// nominal time, so making it twice is making it once. A job of an older epoch does not start:
// promotion adopts it, or it is skipped once the schedule has passed its time. Work is bounded per
// call: a decision that did not see everything reports it.
//
// How it fails: an item that cannot be read is a fault of kind Undecodable; writes carry the
// protocol's conditions, and a refused one is decided once more from facts.
package schedule
