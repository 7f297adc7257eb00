// Package cache keeps answers of slow reads for a while.
//
// What always holds: an answer is never older than it may be, counted from the moment its read
// began. Nothing is kept beyond the bound; what was read longest ago goes first. Of those who ask
// for one key at the same time one reads, and the others take its answer. A read that began before
// [Cache.Drop] answers no caller that asks after it.
//
// How it fails: with the error of the read. An error is not kept, unless [Options.RetryAfter] says
// for how long. The process that waits for another's read waits no longer than its own context lives, and
// reads itself if the other gave up.
package cache
