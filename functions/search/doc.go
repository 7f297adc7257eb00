// Package search keeps the index of jobs up to date. It reads all changes of the jobs table and writes, for each job
// that changed in what can be searched for, the entry that its row gives; with its labels, and the dag of its run.
//
// What always holds: the index follows from the jobs table alone, so Rebuild makes it anew; an older row never replaces
// the entry of a later one, in whatever order and however often changes arrive; no job waits for the index, and nothing
// is decided by it. Where it runs, package changes quarantines a change that cannot be read.
//
// How it fails: a change whose entry could not be written is redelivered, with the later changes of its shard. Until it
// is written, searches miss the job, or leave it out because its row no longer matches.
package search
