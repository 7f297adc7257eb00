// Package sweeper reads, each minute, the slices that are older than the grace. A job that is still
// there went wrong: its firing was lost, its worker died, or its report or dead letter never arrived.
// Each is decided about from its row, its claim and the pauses.
//
// What always holds: a watermark is a hint, so each pass also rereads the last ten minutes, and the
// last day once an hour. An index entry that is older than its row is ignored. A row that cannot be
// read or handled stops nothing and is retried a quarter of an hour later, so that nothing is lost from
// sight. Passes may take longer than a minute and
// overlap: of two that act on one job, one finds the other's write.
//
// It also unparks jobs whose pause is over, should the message that does so be lost, starts jobs that
// wait behind a run that is over, and promotes schedules that were left behind.
//
// Runs of graphs are derived from their nodes at their own wake-ups, without the grace: one that has
// expired is ended by nobody else.
//
// Each kind of work has a share of a pass's time, and shares it fairly among tenants and schedules.
//
// How it fails: a slice in which something failed is noted on its shard's watermark and reread
// by each pass.
package sweeper
