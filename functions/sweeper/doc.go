// Package sweeper reads, each minute, the slices that are older than the grace. For a job that is still there,
// something went wrong: its firing was lost, its worker died, or its report or dead letter never arrived. The sweeper
// decides about it from its row, its claim and the pauses.
//
// What always holds: each pass also rereads the last ten minutes before the watermark, and the last day once an hour:
// for schedules and runs only at the ages of 1, 4, 12 and 24 hours.
// An index entry that is older than its row is ignored. A row that cannot be read or handled stops nothing and is
// retried a quarter of an hour later. Passes may take longer than a minute and overlap: if two act on one job, one of
// the writes is refused.
//
// It also unparks jobs whose pause has ended, in case the message that does so was lost; starts jobs that are queued
// behind a run that has ended; and promotes schedules that the promoter has missed.
//
// Runs of graphs are derived at their wake-ups, without the grace: nothing else ends a run that has expired.
//
// Each kind of work has a share of a pass's time, which is shared fairly among tenants and schedules.
//
// How it fails: a slice in which something failed is noted on its shard's watermark, and each pass rereads it.
package sweeper
