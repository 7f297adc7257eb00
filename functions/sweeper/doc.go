// Package sweeper looks, each minute, at the slices that are behind the grace. Whatever is
// still there is a job that something went wrong with: its firing was lost, its worker died,
// its report or letter never came. Each is decided again from row, claim and pauses.
//
// What always holds: a watermark is a hint, so the last ten minutes are read again in each
// pass and the last day once an hour; an entry that the row has moved on from is passed by; a
// row that cannot be read, or not be brought on, stops nothing and is retried a quarter of
// an hour later, so that nothing drops from sight. Passes may take longer than a minute and
// overlap: of two that act on one job, one finds the other's write.
//
// It also looks after what pauses have parked, should the message that wakes it be lost, after
// what waits behind runs that are not over, and promotes schedules that were left behind.
//
// Runs of graphs are derived from their nodes at their own wake-ups, without the grace: one that has
// expired is ended by nobody else.
//
// Each kind of this work has a share of a pass's time, and takes turns within it.
//
// How it fails: a slice in which something failed is noted on its shard's watermark and visited
// again by each pass.
package sweeper
