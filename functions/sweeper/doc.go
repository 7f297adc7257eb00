// Package sweeper looks, each minute, at the slices that lie behind the grace. Whatever is
// still there is a job that something went wrong with: its firing was lost, its worker died,
// its report or letter never came. Each is decided again from row, claim and pauses.
//
// What always holds: a watermark is a hint, so the last ten minutes are read again in each
// pass and the last day once an hour; an entry that the row has moved on from is passed by; a
// row that cannot be read is set aside with its reason and stops nothing. Passes may take
// longer than a minute and overlap: of two that act on one job, one finds the other's write.
//
// It also looks after what pauses have parked, should the message that wakes it be lost, after
// what waits behind runs that are not over, and promotes schedules that were left behind.
//
// How it fails: a slice in which something failed holds its shard's watermark back and is
// visited again.
package sweeper
